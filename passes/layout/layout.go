// Package layout chooses the order in memory of the images that convolutions read and write:
// channels last. Then the elements that one product sums over are adjacent, and contractions
// load 16 bytes at a time.
//
// The program keeps its meaning and its shapes. An image is stored transposed, and a transpose
// back, which costs nothing where it is read, gives the value that its users know. So no
// canonicalization may follow, which would cancel the two.
package layout

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/initentry"
)

// Run stores the images of every entry channels last. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	changed := false
	for _, e := range slices.Clone(p.Entries) {
		if e.Name == ir.InitEntry {
			continue
		}
		l := &layouter{program: p, entry: e, same: map[ir.Value]ir.Value{}, stored: map[ir.Value]bool{}, users: map[ir.Value][]*ir.Op{}, weights: map[ir.Value]ir.Value{}}
		if err := ir.Try(l.run); err != nil {
			return changed, err
		}
		e.Body.DropDead()
		changed = changed || l.changed
	}
	if changed {
		initentry.Prune(p)
	}
	return changed, nil
}

type layouter struct {
	program *ir.Program
	entry   *ir.Entry
	same    map[ir.Value]ir.Value // values that are now read from their stored form
	stored  map[ir.Value]bool     // values whose elements are channels last in memory, or will be
	users   map[ir.Value][]*ir.Op
	weights map[ir.Value]ir.Value // kernels in their new order
	builder *ir.Builder
	changed bool
}

// minChannels is the number of channels from which an image is worth transposing.
const minChannels = 16

func (l *layouter) run() {
	body := &l.entry.Body
	for _, op := range body.Ops {
		for _, v := range op.Operands {
			l.users[v] = append(l.users[v], op)
		}
	}
	ops := body.Ops
	body.Ops = nil
	l.builder = &ir.Builder{Program: l.program, Entry: l.entry, Block: body}
	for _, op := range ops {
		l.builder.Loc = op.Loc
		for i, v := range op.Operands {
			if w, ok := l.same[v]; ok {
				op.Operands[i] = w
			}
		}
		for _, r := range op.Regions {
			r.Uses(func(v *ir.Value) {
				if w, ok := l.same[*v]; ok {
					*v = w
				}
			})
		}
		l.operation(op)
	}
	for i, v := range body.Results {
		if w, ok := l.same[v]; ok {
			body.Results[i] = w
		}
	}
}

// operation appends an operation and stores its result channels last where that pays.
func (l *layouter) operation(op *ir.Op) {
	body := &l.entry.Body
	switch {
	case op.Kind == ir.OpConvolution:
		if !l.convolution(op) {
			body.Ops = append(body.Ops, op)
			return
		}
	case len(op.Results) == 1 && l.follows(op):
		body.Ops = append(body.Ops, op)
	default:
		body.Ops = append(body.Ops, op)
		return
	}
	v := op.Results[0]
	l.stored[v] = true
	if l.continues(v) {
		return
	}
	w := l.store(v)
	l.same[v] = w
	l.stored[w] = true
}

// convolution reads an image channels last, and a kernel in the order of that. It tells
// whether the result is worth the same.
func (l *layouter) convolution(op *ir.Op) bool {
	out := l.entry.Type(op.Results[0])
	if !out.Shape[1].DivisibleBy(4, nil) || out.Rank() < 3 || l.entry.Type(op.Operands[0]).Rank() != out.Rank() {
		return false
	}
	w := op.Operands[1]
	x := op.Operands[0]
	channels, ok := l.entry.Type(w).Shape[1].IsConst()
	switch {
	case !ok || l.pack(op):
	case l.stored[x]:
		op.Operands[1] = l.kernel(w)
	case channels >= minChannels && channels%4 == 0:
		// Read by several convolutions, it is still stored once.
		stored := l.store(x)
		l.same[x], l.stored[stored] = stored, true
		op.Operands[0], op.Operands[1] = stored, l.kernel(w)
	}
	l.changed = true
	l.entry.Body.Ops = append(l.entry.Body.Ops, op)
	return true
}

// kernel gives a convolution's kernel stored as [O, spatial, C]: a prepared state, or where its
// values are known at run time alone, a copy.
func (l *layouter) kernel(w ir.Value) ir.Value {
	if k, ok := l.weights[w]; ok {
		return k
	}
	rank := l.entry.Type(w).Rank()
	moved, ok := initentry.Add(l.program, l.entry, w, func(b *ir.Builder, v ir.Value) ir.Value {
		return b.Transpose(v, toLast(rank))
	})
	var k ir.Value
	if ok {
		k = l.builder.Transpose(moved, toFirst(rank))
	} else {
		k = l.store(w)
	}
	l.weights[w] = k
	return k
}

// follows tells whether an operation works on stored images element by element, or on windows
// of one.
func (l *layouter) follows(op *ir.Op) bool {
	switch {
	case op.Kind == ir.OpReduceWindow || op.Kind == ir.OpPad:
		return l.stored[op.Operands[0]] && l.entry.Type(op.Results[0]).Rank() >= 3
	case op.Kind.Info().Class != ir.ClassElementwise:
		return false
	}
	return slices.ContainsFunc(op.Operands, func(v ir.Value) bool { return l.stored[v] })
}

// continues tells whether a value's only user takes it element by element: then it will be
// part of the user's kernel, whose result is stored instead.
func (l *layouter) continues(v ir.Value) bool {
	users := l.users[v]
	return len(users) == 1 && users[0].Kind.Info().Class == ir.ClassElementwise && !slices.Contains(l.entry.Body.Results, v)
}

// store puts v into memory channels last and gives the value that reads it back.
func (l *layouter) store(v ir.Value) ir.Value {
	l.changed = true
	rank := l.entry.Type(v).Rank()
	return l.builder.Transpose(l.builder.Transpose(v, toLast(rank)), toFirst(rank))
}

// toLast moves dim 1 to the end.
func toLast(rank int) []int {
	p := []int{0}
	for d := 2; d < rank; d++ {
		p = append(p, d)
	}
	return append(p, 1)
}

// toFirst is the inverse of toLast.
func toFirst(rank int) []int {
	p := []int{0, rank - 1}
	for d := 1; d < rank-1; d++ {
		p = append(p, d)
	}
	return p
}
