package weights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weft/ir"
	"weft/ir/diag"
)

// npyTypes are the element types of .npy files: kind and bytes of numpy's type string.
var npyTypes = []struct {
	descr string
	dtype ir.DType
}{
	{"b1", ir.Bool}, {"i1", ir.I8}, {"i2", ir.I16}, {"i4", ir.I32}, {"i8", ir.I64},
	{"u1", ir.U8}, {"u2", ir.U16}, {"u4", ir.U32}, {"u8", ir.U64},
	{"f2", ir.F16}, {"f4", ir.F32}, {"f8", ir.F64}, {"c8", ir.C64}, {"c16", ir.C128},
	{"V2", ir.BF16}, // numpy has no bfloat16: ml_dtypes saves it as an opaque type of two bytes
}

const npyMagic = "\x93NUMPY"

// maxStrings bounds arrays of strings, which take more memory than file.
const maxStrings = 1 << 22

func badNumpy(format string, args ...any) error {
	return diag.Errorf(diag.BadNumpy, "", format, args...)
}

// npyHeader is what an .npy header says.
type npyHeader struct {
	descr   string // without byte order
	big     bool
	fortran bool
	shape   []int64
}

// ParseNpy reads a whole .npy file, versions 1.0 to 3.0. Data is a view of the file where it
// is little-endian in C order, else converted. Strings (U and S) become string tensors, opaque
// elements of two bytes bfloat16, as which ml_dtypes saves it; pickled objects and structures
// are refused.
func ParseNpy(file []byte) (*ir.Tensor, error) {
	text, data, err := splitNpy(file)
	if err != nil {
		return nil, err
	}
	h, err := parseNpyHeader(text)
	if err != nil {
		return nil, err
	}
	if width, ok := stringWidth(h.descr); ok {
		return npyStrings(h, width, data)
	}
	dtype, err := h.dtype()
	if err != nil {
		return nil, err
	}
	size, err := ByteSize(dtype, h.shape)
	if err != nil {
		return nil, err
	}
	switch {
	case int64(len(data)) < size:
		return nil, diag.Errorf(diag.FileTruncated, "", "%s%v takes %d bytes, the file has %d of them", dtype, h.shape, size, len(data))
	case int64(len(data)) > size:
		return nil, badNumpy("%d bytes after the data of %s%v", int64(len(data))-size, dtype, h.shape)
	}
	if h.fortran && len(h.shape) > 1 {
		data, err = fromFortran(dtype, h.shape, data)
		if err != nil {
			return nil, err
		}
	}
	if h.big {
		data = swapped(data, swapUnit(dtype))
	}
	return &ir.Tensor{DType: dtype, Shape: h.shape, Data: data}, nil
}

// splitNpy separates the header's text from the data.
func splitNpy(file []byte) (text string, data []byte, err error) {
	if len(file) < 10 {
		return "", nil, diag.Errorf(diag.FileTruncated, "", "%d bytes are no .npy file", len(file))
	}
	if string(file[:6]) != npyMagic {
		return "", nil, badNumpy("the file does not begin as .npy files do")
	}
	start, length := uint64(10), uint64(binary.LittleEndian.Uint16(file[8:]))
	switch version := file[6]; {
	case version == 1 && file[7] == 0:
	case (version == 2 || version == 3) && file[7] == 0:
		if len(file) < 12 {
			return "", nil, diag.Errorf(diag.FileTruncated, "", "the header is cut off")
		}
		start, length = 12, uint64(binary.LittleEndian.Uint32(file[8:]))
	default:
		return "", nil, badNumpy("version %d.%d of the format; weft reads 1.0 to 3.0", file[6], file[7])
	}
	if length > uint64(len(file))-start {
		return "", nil, diag.Errorf(diag.FileTruncated, "", "the header claims %d bytes, the file has %d", length, uint64(len(file))-start)
	}
	if length > 1<<16 {
		return "", nil, diag.Errorf(diag.FileTooLarge, "", "a header of %d bytes", length)
	}
	return string(file[start : start+length]), file[start+length:], nil
}

// parseNpyHeader reads the Python dict {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
func parseNpyHeader(text string) (h npyHeader, err error) {
	p := &pythonDict{rest: strings.TrimSpace(text)}
	p.expect("{")
	seen := map[string]bool{}
	order := byte('|')
	for p.err == nil && !p.skip("}") {
		key := p.text()
		p.expect(":")
		if seen[key] {
			return h, badNumpy("the header has %s twice", quote(key))
		}
		seen[key] = true
		switch key {
		case "descr":
			if strings.HasPrefix(p.rest, "[") {
				return h, diag.Errorf(diag.FileElementType, "", "the elements are structures").Suggest("save each field as its own array")
			}
			h.descr = p.text()
			if h.descr != "" && strings.IndexByte("<>|=", h.descr[0]) >= 0 {
				order, h.descr = h.descr[0], h.descr[1:]
			}
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.tuple()
		default:
			p.fail("unknown key " + quote(key))
		}
		if !p.skip(",") && !strings.HasPrefix(p.rest, "}") {
			p.fail("a comma or brace is expected")
		}
	}
	if p.err == nil && p.rest != "" {
		p.fail("text after the header")
	}
	if p.err == nil && len(seen) != 3 {
		p.fail("descr, fortran_order and shape are needed")
	}
	h.big = order == '>'
	return h, p.err
}

// pythonDict scans the subset of Python literals that numpy writes.
type pythonDict struct {
	rest string
	err  error
}

func (p *pythonDict) fail(what string) {
	if p.err == nil {
		p.err = badNumpy("the header is not one that numpy writes: %s", what)
	}
	p.rest = ""
}

func (p *pythonDict) skip(token string) bool {
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = strings.TrimLeft(rest, " \t\r\n")
	}
	return ok
}

func (p *pythonDict) expect(token string) {
	if !p.skip(token) {
		p.fail(token + " is expected")
	}
}

func (p *pythonDict) text() string {
	if p.rest == "" || p.rest[0] != '\'' && p.rest[0] != '"' {
		p.fail("a string is expected")
		return ""
	}
	s, rest, ok := strings.Cut(p.rest[1:], p.rest[:1])
	if !ok || strings.Contains(s, `\`) {
		p.fail("a string is expected")
		return ""
	}
	p.rest = strings.TrimLeft(rest, " \t\r\n")
	return s
}

func (p *pythonDict) boolean() bool {
	if p.skip("True") {
		return true
	}
	p.expect("False")
	return false
}

func (p *pythonDict) tuple() []int64 {
	shape := []int64{}
	p.expect("(")
	for p.err == nil && !p.skip(")") {
		digits := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, "0123456789"))]
		v, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || len(shape) == maxRank {
			p.fail("a shape is expected")
			break
		}
		shape = append(shape, v)
		p.rest = strings.TrimLeft(strings.TrimPrefix(p.rest[len(digits):], "L"), " \t")
		if !p.skip(",") && !strings.HasPrefix(p.rest, ")") {
			p.fail("a shape is expected")
		}
	}
	return shape
}

func (h npyHeader) dtype() (ir.DType, error) {
	for _, t := range npyTypes {
		if t.descr == h.descr {
			return t.dtype, nil
		}
	}
	d := diag.Errorf(diag.FileElementType, "", "weft does not read arrays of numpy's type %s", quote(h.descr))
	switch {
	case h.descr == "V1":
		d.Suggest("numpy saves every float8 and int4 type as V1, so that they cannot be told apart: save as safetensors, or view as uint8")
	case strings.HasPrefix(h.descr, "O"):
		d.Suggest("Python objects would be unpickled: convert the array to numbers")
	}
	return ir.InvalidDType, d
}

// stringWidth recognises U5 and S5, and gives the bytes of an element.
func stringWidth(descr string) (int64, bool) {
	if descr == "" || descr[0] != 'U' && descr[0] != 'S' {
		return 0, false
	}
	n, err := strconv.ParseInt(descr[1:], 10, 31)
	if err != nil || n < 0 {
		return 0, false
	}
	if descr[0] == 'U' {
		return 4 * n, true
	}
	return n, true
}

// npyStrings reads elements of fixed width: UTF-32 (U) or bytes (S), padded with NUL.
func npyStrings(h npyHeader, width int64, data []byte) (*ir.Tensor, error) {
	count, err := ByteSize(ir.U8, h.shape)
	if err != nil {
		return nil, err
	}
	size, ok := mulCheck(count, width)
	if count > maxStrings {
		return nil, diag.Errorf(diag.FileTooLarge, "", "an array of %d strings", count)
	}
	if !ok || size != int64(len(data)) {
		return nil, badNumpy("%d bytes of data for %d strings of %d bytes", len(data), count, width)
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if h.big {
		order = binary.BigEndian
	}
	list := make([]string, count)
	for i := range list {
		element := data[int64(i)*width:][:width]
		if h.descr[0] == 'S' {
			list[i] = string(bytes.TrimRight(element, "\x00"))
			continue
		}
		var text []byte
		for ; len(element) > 0; element = element[4:] {
			r := order.Uint32(element)
			if r > utf8.MaxRune {
				return nil, badNumpy("a string has the invalid character %#x", r)
			}
			text = utf8.AppendRune(text, rune(r))
		}
		list[i] = string(bytes.TrimRight(text, "\x00"))
	}
	if h.fortran && len(h.shape) > 1 {
		return nil, diag.Errorf(diag.FileElementType, "", "strings in Fortran order").Suggest("save numpy.ascontiguousarray of the array")
	}
	return &ir.Tensor{DType: ir.String, Shape: h.shape, Strings: list}, nil
}

// fromFortran gives the row-major contents of column-major data.
func fromFortran(dtype ir.DType, shape []int64, data []byte) ([]byte, error) {
	strides := make([]int64, len(shape))
	step := int64(1)
	for i, d := range shape {
		strides[i] = step
		step *= d
	}
	r, err := Region{DType: dtype, Shape: shape, Data: data, Strides: strides}.reader()
	if err != nil {
		return nil, err
	}
	return r.View(0, r.Size())
}

// swapUnit is the bytes that byte order concerns: the parts of complex numbers apart.
func swapUnit(dtype ir.DType) int {
	if dtype.IsComplex() {
		return dtype.Size() / 2
	}
	return dtype.Size()
}

func swapped(data []byte, unit int) []byte {
	out := slices.Clone(data)
	for i := 0; i+unit <= len(out); i += unit {
		slices.Reverse(out[i : i+unit])
	}
	return out
}

// npyLayout is the header, padded so that the data begin at a multiple of 64, and the size of
// the data.
func npyLayout(t *ir.Tensor) (header []byte, size int64, err error) {
	if err := t.Check(); err != nil {
		return nil, 0, fmt.Errorf("write .npy: %w", err)
	}
	descr := ""
	if t.DType == ir.String {
		width := 1
		for _, s := range t.Strings {
			width = max(width, utf8.RuneCountInString(s))
		}
		descr, size = fmt.Sprintf("<U%d", width), int64(len(t.Strings))*int64(width)*4
	}
	for _, known := range npyTypes {
		if known.dtype == t.DType {
			order := "<"
			if t.DType.Size() == 1 {
				order = "|"
			}
			descr, size = order+known.descr, int64(len(t.Data))
		}
	}
	if descr == "" {
		return nil, 0, diag.Errorf(diag.FileElementType, "", ".npy has no element type for %s", t.DType).Suggest("write .safetensors")
	}
	dims := make([]string, len(t.Shape))
	for i, d := range t.Shape {
		dims[i] = strconv.FormatInt(d, 10)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	for (10+len(text)+1)%64 != 0 {
		text += " "
	}
	text += "\n"
	header = binary.LittleEndian.AppendUint16([]byte(npyMagic+"\x01\x00"), uint16(len(text)))
	return append(header, text...), size, nil
}

// WriteNpy writes t as .npy version 1.0. bfloat16 is written as ml_dtypes saves it, as opaque
// elements of two bytes: array.view(ml_dtypes.bfloat16) in Python. Strings are written as
// numpy's U type, which drops NULs at their end.
func WriteNpy(w io.Writer, t *ir.Tensor) error {
	header, _, err := npyLayout(t)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	if t.DType != ir.String {
		_, err = w.Write(t.Data)
		return err
	}
	width := 1
	for _, s := range t.Strings {
		width = max(width, utf8.RuneCountInString(s))
	}
	for _, s := range t.Strings {
		element := make([]byte, 0, 4*width)
		for _, r := range s {
			element = binary.LittleEndian.AppendUint32(element, uint32(r))
		}
		if _, err := w.Write(element[:4*width]); err != nil {
			return err
		}
	}
	return nil
}
