package lower

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// MaxConstantElements limits the elements of a value that an input is fixed to.
const MaxConstantElements = 1 << 16

// ParseConstant reads "INPUT=VALUES", which fixes an input to values: a number, true, false, or
// nested lists of them. The values are bools, int64 or float64 as they are written; AsConstant
// converts them to the type of the input.
func ParseConstant(fact string) (input string, t *ir.Tensor, err error) {
	input, text, ok := strings.Cut(fact, "=")
	if !ok || input == "" {
		return "", nil, constantError("cannot read %q", fact).Suggest("write INPUT=VALUES, such as sizes=[1,3,224,224] or in.1=5")
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return "", nil, constantError("cannot read the values %q of input %q", text, input).Suggest("write a number, true, false or nested lists such as [[1,2],[3,4]]")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return "", nil, constantError("there is more than one value in %q", text).Suggest("write several values as a list: [1,2]")
	}
	l := literal{}
	if problem := l.add(tree, 0); problem != "" {
		return "", nil, constantError("the values of input %q %s", input, problem)
	}
	return input, l.tensor(), nil
}

func constantError(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf("W0002", "--constant", format, args...)
}

// literal gathers the leaves of nested lists, which must have equal lengths at each depth.
type literal struct {
	shape  []int64
	depth  int // of the leaves; known with the first
	leaves []any
}

// add gathers a tree; it gives what is wrong.
func (l *literal) add(tree any, depth int) string {
	list, isList := tree.([]any)
	if !isList {
		if len(l.leaves) > 0 && depth != l.depth || depth != len(l.shape) {
			return "mix numbers and lists"
		}
		l.depth, l.leaves = depth, append(l.leaves, tree)
		return leafProblem(tree)
	}
	switch {
	case depth > 32:
		return "are nested too deep"
	case depth == len(l.shape) && len(l.leaves) > 0:
		return "mix numbers and lists"
	case depth == len(l.shape):
		l.shape = append(l.shape, int64(len(list)))
	case l.shape[depth] != int64(len(list)):
		return "have lists of different lengths side by side"
	}
	for _, item := range list {
		if problem := l.add(item, depth+1); problem != "" {
			return problem
		}
		if len(l.leaves) > MaxConstantElements {
			return fmt.Sprintf("are more than %d", MaxConstantElements)
		}
	}
	return ""
}

func leafProblem(leaf any) string {
	switch x := leaf.(type) {
	case bool:
		return ""
	case json.Number:
		if _, err := x.Float64(); err != nil {
			return fmt.Sprintf("have the number %s, which is out of range", x)
		}
		return ""
	}
	return "are numbers, true or false"
}

// tensor gives the leaves the narrowest of bool, int64 and float64 that holds all of them.
func (l *literal) tensor() *ir.Tensor {
	dtype := ir.Bool
	if len(l.leaves) == 0 {
		dtype = ir.I64
	}
	for _, leaf := range l.leaves {
		if x, ok := leaf.(json.Number); ok {
			if _, err := x.Int64(); err != nil {
				dtype = ir.F64
			} else if dtype == ir.Bool {
				dtype = ir.I64
			}
		}
	}
	t := ir.NewTensor(dtype, l.shape...)
	for i, leaf := range l.leaves {
		switch x := leaf.(type) {
		case bool:
			if x {
				setNumber(t, int64(i), "1")
			}
		case json.Number:
			setNumber(t, int64(i), x.String())
		}
	}
	return t
}

func setNumber(t *ir.Tensor, i int64, text string) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && !t.DType.IsFloat() {
		t.SetInt(i, n)
		return
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		t.SetFloat(i, f)
	}
}

// AsConstant converts values to the type of the input that they are fixed values of. Integers
// must fit exactly; floats are rounded to the input's type, but are no integers.
func AsConstant(input string, t *ir.Tensor, want ir.Type) (*ir.Tensor, error) {
	if len(t.Shape) != len(want.Shape) {
		return nil, constantError("input %q is %s and cannot be fixed to %s", input, want, t.Type())
	}
	for i, d := range want.Shape {
		if n, ok := d.IsConst(); ok && n != t.Shape[i] {
			return nil, constantError("input %q is %s and cannot be fixed to %s", input, want, t.Type())
		}
	}
	if t.DType == want.DType {
		return t, nil
	}
	if !plain(t.DType) || !plain(want.DType) {
		return nil, constantError("input %q is %s and cannot be fixed to %s", input, want, t.Type())
	}
	out := ir.NewTensor(want.DType, t.Shape...)
	for i := range t.Numel() {
		switch {
		case want.DType.IsFloat():
			out.SetFloat(i, t.Float(i))
		case t.DType.IsFloat():
			return nil, constantError("input %q is %s and cannot be fixed to %v", input, want, t.Float(i))
		default:
			if out.SetInt(i, t.Int(i)); out.Int(i) != t.Int(i) || want.DType == ir.U64 && t.Int(i) < 0 {
				return nil, constantError("input %q is %s, which has no value %d", input, want, t.Int(i))
			}
		}
	}
	return out, nil
}

// plain tells the types whose elements are single numbers or bools.
func plain(t ir.DType) bool { return t == ir.Bool || t.IsInteger() || t.IsFloat() }

// FormatConstant writes values as ParseConstant reads them; false for values that cannot be
// written so (NaN, infinities), or that are too many.
func FormatConstant(t *ir.Tensor) (string, bool) {
	if t.Numel() > MaxConstantElements || !plain(t.DType) {
		return "", false
	}
	var b strings.Builder
	next, ok := int64(0), true
	var write func(shape []int64)
	write = func(shape []int64) {
		if len(shape) == 0 {
			text, written := formatElement(t, next)
			next, ok = next+1, ok && written
			b.WriteString(text)
			return
		}
		b.WriteString("[")
		for i := range shape[0] {
			if i > 0 {
				b.WriteString(",")
			}
			write(shape[1:])
		}
		b.WriteString("]")
	}
	write(t.Shape)
	return b.String(), ok && !slices.Contains(t.Shape[min(1, len(t.Shape)):], 0)
}

func formatElement(t *ir.Tensor, i int64) (text string, ok bool) {
	switch {
	case t.DType == ir.Bool:
		return strconv.FormatBool(t.Int(i) != 0), true
	case t.DType.IsFloat():
		encoded, err := json.Marshal(t.Float(i))
		if err == nil && !bytes.ContainsAny(encoded, ".e") {
			encoded = append(encoded, ".0"...)
		}
		return string(encoded), err == nil
	}
	return strconv.FormatInt(t.Int(i), 10), true
}
