// Package weights reads and writes named tensors without holding files in memory: safetensors
// (also sharded), .npy and .npz through memory mapping, zip archives with their members as
// views, and Source, the one form in which frontends, the compiler and the runtime see
// weights. Nothing in a file is trusted: every size and offset is checked before use, and
// memory stays bounded by a few times the bytes of the file that are read.
package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"sync"

	"weft/ir"
	"weft/ir/diag"
)

// Source is a set of named weights. Its methods may be called concurrently; readers and views
// must not be used after Close.
type Source interface {
	// Names lists the weights in the order of the source.
	Names() []string
	// Info describes a weight; false when there is none of that name.
	Info(name string) (Info, bool)
	// Open gives the contents: little-endian, row-major, packed as in ir.Tensor.
	Open(name string) (Reader, error)
	// Digest is the SHA-256 of the contents in hex, computed when first asked for.
	Digest(name string) (string, error)
	// Close releases mappings. Further calls do nothing.
	Close() error
}

// Info describes one weight.
type Info struct {
	Name  string
	DType ir.DType
	Shape []int64
	// SameAs names an earlier weight of the source that is the same memory with the same type
	// (tied weights); empty when there is none. Writers store such a weight once.
	SameAs string
}

// Type is the weight's type.
func (i Info) Type() ir.Type { return ir.TensorOf(i.DType, ir.Consts(i.Shape...)...) }

// Reader reads the contents of one weight.
type Reader interface {
	io.ReaderAt
	// Size is the number of bytes.
	Size() int64
	// View gives n bytes from offset off: without a copy where they are in memory, else newly
	// read. Views are never written to.
	View(off, n int64) ([]byte, error)
}

// Entry is one weight of a source made by NewSource.
type Entry struct {
	Info
	Open func() (Reader, error)
}

// NewSource makes a source of entries in their order. Close closes the closers in order. A
// name given twice is an error; the closers are then left open.
func NewSource(entries []Entry, closers ...io.Closer) (Source, error) {
	s := &source{index: make(map[string]int, len(entries)), entries: entries, closers: closers, digests: map[string]string{}}
	for i, e := range entries {
		if _, err := ByteSize(e.DType, e.Shape); err != nil {
			return nil, inPlace(err, quote(e.Name))
		}
		if _, dup := s.index[e.Name]; dup {
			return nil, diag.Errorf(diag.FileDuplicate, quote(e.Name), "two tensors have this name")
		}
		s.index[e.Name] = i
	}
	return s, nil
}

type source struct {
	entries []Entry
	index   map[string]int
	closers []io.Closer

	mu      sync.Mutex
	digests map[string]string
}

func (s *source) Names() []string {
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.Name
	}
	return names
}

func (s *source) Info(name string) (Info, bool) {
	i, ok := s.index[name]
	if !ok {
		return Info{}, false
	}
	return s.entries[i].Info, true
}

func (s *source) Open(name string) (Reader, error) {
	i, ok := s.index[name]
	if !ok {
		return nil, Missing(s, name)
	}
	return s.entries[i].Open()
}

func (s *source) Digest(name string) (string, error) {
	if info, ok := s.Info(name); ok && info.SameAs != "" {
		name = info.SameAs
	}
	s.mu.Lock()
	sum, ok := s.digests[name]
	s.mu.Unlock()
	if ok {
		return sum, nil
	}
	r, err := s.Open(name)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, NewStream(r)); err != nil {
		return "", err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	s.mu.Lock()
	s.digests[name] = sum
	s.mu.Unlock()
	return sum, nil
}

func (s *source) Close() error {
	s.mu.Lock()
	closers := s.closers
	s.closers = nil
	s.mu.Unlock()
	return closeAll(closers)
}

func closeAll(closers []io.Closer) error {
	var first error
	for _, c := range closers {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// NewStream reads r from beginning to end.
func NewStream(r Reader) io.Reader { return &stream{r: r} }

type stream struct {
	r   Reader
	off int64
}

func (s *stream) Read(p []byte) (int, error) {
	n := min(int64(len(p)), s.r.Size()-s.off)
	if n <= 0 {
		return 0, io.EOF
	}
	got, err := s.r.ReadAt(p[:n], s.off)
	s.off += int64(got)
	if err == io.EOF && int64(got) == n {
		err = nil
	}
	return got, err
}

// WriteTo writes views a few megabytes at a time, so that nothing is copied where the
// contents are in memory.
func (s *stream) WriteTo(w io.Writer) (int64, error) {
	start := s.off
	for s.off < s.r.Size() {
		view, err := s.r.View(s.off, min(streamChunk, s.r.Size()-s.off))
		if err != nil {
			return s.off - start, err
		}
		n, err := w.Write(view)
		s.off += int64(n)
		if err != nil {
			return s.off - start, err
		}
	}
	return s.off - start, nil
}

const streamChunk = 4 << 20

// ByteSize is the storage size of a tensor. It is an error for strings, negative dims and
// sizes beyond int64.
func ByteSize(dtype ir.DType, shape []int64) (int64, error) {
	if dtype.Bits() == 0 {
		return 0, diag.Errorf(diag.FileElementType, "", "a tensor of %s has no fixed size", dtype)
	}
	elements, fits, empty := int64(1), true, false
	for _, d := range shape {
		if d < 0 {
			return 0, diag.Errorf(diag.FileTooLarge, "", "negative dim in shape %v", shape)
		}
		empty = empty || d == 0
		if hi, lo := bits.Mul64(uint64(elements), uint64(d)); hi != 0 || lo > math.MaxInt64/128 {
			fits = false
		} else if d != 0 {
			elements = int64(lo)
		}
	}
	if empty {
		return 0, nil
	}
	if !fits {
		return 0, diag.Errorf(diag.FileTooLarge, "", "shape %v is too large", shape)
	}
	return (elements*int64(dtype.Bits()) + 7) / 8, nil
}

// Load gives a weight as a tensor: a view where the contents are in memory, else a copy.
func Load(s Source, name string) (*ir.Tensor, error) {
	r, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	info, _ := s.Info(name)
	data, err := r.View(0, r.Size())
	if err != nil {
		return nil, err
	}
	return &ir.Tensor{DType: info.DType, Shape: info.Shape, Data: data}, nil
}

// Missing is the diagnostic for a weight that s does not have.
func Missing(s Source, name string) error {
	d := diag.Errorf(diag.WeightMissing, quote(name), "there is no weight of this name")
	if near := diag.Nearest(name, s.Names(), 3); len(near) > 0 {
		d.Suggest("nearest names: %s", quoteAll(near))
	}
	return d
}

// Expect checks that s has a weight of the given type.
func Expect(s Source, name string, dtype ir.DType, shape []int64) error {
	info, ok := s.Info(name)
	if !ok {
		return Missing(s, name)
	}
	if info.DType != dtype || !slices.Equal(info.Shape, shape) {
		want := Info{DType: dtype, Shape: shape}
		return diag.Errorf(diag.WeightType, quote(name), "the weight is %s, the program declares %s", info.Type(), want.Type())
	}
	return nil
}

// bytesReader reads contents that are contiguous in memory.
type bytesReader []byte

func (b bytesReader) Size() int64 { return int64(len(b)) }

func (b bytesReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(b)) {
		return 0, fmt.Errorf("read at %d of %d bytes", off, len(b))
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (b bytesReader) View(off, n int64) ([]byte, error) {
	if err := checkRange(off, n, int64(len(b))); err != nil {
		return nil, err
	}
	return b[off : off+n : off+n], nil
}

func checkRange(off, n, size int64) error {
	if off < 0 || n < 0 || off > size || n > size-off {
		return fmt.Errorf("%d bytes at %d of %d bytes", n, off, size)
	}
	return nil
}

// copiedView implements View for readers whose contents are not in memory as they are read.
func copiedView(r Reader, off, n int64) ([]byte, error) {
	if err := checkRange(off, n, r.Size()); err != nil {
		return nil, err
	}
	p := make([]byte, n)
	if _, err := r.ReadAt(p, off); err != nil && err != io.EOF {
		return nil, err
	}
	return p, nil
}
