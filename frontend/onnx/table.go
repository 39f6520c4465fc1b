package onnx

import (
	"maps"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// version is a row of the table: how an operator is lowered from a version of its opset on.
type version struct {
	since int64
	lower func(*node)
}

// one is an operator that all versions lower alike.
func one(f func(*node)) []version { return []version{{1, f}} }

// operators is the table by operator; those of other domains than the default are DOMAIN.NAME.
func operators() map[string][]version {
	table := map[string][]version{}
	for _, part := range []map[string][]version{elementwise(), shapes(), indexing(), networks(), quantized(), control(), recurrents(), attentions(), microsoft(), signals(), samplings(), regions(), trainings(), previews(), features()} {
		for name, rows := range part {
			table[name] = rows
		}
	}
	return table
}

func elementwise() map[string][]version {
	return map[string][]version{
		"Abs": one(unary(ir.OpAbs)), "Neg": one(unary(ir.OpNegate)), "Sign": one(unary(ir.OpSign)), "Floor": one(unary(ir.OpFloor)),
		"Ceil": one(unary(ir.OpCeil)), "Round": one(unary(ir.OpRoundNearestEven)), "Sqrt": one(unary(ir.OpSqrt)),
		"Exp": one(unary(ir.OpExponential)), "Log": one(unary(ir.OpLog)), "Sin": one(unary(ir.OpSine)), "Cos": one(unary(ir.OpCosine)),
		"Tan": one(unary(ir.OpTan)), "Asin": one(unary(ir.OpAsin)), "Acos": one(unary(ir.OpAcos)), "Atan": one(unary(ir.OpAtan)),
		"Sinh": one(unary(ir.OpSinh)), "Cosh": one(unary(ir.OpCosh)), "Asinh": one(unary(ir.OpAsinh)), "Acosh": one(unary(ir.OpAcosh)),
		"Atanh": one(unary(ir.OpAtanh)), "Tanh": one(unary(ir.OpTanh)), "Sigmoid": one(unary(ir.OpLogistic)), "Erf": one(unary(ir.OpErf)),
		"Not": one(unary(ir.OpNot)), "BitwiseNot": one(unary(ir.OpNot)),
		"Reciprocal": one(function(reciprocal)), "IsNaN": one(function(lower.IsNaN)), "IsInf": one(isInf),
		"Add": one(pairwise(ir.OpAdd)), "Sub": one(pairwise(ir.OpSubtract)), "Mul": one(pairwise(ir.OpMultiply)), "Div": one(pairwise(ir.OpDivide)),
		"And": one(pairwise(ir.OpAnd)), "Or": one(pairwise(ir.OpOr)), "Xor": one(pairwise(ir.OpXor)),
		"BitwiseAnd": one(pairwise(ir.OpAnd)), "BitwiseOr": one(pairwise(ir.OpOr)), "BitwiseXor": one(pairwise(ir.OpXor)),
		"BitShift": one(bitShift), "Pow": one(pow), "Mod": one(mod),
		"Equal": one(comparison(ir.EQ)), "Less": one(comparison(ir.LT)), "LessOrEqual": one(comparison(ir.LE)), "Greater": one(comparison(ir.GT)),
		"GreaterOrEqual": one(comparison(ir.GE)),
		"Sum":            one(variadic(ir.OpAdd)), "Max": one(variadic(ir.OpMaximum)), "Min": one(variadic(ir.OpMinimum)), "Mean": one(mean),
		"Where": one(where), "Clip": {{1, clipAttributes}, {11, clip}},
		"Cast": one(cast), "CastLike": one(castLike), "BitCast": one(bitCast),
		"Relu": one(function(lower.Relu)), "LeakyRelu": one(leakyRelu), "PRelu": one(prelu), "ThresholdedRelu": one(thresholdedRelu),
		"Elu": one(elu), "Selu": one(selu), "Celu": one(celu), "Gelu": one(gelu), "HardSigmoid": one(hardSigmoid), "HardSwish": one(inFloat32(hardSwish)),
		"Swish": one(inFloat32(swish)), "Mish": one(function(lower.Mish)), "Softplus": one(softplus), "Softsign": one(function(lower.Softsign)),
		"Shrink": one(shrink), "SwiGLU": one(swiGLU),
		"Softmax":    {{1, softmaxFlat(lower.Softmax)}, {13, softmaxLike(lower.Softmax)}},
		"LogSoftmax": {{1, softmaxFlat(lower.LogSoftmax)}, {13, softmaxLike(lower.LogSoftmax)}},
		"Hardmax":    {{1, softmaxFlat(hardmax)}, {13, softmaxLike(hardmax)}},
	}
}

func shapes() map[string][]version {
	return map[string][]version{
		"Constant": one(constant), "ConstantOfShape": one(constantOfShape), "Identity": one(identity), "Shape": one(shapeOf), "Size": one(sizeOf),
		"Reshape": one(reshape), "Flatten": one(flatten), "Squeeze": one(squeeze), "Unsqueeze": one(unsqueeze), "Transpose": one(transpose),
		"Concat": one(concat), "Split": one(split), "Slice": one(slice), "Expand": one(expand), "Tile": one(tile), "Pad": one(pad),
		"Range": one(rangeOf), "EyeLike": one(eyeLike), "Trilu": one(trilu), "DepthToSpace": one(depthToSpace), "SpaceToDepth": one(spaceToDepth),
		"CenterCropPad": one(centerCropPad),
	}
}

func indexing() map[string][]version {
	return map[string][]version{
		"Gather": one(gather), "GatherElements": one(gatherElements), "GatherND": one(gatherND), "Scatter": one(scatterElements),
		"ScatterElements": one(scatterElements), "ScatterND": one(scatterND), "TensorScatter": one(tensorScatter), "OneHot": one(oneHot),
		"TopK": one(topK), "ArgMax": one(argReduce(ir.Max)), "ArgMin": one(argReduce(ir.Min)), "CumSum": one(cumulative(ir.Sum)),
		"CumProd": one(cumulative(ir.Mul)), "ReverseSequence": one(reverseSequence), "Compress": one(compress), "NonZero": one(nonZero),
		"ReduceSum": one(reduction(13, plain(ir.Sum))), "ReduceProd": one(reduction(18, plain(ir.Mul))), "ReduceMax": one(reduction(18, plain(ir.Max))),
		"ReduceMin": one(reduction(18, plain(ir.Min))), "ReduceMean": one(reduction(18, reduceMean)),
		"ReduceL1": one(reduction(18, after(absolute, nil))), "ReduceL2": one(reduction(18, after(square, root))),
		"ReduceSumSquare": one(reduction(18, after(square, nil))), "ReduceLogSum": one(reduction(18, after(nil, logarithm))),
		"ReduceLogSumExp": one(reduction(18, reduceLogSumExp)),
		"LpNormalization": one(lpNormalization), "MeanVarianceNormalization": one(meanVarianceNormalization), "LRN": one(lrn),
	}
}

func networks() map[string][]version {
	return map[string][]version{
		"MatMul": one(matMul), "Einsum": one(einsum), "Gemm": one(gemm), "Conv": one(conv), "ConvTranspose": one(convTranspose),
		"MaxPool": one(maxPool), "AveragePool": one(averagePool), "LpPool": one(lpPool), "GlobalAveragePool": one(globalAveragePool),
		"GlobalMaxPool": one(globalMaxPool), "GlobalLpPool": one(globalLpPool), "BatchNormalization": one(batchNormalization),
		"LayerNormalization": one(layerNormalization), "RMSNormalization": one(rmsNormalization), "InstanceNormalization": one(instanceNormalization),
		"GroupNormalization": one(groupNormalization), "Dropout": one(dropout),
		"RandomUniform": one(randomOf(false)), "RandomUniformLike": one(randomLike(false)), "RandomNormal": one(randomOf(true)),
		"RandomNormalLike": one(randomLike(true)), "Bernoulli": one(bernoulli), "Multinomial": one(multinomial),
		"Upsample": one(upsample), "Resize": {{10, upsample}, {11, resize}},
		"NegativeLogLikelihoodLoss": one(nllLoss), "SoftmaxCrossEntropyLoss": one(softmaxCrossEntropyLoss),
	}
}

func reciprocal(b *ir.Builder, x ir.Value) ir.Value {
	return b.Binary(ir.OpDivide, b.FullLike(x, 1), x)
}

func quantized() map[string][]version {
	return map[string][]version{
		"QuantizeLinear": one(quantizeLinear), "DequantizeLinear": one(dequantizeLinear), "DynamicQuantizeLinear": one(dynamicQuantizeLinear),
		"MatMulInteger": one(matMulInteger), "ConvInteger": one(convInteger), "QLinearMatMul": one(qLinearMatMul), "QLinearConv": one(qLinearConv),
	}
}

func control() map[string][]version {
	return map[string][]version{
		"If": one(ifBranch), "Loop": one(loopOp), "Scan": {{8, scanBatched}, {9, scan}},
		"SequenceConstruct": one(sequenceConstruct), "SequenceEmpty": one(sequenceEmpty), "SequenceLength": one(sequenceLength),
		"SequenceAt": one(sequenceAt), "SequenceInsert": one(sequenceInsert), "SequenceErase": one(sequenceErase), "SequenceMap": one(sequenceMap),
		"ConcatFromSequence": one(concatFromSequence), "SplitToSequence": one(splitToSequence),
		"Optional": one(optional), "OptionalHasElement": one(optionalHasElement), "OptionalGetElement": one(optionalGetElement),
	}
}

// Operator describes a row of the table for listings.
type Operator struct {
	Name  string  // DOMAIN.NAME for those of other domains than the default
	Since []int64 // the opset versions from which it is lowered in another way, ascending
}

// Operators lists the operators that are supported, by name.
func Operators() []Operator {
	table := operators()
	list := make([]Operator, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		o := Operator{Name: name}
		for _, v := range table[name] {
			o.Since = append(o.Since, v.since)
		}
		list = append(list, o)
	}
	return list
}
