package kernel

import (
	"strconv"

	"weft/ir"
)

// Kernel is one loop-level kernel.
type Kernel struct {
	Threads int       // a block
	Grid    [3]ir.Dim // blocks, as sizes of the launch
	// Resident is how many of them a multiprocessor runs at a time, where they share the work however many they are: more would
	// wait for others to end.
	Resident int
	Buffers  []*Buffer    // global ones are the leading parameters, in this order
	Sizes    []ir.Dim     // the parameters after them, of the builder's index type
	Maps     []*TensorMap // the last parameters
	Index    ir.DType
	Shared   []*Buffer
	Body     []Stmt
}

// Space is a memory space.
type Space uint8

// The memory spaces: of the device, and of a block.
const (
	Global Space = iota
	Shared
)

// Buffer is an array in memory.
type Buffer struct {
	Name    string // p0, p1 ... and s0, s1 ...
	Space   Space
	DType   ir.DType // of the elements in memory
	Length  int64    // elements of a shared array
	Align   int64    // bytes, of a shared array; 0: 16
	Over    *Buffer  // of a shared array: an earlier one, in whose place and that of those after it this one is
	Written bool
	NonZero bool // known to hold at least one element
}

// Stmt is a statement.
type Stmt interface{ stmt() }

type (
	// For repeats Body with Var = Lo, Lo+Step, ... while Var < Hi. Carried values start at Init
	// and take Next after each turn; after the loop they are Results.
	For struct {
		Var, Lo, Hi, Step *Expr
		Carried           []*Expr
		Init, Next        []*Expr
		Results           []*Expr
		Body              []Stmt
	}
	// If runs Body where Cond holds.
	If struct {
		Cond *Expr
		Body []Stmt
	}
	// Store writes consecutive elements where Cond holds; what it writes is computed anyway.
	Store struct {
		Cond   *Expr
		Apart  bool // at no multiple of their joint size: one after the other
		Buffer *Buffer
		Index  *Expr
		Values []*Expr
	}
	// Let computes expressions here: loads of shared memory and shuffles, whose value depends on when.
	Let struct{ Exprs []*Expr }
	// Barrier waits for all threads of the block.
	Barrier struct{}
)

func (*For) stmt()     {}
func (*If) stmt()      {}
func (*Store) stmt()   {}
func (*Let) stmt()     {}
func (*Barrier) stmt() {}

func (b *Builder) emit(s Stmt) { *b.block = append(*b.block, s) }

// Global adds a buffer parameter.
func (b *Builder) Global(dtype ir.DType, written, nonZero bool) *Buffer {
	buf := &Buffer{Name: "p" + strconv.Itoa(len(b.Kernel.Buffers)), DType: dtype, Written: written, NonZero: nonZero}
	b.Kernel.Buffers = append(b.Kernel.Buffers, buf)
	return buf
}

// SharedArray adds an array shared by the block.
func (b *Builder) SharedArray(dtype ir.DType, length int64) *Buffer {
	buf := &Buffer{Name: "s" + strconv.Itoa(len(b.Kernel.Shared)), Space: Shared, DType: dtype, Length: length, Written: true, NonZero: true}
	b.Kernel.Shared = append(b.Kernel.Shared, buf)
	return buf
}

// For emits a loop. body gets the counter and the carried values and returns their next ones;
// the values after the loop are returned.
func (b *Builder) For(lo, hi, step *Expr, init []*Expr, body func(i *Expr, carried []*Expr) []*Expr) []*Expr {
	s := &For{Lo: lo, Hi: hi, Step: step, Init: init}
	outer, depth := b.block, b.depth
	b.block, b.depth = &s.Body, depth+1
	s.Var = b.variable(lo.Type).ranged(lo.lo, max(lo.lo, hi.hi-1))
	for _, x := range init {
		s.Carried = append(s.Carried, b.variable(x.Type))
	}
	s.Next = body(s.Var, s.Carried)
	b.block, b.depth = outer, depth
	for _, x := range init {
		s.Results = append(s.Results, b.variable(x.Type))
	}
	b.emit(s)
	return s.Results
}

// variable makes a value bound at the present depth.
func (b *Builder) variable(t ir.DType) *Expr {
	x := b.fresh(Var, t, int64(b.count))
	x.Depth = b.depth
	return x
}

// If emits a guarded block; nothing around it where the condition is known.
func (b *Builder) If(cond *Expr, body func()) {
	if cond.IsInt(1) {
		body()
		return
	}
	if cond.IsInt(0) {
		return
	}
	s := &If{Cond: cond}
	outer := b.block
	b.block = &s.Body
	b.depth++
	body()
	b.block = outer
	b.depth--
	b.emit(s)
}

// Store emits a store of consecutive elements, aligned to their joint size when several.
func (b *Builder) Store(buf *Buffer, index *Expr, values ...*Expr) {
	b.StoreIf(b.True(), buf, index, values...)
}

// StoreIf is Store where a condition holds.
func (b *Builder) StoreIf(cond *Expr, buf *Buffer, index *Expr, values ...*Expr) {
	b.emit(&Store{Cond: cond, Buffer: buf, Index: index, Values: values})
}

// StoreApart is Store of elements that are aligned one by one.
func (b *Builder) StoreApart(buf *Buffer, index *Expr, values ...*Expr) {
	b.emit(&Store{Cond: b.True(), Apart: true, Buffer: buf, Index: index, Values: values})
}

// Barrier emits a block barrier.
func (b *Builder) Barrier() { b.emit(&Barrier{}) }

// LoadGlobal reads consecutive elements of a buffer that the kernel does not write.
func (b *Builder) LoadGlobal(buf *Buffer, index *Expr, lanes int) []*Expr {
	key := consKey{op: Load, t: held(buf.DType), imm: int64(lanes), args: [3]int{index.ID, -2 - b.bufferNumber(buf), 0}}
	load, ok := b.cons[key]
	if !ok {
		load = b.fresh(Load, held(buf.DType), int64(lanes), index)
		load.Buffer = buf
		b.cons[key] = load
	}
	return b.lanesOf(load, lanes)
}

func (b *Builder) bufferNumber(buf *Buffer) int {
	for i, other := range b.Kernel.Buffers {
		if other == buf {
			return i
		}
	}
	panic("BUG: load of a buffer of another kernel")
}

// LoadShared reads consecutive elements of shared memory here and now.
func (b *Builder) LoadShared(buf *Buffer, index *Expr, lanes int) []*Expr {
	load := b.fresh(Load, held(buf.DType), int64(lanes), index)
	load.Buffer = buf
	load.Depth = max(load.Depth, b.depth)
	b.emit(&Let{[]*Expr{load}})
	return b.lanesOf(load, lanes)
}

func (b *Builder) lanesOf(load *Expr, lanes int) []*Expr {
	if lanes == 1 {
		return []*Expr{load}
	}
	out := make([]*Expr, lanes)
	for i := range out {
		out[i] = b.node(Lane, load.Type, int64(i), load)
	}
	return out
}

// ShuffleXor reads x of the thread whose index in the warp differs by the bits of mask. All
// threads of the warp must take part.
func (b *Builder) ShuffleXor(x *Expr, mask int64) *Expr {
	s := b.fresh(Shuffle, x.Type, mask, x)
	s.Depth = max(s.Depth, b.depth)
	b.emit(&Let{[]*Expr{s}})
	return s
}

// held is the type in which an element of a memory type is held in expressions.
func held(t ir.DType) ir.DType {
	switch t {
	case ir.F16, ir.BF16:
		return ir.F32
	case ir.U8:
		return ir.I8
	case ir.U16:
		return ir.I16
	case ir.U32:
		return ir.I32
	case ir.U64:
		return ir.I64
	}
	return t
}

// Holdable tells whether kernels can compute with an element type.
func Holdable(t ir.DType) bool {
	switch t {
	case ir.Bool, ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32, ir.U64, ir.F16, ir.BF16, ir.F32, ir.F64:
		return true
	}
	return false
}
