package onnx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

func (n *node) reductionAttr() lower.Reduction {
	switch n.choice("reduction", "mean", "none", "mean", "sum") {
	case "none":
		return lower.ReduceNone
	case "sum":
		return lower.ReduceSum
	}
	return lower.ReduceMean
}

// ignored is the class whose elements do not count; -1 when there is none.
func (n *node) ignored() int64 { return n.int("ignore_index", -1) }

// target is the class indices of a loss over x: its shape without the classes.
func (n *node) target(x ir.Value) ir.Value {
	n.rankAtLeast(x, 2)
	shape := n.b.Shape(x)
	return n.sameDims(n.in(1), slices.Concat(shape[:1], shape[2:]))
}

// classWeights is the optional weight of each class of x.
func (n *node) classWeights(x ir.Value) ir.Value {
	if !n.has(2) {
		return ir.NoValue
	}
	return n.sameDims(n.in(2), n.b.Shape(x)[1:2])
}

func nllLoss(n *node) {
	x := n.in(0)
	target := n.target(x)
	n.set(lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		loss, _ := lower.NegativeLogLikelihood(n.b, v[0], target, v[1], n.reductionAttr(), n.ignored())
		return loss
	}, x, n.classWeights(x)))
}

func softmaxCrossEntropyLoss(n *node) {
	x := n.in(0)
	target := n.target(x)
	var logp ir.Value
	loss := lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		logp = lower.LogSoftmax(n.b, v[0], 1)
		loss, _ := lower.NegativeLogLikelihood(n.b, logp, target, v[1], n.reductionAttr(), n.ignored())
		return loss
	}, x, n.classWeights(x))
	n.set(loss, n.b.Convert(logp, n.b.DType(x)))
}
