package plan

import (
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Bound is a plan with sizes for its dims.
type Bound struct {
	Plan    *Plan
	Dims    map[string]int64
	Sizes   []int64     // bytes, by buffer
	Offsets []int64     // in the arena, by buffer; 0 for other buffers
	Arena   int64       // bytes
	Steps   []BoundStep // by number
}

// BoundStep is what a step evaluates to.
type BoundStep struct {
	Grid    [3]int64    // of a launch
	Values  []int64     // of a launch, by argument: the passed values
	Maps    []*BoundMap // of a launch, by argument: the tensor maps; nil for none
	Empty   bool        // nothing is to be done: an empty grid, or no bytes
	Pattern []byte      // of a fill
	Count   int64       // of a fill: how often the pattern is written
}

// gridLimits are CUDA's, by axis.
var gridLimits = [3]int64{math.MaxInt32, 65535, 65535}

// Bind evaluates sizes, offsets, grids and arguments of a verified plan. Every declared dim
// must have a value. The errors are diagnostics: W7005 for a dim without a value, W7020 for a
// size that is negative or too large for its use.
func Bind(p *Plan, dims map[string]int64) (*Bound, error) {
	for _, d := range p.Dims {
		if _, ok := dims[d.Name]; !ok {
			return nil, diag.Errorf(diag.RunDimUnknown, fmt.Sprintf("entry %q", p.Entry), "dim %q has no size: no input of this run determines it", d.Name).
				Suggest("name the dim with --dim when compiling, so that an input has it as a size")
		}
	}
	b := &Bound{Plan: p, Dims: dims, Sizes: make([]int64, len(p.Buffers)), Offsets: make([]int64, len(p.Buffers))}
	for i, buf := range p.Buffers {
		if err := b.place(i, buf); err != nil {
			return nil, err
		}
	}
	flat := p.Flat()
	b.Steps = make([]BoundStep, len(flat))
	for i, s := range flat {
		if err := b.step(i, s); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// size evaluates an expression to a value in range. What it is of is in the message.
func (b *Bound) size(what string, d ir.Dim, low, high int64) (int64, error) {
	v, ok := d.IsConst()
	if !ok {
		var err error
		if v, err = d.Eval(b.Dims); err != nil {
			return 0, b.tooLarge(what, "%v", err)
		}
	}
	if v < low || v > high {
		return 0, b.tooLarge(what, "%s = %d is not in %d..%d", d, v, low, high)
	}
	return v, nil
}

func (b *Bound) tooLarge(what, format string, args ...any) error {
	d := diag.Errorf(diag.RunSize, what, format, args...)
	var sizes []string
	for _, dim := range b.Plan.Dims {
		sizes = append(sizes, fmt.Sprintf("%s = %d", dim.Name, b.Dims[dim.Name]))
	}
	if len(sizes) > 0 {
		d.Note("with %s", strings.Join(sizes, ", "))
	}
	return d
}

// maxSize bounds buffers so that sums of a few never overflow.
const maxSize = int64(1) << 56

func (b *Bound) place(i int, buf Buffer) (err error) {
	what := fmt.Sprintf("buffer %d of entry %q", i, b.Plan.Entry)
	if b.Sizes[i], err = b.size(what, buf.Size, 0, maxSize); err != nil || buf.Kind != Arena {
		return err
	}
	for _, a := range buf.After {
		b.Offsets[i] = max(b.Offsets[i], alignUp(b.Offsets[a]+b.Sizes[a]))
	}
	end := b.Offsets[i] + b.Sizes[i]
	if end > maxSize {
		return b.tooLarge(what, "the arena of %d bytes is too large", end)
	}
	b.Arena = max(b.Arena, end)
	return nil
}

func alignUp(v int64) int64 { return (v + Alignment - 1) &^ (Alignment - 1) }

func (b *Bound) step(i int, s Step) (err error) {
	to := &b.Steps[i]
	switch {
	case s.Launch != nil:
		return b.launch(to, s.Launch)
	case s.Copy != nil:
		to.Empty = b.Sizes[s.Copy.To] == 0
		if from := b.Sizes[s.Copy.From]; from != b.Sizes[s.Copy.To] {
			return b.tooLarge(at("step", i), "copy of %d bytes to %d", from, b.Sizes[s.Copy.To])
		}
	case s.Fill != nil:
		if to.Pattern, err = hex.DecodeString(s.Fill.Pattern); err != nil || len(to.Pattern) == 0 {
			panic("BUG: fill pattern of a verified plan")
		}
		size := b.Sizes[s.Fill.Buffer]
		to.Count, to.Empty = size/int64(len(to.Pattern)), size == 0
	case s.Collective != nil:
		to.Empty = b.Sizes[s.Collective.To] == 0
	}
	return nil
}

func (b *Bound) launch(to *BoundStep, l *Launch) (err error) {
	what := l.what()
	if to.Empty, err = b.grid(to, l); err != nil {
		return err
	}
	to.Values = make([]int64, len(l.Args))
	if to.Empty {
		return nil // the values do not matter
	}
	for k, a := range l.Args {
		switch {
		case a.Map != nil:
			if to.Maps == nil {
				to.Maps = make([]*BoundMap, len(l.Args))
			}
			to.Maps[k], err = b.tensorMap(what, a.Map, b.Sizes[a.Buffer])
		case a.Buffer >= 0:
		case a.Bits == 32:
			to.Values[k], err = b.size(what, a.Value, math.MinInt32, math.MaxInt32)
		default:
			to.Values[k], err = b.size(what, a.Value, math.MinInt64, math.MaxInt64)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// grid evaluates the grid of a launch. An empty one has no blocks.
func (b *Bound) grid(to *BoundStep, l *Launch) (empty bool, err error) {
	for axis, d := range l.Grid {
		if to.Grid[axis], err = b.size(l.what(), d, math.MinInt64, gridLimits[axis]); err != nil {
			return false, err
		}
		empty = empty || to.Grid[axis] <= 0
	}
	return empty, nil
}

// what names the launch in messages.
func (l *Launch) what() string {
	if l.Label != "" {
		return l.Label
	}
	return "kernel " + l.Kernel
}

// Memory is what a bound plan needs, in bytes.
type Memory struct {
	Arena   int64   // scratch memory of the run
	Inputs  int64   // of the caller
	Outputs int64   // of the caller
	States  int64   // read or replaced
	Live    []int64 // by number of the step: the arena bytes in use
	Peak    int64   // the largest of Live; Arena exceeds it by what placement loses
}

// Total is all that the run needs at once.
func (m Memory) Total() int64 { return m.Arena + m.Inputs + m.Outputs + m.States }

// Memory adds up what the plan needs with these dims.
func (b *Bound) Memory() Memory {
	p := b.Plan
	m := Memory{Arena: b.Arena, Live: make([]int64, len(b.Steps))}
	read := byState(p.Inputs)
	lives := p.lives()
	change := make([]int64, len(b.Steps)+1)
	for i, buf := range p.Buffers {
		size := b.Sizes[i]
		switch {
		case buf.Kind == Arena:
			if l := lives[i]; l.live() {
				change[l.first] += size
				change[l.last+1] -= size
			}
		case buf.Kind == Input && p.Inputs[buf.Index].State != "":
			m.States += size
		case buf.Kind == Input:
			m.Inputs += size
		default:
			state := p.Outputs[buf.Index].State
			if _, both := read[state]; state != "" && !both {
				m.States += size
			} else {
				m.Outputs += size
			}
		}
	}
	use := int64(0)
	for i := range m.Live {
		use += change[i]
		m.Live[i] = use
		m.Peak = max(m.Peak, use)
	}
	return m
}

// ArenaSize is the size of the arena as an expression over the dims, where it stays readable:
// false when it would not.
func (p *Plan) ArenaSize() (ir.Dim, bool) {
	ends := make([]ir.Dim, len(p.Buffers))
	symbols := map[string]ir.Range{}
	for _, d := range p.Dims {
		s := d.Symbol()
		symbols[d.Name] = ir.Range{Min: s.Min, Max: s.Max}
	}
	ranges := func(name string) (ir.Range, bool) {
		r, ok := symbols[name]
		return r, ok
	}
	larger := func(a, b ir.Dim) ir.Dim {
		diff := a.Sub(b).Bounds(ranges)
		switch {
		case diff.Min >= 0:
			return a
		case diff.Max <= 0:
			return b
		}
		return a.Max(b)
	}
	total := ir.Const(0)
	for i, buf := range p.Buffers {
		if buf.Kind != Arena {
			continue
		}
		offset := ir.Const(0)
		for _, a := range buf.After {
			offset = larger(offset, ends[a].CeilDiv(Alignment).MulConst(Alignment))
			if len(offset.String()) > maxFormula {
				return ir.Dim{}, false
			}
		}
		ends[i] = offset.Add(buf.Size)
		total = larger(total, ends[i])
		if len(ends[i].String()) > maxFormula || len(total.String()) > maxFormula {
			return ir.Dim{}, false
		}
	}
	return total, true
}

// maxFormula is the length of the longest text that helps a reader.
const maxFormula = 400
