package onnx

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// elementTypes maps TensorProto.DataType to element types.
var elementTypes = map[int32]ir.DType{
	1: ir.F32, 2: ir.U8, 3: ir.I8, 4: ir.U16, 5: ir.I16, 6: ir.I32, 7: ir.I64, 8: ir.String, 9: ir.Bool, 10: ir.F16, 11: ir.F64,
	12: ir.U32, 13: ir.U64, 14: ir.C64, 15: ir.C128, 16: ir.BF16, 17: ir.F8E4M3FN, 18: ir.F8E4M3FNUZ, 19: ir.F8E5M2,
	20: ir.F8E5M2FNUZ, 21: ir.U4, 22: ir.I4, 23: ir.F4E2M1FN, 24: ir.F8E8M0FNU, 25: ir.U2, 26: ir.I2,
}

// elementType translates a TensorProto.DataType; place names what has it.
func elementType(code int32, place string) (ir.DType, *diag.Diagnostic) {
	if t, ok := elementTypes[code]; ok {
		return t, nil
	}
	if code == 27 || code == 28 {
		return 0, diag.Errorf(diag.ONNXElementType, place, "element type float6 (%d) is not supported", code).
			Suggest("store the tensor in another type, such as float8 or float16")
	}
	return 0, diag.Errorf(diag.ONNXTensor, place, "element type %d is unknown", code).Suggest("export the model again")
}

// externalFiles maps the data files beside a model, each once.
type externalFiles struct {
	folder string // empty when the model has no folder
	open   map[string]*weights.Mapping
	order  []*weights.Mapping
}

func (e *externalFiles) closers() []io.Closer {
	closers := make([]io.Closer, len(e.order))
	for i, m := range e.order {
		closers[i] = m
	}
	return closers
}

// data gives the bytes of an external tensor, which must have the given size.
func (e *externalFiles) data(t *tensorProto, size int64, place string) ([]byte, *diag.Diagnostic) {
	location := t.externalData["location"]
	if location == "" || !filepath.IsLocal(location) {
		return nil, diag.Errorf(diag.ONNXExternal, place, "external data at %q: only files in the model's folder are read", location).
			Suggest("put the data file beside the model and save the model with a relative location")
	}
	if e.folder == "" {
		return nil, diag.Errorf(diag.ONNXExternal, place, "external data at %q, but the model does not come from a folder", location).
			Suggest("give the model as a file")
	}
	m := e.open[location]
	if m == nil {
		var err error
		path := filepath.Join(e.folder, location)
		if m, err = weights.Map(path); err != nil {
			d := diag.Errorf(diag.ONNXExternal, place, "external data at %q cannot be read", location).Because(err)
			if os.IsNotExist(err) {
				d.Note("there is no such file")
			}
			return nil, d.Suggest("copy the data files that belong to the model to its folder")
		}
		e.open[location] = m
		e.order = append(e.order, m)
	}
	offset, ok1 := externalNumber(t, "offset", 0)
	length, ok2 := externalNumber(t, "length", size)
	total := int64(len(m.Data))
	if !ok1 || !ok2 || length != size {
		return nil, diag.Errorf(diag.ONNXExternal, place, "external data with offset %q and length %q, the tensor needs %d bytes",
			t.externalData["offset"], t.externalData["length"], size).Suggest("export the model again")
	}
	if offset > total || size > total-offset {
		return nil, diag.Errorf(diag.ONNXExternal, place, "%q has %d bytes, the tensor needs %d at %d", location, total, size, offset).
			Suggest("the data file is cut off or belongs to another model: copy it again")
	}
	return m.Data[offset : offset+size : offset+size], nil
}

func externalNumber(t *tensorProto, key string, absent int64) (int64, bool) {
	text, ok := t.externalData[key]
	if !ok {
		return absent, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0
}

// read makes a tensor of a TensorProto: a view of the file where the data lie there as they
// are in memory.
func (e *externalFiles) read(t *tensorProto, place string) (*ir.Tensor, *diag.Diagnostic) {
	dtype, d := elementType(t.dataType, place)
	if d != nil {
		return nil, d
	}
	out := &ir.Tensor{DType: dtype, Shape: t.dims}
	bad := func(format string, args ...any) *diag.Diagnostic {
		return diag.Errorf(diag.ONNXTensor, place, format, args...).Suggest("the file is damaged or was written wrongly: export the model again")
	}
	if len(t.dims) > maxRank {
		return nil, bad("the tensor has %d dims; the limit is %d", len(t.dims), maxRank)
	}
	if t.segmented {
		return nil, bad("the tensor is a segment of a larger one")
	}
	if dtype == ir.String {
		out.Strings = make([]string, len(t.strings))
		for i, s := range t.strings {
			out.Strings[i] = string(s)
		}
		if err := out.Check(); err != nil {
			return nil, bad("%v", err)
		}
		return out, nil
	}
	size, err := weights.ByteSize(dtype, t.dims)
	if err != nil {
		return nil, bad("shape %v of %s is not possible", t.dims, dtype)
	}
	switch {
	case t.external:
		out.Data, d = e.data(t, size, place)
		return out, d
	case t.hasRaw:
		out.Data = t.raw
	default:
		if out.Data, err = t.typedData(dtype, size); err != nil {
			return nil, bad("%v", err)
		}
	}
	if int64(len(out.Data)) != size {
		return nil, bad("%d bytes of data for shape %v of %s, which needs %d", len(out.Data), t.dims, dtype, size)
	}
	return out, nil
}

// typedData gathers a typed field (float_data, int32_data, ...) as little-endian elements.
func (t *tensorProto) typedData(dtype ir.DType, size int64) ([]byte, error) {
	switch dtype {
	case ir.F32, ir.C64:
		return joined(t.floatData), nil
	case ir.F64, ir.C128:
		return joined(t.doubleData), nil
	case ir.I64:
		return varints(t.int64Data, 8, size)
	case ir.U32, ir.U64:
		return varints(t.uint64Data, dtype.Size(), size)
	}
	return varints(t.int32Data, max(1, dtype.Size()), size) // below a byte: packed bytes
}

func joined(runs [][]byte) []byte {
	if len(runs) == 1 {
		return runs[0]
	}
	var all []byte
	for _, r := range runs {
		all = append(all, r...)
	}
	return all
}

// varints writes the low bytes of packed varints; more than size bytes are refused.
func varints(runs [][]byte, width int, size int64) ([]byte, error) {
	var out []byte
	for _, run := range runs {
		for len(run) > 0 {
			v, n := protowire.ConsumeVarint(run)
			if n < 0 {
				return nil, protowire.ParseError(n)
			}
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], v)
			if out = append(out, word[:width]...); int64(len(out)) > size {
				return out, nil
			}
			run = run[n:]
		}
	}
	return out, nil
}
