package masks

import (
	"fmt"
	"strings"
	"testing"

	"weft/ir"
)

// TestForms has what is known of a value at the point (i, j, k, l), where dims of one element have no coordinate.
func TestForms(t *testing.T) {
	const causal = `
  %i: i64[8] = iota() {type = i64, dims = [8]}
  %j: i64[8, 8] = iota() {type = i64, dims = [8, 8], axis = 1}
  %row: i64[8, 8] = broadcast_in_dim(%i) {dims = [8, 8], axes = [0]}
  %le: i1[8, 8] = compare(%j, %row) {direction = LE}
  %lt: i1[8, 8] = compare(%j, %row) {direction = LT}
  %no: i1[] = constant() {value = i1[] false}
  %nos: i1[8, 8] = broadcast_in_dim(%no) {dims = [8, 8]}
  %yes: i1[8, 8] = not(%nos)
`
	for _, test := range []struct{ name, text, want string }{
		{"count", `%y: i64[8] = iota() {type = i64, dims = [8]}`, "i"},
		{"count that wraps", `%y: i8[200] = iota() {type = i8, dims = [200]}`, "unknown"},
		{"count of unknown length", `%y: i32[s] = iota() {type = i32, dims = [s]}`, "unknown"},
		{"size", `%y: i64[] = dim() {value = s - 1}`, "s - 1"},
		{"literal", `%y: i64[2, 3] = constant() {value = i64[2, 3] [4, 6, 8, 3, 5, 7]}`, "-i + 2j + 4"},
		{"literal that is no progression", `%y: i64[4] = constant() {value = i64[4] [0, 1, 2, 4]}`, "unknown"},
		{"its elements", `%x: i64[4] = constant() {value = i64[4] [0, 1, 2, 4]}
		  %y: i64[1] = slice(%x) {start = [3], limit = [4], stride = [1]}`, "4"},
		{"bools that differ", `%y: i1[2] = constant() {value = i1[2] [false, true]}`, "unknown"},
		{"floats", `%y: f32[8] = iota() {type = f32, dims = [8]}`, "unknown"},
		{"unsigned below zero", `%x: ui8[8] = iota() {type = ui8, dims = [8]} %y: ui8[8] = negate(%x)`, "unknown"},
		{"narrow that holds", `%x: i64[8] = iota() {type = i64, dims = [8]} %y: ui2[8] = convert(%x) {to = ui2}`, "unknown"},
		{"narrow that wraps", `%x: i64[4] = iota() {type = i64, dims = [4]} %y: ui2[4] = convert(%x) {to = ui2}`, "i"},
		{"product", `%x: i64[8] = iota() {type = i64, dims = [8]} %d: i64[] = dim() {value = s} %e: i64[8] = broadcast_in_dim(%d) {dims = [8]}
		  %y: i64[8] = multiply(%x, %e)`, "unknown"},
		{"strides", `%x: i64[9] = iota() {type = i64, dims = [9]} %z: i64[4] = slice(%x) {start = [1], limit = [8], stride = [2]}
		  %y: i64[4] = reverse(%z) {axes = [0]}`, "-2i + 7"},
		{"joined dims", `%x: i64[2, 6] = iota() {type = i64, dims = [2, 6], axis = 1} %z: i64[12] = reshape(%x) {dims = [12]}
		  %y: i64[2, 1, 6] = reshape(%z) {dims = [2, 1, 6]}`, "j"},
		{"cut dims", `%x: i64[12] = iota() {type = i64, dims = [12]} %y: i64[2, 6] = reshape(%x) {dims = [2, 6]}`, "6i + j"},
		{"joined dims of which the rest is unknown", `%x: i64[2, 6] = iota() {type = i64, dims = [2, 6], axis = 1} %y: i64[12] = reshape(%x) {dims = [12]}`, "unknown"},
		{"causal", causal + `%y: i1[8, 8] = or(%nos, %le)`, "i - j >= 0"},
		{"either of which one implies the other", causal + `%y: i1[8, 8] = or(%lt, %le)`, "i - j >= 0"},
		{"both of which one implies the other", causal + `%y: i1[8, 8] = and(%le, %lt)`, "i - j - 1 >= 0"},
		{"opposite", causal + `%y: i1[8, 8] = not(%le)`, "-i + j - 1 >= 0"},
		{"selected bools", causal + `%y: i1[8, 8] = select(%le, %lt, %nos)`, "i - j - 1 >= 0"},
		{"selected bools, no first", causal + `%y: i1[8, 8] = select(%le, %nos, %yes)`, "-i + j - 1 >= 0"},
		{"selected bools, no first and rest", causal + `%n: i1[8, 8] = not(%lt) %y: i1[8, 8] = select(%lt, %nos, %le)`, "-i + j >= 0 and i - j >= 0"},
		{"selected bools, yes last", causal + `%n: i1[8, 8] = not(%le) %y: i1[8, 8] = select(%n, %lt, %yes)`, "i - j >= 0"},
		{"selected bools, yes first", causal + `%y: i1[8, 8] = select(%lt, %yes, %le)`, "i - j >= 0"},
		{"diagonal", causal + `%y: i1[8, 8] = compare(%row, %j) {direction = EQ}`, "i - j >= 0 and -i + j >= 0"},
		{"not the diagonal", causal + `%y: i1[8, 8] = compare(%row, %j) {direction = NE}`, "unknown"},
		{"compared with true", causal + `%y: i1[8, 8] = compare(%yes, %le) {direction = EQ}`, "i - j >= 0"},
		{"steps of two", `%x: i64[8] = iota() {type = i64, dims = [8]} %two: i64[] = constant() {value = i64[] 2} %seven: i64[] = constant() {value = i64[] 7}
		  %twos: i64[8] = broadcast_in_dim(%two) {dims = [8]} %sevens: i64[8] = broadcast_in_dim(%seven) {dims = [8]}
		  %z: i64[8] = multiply(%x, %twos) %y: i1[8] = compare(%z, %sevens) {direction = LE}`, "-i + 3 >= 0"},
		{"steps over parts", `%x: i64[8] = iota() {type = i64, dims = [8]} %one: i64[1] = constant() {value = i64[1] [-1]}
		  %y: i64[9] = concatenate(%one, %x) {axis = 0}`, "i - 1"},
		{"parts that differ", `%x: i64[8] = iota() {type = i64, dims = [8]} %one: i64[1] = constant() {value = i64[1] [-2]}
		  %y: i64[9] = concatenate(%one, %x) {axis = 0}`, "unknown"},
		{"steps over parts backwards", `%x: i64[8] = iota() {type = i64, dims = [8]} %one: i64[1] = constant() {value = i64[1] [-1]}
		  %z: i64[9] = concatenate(%one, %x) {axis = 0} %y: i64[9] = reverse(%z) {axes = [0]}`, "-i + 7"},
		{"long parts backwards", `%x: i64[8] = iota() {type = i64, dims = [8]} %c: i64[] = constant() {value = i64[] 8} %eights: i64[8] = broadcast_in_dim(%c) {dims = [8]}
		  %z: i64[8] = subtract(%x, %eights) %both: i64[16] = concatenate(%z, %x) {axis = 0} %y: i64[16] = reverse(%both) {axes = [0]}`, "-i + 7"},
		{"padded", `%x: i64[8] = iota() {type = i64, dims = [8]} %v: i64[] = constant() {value = i64[] 8}
		  %y: i64[9] = pad(%x, %v) {low = [0], high = [1], interior = [0]}`, "i"},
		{"running sum of ones", `%z: i64[] = constant() {value = i64[] 1} %o: i64[2, s] = broadcast_in_dim(%z) {dims = [2, s]}
		  %y: i64[2, s] = cumulative(%o) {combine = add, axis = 1}`, "j + 1"},
		{"running sum from the end", `%z: i64[] = constant() {value = i64[] 2} %o: i64[8] = broadcast_in_dim(%z) {dims = [8]}
		  %y: i64[8] = cumulative(%o) {combine = add, reverse = true, exclusive = true}`, "-2i + 14"},
		{"greatest of no elements", `%z: i64[] = constant() {value = i64[] 2} %o: i64[4, t] = broadcast_in_dim(%z) {dims = [4, t]}
		  %y: i64[4] = reduce(%o) {combine = maximum, axes = [1]}`, "unknown"},
		{"all of no elements", `%z: i1[] = constant() {value = i1[] true} %o: i1[4, t] = broadcast_in_dim(%z) {dims = [4, t]}
		  %y: i1[4] = reduce(%o) {combine = and, axes = [1]}`, "true"},
		{"sum", `%z: i64[] = constant() {value = i64[] 2} %o: i64[4, t] = broadcast_in_dim(%z) {dims = [4, t]}
		  %y: i64[4] = reduce(%o) {combine = add, axes = [1]}`, "2*t"},
		{"gathered", `%x: i64[3, 8] = iota() {type = i64, dims = [3, 8], axis = 1} %i: i64[5] = iota() {type = i64, dims = [5]} %j: i64[5, 1] = reshape(%i) {dims = [5, 1]}
		  %y: i64[5, 3] = gather(%x, %j) {offset_dims = [1], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1, slice_sizes = [3, 1]}`, "i"},
		{"gathered beyond the end", `%x: i64[3, 8] = iota() {type = i64, dims = [3, 8], axis = 1} %i: i64[9] = iota() {type = i64, dims = [9]} %j: i64[9, 1] = reshape(%i) {dims = [9, 1]}
		  %y: i64[9, 3] = gather(%x, %j) {offset_dims = [1], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1, slice_sizes = [3, 1]}`, "unknown"},
		{"gathered in batches", `%x: i64[4, 8] = iota() {type = i64, dims = [4, 8]} %i: i64[1, 2, 4] = iota() {type = i64, dims = [1, 2, 4], axis = 1}
		  %y: i64[2, 4] = gather(%x, %i) {collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [2], start_index_map = [1], index_vector_dim = 0, slice_sizes = [1, 1]}`, "j"},
		{"cut out at a start", `%x: i64[8] = iota() {type = i64, dims = [8]} %i: i64[] = constant() {value = i64[] 7}
		  %y: i64[3] = dynamic_slice(%x, %i) {sizes = [3]}`, "i + 5"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := "dim s in 1..\ndim t in 0..64\nentry forward() {\n" + test.text + "\n  return %y \"y\"\n}\n"
			p, err := ir.ParseProgram("test", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			e := p.Entries[0]
			n := newInterpreter(p, e)
			n.left = patience
			var point []form
			for _, d := range e.Type(e.Body.Results[0]).Shape {
				point = append(point, n.coordinate(d))
			}
			if got := describe(n.at(e.Body.Results[0], point)); got != test.want {
				t.Errorf("%s, not %s", got, test.want)
			}
		})
	}
}

// describe writes a value with the coordinates i, j, k, l.
func describe(v value) string {
	switch {
	case v.kind == unknown:
		return "unknown"
	case v.kind == never:
		return "false"
	case v.always():
		return "true"
	case v.kind == number:
		return formula(v.form)
	}
	var halves []string
	for _, f := range v.halves {
		halves = append(halves, formula(f)+" >= 0")
	}
	return strings.Join(halves, " and ")
}

// formula writes a form as a dim over i, j, k, l.
func formula(f form) string {
	text := ""
	for _, t := range f.terms {
		switch {
		case t.coefficient < 0 && text == "":
			text += "-"
		case t.coefficient < 0:
			text += " - "
		case text != "":
			text += " + "
		}
		if abs(t.coefficient) != 1 {
			text += fmt.Sprint(abs(t.coefficient))
		}
		text += string("ijkl"[t.variable])
	}
	c, fixed := f.c.IsConst()
	switch {
	case text == "":
		return f.c.String()
	case fixed && c == 0:
		return text
	case fixed && c < 0:
		return fmt.Sprintf("%s - %d", text, -c)
	}
	return text + " + " + f.c.String()
}

// A mask whose conjuncts double with each operation is given up in time, and what is found until then holds.
func TestMaskOfManyConjuncts(t *testing.T) {
	text := `entry forward(%q "q": f32[1, 1, 8, 4], %m0 "m": i1[1, 1, 8, 8]) {
`
	for i := range 60 {
		text += fmt.Sprintf("  %%m%d: i1[1, 1, 8, 8] = and(%%m%d, %%m%d)\n", i+1, i, i)
	}
	text += `  %y: f32[1, 1, 8, 4] = attention(%q, %q, %q, %m60) {scale = 0.5}
  return %y "y"
}
`
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := Run(p); changed || err != nil {
		t.Errorf("changed %t, %v", changed, err)
	}
}
