package ir

import (
	"fmt"
	"slices"
)

// Attrs is a pointer to the attribute struct of an operator kind. Field names print in
// snake_case; fields at their zero value are left out of the text.
type Attrs interface{ attrs() }

type (
	// ConstantAttrs holds a literal. Weights are states, not constants.
	ConstantAttrs struct{ Value *Tensor }
	// DimAttrs turns an expression over symbols into a scalar i64.
	DimAttrs struct{ Value Dim }
	// IotaAttrs counts 0, 1, 2 ... along Axis.
	IotaAttrs struct {
		Type DType
		Dims []Dim
		Axis int
	}
	// CompareAttrs orders floats as IEEE does: every comparison with NaN is false but NE.
	CompareAttrs struct{ Direction Direction }
	// ConvertAttrs converts to To: floats round to nearest even, float to integer truncates
	// and saturates with NaN to 0, integers keep their low bits, to bool is != 0. Saturate
	// makes a float conversion give the largest finite value instead of infinity or NaN.
	ConvertAttrs struct {
		To       DType
		Saturate bool
	}
	// BitcastAttrs reinterprets elements as a type of the same width.
	BitcastAttrs struct{ To DType }
	// ReshapeAttrs keeps the row-major order of elements.
	ReshapeAttrs struct{ Dims []Dim }
	// BroadcastAttrs gives the result's shape; dim i of the operand becomes dim Axes[i] of the
	// result and has its size or 1. Axes ascends.
	BroadcastAttrs struct {
		Dims []Dim
		Axes []int
	}
	// TransposeAttrs: dim i of the result is dim Permutation[i] of the operand.
	TransposeAttrs struct{ Permutation []int }
	// SliceAttrs takes elements Start, Start+Stride, ... below Limit, for each dim.
	SliceAttrs struct {
		Start, Limit []Dim
		Stride       []int64
	}
	// PadAttrs adds Low and High elements at the edges (negative removes) and Interior ones
	// between neighbours, for each dim.
	PadAttrs struct {
		Low, High []Dim
		Interior  []int64
	}
	// AxisAttrs names one dim.
	AxisAttrs struct{ Axis int }
	// AxesAttrs names several dims, ascending.
	AxesAttrs struct{ Axes []int }
	// DynamicSliceAttrs gives the sizes of the slice.
	DynamicSliceAttrs struct{ Sizes []Dim }
	// GatherAttrs are StableHLO's gather dimension numbers.
	GatherAttrs struct {
		OffsetDims               []int
		CollapsedSliceDims       []int
		OperandBatchingDims      []int
		StartIndicesBatchingDims []int
		StartIndexMap            []int
		IndexVectorDim           int
		SliceSizes               []Dim
	}
	// ScatterAttrs are StableHLO's scatter dimension numbers with the way to combine.
	ScatterAttrs struct {
		Combine                    Combine
		UpdateWindowDims           []int
		InsertedWindowDims         []int
		InputBatchingDims          []int
		ScatterIndicesBatchingDims []int
		ScatterDimsToOperandDims   []int
		IndexVectorDim             int
		UniqueIndices              bool // no element is updated twice
		IndicesAreSorted           bool // index vectors are in ascending order
	}
	// RngAttrs gives the type and shape of random numbers, and the stream of the generator that they are:
	// operations of one offset differ in it. Normal numbers take two streams, Stream and the next.
	RngAttrs struct {
		Distribution Distribution
		Type         DType
		Dims         []Dim
		Stream       int64
	}
	// ReduceAttrs combines along Axes (ascending); they vanish from the shape.
	ReduceAttrs struct {
		Combine Combine
		Axes    []int
	}
	// ArgReduceAttrs gives the index of the largest or smallest element along Axis, the first
	// of equals unless Last. NaN wins over numbers.
	ArgReduceAttrs struct {
		Combine Combine // maximum or minimum
		Axis    int
		Last    bool
	}
	// ReduceWindowAttrs combines sliding windows; one number a dim.
	ReduceWindowAttrs struct {
		Combine   Combine
		Window    []Dim
		Strides   []int64
		Dilations []int64 // between elements of a window
		Low, High []Dim   // padding with the identity of Combine
	}
	// CumulativeAttrs combines all elements up to each position along Axis.
	CumulativeAttrs struct {
		Combine   Combine
		Axis      int
		Reverse   bool
		Exclusive bool
	}
	// SortAttrs sorts along Axis by the first operand, stably; NaN counts as largest. With Within, each
	// run of that many elements along the axis is sorted on its own; with Sorted, each run of that many is in
	// order already.
	SortAttrs struct {
		Axis       int
		Descending bool
		Within     int64
		Sorted     int64
	}
	// DotAttrs are StableHLO's dot dimension numbers. Sums are taken in at least float32 and
	// rounded once to To.
	DotAttrs struct {
		LhsBatch, RhsBatch       []int
		LhsContract, RhsContract []int
		To                       DType
		Precision                Precision // tf32: float32 operands are rounded to TF32 first, to nearest, ties away from zero
	}
	// ConvolutionAttrs: input [N, C, spatial...], kernel [O, C/Groups, spatial...]. Sums are
	// taken in at least float32 and rounded once to To; without To, to the operands' type.
	ConvolutionAttrs struct {
		Strides       []int64
		Low, High     []Dim
		LhsDilation   []int64
		RhsDilation   []int64
		Groups        int64
		ReverseKernel bool // the kernel's spatial dims are flipped (transposed convolutions)
		To            DType
		Precision     Precision // as in DotAttrs
	}
	// AttentionAttrs: softmax(q k^T * Scale + mask) v with q [B, H, S, D], k [B, G, T, D],
	// v [B, G, T, E], H a multiple of G. Causal lets position s see t <= s + T - S where
	// AlignEnd, else t <= s.
	AttentionAttrs struct {
		Scale    float64
		Causal   bool
		AlignEnd bool
	}
	// CollectiveAttrs: the group of a rank are the Size ranks whose coordinates differ only on
	// Axes, numbered along them, the last axis varying fastest. All ranks issue the collectives of an entry in
	// the same order. Channel numbers the collectives of a program that was partitioned.
	CollectiveAttrs struct {
		Combine Combine // all_reduce and reduce_scatter
		Axes    []string
		Size    int64
		Channel int64
		Pairs   []MeshPair // collective_permute
		Async   bool       // the result is there when a collective_done gives it
	}
	// MeshPair says that Source sends to Target; both are positions in a group.
	MeshPair struct{ Source, Target int64 }
	// KernelAttrs describe a kernel group: how it runs, and how it runs on targets that multiply by warpgroups (wgmma),
	// where that is another way.
	KernelAttrs struct {
		Group     Group
		Schedule  Schedule
		Warpgroup Schedule
	}
)

func (*ConstantAttrs) attrs()     {}
func (*DimAttrs) attrs()          {}
func (*IotaAttrs) attrs()         {}
func (*CompareAttrs) attrs()      {}
func (*ConvertAttrs) attrs()      {}
func (*BitcastAttrs) attrs()      {}
func (*ReshapeAttrs) attrs()      {}
func (*BroadcastAttrs) attrs()    {}
func (*TransposeAttrs) attrs()    {}
func (*SliceAttrs) attrs()        {}
func (*PadAttrs) attrs()          {}
func (*AxisAttrs) attrs()         {}
func (*AxesAttrs) attrs()         {}
func (*DynamicSliceAttrs) attrs() {}
func (*GatherAttrs) attrs()       {}
func (*ScatterAttrs) attrs()      {}
func (*RngAttrs) attrs()          {}
func (*ReduceAttrs) attrs()       {}
func (*ArgReduceAttrs) attrs()    {}
func (*ReduceWindowAttrs) attrs() {}
func (*CumulativeAttrs) attrs()   {}
func (*SortAttrs) attrs()         {}
func (*DotAttrs) attrs()          {}
func (*ConvolutionAttrs) attrs()  {}
func (*AttentionAttrs) attrs()    {}
func (*CollectiveAttrs) attrs()   {}
func (*KernelAttrs) attrs()       {}

// Direction is a comparison.
type Direction uint8

// The comparisons: equal, not equal, less, less or equal, greater, greater or equal.
const (
	EQ Direction = iota
	NE
	LT
	LE
	GT
	GE
)

var directionNames = []string{"EQ", "NE", "LT", "LE", "GT", "GE"}

// String is the name in program text.
func (d Direction) String() string { return directionNames[d] }

// MarshalText gives the name.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the name.
func (d *Direction) UnmarshalText(text []byte) error {
	return parseName(directionNames, "comparison", text, d)
}

// Precision is how a product takes its float32 operands. The zero value, as they are, is not
// printed.
type Precision int

// The precisions.
const (
	FullPrecision Precision = iota
	TF32                    // rounded to 10 fraction bits, to nearest, ties away from zero
)

var precisionNames = []string{"full", "tf32"}

// String is the name in program text.
func (p Precision) String() string { return precisionNames[p] }

// MarshalText gives the name.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name.
func (p *Precision) UnmarshalText(text []byte) error {
	return parseName(precisionNames, "precision", text, p)
}

// Combine is an associative way to combine two elements.
type Combine uint8

// The combinations. On bools, And, Or and Xor are logical.
const (
	Sum Combine = iota
	Mul
	Max
	Min
	And
	Or
	Xor
	Assign // scatter only: the update replaces the element; the last of several in row-major order wins
)

var combineNames = []string{"add", "multiply", "maximum", "minimum", "and", "or", "xor", "assign"}

// String is the name in program text.
func (c Combine) String() string { return combineNames[c] }

// MarshalText gives the name.
func (c Combine) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name.
func (c *Combine) UnmarshalText(text []byte) error {
	return parseName(combineNames, "combination", text, c)
}

// Distribution is how random numbers are distributed.
type Distribution uint8

// The distributions.
const (
	Uniform Distribution = iota // floats in [0, 1): multiples of 2^-24, or of 2^-53, 2^-11, 2^-8 for f64, f16, bf16
	Normal                      // floats of mean 0 and variance 1
	Bits                        // integers and bools whose bits are independent
)

var distributionNames = []string{"uniform", "normal", "bits"}

// String is the name in program text.
func (d Distribution) String() string { return distributionNames[d] }

// MarshalText gives the name.
func (d Distribution) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the name.
func (d *Distribution) UnmarshalText(text []byte) error {
	return parseName(distributionNames, "distribution", text, d)
}

// Group is the kind of a kernel group.
type Group uint8

// The kinds of kernel groups.
const (
	MapGroup       Group = iota // each output element is a function of its index
	RowsGroup                   // reductions that share rows, kept on chip
	ContractGroup               // a dot_general or convolution with fused prologue and epilogue
	AttentionGroup              // attention with no matrix of scores in memory
	ScatterGroup                // a dynamic_update_slice or scatter that writes into the memory of its first operand
)

var groupNames = []string{"map", "rows", "contract", "attention", "scatter"}

// String is the name in program text.
func (g Group) String() string { return groupNames[g] }

// MarshalText gives the name.
func (g Group) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads the name.
func (g *Group) UnmarshalText(text []byte) error { return parseName(groupNames, "group", text, g) }

func parseName[T ~uint8 | ~int](names []string, what string, text []byte, into *T) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("unknown %s %q; known are %v", what, text, names)
	}
	*into = T(i)
	return nil
}

// SplitGather takes a point of a gather's result apart: its coordinates along the dims of the indices, and those in the slice.
func SplitGather[T any](a *GatherAttrs, point []T) (batch, offset []T) {
	for d, x := range point {
		if slices.Contains(a.OffsetDims, d) {
			offset = append(offset, x)
		} else {
			batch = append(batch, x)
		}
	}
	return batch, offset
}

// GatherIndexAt is the point of a gather's indices, of a rank, that has number n of the index vector for a batch.
func GatherIndexAt[T any](a *GatherAttrs, batch []T, rank int, n T) []T {
	if a.IndexVectorDim >= rank { // a vector of one number has no dim
		return batch
	}
	return slices.Insert(slices.Clone(batch), a.IndexVectorDim, n)
}

// Schedule is how a kernel group runs; plain data, zero where a group has no use for it.
type Schedule struct {
	Threads int // threads a block
	Vector  int // consecutive elements a thread handles together
	Rows    int // rows a block handles at a time (rows)
	TileM   int // tile of a block (contract)
	TileN   int
	TileK   int
	ThreadM int // tile of a thread (contract)
	ThreadN int
	SplitK  int // blocks that share one output tile (contract); 0 and 1 mean none
	Stages  int // buffers of operand tiles (contract on tensor cores); 0 means CUDA cores
	WarpM   int // tile of a warp (contract on tensor cores): 16 rows on warpgroups, which have 64 together; 32 where each has a tile of its own
	WarpN   int
	Bulk    bool // tiles of operands come by bulk copies (TMA), in products on warpgroups started by one beside those that multiply
	Blocks  int  // blocks at most, which take one tile after the other (contract by bulk copies)
}
