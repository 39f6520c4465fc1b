package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

var coordinateModes = map[string]lower.Coordinates{
	"half_pixel": lower.HalfPixel, "half_pixel_symmetric": lower.HalfPixelSymmetric, "pytorch_half_pixel": lower.PytorchHalfPixel,
	"align_corners": lower.AlignCorners, "asymmetric": lower.Asymmetric, "tf_half_pixel_for_nn": lower.TFHalfPixelForNN,
	"tf_crop_and_resize": lower.TFCropAndResize,
}

var nearestModes = map[string]lower.Rounding{
	"round_prefer_floor": lower.RoundPreferFloor, "round_prefer_ceil": lower.RoundPreferCeil, "floor": lower.RoundFloor, "ceil": lower.RoundCeil,
}

func (n *node) interpolationMode() lower.Method {
	switch n.choice("mode", "nearest", "nearest", "linear", "cubic") {
	case "linear":
		return lower.LinearMethod
	case "cubic":
		return lower.CubicMethod
	}
	return lower.NearestMethod
}

// upsample is Upsample, and Resize of version 10.
func upsample(n *node) {
	x := n.in(0)
	var scales []float64
	if n.p.opType == "Upsample" && n.version < 9 {
		scales = n.floats("scales")
	} else {
		scales = n.constFloats(1, "scales")
	}
	in := lower.Interpolation{Coordinates: lower.Asymmetric, Method: n.interpolationMode(), Rounding: lower.RoundFloor}
	n.resizeAxes(x, in, n.allAxes(x), scales, nil, nil)
}

func (n *node) allAxes(x ir.Value) []int {
	axes := make([]int, n.b.Rank(x))
	for i := range axes {
		axes[i] = i
	}
	return axes
}

func resize(n *node) {
	x := n.in(0)
	axes := n.allAxes(x)
	if list := n.ints("axes"); list != nil {
		axes = nil
		for _, a := range list {
			axes = append(axes, n.axis(a, n.b.Rank(x)))
		}
	}
	coordinates, ok := coordinateModes[n.str("coordinate_transformation_mode", "half_pixel")]
	rounding, ok2 := nearestModes[n.str("nearest_mode", "round_prefer_floor")]
	if !ok || !ok2 {
		n.wrong("coordinate_transformation_mode %q, nearest_mode %q", n.str("coordinate_transformation_mode", ""), n.str("nearest_mode", ""))
	}
	in := lower.Interpolation{Coordinates: coordinates, Rounding: rounding, Method: n.interpolationMode(), CubicA: n.float("cubic_coeff_a", -0.75),
		ExcludeOutside: n.flag("exclude_outside", false), Antialias: n.flag("antialias", false), Extrapolation: n.float("extrapolation_value", 0)}
	var region, scales []float64
	if coordinates == lower.TFCropAndResize {
		region = n.constFloats(1, "the region")
		if len(region) != 2*len(axes) {
			n.wrong("a region of %d numbers for %d axes", len(region), len(axes))
		}
	}
	if n.has(2) {
		scales = n.constFloats(2, "scales")
	}
	if len(scales) > 0 {
		n.resizeAxes(x, in, axes, scales, nil, region)
		return
	}
	scales = nil
	sizes := n.dims(3, "sizes")
	if policy := n.choice("keep_aspect_ratio_policy", "stretch", "stretch", "not_larger", "not_smaller"); policy != "stretch" {
		sizes, scales = n.keepAspectRatio(x, axes, sizes, policy == "not_larger")
	}
	n.resizeAxes(x, in, axes, scales, sizes, region)
}

// keepAspectRatio gives all axes the smallest (or largest) of their scales.
func (n *node) keepAspectRatio(x ir.Value, axes []int, sizes []ir.Dim, smallest bool) ([]ir.Dim, []float64) {
	if len(sizes) != len(axes) {
		n.wrong("%d sizes for %d axes", len(sizes), len(axes))
	}
	scale := 0.0
	have := make([]float64, len(axes))
	for i, a := range axes {
		size, ok1 := n.b.Shape(x)[a].IsConst()
		want, ok2 := sizes[i].IsConst()
		if !ok1 || !ok2 || size == 0 {
			n.dataDependent("keep_aspect_ratio_policy needs constant sizes, not %s of %s", sizes[i], n.b.Type(x))
		}
		have[i] = float64(size)
		if s := float64(want) / float64(size); i == 0 || (s < scale) == smallest {
			scale = s
		}
	}
	out := make([]ir.Dim, len(axes))
	for i := range axes {
		out[i] = ir.Const(int64(math.Floor(have[i]*scale + 0.5)))
	}
	return out, slices.Repeat([]float64{scale}, len(axes))
}

// resizeAxes resizes by scales, or to sizes, or to sizes with the scales that positions are
// computed with.
func (n *node) resizeAxes(x ir.Value, in lower.Interpolation, axes []int, scales []float64, sizes []ir.Dim, region []float64) {
	if scales != nil && len(scales) != len(axes) || sizes != nil && len(sizes) != len(axes) {
		n.wrong("%d scales, %d sizes for %d axes", len(scales), len(sizes), len(axes))
	}
	var resized []lower.ResizedAxis
	for i, a := range axes {
		size := n.b.Shape(x)[a]
		axis := lower.ResizedAxis{Axis: a, Out: size, End: 1}
		if scales != nil {
			axis.Scale = scales[i]
			out, ok := lower.ScaleDim(size, scales[i])
			if !ok || !(scales[i] > 0) {
				n.dataDependent("a scale of %v for the dim %s", scales[i], size)
			}
			axis.Out = out
		}
		if sizes != nil {
			axis.Out = sizes[i]
		}
		if region != nil {
			axis.Start, axis.End = region[i], region[len(axes)+i]
		} else if axis.Out.Equal(size) && (axis.Scale == 0 || axis.Scale == 1) {
			continue
		}
		resized = append(resized, axis)
	}
	n.set(in.Resize(n.b, x, resized...))
}
