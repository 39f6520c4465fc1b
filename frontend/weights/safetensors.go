package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// maxHeader is the limit of the safetensors library.
const maxHeader = 100_000_000

// maxRank bounds the dims of a tensor in any file.
const maxRank = 64

// safetensorsTypes are the element types of the format, under its names.
var safetensorsTypes = []struct {
	name  string
	dtype ir.DType
}{
	{"BOOL", ir.Bool}, {"U8", ir.U8}, {"I8", ir.I8}, {"I16", ir.I16}, {"U16", ir.U16}, {"I32", ir.I32}, {"U32", ir.U32},
	{"I64", ir.I64}, {"U64", ir.U64}, {"F16", ir.F16}, {"BF16", ir.BF16}, {"F32", ir.F32}, {"F64", ir.F64}, {"C64", ir.C64},
	{"F4", ir.F4E2M1FN}, {"F8_E4M3", ir.F8E4M3FN}, {"F8_E5M2", ir.F8E5M2}, {"F8_E8M0", ir.F8E8M0FNU},
	{"F8_E4M3FNUZ", ir.F8E4M3FNUZ}, {"F8_E5M2FNUZ", ir.F8E5M2FNUZ},
}

func safetensorsType(name string) (ir.DType, bool) {
	for _, t := range safetensorsTypes {
		if t.name == name {
			return t.dtype, true
		}
	}
	return ir.InvalidDType, false
}

func safetensorsName(dtype ir.DType) (string, bool) {
	for _, t := range safetensorsTypes {
		if t.dtype == dtype {
			return t.name, true
		}
	}
	return "", false
}

// Safetensors is the contents of a safetensors file.
type Safetensors struct {
	Tensors  []StoredTensor    // in the order of their data
	Metadata map[string]string // the header's __metadata__; nil when absent
}

// StoredTensor is a tensor of a file: Data is a view of the file's bytes.
type StoredTensor struct {
	Info
	Data   []byte
	Offset int64 // of Data in the file
}

// ParseSafetensors reads a whole safetensors file. The header must be exactly what the format
// demands: every byte after it belongs to one tensor, of the size that its type takes.
func ParseSafetensors(file []byte) (*Safetensors, error) {
	if len(file) < 8 {
		return nil, diag.Errorf(diag.FileTruncated, "", "%d bytes are no safetensors file", len(file))
	}
	length := binary.LittleEndian.Uint64(file)
	if length > maxHeader {
		return nil, diag.Errorf(diag.BadSafetensors, "", "the header claims %d bytes; the format allows %d", length, maxHeader).
			Suggest("the file may not be a safetensors file at all")
	}
	if length > uint64(len(file)-8) {
		return nil, diag.Errorf(diag.FileTruncated, "", "the header claims %d bytes, the file has %d", length, len(file)-8)
	}
	header, data := file[8:8+length], file[8+length:]
	h := headerParser{dec: json.NewDecoder(bytes.NewReader(header)), code: diag.BadSafetensors, out: &Safetensors{}}
	h.dec.UseNumber()
	if err := h.parse(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimRight(header[h.dec.InputOffset():], " \t\r\n\x00"); len(rest) > 0 {
		return nil, diag.Errorf(diag.BadSafetensors, "header", "text after the closing brace")
	}
	if err := h.place(data, 8+int64(length)); err != nil {
		return nil, err
	}
	return h.out, nil
}

// headerParser reads the JSON header token by token, so that duplicate keys are seen.
type headerParser struct {
	dec  *json.Decoder
	code diag.Code // of syntax errors
	out  *Safetensors
	ends []int64 // of each tensor's data, relative to the data section
}

func (h *headerParser) bad(place, format string, args ...any) error {
	return diag.Errorf(h.code, place, format, args...)
}

func (h *headerParser) token() (json.Token, error) {
	t, err := h.dec.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, h.bad("header", "not valid JSON: %v", err)
	}
	return t, nil
}

// object reads {key: value, ...}, calling field at each value.
func (h *headerParser) object(place string, field func(key string) error) error {
	t, err := h.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return h.bad(place, "an object is expected")
	}
	seen := map[string]bool{}
	for {
		t, err := h.token()
		if err != nil {
			return err
		}
		if t == json.Delim('}') {
			return nil
		}
		key := t.(string) // the decoder allows nothing else
		if seen[key] {
			return diag.Errorf(diag.FileDuplicate, place, "the header has %s twice", quote(key))
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
}

func (h *headerParser) parse() error {
	return h.object("header", func(key string) error {
		if key == "__metadata__" {
			h.out.Metadata = map[string]string{}
			return h.object("__metadata__", func(key string) error {
				v, err := h.text("__metadata__")
				h.out.Metadata[key] = v
				return err
			})
		}
		return h.tensor(key)
	})
}

func (h *headerParser) text(place string) (string, error) {
	t, err := h.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", h.bad(place, "a string is expected")
	}
	return s, nil
}

func (h *headerParser) tensor(name string) error {
	var typ string
	var shape, offsets []int64
	err := h.object(quote(name), func(key string) (err error) {
		switch key {
		case "dtype":
			typ, err = h.text(quote(name))
		case "shape":
			shape, err = h.integers(quote(name))
		case "data_offsets":
			offsets, err = h.integers(quote(name))
		default:
			err = h.bad(quote(name), "unknown field %s", quote(key))
		}
		return err
	})
	if err != nil {
		return err
	}
	if typ == "" || shape == nil || len(offsets) != 2 {
		return h.bad(quote(name), "dtype, shape and two data_offsets are needed")
	}
	dtype, ok := safetensorsType(typ)
	if !ok {
		return diag.Errorf(diag.FileElementType, quote(name), "weft does not know the element type %s", quote(typ))
	}
	size, err := ByteSize(dtype, shape)
	if err != nil {
		return inPlace(err, quote(name))
	}
	if offsets[0] > offsets[1] || offsets[1]-offsets[0] != size {
		return h.bad(quote(name), "%s%v takes %d bytes, the offsets are %d to %d", typ, shape, size, offsets[0], offsets[1])
	}
	if dtype.Bits() < 8 && !wholeBytes(dtype, shape) {
		return h.bad(quote(name), "%s%v does not fill whole bytes", typ, shape)
	}
	h.out.Tensors = append(h.out.Tensors, StoredTensor{Info: Info{Name: name, DType: dtype, Shape: shape}, Offset: offsets[0]})
	h.ends = append(h.ends, offsets[1])
	return nil
}

func wholeBytes(dtype ir.DType, shape []int64) bool {
	elements := int64(1)
	for _, d := range shape {
		elements = elements * (d % 8) % 8
	}
	return elements*int64(dtype.Bits())%8 == 0
}

func (h *headerParser) integers(place string) ([]int64, error) {
	t, err := h.token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('[') {
		return nil, h.bad(place, "a list of integers is expected")
	}
	list := []int64{}
	for {
		t, err := h.token()
		if err != nil {
			return nil, err
		}
		if t == json.Delim(']') {
			return list, nil
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, h.bad(place, "a list of integers is expected")
		}
		v, err := n.Int64()
		if err != nil || v < 0 {
			return nil, h.bad(place, "%s is no size or offset", quote(n.String()))
		}
		if len(list) == maxRank {
			return nil, h.bad(place, "more than %d dims", maxRank)
		}
		list = append(list, v)
	}
}

// place puts the tensors in the order of their data and gives each its view. Together they must
// cover the data section exactly.
func (h *headerParser) place(data []byte, base int64) error {
	order := make([]int, len(h.ends))
	for i := range order {
		order[i] = i
	}
	tensors := h.out.Tensors
	slices.SortStableFunc(order, func(a, b int) int { // empty tensors before the one that starts there
		if d := compare(tensors[a].Offset, tensors[b].Offset); d != 0 {
			return d
		}
		return compare(h.ends[a], h.ends[b])
	})
	sorted := make([]StoredTensor, 0, len(order))
	covered := int64(0)
	for _, i := range order {
		t, end := tensors[i], h.ends[i]
		switch {
		case end > int64(len(data)):
			return diag.Errorf(diag.FileTruncated, quote(t.Name), "the data end at %d, the file has %d bytes of them", end, len(data))
		case t.Offset < covered:
			return h.bad(quote(t.Name), "the data at %d overlap those of %s", t.Offset, quote(sorted[len(sorted)-1].Name))
		case t.Offset > covered:
			return h.bad(quote(t.Name), "%d bytes before the data belong to no tensor", t.Offset-covered)
		}
		covered = end
		t.Data = data[t.Offset:end:end]
		t.Offset += base
		sorted = append(sorted, t)
	}
	if covered != int64(len(data)) {
		return h.bad("", "%d bytes at the end belong to no tensor", int64(len(data))-covered)
	}
	h.out.Tensors = sorted
	return nil
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// SafetensorsOptions are those of WriteSafetensors.
type SafetensorsOptions struct {
	Metadata map[string]string
	// Align is what the data section's offset in the file is a multiple of: 8 when zero.
	Align int64
}

// SafetensorsLayout is where a file's parts will be, known before it is written.
type SafetensorsLayout struct {
	Header []byte           // with its length in front
	Order  []string         // names in the order of their data
	Offset map[string]int64 // of each tensor's data in the file, also of tied weights
	Size   int64            // of the file
}

// LayoutSafetensors plans the file for all weights of s: the header lists names in ascending
// order; the data are ordered by element size, largest first, then by name, so that every
// tensor is aligned to its element. The same weights give the same bytes in whatever order s
// has them. With shared, a weight that is the same as another is left out of the file, and its
// offset is the other's.
func LayoutSafetensors(s Source, shared bool, o SafetensorsOptions) (*SafetensorsLayout, error) {
	var infos []Info
	l := &SafetensorsLayout{Offset: map[string]int64{}}
	ties := map[string]string{}
	for _, name := range s.Names() {
		info, _ := s.Info(name)
		if shared && info.SameAs != "" {
			ties[name] = info.SameAs
			continue
		}
		if err := canStore(info); err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b Info) int {
		if d := b.DType.Bits() - a.DType.Bits(); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	header := map[string]any{} // printed with sorted keys
	if len(o.Metadata) > 0 {
		header["__metadata__"] = o.Metadata
	}
	at := int64(0)
	for _, info := range infos {
		size, err := ByteSize(info.DType, info.Shape)
		if err != nil {
			return nil, inPlace(err, quote(info.Name))
		}
		typ, _ := safetensorsName(info.DType)
		shape := info.Shape
		if shape == nil {
			shape = []int64{}
		}
		header[info.Name] = storedHeader{typ, shape, [2]int64{at, at + size}}
		l.Order, l.Offset[info.Name] = append(l.Order, info.Name), at
		if at += size; at < 0 {
			return nil, diag.Errorf(diag.FileTooLarge, quote(info.Name), "the weights together are too large")
		}
	}
	if err := l.setHeader(header, max(o.Align, 8)); err != nil {
		return nil, err
	}
	for name := range l.Offset {
		l.Offset[name] += int64(len(l.Header))
	}
	for name, root := range ties {
		l.Offset[name] = l.Offset[root]
	}
	l.Size = int64(len(l.Header)) + at
	return l, nil
}

type storedHeader struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

func canStore(info Info) error {
	if info.Name == "__metadata__" {
		return diag.Errorf(diag.FileElementType, quote(info.Name), "safetensors reserves this name")
	}
	if _, ok := safetensorsName(info.DType); !ok {
		return diag.Errorf(diag.FileElementType, quote(info.Name), "safetensors has no element type for %s", info.DType).
			Suggest("write .npz, which holds complex128 and strings")
	}
	if info.DType.Bits() < 8 && !wholeBytes(info.DType, info.Shape) {
		return diag.Errorf(diag.FileElementType, quote(info.Name), "%s does not fill whole bytes, as safetensors demands", info.Type())
	}
	return nil
}

func (l *SafetensorsLayout) setHeader(header map[string]any, align int64) error {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(header); err != nil {
		return fmt.Errorf("encode safetensors header: %w", err)
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	for int64(b.Len())%align != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > maxHeader {
		return diag.Errorf(diag.FileTooLarge, "", "a header of %d bytes; safetensors allows %d", b.Len()-8, maxHeader)
	}
	l.Header = b.Bytes()
	binary.LittleEndian.PutUint64(l.Header, uint64(len(l.Header)-8))
	return nil
}

// WriteTo writes the planned file, one weight after the other, without holding any.
func (l *SafetensorsLayout) WriteTo(w io.Writer, s Source) error {
	if _, err := w.Write(l.Header); err != nil {
		return err
	}
	for _, name := range l.Order {
		r, err := s.Open(name)
		if err != nil {
			return err
		}
		info, _ := s.Info(name)
		if size, err := ByteSize(info.DType, info.Shape); err != nil || size != r.Size() {
			return fmt.Errorf("weight %s: reader of %d bytes for %s", quote(name), r.Size(), info.Type())
		}
		if _, err := io.Copy(w, NewStream(r)); err != nil {
			return err
		}
	}
	return nil
}

// WriteSafetensors writes all weights of s.
func WriteSafetensors(w io.Writer, s Source, o SafetensorsOptions) error {
	l, err := LayoutSafetensors(s, false, o)
	if err != nil {
		return err
	}
	return l.WriteTo(w, s)
}
