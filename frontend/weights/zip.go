package weights

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"weft/ir/diag"
)

// Limits of archives. Deflate cannot expand more than about 1032 times, so a claim beyond that
// is false, and what is allocated is bounded by both limits.
const (
	maxMembers     = 1 << 20
	maxInflated    = 1 << 30 // of all deflated members of an archive together
	maxDeflateGain = 1040
)

// Zip is an archive over the bytes of a file. Every member's name is relative and inside the
// archive, names are distinct, and no two members share bytes.
type Zip struct {
	Members []Member // in the order of their data in the file
	data    []byte
	index   map[string]int
	mapping io.Closer

	mu       sync.Mutex
	inflated uint64
}

// Member is one file of an archive.
type Member struct {
	Name     string
	Size     int64 // when read
	Offset   int64 // of the stored or compressed bytes in the file
	Stored   bool  // uncompressed
	packed   int64 // bytes in the file
	crc      uint32
	file     *zip.File
	inflated bool // counted against maxInflated
}

// OpenZip maps an archive.
func OpenZip(path string) (*Zip, error) {
	m, err := Map(path)
	if err != nil {
		return nil, err
	}
	z, err := ParseZip(m.Data)
	if err != nil {
		m.Close()
		return nil, inFile(err, path)
	}
	z.mapping = m
	return z, nil
}

// Close unmaps the archive.
func (z *Zip) Close() error {
	if z.mapping == nil {
		return nil
	}
	return z.mapping.Close()
}

func badZip(place, format string, args ...any) error {
	return diag.Errorf(diag.BadZip, place, format, args...)
}

// ParseZip reads and checks the directory of an archive; members are not read.
func ParseZip(data []byte) (*Zip, error) {
	if len(data) == 0 {
		return nil, diag.Errorf(diag.FileTruncated, "", "the file is empty")
	}
	if !bytes.HasPrefix(data, []byte("PK")) {
		return nil, badZip("", "the file is no zip archive")
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, diag.Errorf(diag.FileTruncated, "", "the archive has no readable directory: %v", err).Because(err)
	}
	if len(r.File) > maxMembers {
		return nil, diag.Errorf(diag.FileTooLarge, "", "an archive of %d members", len(r.File))
	}
	z := &Zip{data: data, index: make(map[string]int, len(r.File))}
	for _, f := range r.File {
		m, err := z.member(f)
		if err != nil {
			return nil, err
		}
		if m != nil {
			z.Members = append(z.Members, *m)
		}
	}
	slices.SortStableFunc(z.Members, func(a, b Member) int {
		if d := compare(a.Offset, b.Offset); d != 0 {
			return d
		}
		return compare(a.packed, b.packed)
	})
	end := int64(0)
	for i, m := range z.Members {
		if m.Offset < end {
			return nil, badZip(quote(m.Name), "the member overlaps %s", quote(z.Members[i-1].Name))
		}
		if !hasLocalName(data[end:m.Offset], m.Name) {
			return nil, badZip(quote(m.Name), "the member's own header has another name or overlaps another member")
		}
		end = m.Offset + m.packed
		if _, dup := z.index[m.Name]; dup {
			return nil, diag.Errorf(diag.FileDuplicate, quote(m.Name), "two members have this name")
		}
		z.index[m.Name] = i
	}
	return z, nil
}

// member checks one entry of the directory; nil for folders.
func (z *Zip) member(f *zip.File) (*Member, error) {
	place := quote(f.Name)
	if strings.HasSuffix(f.Name, "/") && f.CompressedSize64 == 0 {
		return nil, nil
	}
	if !safeName(f.Name) {
		return nil, badZip(place, "the name leaves the archive")
	}
	if f.Flags&1 != 0 {
		return nil, badZip(place, "the member is encrypted")
	}
	if f.Method != zip.Store && f.Method != zip.Deflate {
		return nil, badZip(place, "the member has compression method %d; weft reads stored and deflated members", f.Method)
	}
	offset, err := f.DataOffset()
	if err != nil {
		return nil, badZip(place, "the member has no header where the directory says: %v", err)
	}
	packed, size := f.CompressedSize64, f.UncompressedSize64
	if offset < 0 || offset > int64(len(z.data)) || packed > uint64(int64(len(z.data))-offset) {
		return nil, diag.Errorf(diag.FileTruncated, place, "the member of %d bytes at %d runs past the end of the file", packed, offset)
	}
	if f.Method == zip.Store && packed != size {
		return nil, badZip(place, "the stored member has two sizes, %d and %d", packed, size)
	}
	if f.Method == zip.Deflate && size > (packed+1)*maxDeflateGain {
		return nil, diag.Errorf(diag.FileTooLarge, place, "%d bytes cannot expand to %d", packed, size)
	}
	return &Member{Name: f.Name, Size: int64(size), Offset: offset, Stored: f.Method == zip.Store, packed: int64(packed), crc: f.CRC32, file: f}, nil
}

// hasLocalName looks for the local header at the end of the bytes between two members:
// signature, lengths of name and extra field that add up, and the name of the directory.
func hasLocalName(between []byte, name string) bool {
	const fixed = 30
	for extra := 0; extra <= 0xffff; extra++ {
		start := len(between) - extra - len(name) - fixed
		if start < 0 {
			return false
		}
		h := between[start:]
		if string(h[:4]) == "PK\x03\x04" && int(h[26])|int(h[27])<<8 == len(name) && int(h[28])|int(h[29])<<8 == extra {
			return string(h[fixed:fixed+len(name)]) == name
		}
	}
	return false
}

// safeName tells whether a member's name is a plain relative path.
func safeName(name string) bool {
	return name != "" && name != "." && !strings.ContainsAny(name, "\\\x00") && !path.IsAbs(name) && path.Clean(name) == name &&
		name != ".." && !strings.HasPrefix(name, "../") && !(len(name) > 1 && name[1] == ':')
}

// Names lists the members in the order of their data.
func (z *Zip) Names() []string {
	names := make([]string, len(z.Members))
	for i, m := range z.Members {
		names[i] = m.Name
	}
	return names
}

// Has tells whether there is a member of that name.
func (z *Zip) Has(name string) bool {
	_, ok := z.index[name]
	return ok
}

// Lookup finds a member.
func (z *Zip) Lookup(name string) (Member, bool) {
	i, ok := z.index[name]
	if !ok {
		return Member{}, false
	}
	return z.Members[i], true
}

// Bytes gives the contents of a member: a view where it is stored, whose checksum is not
// verified (that would read it whole), else newly inflated and verified.
func (z *Zip) Bytes(name string) ([]byte, error) {
	i, ok := z.index[name]
	if !ok {
		d := diag.Errorf(diag.BadZip, quote(name), "the archive has no such member")
		if near := diag.Nearest(name, z.Names(), 3); len(near) > 0 {
			d.Suggest("nearest names: %s", quoteAll(near))
		}
		return nil, d
	}
	m := &z.Members[i]
	if m.Stored {
		return z.data[m.Offset : m.Offset+m.packed : m.Offset+m.packed], nil
	}
	if err := z.spend(m); err != nil {
		return nil, err
	}
	r, err := m.file.Open()
	if err != nil {
		return nil, badZip(quote(name), "cannot be read: %v", err)
	}
	defer r.Close()
	data := make([]byte, m.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, badZip(quote(name), "cannot be inflated: %v", err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF { // the end verifies the checksum
		return nil, badZip(quote(name), "cannot be inflated to its %d bytes: %v", m.Size, err)
	}
	if m.crc == 0 && crc32.ChecksumIEEE(data) != 0 { // archive/zip takes 0 for no checksum
		return nil, badZip(quote(name), "the checksum of the contents is wrong")
	}
	return data, nil
}

// Verified is Bytes with the checksum verified for stored members too.
func (z *Zip) Verified(name string) ([]byte, error) {
	data, err := z.Bytes(name)
	if err != nil {
		return nil, err
	}
	if m, _ := z.Lookup(name); m.Stored && crc32.ChecksumIEEE(data) != m.crc {
		return nil, badZip(quote(name), "the checksum of the contents is wrong")
	}
	return data, nil
}

// spend counts a deflated member, once, against what the archive may expand to.
func (z *Zip) spend(m *Member) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	if m.inflated {
		return nil
	}
	if z.inflated+uint64(m.Size) > maxInflated {
		return diag.Errorf(diag.FileTooLarge, quote(m.Name), "the compressed members expand to more than %d bytes", maxInflated).
			Suggest("store them uncompressed: then they are mapped, whatever their size")
	}
	z.inflated += uint64(m.Size)
	m.inflated = true
	return nil
}
