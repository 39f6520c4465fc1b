package kernel

import (
	"slices"
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Point is an index into a tensor: its linear row-major form, its form with one number a dim,
// or both; each is made from the other when first asked for. Points are interned.
type Point struct {
	dims   []ir.Dim
	linear *Expr
	multi  []*Expr
	key    string
}

// evaluator gives the values of a region at points. Several lanes are evaluated together, so
// that loads of consecutive elements become one.
type evaluator struct {
	b      *Builder
	entry  *ir.Entry
	prog   *ir.Program
	defs   map[ir.Value]*ir.Op
	leaves map[ir.Value]leaf
	memo   []map[string][]*Expr // by scope, innermost last
	points map[string]*Point
	rules  map[ir.Kind]rule
}

// leaf gives a value that is not computed by an operation of the region: a parameter, or what
// the group keeps on chip.
type leaf func(lanes []*Point) []*Expr

// newEvaluator gives each parameter of a kernel operation's region a buffer, but the one whose
// memory the result shares.
func newEvaluator(p *ir.Program, e *ir.Entry, kernel *ir.Op, b *Builder) *evaluator {
	region := kernel.Regions[0]
	updated, inPlace := kernel.Updated()
	ev := &evaluator{b: b, entry: e, prog: p, defs: map[ir.Value]*ir.Op{}, leaves: map[ir.Value]leaf{},
		memo: []map[string][]*Expr{{}}, points: map[string]*Point{}, rules: rules()}
	for _, op := range region.Ops {
		for _, r := range op.Results {
			ev.defs[r] = op
		}
	}
	for i, v := range region.Params {
		if inPlace && i == updated {
			continue
		}
		t := e.Type(v)
		buf := b.Global(t.DType, false, ev.nonZero(t.Shape))
		ev.leaves[v] = func(lanes []*Point) []*Expr { return ev.loadLanes(buf, lanes) }
	}
	return ev
}

// nonZero tells whether a shape surely has elements.
func (ev *evaluator) nonZero(shape []ir.Dim) bool {
	for _, d := range shape {
		if d.Bounds(ev.prog.Range).Min < 1 {
			return false
		}
	}
	return true
}

func (ev *evaluator) shape(v ir.Value) []ir.Dim { return ev.entry.Type(v).Shape }

// at interns the point with these coordinates.
func (ev *evaluator) at(dims []ir.Dim, multi []*Expr) *Point {
	ids := make([]string, len(multi))
	for i, x := range multi {
		ids[i] = strconv.Itoa(x.ID)
	}
	return ev.intern(&Point{dims: dims, multi: multi, key: strings.Join(ids, ",") + "/" + ir.DimList(dims)})
}

// atLinear interns the point with this row-major index.
func (ev *evaluator) atLinear(dims []ir.Dim, linear *Expr) *Point {
	return ev.intern(&Point{dims: dims, linear: linear, key: "L" + strconv.Itoa(linear.ID) + "/" + ir.DimList(dims)})
}

func (ev *evaluator) intern(p *Point) *Point {
	if old, ok := ev.points[p.key]; ok {
		return old
	}
	ev.points[p.key] = p
	return p
}

// coordinates gives a point's index for each dim.
func (ev *evaluator) coordinates(p *Point) []*Expr {
	if p.multi == nil {
		p.multi = ev.delinearize(p.linear, p.dims)
	}
	return p.multi
}

// linearIndex gives a point's row-major index.
func (ev *evaluator) linearIndex(p *Point) *Expr {
	if p.linear == nil {
		p.linear = ev.linearize(p.multi, p.dims)
	}
	return p.linear
}

func (ev *evaluator) linearize(multi []*Expr, dims []ir.Dim) *Expr {
	sum := ev.b.Idx(0)
	stride := ir.Const(1)
	for i := len(dims) - 1; i >= 0; i-- {
		if !dims[i].Is(1) {
			sum = ev.b.Add(sum, ev.b.Mul(multi[i], ev.b.Size(stride)))
		}
		stride = stride.Mul(dims[i])
	}
	return sum
}

func (ev *evaluator) delinearize(linear *Expr, dims []ir.Dim) []*Expr {
	multi := make([]*Expr, len(dims))
	first := slices.IndexFunc(dims, func(d ir.Dim) bool { return !d.Is(1) })
	for i := len(dims) - 1; i >= 0; i-- {
		switch {
		case dims[i].Is(1):
			multi[i] = ev.b.Idx(0)
		case i == first:
			multi[i] = linear
		default:
			linear, multi[i] = ev.b.DivMod(linear, ev.b.Size(dims[i]))
		}
	}
	return multi
}

// value evaluates v at each lane's point.
func (ev *evaluator) value(v ir.Value, lanes []*Point) []*Expr {
	var key strings.Builder
	key.WriteString(strconv.Itoa(int(v)))
	for _, p := range lanes {
		key.WriteByte(';')
		key.WriteString(p.key)
	}
	for i := len(ev.memo) - 1; i >= 0; i-- {
		if x, ok := ev.memo[i][key.String()]; ok {
			return x
		}
	}
	x := ev.compute(v, lanes)
	ev.memo[len(ev.memo)-1][key.String()] = x
	return x
}

func (ev *evaluator) compute(v ir.Value, lanes []*Point) []*Expr {
	if f, ok := ev.leaves[v]; ok {
		return f(lanes)
	}
	op := ev.defs[v]
	if op == nil {
		panic("BUG: kernel region uses a value that it does not define")
	}
	if op.Kind.Info().Class == ir.ClassElementwise {
		return ev.elementwise(op, lanes)
	}
	rule, ok := ev.rules[op.Kind]
	if !ok {
		ir.Fail(diag.Errorf("W4003", op.Loc, "no kernel for operator %s yet", op.Kind).
			Suggest("run the program with --device reference, or rewrite the model without this operator"))
	}
	return rule(ev, op, lanes)
}

// Supported tells whether kernels can compute a kind inside of a map group.
func Supported(k ir.Kind) bool {
	_, ok := rules()[k]
	return ok || k.Info().Class == ir.ClassElementwise
}

func (ev *evaluator) elementwise(op *ir.Op, lanes []*Point) []*Expr {
	if out, ok := ev.softmax(op, lanes); ok {
		return out
	}
	args := make([][]*Expr, len(op.Operands))
	for i, o := range op.Operands {
		args[i] = ev.value(o, lanes)
	}
	out := make([]*Expr, len(lanes))
	in := make([]*Expr, len(args))
	for l := range lanes {
		for i := range args {
			in[i] = args[i][l]
		}
		out[l] = ev.b.scalar(op, ev.entry, in)
	}
	return out
}

// loadLanes reads a parameter at each lane: one load where the elements are consecutive and
// aligned, at most 16 bytes wide.
func (ev *evaluator) loadLanes(buf *Buffer, lanes []*Point) []*Expr {
	index := make([]*Expr, len(lanes))
	for i, p := range lanes {
		index[i] = ev.linearIndex(p)
	}
	widest := min(len(lanes), 16/max(1, buf.DType.Size()))
	for w := widest; w > 1; w /= 2 {
		if len(lanes)%w == 0 && ev.consecutive(index, w) {
			var out []*Expr
			for i := 0; i < len(index); i += w {
				out = append(out, ev.b.LoadGlobal(buf, index[i], w)...)
			}
			return out
		}
	}
	out := make([]*Expr, len(lanes))
	for i, x := range index {
		out[i] = ev.b.LoadGlobal(buf, x, 1)[0]
	}
	return out
}

// consecutive tells whether each run of w indices counts up by one from a multiple of w.
func (ev *evaluator) consecutive(index []*Expr, w int) bool {
	for i, x := range index {
		if i%w == 0 {
			if !MultipleOf(x, int64(w), ev.sizeDivisor) {
				return false
			}
			continue
		}
		if d, ok := Difference(x, index[i-i%w]); !ok || d != int64(i%w) {
			return false
		}
	}
	return true
}

// sizeDivisor gives a known divisor of a size parameter.
func (ev *evaluator) sizeDivisor(size *Expr) int64 {
	d := ev.b.Kernel.Sizes[size.Imm]
	for v := int64(16); v > 1; v /= 2 {
		if d.DivisibleBy(v, ev.prog.Divisor) {
			return v
		}
	}
	return 1
}

// mapPoints makes each lane's point in an operand from its coordinates in the result.
func (ev *evaluator) mapPoints(lanes []*Point, dims []ir.Dim, f func(at []*Expr) []*Expr) []*Point {
	out := make([]*Point, len(lanes))
	for i, p := range lanes {
		out[i] = ev.at(dims, f(ev.coordinates(p)))
	}
	return out
}

// loop emits a loop in which values may be evaluated; what is evaluated there is forgotten after.
func (ev *evaluator) loop(lo, hi, step *Expr, init []*Expr, body func(i *Expr, carried []*Expr) []*Expr) []*Expr {
	return ev.b.For(lo, hi, step, init, func(i *Expr, carried []*Expr) []*Expr {
		ev.memo = append(ev.memo, map[string][]*Expr{})
		next := body(i, carried)
		ev.memo = ev.memo[:len(ev.memo)-1]
		return next
	})
}

// aside runs f, whose expressions count, but neither what it emits nor what it evaluates.
func (ev *evaluator) aside(f func()) {
	outer := ev.b.block
	ev.b.block = &[]Stmt{}
	ev.memo = append(ev.memo, map[string][]*Expr{})
	f()
	ev.memo = ev.memo[:len(ev.memo)-1]
	ev.b.block = outer
}

// guarded evaluates v at points that are valid only where the lane's predicate holds, and gives
// other elsewhere. The coordinates must be in range wherever the predicate holds.
func (ev *evaluator) guarded(v ir.Value, points []*Point, valid []*Expr, other []*Expr) []*Expr {
	if !slices.ContainsFunc(valid, func(p *Expr) bool { return !p.IsInt(1) }) {
		return ev.value(v, points)
	}
	b := ev.b
	out := make([]*Expr, len(points))
	if ev.nonZero(ev.shape(v)) {
		for i, x := range ev.value(v, ev.clampPoints(points, valid)) {
			out[i] = b.Select(valid[i], x, other[i])
		}
		return out
	}
	// An operand without elements has no safe point: a loop of one turn or none guards it.
	for i := range points {
		once := b.Select(valid[i], b.Idx(1), b.Idx(0))
		out[i] = ev.loop(b.Idx(0), once, b.Idx(1), other[i:i+1], func(*Expr, []*Expr) []*Expr {
			return ev.value(v, points[i:i+1])
		})[0]
	}
	return out
}

// clampPoints replaces points where the predicate does not hold by points inside: coordinates
// that may be out of range become those of the first elements. Lanes that share a predicate
// and differ by constants keep their distances, so that they still make one load.
func (ev *evaluator) clampPoints(points []*Point, valid []*Expr) []*Point {
	b := ev.b
	out := make([]*Point, len(points))
	first := ev.coordinates(points[0])
	for i, p := range points {
		at := slices.Clone(ev.coordinates(p))
		for d, x := range at {
			if b.inside(x, p.dims[d]).IsInt(1) {
				continue
			}
			distance, ok := Difference(x, first[d])
			if ok && valid[i] == valid[0] && distance >= 0 && distance < p.dims[d].Bounds(ev.prog.Range).Min {
				at[d] = b.Add(b.Select(valid[i], first[d], b.Idx(0)), b.Idx(distance))
				continue
			}
			at[d] = b.Select(valid[i], x, b.Idx(0))
		}
		out[i] = ev.at(p.dims, at)
	}
	return out
}
