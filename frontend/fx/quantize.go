package fx

import (
	"weft/ir"
)

// quantizeRules are affine quantization: that of torch.ao's exported programs, and its simulation while
// training.
func quantizeRules() map[string]rule {
	t := map[string]rule{}
	for _, name := range []string{"per_tensor.default", "per_tensor.tensor", "per_tensor.tensor2", "per_channel.default"} {
		t["quantized_decomposed.quantize_"+name] = value((*call).quantize)
		t["quantized_decomposed.dequantize_"+name] = value((*call).dequantize)
	}
	for _, name := range []string{"per_tensor_affine.default", "per_tensor_affine.tensor_qparams", "per_channel_affine.default"} {
		t["fake_quantize_"+name] = value((*call).fakeQuantize)
	}
	return t
}

// affine are the scale and the zero point of a quantized tensor, of its shape and in float32.
func (c *call) affine(shape []ir.Dim) (scale, zero ir.Value) {
	var found [2]ir.Value
	for i, names := range [][]string{{"scale", "scales"}, {"zero_point", "zero_points"}} {
		for _, name := range names {
			a, ok := c.arg(name)
			if !ok {
				continue
			}
			if a.kind != argTensor {
				found[i] = c.b.Broadcast(c.asNumber(name, a).scalar(c.b, ir.F32), shape, nil)
				continue
			}
			v := c.b.Convert(c.asTensor(name, a).read(c.b), ir.F32)
			if ir.Product(c.b.Shape(v)).Is(1) {
				found[i] = c.b.Broadcast(c.b.Reshape(v, nil), shape, nil)
				continue
			}
			found[i] = c.b.Broadcast(v, shape, []int{c.axis("axis", 0, len(shape))})
		}
		if found[i] == ir.NoValue {
			c.bad("%s is missing", names[0])
		}
	}
	c.arg("axis")
	return found[0], found[1]
}

// toGrid is round(x / scale) + zero, within the range of the quantized type.
func (c *call) toGrid(x, scale, zero ir.Value) ir.Value {
	x = c.b.Convert(x, ir.F32)
	inverse := c.b.Binary(ir.OpDivide, c.b.FullLike(scale, 1), scale)
	q := c.b.Unary(ir.OpRoundNearestEven, c.b.Binary(ir.OpMultiply, x, inverse))
	q = c.b.Binary(ir.OpAdd, q, zero)
	q = c.b.Binary(ir.OpMaximum, q, c.b.FullLike(q, c.float("quant_min", 0)))
	return c.b.Binary(ir.OpMinimum, q, c.b.FullLike(q, c.float("quant_max", 0)))
}

func (c *call) quantize() ir.Value {
	x := c.tensor("input")
	scale, zero := c.affine(c.b.Shape(x))
	return c.b.Convert(c.toGrid(x, scale, zero), c.dtype("dtype", ir.I8))
}

func (c *call) dequantize() ir.Value {
	x := c.tensor("input")
	scale, zero := c.affine(c.b.Shape(x))
	for _, name := range []string{"quant_min", "quant_max", "dtype"} {
		c.arg(name)
	}
	y := c.b.Binary(ir.OpMultiply, c.b.Binary(ir.OpSubtract, c.b.Convert(x, ir.F32), zero), scale)
	return c.b.Convert(y, c.dtype("out_dtype", ir.F32))
}

// fakeQuantize rounds to the grid and back. Where fake_quant_enabled says 0 it does nothing.
func (c *call) fakeQuantize() ir.Value {
	x := c.tensor("self")
	scale, zero := c.affine(c.b.Shape(x))
	y := c.b.Binary(ir.OpMultiply, c.b.Binary(ir.OpSubtract, c.toGrid(x, scale, zero), zero), scale)
	y = c.b.Convert(y, c.b.DType(x))
	if enabled := c.optional("fake_quant_enabled"); enabled != ir.NoValue {
		on := c.b.Compare(ir.NE, c.b.Reshape(enabled, nil), c.b.Scalar(c.b.DType(enabled), 0))
		y = c.b.Select(c.b.Broadcast(on, c.b.Shape(x), nil), y, x)
	}
	return y
}
