package ir

import "reflect"

//go:generate go run ./internal/opdoc ../docs/ir.md

// Kind is an operator kind.
type Kind uint8

// The kinds, in the order of the table.
const (
	InvalidKind Kind = iota
	// sources
	OpConstant
	OpDim
	OpIota
	// elementwise, one operand
	OpAbs
	OpNegate
	OpSign
	OpFloor
	OpCeil
	OpRoundNearestEven
	OpRoundNearestAfz
	OpSqrt
	OpRsqrt
	OpCbrt
	OpExponential
	OpExponentialMinusOne
	OpLog
	OpLogPlusOne
	OpSine
	OpCosine
	OpTan
	OpAsin
	OpAcos
	OpAtan
	OpSinh
	OpCosh
	OpAsinh
	OpAcosh
	OpAtanh
	OpTanh
	OpLogistic
	OpErf
	OpErfInv
	OpLgamma
	OpDigamma
	OpNot
	OpPopcnt
	OpIsFinite
	OpConvert
	OpBitcastConvert
	// elementwise, two operands
	OpAdd
	OpSubtract
	OpMultiply
	OpDivide
	OpRemainder
	OpMaximum
	OpMinimum
	OpPower
	OpAtan2
	OpAnd
	OpOr
	OpXor
	OpShiftLeft
	OpShiftRightArithmetic
	OpShiftRightLogical
	OpCompare
	// elementwise, three operands
	OpSelect
	OpClamp
	// shape and index
	OpReshape
	OpBroadcastInDim
	OpTranspose
	OpSlice
	OpDynamicSlice
	OpDynamicUpdateSlice
	OpPad
	OpConcatenate
	OpReverse
	OpGather
	OpScatter
	OpRng
	// reductions and scans
	OpReduce
	OpArgReduce
	OpReduceWindow
	OpCumulative
	OpSort
	// contractions
	OpDotGeneral
	OpConvolution
	OpAttention
	// collectives
	OpAllReduce
	OpAllGather
	OpReduceScatter
	OpAllToAll
	OpCollectivePermute
	OpCollectiveDone
	// control
	OpIf
	OpWhile
	OpKernel
	NumKinds
)

// Class groups kinds that are treated alike.
type Class uint8

// The classes of kinds.
const (
	ClassSource      Class = iota + 1 // no operands
	ClassElementwise                  // a scalar function of operands at the same index
	ClassIndex                        // a function of the output index that picks operand elements
	ClassReduction
	ClassContraction
	ClassCollective // the ranks of a group take part
	ClassControl
)

// KindInfo is a row of the operator table.
type KindInfo struct {
	Name     string
	Class    Class
	Min, Max int   // number of operands; Max -1 is any
	Attrs    Attrs // prototype of the attribute struct, nil when the kind has none
	Regions  int   // -1 is any
	Infer    inferRule
	Doc      string
}

// Info is the table row of a kind.
func (k Kind) Info() *KindInfo {
	if k >= NumKinds {
		k = InvalidKind
	}
	return &kinds[k]
}

// String is the name in program text.
func (k Kind) String() string { return k.Info().Name }

// ParseKind finds the kind of a name.
func ParseKind(name string) (Kind, bool) {
	for k := OpConstant; k < NumKinds; k++ {
		if kinds[k].Name == name {
			return k, true
		}
	}
	return InvalidKind, false
}

// newAttrs allocates the attribute struct of a kind.
func (k Kind) newAttrs() Attrs {
	proto := k.Info().Attrs
	if proto == nil {
		return nil
	}
	return reflect.New(reflect.TypeOf(proto).Elem()).Interface().(Attrs)
}

// kinds is filled by kindTable: a variable initialiser would be a cycle through the rules.
var kinds = kindTable()

func kindTable() (t [NumKinds]KindInfo) {
	unary := func(infer inferRule, doc string, names ...any) {
		for i := 0; i < len(names); i += 2 {
			t[names[i].(Kind)] = KindInfo{names[i+1].(string), ClassElementwise, 1, 1, nil, 0, infer, doc}
		}
	}
	binary := func(infer inferRule, doc string, names ...any) {
		for i := 0; i < len(names); i += 2 {
			t[names[i].(Kind)] = KindInfo{names[i+1].(string), ClassElementwise, 2, 2, nil, 0, infer, doc}
		}
	}
	t[InvalidKind] = KindInfo{Name: "invalid"}
	t[OpConstant] = KindInfo{"constant", ClassSource, 0, 0, &ConstantAttrs{}, 0, inferConstant, "A literal tensor."}
	t[OpDim] = KindInfo{"dim", ClassSource, 0, 0, &DimAttrs{}, 0, inferDim, "The value of an expression over symbolic dims, as a scalar i64."}
	t[OpIota] = KindInfo{"iota", ClassSource, 0, 0, &IotaAttrs{}, 0, inferIota, "Counts along one axis."}

	unary(sameAs(numeric), "Elementwise. Integers wrap around.", OpAbs, "abs", OpNegate, "negate", OpSign, "sign")
	unary(sameAs(floating), "Elementwise rounding to an integral value of the same type.",
		OpFloor, "floor", OpCeil, "ceil", OpRoundNearestEven, "round_nearest_even", OpRoundNearestAfz, "round_nearest_afz")
	unary(sameAs(floating), "Elementwise elementary function; domain errors give NaN, poles infinity (IEEE 754).",
		OpSqrt, "sqrt", OpRsqrt, "rsqrt", OpCbrt, "cbrt", OpExponential, "exponential", OpExponentialMinusOne, "exponential_minus_one",
		OpLog, "log", OpLogPlusOne, "log_plus_one", OpSine, "sine", OpCosine, "cosine", OpTan, "tan", OpAsin, "asin", OpAcos, "acos",
		OpAtan, "atan", OpSinh, "sinh", OpCosh, "cosh", OpAsinh, "asinh", OpAcosh, "acosh", OpAtanh, "atanh", OpTanh, "tanh",
		OpLogistic, "logistic", OpErf, "erf", OpErfInv, "erf_inv", OpLgamma, "lgamma", OpDigamma, "digamma")
	unary(sameAs(integral), "Elementwise on bits; on bool, logical.", OpNot, "not")
	unary(sameAs(integer), "Elementwise number of set bits.", OpPopcnt, "popcnt")
	unary(inferIsFinite, "Elementwise: neither infinite nor NaN.", OpIsFinite, "is_finite")
	t[OpConvert] = KindInfo{"convert", ClassElementwise, 1, 1, &ConvertAttrs{}, 0, inferConvert, "Elementwise conversion of the element type."}
	t[OpBitcastConvert] = KindInfo{"bitcast_convert", ClassElementwise, 1, 1, &BitcastAttrs{}, 0, inferBitcast, "Elementwise reinterpretation of the bits."}

	binary(sameAs(numeric), "Elementwise. Integers wrap around; integer division truncates, x/0 is -1 (all bits set), x rem 0 is x; the sign of a remainder is the dividend's.",
		OpAdd, "add", OpSubtract, "subtract", OpMultiply, "multiply", OpDivide, "divide", OpRemainder, "remainder", OpPower, "power")
	binary(sameAs(orderable), "Elementwise; NaN if either is NaN; -0 is less than +0; on bool, or and and.", OpMaximum, "maximum", OpMinimum, "minimum")
	binary(sameAs(floating), "Elementwise angle of the point (second, first).", OpAtan2, "atan2")
	binary(sameAs(integral), "Elementwise on bits; on bool, logical.", OpAnd, "and", OpOr, "or", OpXor, "xor")
	binary(sameAs(integer), "Elementwise shift; counts of the width or more, or negative, shift everything out. An arithmetic shift of an unsigned type brings in zeros.",
		OpShiftLeft, "shift_left", OpShiftRightArithmetic, "shift_right_arithmetic", OpShiftRightLogical, "shift_right_logical")
	t[OpCompare] = KindInfo{"compare", ClassElementwise, 2, 2, &CompareAttrs{}, 0, inferCompare, "Elementwise comparison to bool."}
	t[OpSelect] = KindInfo{"select", ClassElementwise, 3, 3, nil, 0, inferSelect, "Elementwise choice: the second operand where the first (bool) is true, else the third."}
	t[OpClamp] = KindInfo{"clamp", ClassElementwise, 3, 3, nil, 0, sameAs(orderable), "Elementwise minimum(maximum(x, min), max), operands in the order min, x, max."}

	t[OpReshape] = KindInfo{"reshape", ClassIndex, 1, 1, &ReshapeAttrs{}, 0, inferReshape, "Another shape for the same row-major elements."}
	t[OpBroadcastInDim] = KindInfo{"broadcast_in_dim", ClassIndex, 1, 1, &BroadcastAttrs{}, 0, inferBroadcast, "Repeats along new dims and dims of size 1."}
	t[OpTranspose] = KindInfo{"transpose", ClassIndex, 1, 1, &TransposeAttrs{}, 0, inferTranspose, "Permutes dims."}
	t[OpSlice] = KindInfo{"slice", ClassIndex, 1, 1, &SliceAttrs{}, 0, inferSlice, "A strided part of a tensor."}
	t[OpDynamicSlice] = KindInfo{"dynamic_slice", ClassIndex, 1, -1, &DynamicSliceAttrs{}, 0, inferDynamicSlice, "A part whose start is given by scalar operands, one a dim, clamped so that it lies inside."}
	t[OpDynamicUpdateSlice] = KindInfo{"dynamic_update_slice", ClassIndex, 2, -1, nil, 0, inferDynamicUpdateSlice, "The first operand with a part replaced by the second, at a start given by scalar operands, clamped."}
	t[OpPad] = KindInfo{"pad", ClassIndex, 2, 2, &PadAttrs{}, 0, inferPad, "Adds elements of a scalar value around and between elements."}
	t[OpConcatenate] = KindInfo{"concatenate", ClassIndex, 1, -1, &AxisAttrs{}, 0, inferConcatenate, "Joins along one axis."}
	t[OpReverse] = KindInfo{"reverse", ClassIndex, 1, 1, &AxesAttrs{}, 0, inferReverse, "Reverses the order along axes."}
	t[OpGather] = KindInfo{"gather", ClassIndex, 2, 2, &GatherAttrs{}, 0, inferGather, "Slices of the first operand at starts taken from the second, clamped (StableHLO gather)."}
	t[OpScatter] = KindInfo{"scatter", ClassIndex, 3, 3, &ScatterAttrs{}, 0, inferScatter, "The first operand with updates (third) combined in at indices (second); updates outside are dropped (StableHLO scatter). Sums are taken in row-major order of the updates."}
	t[OpRng] = KindInfo{"rng", ClassIndex, 1, 1, &RngAttrs{}, 0, inferRng, "Random numbers: a function of the operand, an i64[2] of seed and offset, the stream and the element's index alone (docs/numerics.md)."}

	t[OpReduce] = KindInfo{"reduce", ClassReduction, 1, 1, &ReduceAttrs{}, 0, inferReduce, "Combines along axes; floats accumulate in at least float32 and round once."}
	t[OpArgReduce] = KindInfo{"arg_reduce", ClassReduction, 1, 1, &ArgReduceAttrs{}, 0, inferArgReduce, "The index of the extreme element along an axis, i64."}
	t[OpReduceWindow] = KindInfo{"reduce_window", ClassReduction, 1, 1, &ReduceWindowAttrs{}, 0, inferReduceWindow, "Combines sliding windows."}
	t[OpCumulative] = KindInfo{"cumulative", ClassReduction, 1, 1, &CumulativeAttrs{}, 0, inferCumulative, "Combines all elements up to each position along an axis."}
	t[OpSort] = KindInfo{"sort", ClassReduction, 1, -1, &SortAttrs{}, 0, inferSort, "Sorts along an axis by the first operand and carries the others along."}

	t[OpDotGeneral] = KindInfo{"dot_general", ClassContraction, 2, 2, &DotAttrs{}, 0, inferDot, "Sums of products over contracted dims; result dims are batch, free of the first, free of the second."}
	t[OpConvolution] = KindInfo{"convolution", ClassContraction, 2, 2, &ConvolutionAttrs{}, 0, inferConvolution, "Convolution (cross-correlation) of [N, C, spatial] with [O, C/groups, spatial]."}
	t[OpAttention] = KindInfo{"attention", ClassContraction, 3, 4, &AttentionAttrs{}, 0, inferAttention, "Scaled dot-product attention; the optional fourth operand is a bool mask (false hides) or an additive bias of shape [B or 1, H or 1, S or 1, T]. A row that sees nothing gives zeros."}

	collective := func(kind Kind, name, doc string) {
		t[kind] = KindInfo{name, ClassCollective, 1, 1, &CollectiveAttrs{}, 0, inferCollective, doc}
	}
	collective(OpAllReduce, "all_reduce", "Combines the operands of the ranks of a group, elementwise in the order of the ranks; every rank has the result. Floats accumulate in at least float32 and round once.")
	collective(OpAllGather, "all_gather", "The operands of the ranks of a group one after the other along dim 0, on every rank.")
	collective(OpReduceScatter, "reduce_scatter", "Combines like all_reduce; each rank keeps its share of dim 0.")
	collective(OpAllToAll, "all_to_all", "Cuts dim 0 into one share for each rank of the group; each rank has the shares meant for it, in the order of the ranks they come from.")
	collective(OpCollectivePermute, "collective_permute", "Sends the operand from source to target in the group, for each pair; a rank that is nobody's target has zeros.")

	t[OpCollectiveDone] = KindInfo{"collective_done", ClassCollective, 2, 2, nil, 0, inferDone, "The result of an asynchronous collective, given with the collective's operand: before it nobody reads the one or writes the other, and other work may run in between."}

	t[OpIf] = KindInfo{"if", ClassControl, 1, 1, nil, 2, inferIf, "The results of its first region where the scalar bool is true, else of its second. Regions may use outer values."}
	t[OpWhile] = KindInfo{"while", ClassControl, 0, -1, nil, 2, inferWhile, "Repeats the second region on its values while the first gives true. Regions may use outer values."}
	t[OpKernel] = KindInfo{"kernel", ClassControl, 0, -1, &KernelAttrs{}, 1, inferKernel, "A kernel group: its region, isolated from outside, runs as one kernel."}
	return t
}

// AttrNames lists the attributes of a kind as program text names them.
func (k Kind) AttrNames() []string {
	proto := k.Info().Attrs
	if proto == nil {
		return nil
	}
	t := reflect.TypeOf(proto).Elem()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = snakeCase(t.Field(i).Name)
	}
	return names
}
