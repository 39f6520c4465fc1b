package bench

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"weft/ir"
	"weft/ir/diag"
)

// IntRange is where random integers come from, both ends included.
type IntRange struct{ Low, High int64 }

// Rule says in words how Inputs chooses values.
const Rule = "floats are normal with mean 0 and deviation 1; bools are true; an integer that indexes tables is any row of the smallest, " +
	"another integer is 1; --int-range LOW..HIGH is for all integers instead"

// Inputs makes tensors for the caller's inputs of an entry, global ones for a mesh, by Rule. The same entry and sizes
// give the same values. integers replaces the rule for integers where it is not nil. A dim that
// has no value in dims gets the only one it can have; else the error is a diagnostic.
func Inputs(p *ir.Program, e *ir.Entry, dims map[string]int64, integers *IntRange) ([]*ir.Tensor, error) {
	values, err := sizes(p, e, dims)
	if err != nil {
		return nil, err
	}
	var tensors []*ir.Tensor
	for i, in := range e.Inputs {
		if in.State != "" {
			continue
		}
		v := e.Body.Params[i]
		t := typeOf(e, i)
		shape := make([]int64, len(t.Shape))
		for k, d := range t.Shape {
			if shape[k], err = d.Eval(values); err != nil || shape[k] < 0 || shape[k] > math.MaxInt32 {
				return nil, diag.Errorf(diag.RunSize, fmt.Sprintf("input %q", in.Name), "dim %s has no size that an input can have", d)
			}
		}
		if !t.DType.IsFloat() && !t.DType.IsInteger() && t.DType != ir.Bool {
			return nil, diag.Errorf(diag.RunInputMissing, fmt.Sprintf("input %q", in.Name), "there are no random values of type %s", t.DType).
				Suggest("give the inputs with --inputs")
		}
		r := IntRange{1, 1}
		if integers != nil {
			r = *integers
		} else if rows := smallestTable(e, v); rows > 0 {
			r = IntRange{0, rows - 1}
		}
		tensor := ir.NewTensor(t.DType, shape...)
		fill(tensor, in.Name, r)
		tensors = append(tensors, tensor)
	}
	return tensors, nil
}

// typeOf is the type of what the caller gives for an input: the global tensor.
func typeOf(e *ir.Entry, i int) ir.Type {
	t := e.Type(e.Body.Params[i])
	if s := e.Inputs[i].Shard; s != nil {
		return ir.TensorOf(t.DType, s.Global()...)
	}
	return t
}

// sizes completes dims, and refuses names that no dim of the program has.
func sizes(p *ir.Program, e *ir.Entry, dims map[string]int64) (map[string]int64, error) {
	values := map[string]int64{}
	var names []string
	for _, s := range p.Symbols {
		names = append(names, s.Name)
		if v, ok := dims[s.Name]; ok {
			values[s.Name] = v
		} else if s.Min == s.Max {
			values[s.Name] = s.Min
		}
	}
	for name := range dims {
		if _, ok := values[name]; !ok {
			return nil, diag.Errorf(diag.UnknownName, "--dim", "there is no dim %q", name).Note("dims: %v", names)
		}
	}
	var missing []string
	for i, in := range e.Inputs {
		if in.State != "" {
			continue
		}
		for _, d := range typeOf(e, i).Shape {
			d.Symbols(func(name string) {
				if _, ok := values[name]; !ok {
					values[name] = 1
					missing = append(missing, name)
				}
			})
		}
	}
	if missing != nil {
		return nil, diag.Errorf(diag.RunDimUnknown, "", "the inputs have dims without a size: %v", missing).
			Suggest("give sizes with --dim %s=N, or inputs with --inputs", missing[0])
	}
	return values, nil
}

// smallestTable is the number of rows of the smallest table that a value indexes, however it is
// reshaped or computed with as an integer; 0 when it indexes none.
func smallestTable(e *ir.Entry, v ir.Value) int64 {
	carries := map[ir.Value]bool{v: true}
	smallest := int64(0)
	e.Body.Walk(func(op *ir.Op) {
		a, isGather := op.Attrs.(*ir.GatherAttrs)
		for k, operand := range op.Operands {
			if !carries[operand] {
				continue
			}
			if isGather && k == 1 {
				shape := e.Type(op.Operands[0]).Shape
				for _, axis := range a.StartIndexMap {
					if rows, ok := shape[axis].IsConst(); ok && rows > 0 && (smallest == 0 || rows < smallest) {
						smallest = rows
					}
				}
				continue
			}
			for _, r := range op.Results {
				carries[r] = carries[r] || e.Type(r).DType.IsInteger()
			}
		}
	})
	return smallest
}

func fill(t *ir.Tensor, name string, integers IntRange) {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	span := uint64(integers.High-integers.Low) + 1
	for i := range t.Numel() {
		switch {
		case t.DType.IsFloat():
			t.SetFloat(i, r.NormFloat64())
		case t.DType == ir.Bool:
			t.SetInt(i, 1)
		case span == 0:
			t.SetInt(i, int64(r.Uint64()))
		default:
			t.SetInt(i, integers.Low+int64(r.Uint64N(span)))
		}
	}
}
