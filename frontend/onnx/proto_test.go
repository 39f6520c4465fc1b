package onnx

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// Writers of messages, for tests.

type message []byte

func msg(fields ...[]byte) message {
	var m message
	for _, f := range fields {
		m = append(m, f...)
	}
	return m
}

func num(field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), uint64(v))
}

func text[T string | message | []byte](field protowire.Number, s T) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), []byte(s))
}

func opsetImport(version int64) []byte { return text(8, msg(num(2, version))) }

// modelOf makes a model of opset 20 with a graph.
func modelOf(graph message) []byte { return msg(num(1, 10), opsetImport(20), text(7, graph)) }

// valueInfo makes a declaration; dims are sizes, or names.
func valueInfo(name string, elem int64, dims ...any) message {
	var shape message
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = append(shape, text(1, msg(num(1, int64(d))))...)
		case int64:
			shape = append(shape, text(1, msg(num(1, d)))...)
		case string:
			shape = append(shape, text(1, msg(text(2, d)))...)
		}
	}
	return msg(text(1, name), text(2, msg(text(1, msg(num(1, elem), text(2, shape))))))
}

func input(name string, elem int64, dims ...any) []byte {
	return text(11, valueInfo(name, elem, dims...))
}

func output(name string) []byte { return text(12, msg(text(1, name))) }

// nodeOf makes a node with one output.
func nodeOf(op, out string, inputs []string, attributes ...message) []byte {
	m := msg(text(2, out), text(4, op), text(3, "the_"+out))
	for _, in := range inputs {
		m = append(m, text(1, in)...)
	}
	for _, a := range attributes {
		m = append(m, text(5, a)...)
	}
	return text(1, m)
}

func intAttribute(name string, v int64) message { return msg(text(1, name), num(3, v), num(20, 2)) }

func intsAttribute(name string, vs ...int64) message {
	m := msg(text(1, name), num(20, 7))
	for _, v := range vs {
		m = append(m, num(8, v)...)
	}
	return m
}

// initializer makes a tensor of raw bytes.
func initializer(name string, elem int64, data []byte, dims ...int64) []byte {
	return text(5, tensorOf(name, elem, data, dims...))
}

func tensorOf(name string, elem int64, data []byte, dims ...int64) message {
	m := msg(num(2, elem), text(8, name), text(9, data))
	for _, d := range dims {
		m = append(m, num(1, d)...)
	}
	return m
}
