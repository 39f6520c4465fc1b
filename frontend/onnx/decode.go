package onnx

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Limits of what is decoded: a message of two bytes needs a hundred in memory, a field of two
// bytes sixteen.
const (
	maxDepth    = 64
	maxMessages = 1 << 20 // that are kept
	maxFields   = 32 << 20
	maxInts     = 16 << 20 // in one attribute or shape
)

// decoder reads messages from the bytes of a file. Strings are copied, data are views.
type decoder struct {
	base     []byte // the whole file, for offsets in errors
	depth    int
	messages int
	fields   int
}

// decodeError says where a message is malformed.
type decodeError struct {
	offset int
	what   string
	limit  bool // a limit was reached
}

func (e *decodeError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.offset) }

// field is one field of a message.
type field struct {
	number protowire.Number
	wire   protowire.Type
	bits   uint64 // varint and fixed
	bytes  []byte // length-delimited
}

// message calls read for each field of a message. read tells whether it takes the field's
// wire type; fields with numbers that it does not know it accepts.
func (d *decoder) message(name string, data []byte, read func(f field) error) error {
	d.messages++
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDepth {
		return d.fail(data, true, "messages nest deeper than %d in %s", maxDepth, name)
	}
	if d.messages > maxMessages {
		return d.fail(data, true, "more than %d messages", maxMessages)
	}
	for len(data) > 0 {
		f, n, err := d.field(name, data)
		if err != nil {
			return err
		}
		if d.fields++; d.fields > maxFields {
			return d.fail(data, true, "more than %d fields", maxFields)
		}
		if f.number != 0 {
			if err := read(f); err != nil {
				if _, placed := err.(*decodeError); placed {
					return err
				}
				return d.fail(data, false, "%s: %v", name, err)
			}
		}
		data = data[n:]
	}
	return nil
}

// field reads one field; groups, which ONNX does not use, are skipped as number 0.
func (d *decoder) field(name string, data []byte) (f field, size int, err error) {
	number, wire, n := protowire.ConsumeTag(data)
	if n < 0 {
		return f, 0, d.fail(data, false, "%s ends in the middle of a tag, or has a wrong one", name)
	}
	f.number, f.wire = number, wire
	m := 0
	switch wire {
	case protowire.VarintType:
		f.bits, m = protowire.ConsumeVarint(data[n:])
	case protowire.Fixed32Type:
		var v uint32
		v, m = protowire.ConsumeFixed32(data[n:])
		f.bits = uint64(v)
	case protowire.Fixed64Type:
		f.bits, m = protowire.ConsumeFixed64(data[n:])
	case protowire.BytesType:
		f.bytes, m = protowire.ConsumeBytes(data[n:])
	case protowire.StartGroupType:
		f.number = 0
		_, m = protowire.ConsumeGroup(number, data[n:])
	default:
		m = -1
	}
	if m < 0 {
		return f, 0, d.fail(data, false, "field %d of %s is cut off or malformed", number, name)
	}
	return f, n + m, nil
}

func (d *decoder) fail(at []byte, limit bool, format string, args ...any) error {
	offset := len(d.base)
	if len(at) > 0 {
		// at is a view of base: the difference of capacities is the offset.
		offset = cap(d.base) - cap(at)
	}
	return &decodeError{offset, fmt.Sprintf(format, args...), limit}
}

// Each taker checks the wire type of a field and stores its value.

func wrongWire(f field) error {
	return fmt.Errorf("field %d has wire type %d", f.number, f.wire)
}

func takeInt[T int32 | int64](f field, to *T) error {
	if f.wire != protowire.VarintType {
		return wrongWire(f)
	}
	*to = T(f.bits)
	return nil
}

func takeString(f field, to *string) error {
	if f.wire != protowire.BytesType {
		return wrongWire(f)
	}
	*to = string(f.bytes)
	return nil
}

func takeBytes(f field, to *[]byte) error {
	if f.wire != protowire.BytesType {
		return wrongWire(f)
	}
	*to = f.bytes
	return nil
}

func appendString(f field, to *[]string) error {
	var s string
	err := takeString(f, &s)
	*to = append(*to, s)
	return err
}

func appendBytes(f field, to *[][]byte) error {
	var b []byte
	err := takeBytes(f, &b)
	*to = append(*to, b)
	return err
}

// appendInts takes a repeated int64, packed or not.
func appendInts(f field, to *[]int64) error {
	switch f.wire {
	case protowire.VarintType:
		*to = append(*to, int64(f.bits))
		return nil
	case protowire.BytesType:
		for data := f.bytes; len(data) > 0; {
			v, n := protowire.ConsumeVarint(data)
			if n < 0 {
				return fmt.Errorf("field %d holds a malformed varint", f.number)
			}
			if *to = append(*to, int64(v)); len(*to) > maxInts {
				return fmt.Errorf("field %d holds more than %d numbers", f.number, maxInts)
			}
			data = data[n:]
		}
		return nil
	}
	return wrongWire(f)
}

// appendFloats takes a repeated float, packed or not.
func appendFloats(f field, to *[]float32) error {
	switch {
	case f.wire == protowire.Fixed32Type:
		*to = append(*to, math.Float32frombits(uint32(f.bits)))
		return nil
	case f.wire == protowire.BytesType && len(f.bytes)%4 == 0:
		for data := f.bytes; len(data) > 0; data = data[4:] {
			v, _ := protowire.ConsumeFixed32(data)
			*to = append(*to, math.Float32frombits(v))
		}
		return nil
	}
	return wrongWire(f)
}

// appendRun keeps a run of a packed field as it is; an element that is not packed becomes a
// run of its own.
func appendRun(f field, wire protowire.Type, to *[][]byte) error {
	switch {
	case f.wire == protowire.BytesType:
		*to = append(*to, f.bytes)
	case f.wire != wire:
		return wrongWire(f)
	case wire == protowire.Fixed32Type:
		*to = append(*to, protowire.AppendFixed32(nil, uint32(f.bits)))
	case wire == protowire.Fixed64Type:
		*to = append(*to, protowire.AppendFixed64(nil, f.bits))
	default:
		*to = append(*to, protowire.AppendVarint(nil, f.bits))
	}
	return nil
}

// sub decodes a nested message with one of the decoder's methods.
func sub[T any](f field, to **T, decode func([]byte) (*T, error)) error {
	if f.wire != protowire.BytesType {
		return wrongWire(f)
	}
	m, err := decode(f.bytes)
	*to = m
	return err
}

func appendSub[T any](f field, to *[]*T, decode func([]byte) (*T, error)) error {
	var m *T
	if err := sub(f, &m, decode); err != nil {
		return err
	}
	*to = append(*to, m)
	return nil
}

func (d *decoder) model(data []byte) (*modelProto, error) {
	m := &modelProto{}
	return m, d.message("ModelProto", data, func(f field) error {
		switch f.number {
		case 1:
			return takeInt(f, &m.irVersion)
		case 2:
			return takeString(f, &m.producerName)
		case 7:
			return sub(f, &m.graph, d.graph)
		case 8:
			return d.opset(f, &m.opsets)
		case 20:
			m.training++
		case 25:
			return appendSub(f, &m.functions, d.function)
		}
		return nil
	})
}

func (d *decoder) opset(f field, to *[]opset) error {
	if f.wire != protowire.BytesType {
		return wrongWire(f)
	}
	var o opset
	err := d.message("OperatorSetIdProto", f.bytes, func(f field) error {
		switch f.number {
		case 1:
			return takeString(f, &o.domain)
		case 2:
			return takeInt(f, &o.version)
		}
		return nil
	})
	*to = append(*to, o)
	return err
}

func (d *decoder) graph(data []byte) (*graphProto, error) {
	g := &graphProto{}
	return g, d.message("GraphProto", data, func(f field) error {
		switch f.number {
		case 1:
			return d.appendNode(f, &g.nodes)
		case 2:
			return takeString(f, &g.name)
		case 5:
			return appendSub(f, &g.initializers, d.tensor)
		case 11:
			return appendSub(f, &g.inputs, d.valueInfo)
		case 12:
			return appendSub(f, &g.outputs, d.valueInfo)
		case 13:
			return appendSub(f, &g.valueInfo, d.valueInfo)
		case 15:
			return appendSub(f, &g.sparse, d.sparse)
		}
		return nil
	})
}

func (d *decoder) appendNode(f field, to *[]*nodeProto) error {
	if err := appendSub(f, to, d.node); err != nil {
		return err
	}
	(*to)[len(*to)-1].index = len(*to) - 1
	return nil
}

func (d *decoder) function(data []byte) (*functionProto, error) {
	p := &functionProto{}
	return p, d.message("FunctionProto", data, func(f field) error {
		switch f.number {
		case 1:
			return takeString(f, &p.name)
		case 4:
			return appendString(f, &p.inputs)
		case 5:
			return appendString(f, &p.outputs)
		case 6:
			return appendString(f, &p.attributes)
		case 7:
			return d.appendNode(f, &p.nodes)
		case 9:
			return d.opset(f, &p.opsets)
		case 10:
			return takeString(f, &p.domain)
		case 11:
			return appendSub(f, &p.defaults, d.attribute)
		case 13:
			return takeString(f, &p.overload)
		}
		return nil
	})
}

func (d *decoder) node(data []byte) (*nodeProto, error) {
	n := &nodeProto{}
	return n, d.message("NodeProto", data, func(f field) error {
		switch f.number {
		case 1:
			return appendString(f, &n.inputs)
		case 2:
			return appendString(f, &n.outputs)
		case 3:
			return takeString(f, &n.name)
		case 4:
			return takeString(f, &n.opType)
		case 5:
			return appendSub(f, &n.attributes, d.attribute)
		case 7:
			return takeString(f, &n.domain)
		case 8:
			return takeString(f, &n.overload)
		case 9:
			return d.metadata(f, func(key, value string) {
				switch key {
				case "pkg.torch.onnx.name_scopes":
					n.scopes = value
				case "pkg.torch.onnx.stack_trace":
					n.stack = value
				}
			})
		}
		return nil
	})
}

// metadata reads a StringStringEntryProto.
func (d *decoder) metadata(f field, keep func(key, value string)) error {
	if f.wire != protowire.BytesType {
		return wrongWire(f)
	}
	var key, value []byte
	err := d.message("StringStringEntryProto", f.bytes, func(f field) error {
		switch f.number {
		case 1:
			return takeBytes(f, &key)
		case 2:
			return takeBytes(f, &value)
		}
		return nil
	})
	d.messages-- // it is not kept
	keep(string(key), string(value))
	return err
}

func (d *decoder) attribute(data []byte) (*attributeProto, error) {
	a := &attributeProto{}
	return a, d.message("AttributeProto", data, func(f field) error {
		switch f.number {
		case 1:
			return takeString(f, &a.name)
		case 2:
			if f.wire != protowire.Fixed32Type {
				return wrongWire(f)
			}
			a.f = math.Float32frombits(uint32(f.bits))
		case 3:
			return takeInt(f, &a.i)
		case 4:
			return takeBytes(f, &a.s)
		case 5:
			return sub(f, &a.t, d.tensor)
		case 6:
			return sub(f, &a.g, d.graph)
		case 7:
			return appendFloats(f, &a.floats)
		case 8:
			return appendInts(f, &a.ints)
		case 9:
			return appendBytes(f, &a.strings)
		case 10:
			a.tensors++
		case 11:
			a.graphs++
		case 14:
			return sub(f, &a.tp, d.typeProto)
		case 20:
			return takeInt(f, (*int32)(&a.kind))
		case 21:
			return takeString(f, &a.ref)
		case 22:
			return sub(f, &a.sparse, d.sparse)
		}
		return nil
	})
}

func (d *decoder) tensor(data []byte) (*tensorProto, error) {
	t := &tensorProto{}
	return t, d.message("TensorProto", data, func(f field) error {
		switch f.number {
		case 1:
			return appendInts(f, &t.dims)
		case 2:
			return takeInt(f, &t.dataType)
		case 3:
			t.segmented = true
		case 4:
			return appendRun(f, protowire.Fixed32Type, &t.floatData)
		case 5:
			return appendRun(f, protowire.VarintType, &t.int32Data)
		case 6:
			return appendBytes(f, &t.strings)
		case 7:
			return appendRun(f, protowire.VarintType, &t.int64Data)
		case 8:
			return takeString(f, &t.name)
		case 9:
			t.hasRaw = true
			return takeBytes(f, &t.raw)
		case 10:
			return appendRun(f, protowire.Fixed64Type, &t.doubleData)
		case 11:
			return appendRun(f, protowire.VarintType, &t.uint64Data)
		case 13:
			return d.metadata(f, func(key, value string) {
				if t.externalData == nil {
					t.externalData = map[string]string{}
				}
				t.externalData[key] = value
			})
		case 14:
			var location int64
			err := takeInt(f, &location)
			t.external = location == 1
			return err
		}
		return nil
	})
}

func (d *decoder) sparse(data []byte) (*sparseTensorProto, error) {
	s := &sparseTensorProto{}
	return s, d.message("SparseTensorProto", data, func(f field) error {
		switch f.number {
		case 1:
			return sub(f, &s.values, d.tensor)
		case 2:
			return sub(f, &s.indices, d.tensor)
		case 3:
			return appendInts(f, &s.dims)
		}
		return nil
	})
}

func (d *decoder) valueInfo(data []byte) (*valueInfoProto, error) {
	v := &valueInfoProto{}
	return v, d.message("ValueInfoProto", data, func(f field) error {
		switch f.number {
		case 1:
			return takeString(f, &v.name)
		case 2:
			return sub(f, &v.kind, d.typeProto)
		}
		return nil
	})
}

func (d *decoder) typeProto(data []byte) (*typeProto, error) {
	t := &typeProto{}
	return t, d.message("TypeProto", data, func(f field) error {
		switch f.number {
		case 1:
			return sub(f, &t.tensor, d.tensorType)
		case 4:
			return sub(f, &t.sequence, d.elementType)
		case 5:
			return sub(f, &t.mapping, d.mapType)
		case 7:
			t.opaque = true
		case 8:
			t.sparse = true
		case 9:
			return sub(f, &t.optional, d.elementType)
		}
		return nil
	})
}

// elementType reads TypeProto.Sequence and TypeProto.Optional, which hold a type in field 1.
func (d *decoder) elementType(data []byte) (*typeProto, error) {
	t := &typeProto{}
	return t, d.message("TypeProto.Sequence", data, func(f field) error {
		if f.number != 1 {
			return nil
		}
		return sub(f, &t, d.typeProto)
	})
}

func (d *decoder) mapType(data []byte) (*mapType, error) {
	m := &mapType{value: &typeProto{}}
	return m, d.message("TypeProto.Map", data, func(f field) error {
		switch f.number {
		case 1:
			return takeInt(f, &m.key)
		case 2:
			return sub(f, &m.value, d.typeProto)
		}
		return nil
	})
}

func (d *decoder) tensorType(data []byte) (*tensorType, error) {
	t := &tensorType{}
	return t, d.message("TypeProto.Tensor", data, func(f field) error {
		switch f.number {
		case 1:
			return takeInt(f, &t.elem)
		case 2:
			t.hasShape = true
			if f.wire != protowire.BytesType {
				return wrongWire(f)
			}
			return d.message("TensorShapeProto", f.bytes, func(f field) error {
				if f.number != 1 {
					return nil
				}
				return d.dimension(f, &t.dims)
			})
		}
		return nil
	})
}

func (d *decoder) dimension(f field, to *[]dimension) error {
	if f.wire != protowire.BytesType {
		return wrongWire(f)
	}
	var dim dimension
	err := d.message("TensorShapeProto.Dimension", f.bytes, func(f field) error {
		switch f.number {
		case 1:
			dim.hasValue = true
			return takeInt(f, &dim.value)
		case 2:
			return takeString(f, &dim.param)
		}
		return nil
	})
	*to = append(*to, dim)
	return err
}
