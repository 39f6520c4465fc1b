package fx

import (
	"fmt"
	"strings"

	"github.com/nlpodyssey/gopickle/types"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// torchFile is a file of torch.save: a zip with the pickle ROOT/data.pkl, whose tensors are
// views of the storages ROOT/data/KEY.
type torchFile struct {
	zip      *weights.Zip
	root     string
	storages map[string][]byte // read so far, so that tensors share them
}

// storage is a pickled storage; an untyped one has bytes, whose type each tensor says.
type storage struct {
	data  []byte
	dtype ir.DType
	typed bool
}

// elementType is a pickled torch.dtype, or the storage class of one.
type elementType struct {
	dtype ir.DType
	typed bool
}

// elementTypes are dtypes and storage classes of torch by name.
var elementTypes = map[string]elementType{
	"FloatStorage": {ir.F32, true}, "DoubleStorage": {ir.F64, true}, "HalfStorage": {ir.F16, true}, "BFloat16Storage": {ir.BF16, true},
	"LongStorage": {ir.I64, true}, "IntStorage": {ir.I32, true}, "ShortStorage": {ir.I16, true}, "CharStorage": {ir.I8, true},
	"ByteStorage": {ir.U8, true}, "BoolStorage": {ir.Bool, true}, "ComplexFloatStorage": {ir.C64, true}, "ComplexDoubleStorage": {ir.C128, true},
	"UntypedStorage": {},
	"float32":        {ir.F32, true}, "float64": {ir.F64, true}, "float16": {ir.F16, true}, "bfloat16": {ir.BF16, true},
	"int64": {ir.I64, true}, "int32": {ir.I32, true}, "int16": {ir.I16, true}, "int8": {ir.I8, true},
	"uint64": {ir.U64, true}, "uint32": {ir.U32, true}, "uint16": {ir.U16, true}, "uint8": {ir.U8, true}, "bool": {ir.Bool, true},
	"complex32": {ir.C32, true}, "complex64": {ir.C64, true}, "complex128": {ir.C128, true},
	"float8_e4m3fn": {ir.F8E4M3FN, true}, "float8_e5m2": {ir.F8E5M2, true}, "float8_e4m3fnuz": {ir.F8E4M3FNUZ, true},
	"float8_e5m2fnuz": {ir.F8E5M2FNUZ, true}, "float8_e8m0fnu": {ir.F8E8M0FNU, true},
}

// readTorchFile reads what torch.save wrote; tensors are *weights.Region over data, objects of
// unknown classes are opaque. No data gives nil, which torch.export writes for nothing.
func readTorchFile(data []byte, place string) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	bad := func(format string, args ...any) error { return diag.Errorf(diag.FXPickle, place, format, args...) }
	if !strings.HasPrefix(string(data[:min(2, len(data))]), "PK") {
		return nil, bad("it is no zip archive; files of torch.save before 1.6 are not read")
	}
	z, err := weights.ParseZip(data)
	if err != nil {
		return nil, within(err, place)
	}
	f := &torchFile{zip: z, storages: map[string][]byte{}}
	member := ""
	for _, name := range z.Names() {
		if root, ok := strings.CutSuffix(name, "data.pkl"); ok && strings.Count(name, "/") == 1 {
			member, f.root = name, root
		}
	}
	if member == "" {
		return nil, bad("it has no data.pkl, which torch.save writes")
	}
	if name := f.root + "byteorder"; z.Has(name) {
		if order, err := z.Verified(name); err != nil || string(order) != "little" {
			return nil, bad("its byte order is not little")
		}
	}
	text, err := z.Verified(member)
	if err != nil {
		return nil, within(err, place)
	}
	v, err := unpickle(text, f.global, f.storage)
	if err != nil {
		return nil, bad("%s: %v", member, err)
	}
	return v, nil
}

// within puts a place in front of those of an error's diagnostics.
func within(err error, place string) error {
	list := diag.All(err)
	for _, d := range list {
		d.Place = strings.TrimSuffix(place+": "+d.Place, ": ")
	}
	return list
}

// global is the meaning of a global that a pickle names.
func (f *torchFile) global(module, name string) any {
	if module == "torch" || module == "torch.storage" {
		if t, ok := elementTypes[name]; ok {
			return t
		}
	}
	switch module + "." + name {
	case "torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3":
		return function(rebuildTensor)
	case "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state", "torch.Size":
		return function(first)
	case "torch._tensor._rebuild_from_type_v2":
		return function(rebuildFromType)
	}
	return opaque{module + "." + name}
}

// first is the function that gives its first argument back.
func first(args []any) (any, error) {
	if len(args) == 0 {
		return nil, badPickle("a value is rebuilt of nothing")
	}
	return args[0], nil
}

// rebuildFromType(function, type, arguments, state) rebuilds a tensor of a subclass or with
// attributes; what weft needs of it is what the function rebuilds.
func rebuildFromType(args []any) (any, error) {
	if len(args) == 4 {
		rebuild, ok1 := args[0].(function)
		of, ok2 := args[2].(*types.Tuple)
		if ok1 && ok2 {
			return rebuild(*of)
		}
		if class, ok := args[0].(opaque); ok {
			return class, nil
		}
	}
	return nil, badPickle("a tensor is rebuilt of something else")
}

// rebuildTensor(storage, offset, size, stride, requires_grad, hooks, dtype) is a tensor over a
// storage; the dtype is given where the storage is untyped.
func rebuildTensor(args []any) (any, error) {
	const dtypeAt = 6
	if len(args) < 4 {
		return nil, badPickle("a tensor of %d arguments", len(args))
	}
	s, ok := args[0].(storage)
	if !ok {
		return nil, badPickle("a tensor that is no view of a storage")
	}
	if len(args) > dtypeAt {
		if t, ok := args[dtypeAt].(elementType); ok {
			s.dtype, s.typed = t.dtype, t.typed
		}
	}
	offset, ok1 := asInt(args[1])
	shape, ok2 := asInts(args[2])
	strides, ok3 := asInts(args[3])
	if !ok1 || !ok2 || !ok3 || !s.typed || len(strides) != len(shape) {
		return nil, badPickle("a tensor whose offset, size, strides or type are no such")
	}
	return &weights.Region{DType: s.dtype, Shape: shape, Strides: strides, Offset: offset, Data: s.data}, nil
}

// storage loads ('storage', class, key, location, elements).
func (f *torchFile) storage(id any) (any, error) {
	t, ok := id.(*types.Tuple)
	if !ok || t.Len() != 5 || t.Get(0) != any("storage") {
		return nil, badPickle("an external object that is no storage")
	}
	class, ok1 := t.Get(1).(elementType)
	key, ok2 := t.Get(2).(string)
	n, ok3 := asInt(t.Get(4))
	if !ok1 || !ok2 || !ok3 || n < 0 {
		return nil, badPickle("a storage whose class, key or size are no such")
	}
	data, known := f.storages[key]
	if !known {
		var err error
		if data, err = f.zip.Bytes(f.root + "data/" + key); err != nil {
			return nil, badPickle("storage %q: %w", key, err)
		}
		f.storages[key] = data
	}
	size := n
	if class.typed {
		size = n * int64(class.dtype.Bits()) / 8
	}
	if n > int64(len(data)) || size > int64(len(data)) {
		return nil, badPickle("storage %q has %d bytes, which are not %d elements", key, len(data), n)
	}
	return storage{data[:size:size], class.dtype, class.typed}, nil
}

// tensorsOf are the tensors of a pickled dict by name; other values are left out.
func tensorsOf(v any, place string) (map[string]*weights.Region, error) {
	tensors := map[string]*weights.Region{}
	ok := items(v, func(key, value any) {
		if name, ok := key.(string); ok {
			delete(tensors, name)
			if t, ok := value.(*weights.Region); ok {
				tensors[name] = t
			}
		}
	})
	if !ok && v != nil {
		return nil, diag.Errorf(diag.FXPickle, place, "it holds %s, not a dict of tensors", describePickled(v))
	}
	return tensors, nil
}

// describePickled names the kind of a pickled value.
func describePickled(v any) string {
	switch v := v.(type) {
	case opaque:
		return "an object of class " + fmt.Sprintf("%.80q", v.class)
	case *weights.Region:
		return "a tensor"
	case *types.Tuple, *types.List:
		return "a sequence"
	}
	return "something else"
}
