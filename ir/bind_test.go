package ir

import (
	"maps"
	"strings"
	"testing"
)

const bindProgram = `
dim batch in 1..64 multiple 2
dim seq
dim past in 0..
dim k
state @"w": f32[3] parameter
entry f(%0 "x": f32[batch, seq + past], %1 "cache": f32[batch, past], %2 @"w": f32[3]) { return }
entry g(%0 "a": f32[2*batch + 1]) { return }
entry h(%0 "a": f32[floordiv(seq, 2)], %1 "b": f32[seq*k]) { return }
`

func TestBindDims(t *testing.T) {
	p := mustParse(t, bindProgram)
	shape := func(dims ...int64) Given { return Given{F32, dims} }
	for _, c := range []struct {
		entry string
		given []Given
		dims  map[string]int64
		want  string // of the error
	}{
		{"f", []Given{shape(4, 7), shape(4, 2), shape(3)}, map[string]int64{"batch": 4, "seq": 5, "past": 2}, ""},
		{"f", []Given{shape(4, 7), shape(4, 0), shape(3)}, map[string]int64{"batch": 4, "seq": 7, "past": 0}, ""},
		{"f", []Given{shape(4, 7), shape(4, 0), {}}, map[string]int64{"batch": 4, "seq": 7, "past": 0}, ""},
		{"f", []Given{shape(4, 7), shape(4, 0)}, nil, `W7000: 2 values for the 3 inputs of entry "f"`},
		{"f", []Given{shape(4, 7), shape(2, 0), shape(3)}, nil, "input \"cache\": error W7003: input \"cache\" is f32[2, 0], expected f32[batch, past] with batch in 1..64, a multiple of 2\n" +
			"  note: dim 0 should be batch = 4\n  note: batch = 4 comes from dim 0 of input \"x\""},
		{"f", []Given{shape(4, 7), shape(4, 0), shape(4)}, nil, `state "w" is f32[4], expected f32[3]`},
		{"f", []Given{{I32, []int64{4, 7}}, shape(4), shape(3)}, nil, `W7002: input "x" is i32[4, 7], expected f32[batch, past + seq] with batch in 1..64`},
		{"f", []Given{shape(66, 7), shape(66, 0), shape(3)}, nil, "W7004: dim batch is 66, but the program was made for batch in 1..64, a multiple of 2\n  note: batch = 66 comes from dim 0 of input \"x\""},
		{"f", []Given{shape(3, 7), shape(3, 0), shape(3)}, nil, "W7004: dim batch is 3"},
		{"f", []Given{shape(4, 7), shape(4, 8), shape(3)}, nil, "W7004: dim seq is -1"},
		{"g", []Given{shape(5)}, map[string]int64{"batch": 2}, ""},
		{"g", []Given{shape(4)}, nil, "no sizes of the symbols give dim 0 = 2*batch + 1 the size 4"},
		{"h", []Given{shape(2), shape(12)}, nil, "no sizes of the symbols give dim 0 = floordiv(seq, 2) the size 2"},
	} {
		dims, err := BindDims(p, p.Entry(c.entry), c.given)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v give %v, not %s", c.given, err, c.want)
			}
		case err != nil || !maps.Equal(dims, c.dims):
			t.Errorf("%v bind %v (%v), not %v", c.given, dims, err, c.dims)
		}
	}
}
