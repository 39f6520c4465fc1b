package weights

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"weft/ir"
	"weft/ir/diag"
)

// ParseRandom reads "random:SEED". ok is false when the text does not begin so.
func ParseRandom(text string) (seed uint64, ok bool, err error) {
	digits, ok := strings.CutPrefix(text, "random:")
	if !ok {
		return 0, false, nil
	}
	seed, err = strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, true, diag.Errorf(diag.WeightsOption, "", "the seed in %s is not a decimal number below 2^64", quote(text))
	}
	return seed, true, nil
}

// Random makes a source of pseudo-random weights of the given names and types. Every element is
// a function of seed, name and index alone: the same bits on every platform, and any part can
// be read by itself. Floats have mean 0, standard deviation 0.02 and a bell shape (the sum of
// four uniform numbers), but a weight named running_var, a variance that square roots are
// taken of, is 1 plus the magnitude. Integers and bools are 0, which is in range whatever they
// index. Weights that are the same as another (SameAs) have its values.
func Random(seed uint64, infos []Info) (Source, error) {
	entries := make([]Entry, len(infos))
	for i, info := range infos {
		size, err := ByteSize(info.DType, info.Shape)
		if err != nil {
			return nil, inPlace(err, quote(info.Name))
		}
		root := info.Name
		if info.SameAs != "" {
			root = info.SameAs
		}
		r := &randomReader{key: randomKey(seed, root), dtype: info.DType, size: size, variance: root == "running_var" || strings.HasSuffix(root, ".running_var")}
		entries[i] = Entry{Info: info, Open: func() (Reader, error) { return r, nil }}
	}
	return NewSource(entries)
}

type randomReader struct {
	key      uint64
	dtype    ir.DType
	size     int64
	variance bool
}

func randomKey(seed uint64, name string) uint64 {
	sum := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))
	return binary.LittleEndian.Uint64(sum[:])
}

// randomValue is element i of the stream of a key. Integer arithmetic and one rounded
// multiplication: nothing in it depends on the platform.
func randomValue(key uint64, i int64) float64 {
	// The finalizer of SplitMix64 (Steele, Lea, Flood 2014) over a counter.
	z := key + uint64(i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	sum := int64(z&0xffff) + int64(z>>16&0xffff) + int64(z>>32&0xffff) + int64(z>>48) - 2*0xffff
	// A uniform number of 16 bits has variance (2^32-1)/12; the sum of four has deviation 37837.2.
	const scale = 0.02 / 37837.22723720648
	return float64(sum) * scale
}

func (r *randomReader) value(i int64) float64 {
	v := randomValue(r.key, i)
	if r.variance {
		return 1 + math.Abs(v)
	}
	return v
}

func (r *randomReader) Size() int64 { return r.size }

func (r *randomReader) View(off, n int64) ([]byte, error) { return copiedView(r, off, n) }

func (r *randomReader) ReadAt(p []byte, off int64) (int, error) {
	if err := checkRange(off, 0, r.size); err != nil {
		return 0, err
	}
	n := min(int64(len(p)), r.size-off)
	r.fillParallel(p[:n], off)
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// stripe is how much one goroutine fills at a time; whole elements of every type.
const stripe = 1 << 18

// fillParallel fills large parts on all cores: a model's weights are billions of elements.
func (r *randomReader) fillParallel(p []byte, off int64) {
	if len(p) <= stripe {
		r.fill(p, off)
		return
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for at := 0; at < len(p); at += stripe {
		part := p[at:min(at+stripe, len(p))]
		group.Go(func() error {
			r.fill(part, off+int64(at))
			return nil
		})
	}
	_ = group.Wait() // fill cannot fail
}

// fill writes the bytes from off; off and the length need not be those of whole elements.
func (r *randomReader) fill(p []byte, off int64) {
	part, bits := r.part()
	if part == ir.InvalidDType {
		clear(p)
		return
	}
	if bits < 8 { // one byte holds several elements
		for k := range p {
			t := ir.NewTensor(part, int64(8/bits))
			for i := range int64(8 / bits) {
				t.SetFloat(i, r.value((off+int64(k))*int64(8/bits)+i))
			}
			p[k] = t.Data[0]
		}
		return
	}
	size := int64(bits / 8)
	if part == ir.BF16 && off%2 == 0 && !r.variance {
		for ; len(p) >= 2; p, off = p[2:], off+2 {
			binary.LittleEndian.PutUint16(p, roundBF16(float32(r.value(off/2))))
		}
	}
	one := ir.NewTensor(part, 1)
	for len(p) > 0 {
		one.SetFloat(0, r.value(off/size))
		n := copy(p, one.Data[off%size:])
		p, off = p[n:], off+int64(n)
	}
}

// roundBF16 rounds a finite number to the nearest bfloat16, ties to even.
func roundBF16(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// part is the real type that elements consist of, and its bits; InvalidDType for types whose
// random values are 0.
func (r *randomReader) part() (ir.DType, int) {
	switch r.dtype {
	case ir.C32:
		return ir.F16, 16
	case ir.C64:
		return ir.F32, 32
	case ir.C128:
		return ir.F64, 64
	}
	if r.dtype.IsFloat() {
		return r.dtype, r.dtype.Bits()
	}
	return ir.InvalidDType, 8
}
