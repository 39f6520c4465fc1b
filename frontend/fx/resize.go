package fx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// addResizeRules adds upsampling by kind and number of spatial dims.
func addResizeRules(t map[string]rule) {
	add := func(n int, name string, in lower.Interpolation) {
		r := value(func(c *call) ir.Value { return c.resize(n, in) })
		t[name+".default"], t[name+".vec"] = r, r
	}
	linear := lower.Interpolation{Coordinates: lower.HalfPixel, Method: lower.LinearMethod}
	for n, name := range map[int]string{1: "1d", 2: "2d", 3: "3d"} {
		add(n, "upsample_nearest"+name, lower.Interpolation{Coordinates: lower.Asymmetric, Method: lower.NearestMethod, Rounding: lower.RoundFloor})
		add(n, "_upsample_nearest_exact"+name, lower.Interpolation{Coordinates: lower.TFHalfPixelForNN, Method: lower.NearestMethod, Rounding: lower.RoundFloor})
	}
	add(1, "upsample_linear1d", linear)
	add(2, "upsample_bilinear2d", linear)
	add(3, "upsample_trilinear3d", linear)
	antialias := linear
	antialias.Antialias = true
	add(2, "_upsample_bilinear2d_aa", antialias)
	cubic := lower.Interpolation{Coordinates: lower.HalfPixel, Method: lower.CubicMethod, CubicA: -0.75}
	add(2, "upsample_bicubic2d", cubic)
	cubic.Antialias, cubic.CubicA = true, -0.5
	add(2, "_upsample_bicubic2d_aa", cubic)
}

// resize interpolates the last n dims to output_size, or by scale factors.
func (c *call) resize(n int, in lower.Interpolation) ir.Value {
	name := "self"
	if c.has("input") {
		name = "input"
	}
	x := c.tensor(name)
	first := c.b.Rank(x) - n
	if first < 1 {
		c.bad("%d spatial dims of rank %d", n, c.b.Rank(x))
	}
	if c.bool("align_corners", false) {
		in.Coordinates = lower.AlignCorners
	}
	t := c.b.DType(x)
	c.require(t.IsFloat() || in.Method == lower.NearestMethod, "of integers") // torch rounds between the axes
	factors := c.scaleFactors(n)
	outs, given := c.dims("output_size")
	if given && len(outs) != n || !given && factors == nil {
		c.bad("output_size has %d numbers for %d spatial dims", len(outs), n)
	}
	wide := t
	if t.IsFloat() && t.Bits() <= 16 && in.Method != lower.NearestMethod {
		wide = ir.F32 // rounded once, after all axes
	}
	x = c.b.Convert(x, wide)
	for i := range n {
		size := c.b.Shape(x)[first+i]
		a := lower.ResizedAxis{Axis: first + i}
		if factors != nil {
			a.Scale = factors[i]
		}
		if given {
			a.Out = outs[i]
		} else {
			a.Out = c.scaledSize(size, a.Scale)
		}
		if in.Coordinates == lower.AlignCorners {
			a.Scale = 0 // the corners decide
		}
		if in.Method == lower.NearestMethod && (a.Scale == 0 || c.exactScale(size, a)) {
			x = c.nearest(x, a, in.Coordinates == lower.TFHalfPixelForNN)
		} else {
			x = in.Resize(c.b, x, a)
		}
	}
	return c.b.Convert(x, t)
}

// scaleFactors reads scale_factors, or scales, scales_h and so on; nil when there are none.
func (c *call) scaleFactors(n int) []float64 {
	if a, ok := c.arg("scale_factors"); ok && a.kind == argList && len(a.list) == n {
		var list []float64
		for _, e := range a.list {
			list = append(list, c.asNumber("scale_factors", e).f)
		}
		return list
	}
	names := [][]string{{"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}}[n-1]
	var list []float64
	for _, name := range names {
		if f := c.float(name, 0); f > 0 {
			list = append(list, f)
		}
	}
	if len(list) != n {
		return nil
	}
	return list
}

// scaledSize is floor(size * factor).
func (c *call) scaledSize(size ir.Dim, factor float64) ir.Dim {
	if v, ok := size.IsConst(); ok && factor > 0 && float64(v)*factor < maxSize {
		return ir.Const(int64(math.Floor(float64(v) * factor)))
	}
	c.require(factor == math.Trunc(factor) && factor > 0 && factor < 1<<20, "of a symbolic size by a factor that is not whole")
	return size.MulConst(int64(factor))
}

// exactScale tells whether the factor is the ratio of the sizes.
func (c *call) exactScale(size ir.Dim, a lower.ResizedAxis) bool {
	n, ok := size.IsConst()
	out, constant := a.Out.IsConst()
	if ok && constant {
		return float64(n)*a.Scale == float64(out)
	}
	return a.Scale == math.Trunc(a.Scale) && a.Scale < 1<<20 && size.MulConst(int64(a.Scale)).Equal(a.Out)
}

// nearest takes element floor(i*size/out), or floor((i+1/2)*size/out), in whole numbers.
func (c *call) nearest(x ir.Value, a lower.ResizedAxis, centred bool) ir.Value {
	size := c.b.Shape(x)[a.Axis]
	i := c.b.Iota(ir.I64, []ir.Dim{a.Out}, 0)
	out := a.Out
	if centred {
		i, out = lower.AddScalar(c.b, lower.Scale(c.b, i, 2), 1), out.MulConst(2)
	}
	spread := func(d ir.Dim) ir.Value { return c.b.Broadcast(c.b.Dim(d), c.b.Shape(i), nil) }
	at := c.b.Binary(ir.OpDivide, c.b.Binary(ir.OpMultiply, i, spread(size)), spread(out))
	return c.b.Take(x, at, a.Axis)
}
