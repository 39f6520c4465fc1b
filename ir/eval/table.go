package eval

import (
	"slices"

	"weft/ir"
)

// call is one evaluation of an operation.
type call struct {
	*evaluator
	op    *ir.Op
	in    []*ir.Tensor
	types []ir.Given // of the results
}

// result allocates result i.
func (c *call) result(i int) *ir.Tensor { return ir.NewTensor(c.types[i].DType, c.types[i].Shape...) }

func (c *call) fail(format string, args ...any) error { return fail(c.op, format, args...) }

// undefined is the error of an operation on an element type that it has no meaning for.
func (c *call) undefined(t ir.DType) error {
	return unsupported(c.op, "%s of %s is not defined", c.op.Kind, t)
}

type evalFunc func(c *call) ([]*ir.Tensor, error)

// single adapts an evaluation of one result.
func single(f func(c *call) (*ir.Tensor, error)) evalFunc {
	return func(c *call) ([]*ir.Tensor, error) {
		t, err := f(c)
		return []*ir.Tensor{t}, err
	}
}

// table has the evaluation of each kind.
var table = evaluations()

func evaluations() (t [ir.NumKinds]evalFunc) {
	for kind, f := range unaryFunctions() {
		t[kind] = single(f.eval)
	}
	for kind, f := range binaryFunctions() {
		t[kind] = single(f.eval)
	}
	t[ir.OpConstant] = single(constant)
	t[ir.OpDim] = single(dim)
	t[ir.OpIota] = single(iota)
	t[ir.OpIsFinite] = single(isFinite)
	t[ir.OpConvert] = single(convert)
	t[ir.OpBitcastConvert] = single(bitcast)
	t[ir.OpCompare] = single(compare)
	t[ir.OpSelect] = moving(selectOp, 1, 2)
	t[ir.OpClamp] = single(clamp)
	t[ir.OpReshape] = single(reshape)
	t[ir.OpBroadcastInDim] = moving(broadcast, 0)
	t[ir.OpTranspose] = moving(transpose, 0)
	t[ir.OpSlice] = moving(slice, 0)
	t[ir.OpDynamicSlice] = moving(dynamicSlice, 0)
	t[ir.OpDynamicUpdateSlice] = moving(dynamicUpdateSlice, 0, 1)
	t[ir.OpPad] = moving(pad, 0, 1)
	t[ir.OpConcatenate] = moving(concatenate)
	t[ir.OpReverse] = moving(reverse, 0)
	t[ir.OpGather] = moving(gather, 0)
	t[ir.OpScatter] = scatter
	t[ir.OpRng] = single(rng)
	t[ir.OpReduce] = single(reduce)
	t[ir.OpArgReduce] = single(argReduce)
	t[ir.OpReduceWindow] = single(reduceWindow)
	t[ir.OpCumulative] = single(cumulative)
	t[ir.OpSort] = sortOp
	t[ir.OpDotGeneral] = single(dotGeneral)
	t[ir.OpConvolution] = single(convolution)
	t[ir.OpAttention] = single(attention)
	for _, kind := range []ir.Kind{ir.OpAllReduce, ir.OpAllGather, ir.OpReduceScatter, ir.OpAllToAll, ir.OpCollectivePermute} {
		t[kind] = single(collective)
	}
	t[ir.OpCollectiveDone] = func(c *call) ([]*ir.Tensor, error) { return c.in[:1], nil }
	t[ir.OpIf] = ifOp
	t[ir.OpWhile] = whileOp
	t[ir.OpKernel] = kernel
	return t
}

func constant(c *call) (*ir.Tensor, error) { return c.op.Attrs.(*ir.ConstantAttrs).Value, nil }

func dim(c *call) (*ir.Tensor, error) {
	v, err := c.evalDims(c.op, []ir.Dim{c.op.Attrs.(*ir.DimAttrs).Value})
	if err != nil {
		return nil, err
	}
	return ir.ScalarInt(ir.I64, v[0]), nil
}

func iota(c *call) (*ir.Tensor, error) {
	out := c.result(0)
	axis := c.op.Attrs.(*ir.IotaAttrs).Axis
	if out.DType == ir.String {
		return nil, c.undefined(out.DType)
	}
	_, n, inner := lines(out.Shape, axis)
	writeInts(out, func(i int64) int64 { return i / inner % n })
	return out, nil
}

// ifOp runs the region that the condition chooses.
func ifOp(c *call) ([]*ir.Tensor, error) {
	region := 1
	if c.in[0].Int(0) != 0 {
		region = 0
	}
	return c.block(c.op.Regions[region], nil)
}

// whileOp runs the body while the condition gives true.
func whileOp(c *call) ([]*ir.Tensor, error) {
	values := c.in
	for {
		again, err := c.block(c.op.Regions[0], values)
		if err != nil {
			return nil, err
		}
		if again[0].Int(0) == 0 {
			return values, nil
		}
		if values, err = c.block(c.op.Regions[1], values); err != nil {
			return nil, err
		}
	}
}

// kernel runs its region: grouping does not change meaning.
func kernel(c *call) ([]*ir.Tensor, error) { return c.block(c.op.Regions[0], c.in) }

func equal(a, b []int64) bool { return slices.Equal(a, b) }
