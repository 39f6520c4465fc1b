package onnx

import (
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

func nllLoss(n *node) {
	n.set(lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		loss, _ := lower.NLL(n.b, v[0], n.in(1), v[1], n.reductionAttr(), n.ignored())
		return loss
	}, n.in(0), n.opt(2)))
}

func softmaxCrossEntropyLoss(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 2)
	var logp ir.Value
	loss := lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		logp = lower.LogSoftmax(n.b, v[0], 1)
		loss, _ := lower.NLL(n.b, logp, n.in(1), v[1], n.reductionAttr(), n.ignored())
		return loss
	}, x, n.opt(2))
	n.set(loss, n.b.Convert(logp, n.b.DType(x)))
}
