package weights

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
)

// ZipWriter writes deterministic archives: members stored, in the order in which they are
// added, dated 1980-01-01, their data aligned by a padding extra field, zip64 fields only
// where a size or offset needs them.
type ZipWriter struct {
	w       ZipTarget
	at      int64
	members []zipRecord
	open    *zipRecord
	crc     hash.Hash32
	names   map[string]bool
	err     error
}

// ZipTarget is what a ZipWriter writes to: in order, and once back for each member's checksum.
type ZipTarget interface {
	io.Writer
	io.WriterAt
}

type zipRecord struct {
	name         string
	size, header int64
	written      int64
	crc          uint32
}

const (
	zipDate      = 1<<5 | 1 // 1980-01-01; the time is 00:00
	zipLimit32   = math.MaxUint32
	zipLimit16   = math.MaxUint16
	zipUTF8      = 1 << 11
	extraZip64   = 0x0001
	extraPadding = 0xd935 // as Android's zipalign: u16 alignment, zeros
)

// NewZipWriter starts an archive at the beginning of w.
func NewZipWriter(w ZipTarget) *ZipWriter { return &ZipWriter{w: w, names: map[string]bool{}} }

// Create begins the member name of exactly size bytes, its data at a multiple of align. What
// is then written to the ZipWriter is its contents, until the next Create or Close.
func (z *ZipWriter) Create(name string, size, align int64) error {
	if err := z.finish(); err != nil {
		return err
	}
	if !safeName(name) || z.names[name] || size < 0 || len(name) > zipLimit16 {
		return fmt.Errorf("zip member %s of %d bytes: unsafe, duplicate or impossible", quote(name), size)
	}
	z.names[name] = true
	m := zipRecord{name: name, size: size, header: z.at}
	var extra []byte
	if size >= zipLimit32 {
		extra = appendUints(extra, extraZip64, 16)
		extra = binary.LittleEndian.AppendUint64(extra, uint64(size))
		extra = binary.LittleEndian.AppendUint64(extra, uint64(size))
	}
	const paddingHeader = 6
	if start := z.at + 30 + int64(len(name)) + int64(len(extra)); start%align != 0 {
		pad := (align - (start+paddingHeader)%align) % align
		extra = appendUints(extra, extraPadding, uint16(2+pad), uint16(align))
		extra = append(extra, make([]byte, pad)...)
	}
	h := binary.LittleEndian.AppendUint32(nil, 0x04034b50)
	h = appendUints(h, zipVersion(size >= zipLimit32), zipUTF8, 0, 0, zipDate)
	h = append(h, 0, 0, 0, 0) // the checksum, written by finish
	h = append32(h, size, size)
	h = appendUints(h, uint16(len(name)), uint16(len(extra)))
	h = append(append(h, name...), extra...)
	z.open, z.crc = &m, crc32.NewIEEE()
	return z.write(h)
}

// Offset is where the next byte goes: right after Create, the offset of the member's data.
func (z *ZipWriter) Offset() int64 { return z.at }

// Write adds to the contents of the member that Create began.
func (z *ZipWriter) Write(p []byte) (int, error) {
	if z.err != nil {
		return 0, z.err
	}
	if z.open == nil || int64(len(p)) > z.open.size-z.open.written {
		return 0, fmt.Errorf("zip: more contents than the member was created for")
	}
	z.open.written += int64(len(p))
	z.crc.Write(p)
	if err := z.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (z *ZipWriter) write(p []byte) error {
	if z.err == nil {
		_, z.err = z.w.Write(p)
		z.at += int64(len(p))
	}
	return z.err
}

// finish completes the open member.
func (z *ZipWriter) finish() error {
	if z.err != nil || z.open == nil {
		return z.err
	}
	m := z.open
	if m.written != m.size {
		return fmt.Errorf("zip member %s: %d of %d bytes written", quote(m.name), m.written, m.size)
	}
	m.crc = z.crc.Sum32()
	if _, z.err = z.w.WriteAt(binary.LittleEndian.AppendUint32(nil, m.crc), m.header+14); z.err != nil {
		return z.err
	}
	z.members, z.open = append(z.members, *m), nil
	return nil
}

// Close writes the directory. It does not close the target.
func (z *ZipWriter) Close() error {
	if err := z.finish(); err != nil {
		return err
	}
	start := z.at
	for _, m := range z.members {
		if err := z.write(m.directoryEntry()); err != nil {
			return err
		}
	}
	size, n := z.at-start, len(z.members)
	var end []byte
	if n >= zipLimit16 || size >= zipLimit32 || start >= zipLimit32 {
		end = binary.LittleEndian.AppendUint32(end, 0x06064b50)
		end = binary.LittleEndian.AppendUint64(end, 44)
		end = appendUints(end, 45, 45, 0, 0, 0, 0)
		for _, v := range []int64{int64(n), int64(n), size, start} {
			end = binary.LittleEndian.AppendUint64(end, uint64(v))
		}
		end = binary.LittleEndian.AppendUint32(end, 0x07064b50)
		end = binary.LittleEndian.AppendUint32(end, 0)
		end = binary.LittleEndian.AppendUint64(end, uint64(z.at))
		end = binary.LittleEndian.AppendUint32(end, 1)
	}
	end = binary.LittleEndian.AppendUint32(end, 0x06054b50)
	count := uint16(min(n, zipLimit16))
	end = appendUints(end, 0, 0, count, count)
	end = append32(end, size, start)
	return z.write(appendUints(end, 0))
}

func (m *zipRecord) directoryEntry() []byte {
	var extra []byte
	if m.size >= zipLimit32 {
		extra = binary.LittleEndian.AppendUint64(extra, uint64(m.size))
		extra = binary.LittleEndian.AppendUint64(extra, uint64(m.size))
	}
	if m.header >= zipLimit32 {
		extra = binary.LittleEndian.AppendUint64(extra, uint64(m.header))
	}
	if len(extra) > 0 {
		extra = append(appendUints(nil, extraZip64, uint16(len(extra))), extra...)
	}
	version := zipVersion(len(extra) > 0)
	h := binary.LittleEndian.AppendUint32(nil, 0x02014b50)
	h = appendUints(h, version, version, zipUTF8, 0, 0, zipDate)
	h = binary.LittleEndian.AppendUint32(h, m.crc)
	h = append32(h, m.size, m.size)
	h = appendUints(h, uint16(len(m.name)), uint16(len(extra)), 0, 0, 0, 0, 0)
	h = append32(h, m.header)
	return append(append(h, m.name...), extra...)
}

func zipVersion(zip64 bool) uint16 {
	if zip64 {
		return 45
	}
	return 20
}

func appendUints(b []byte, values ...uint16) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return b
}

// append32 appends sizes, all ones where a zip64 field has the value.
func append32(b []byte, values ...int64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(min(v, zipLimit32)))
	}
	return b
}
