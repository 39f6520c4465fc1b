package plan

// The rules of a plan:
//
//	P1   The version is known; target and entry have names. Dims have distinct names and
//	     possible bounds: 0 <= min <= max, where max 0 is none.
//	P2   Inputs have distinct names, and so have outputs. Element types are known and have a
//	     fixed size. At most one input reads a state and at most one output replaces it, with
//	     the same type.
//	P3   Shapes, sizes, grids and arguments mention declared dims only.
//	P4   Buffers: the kind is known. Input and output buffers name an input or output that no
//	     other buffer names, and have its size. After lists distinct earlier arena buffers, and
//	     only arena buffers have it.
//	P5   A step has exactly one kind. Steps are nested at most 32 deep.
//	P6   Steps name buffers of the table. An argument is a buffer with an access, a tensor map of
//	     one that is read, or a value of 32 or 64 bits.
//	P7   Memory is written before it is read, on every way: what one branch of an if writes, or
//	     the body of a while, is not written after it. Inputs are written from the start.
//	P8   An input is written only if it reads a state that an output replaces.
//	P9   Every output is written, on every way. An output that replaces a state which an input reads may do
//	     without a buffer: the input's then has the new value. If it has one, some step writes
//	     the input's too.
//	P10  Two arena buffers that are live at the same step are disjoint: one lists the other in
//	     After. A buffer is live from the first to the last step that names it. Where a while
//	     names it, it is live in all of the while, unless nothing outside names it and each
//	     iteration writes it before it reads it.
//	P11  Kernels exist and get as many arguments as they have parameters; blocks have 1 to 1024
//	     threads.
//	P12  A copy is between two buffers of equal size. A fill's pattern has 1, 2, 4 or 8 bytes,
//	     in hex, and divides the buffer's size.
//	P13  A buffer that a launch writes without reading (w) is no other argument of it.
//	P17  An asynchronous collective is followed in its list by one wait that names its buffers, and a wait by
//	     none but that. In between no step names the collective's result, and none writes its operand.
//	P14  The predicate of an if or a while is a buffer of 1 byte.
//	P15  The mesh's axes have distinct names and sizes of at least 1; a dim "rank.AXIS" has the
//	     bounds of the axis. A collective is a known one of a known element type, over axes of the
//	     mesh, each once, with as many ranks as they have. It combines, where it reduces, in a way
//	     that the type has; ranks of pairs are in the group, each source and target once. A tensor
//	     that ranks divide has on one rank the shape that its sharding gives.
//	P16  The buffers of a collective differ, but for an all_reduce that is not asynchronous, which may
//	     have its result where its operand is. They have the sizes that its kind asks for, whole
//	     elements, the same on all ranks.
//	P21  A tensor map comes after all arguments that are none, and the launch only reads its
//	     buffer. It has an element type of 1, 2, 4 or 8 bytes that is not complex, 1 to 5 dims, a
//	     stride for each but the innermost, a box of 1 to 256 elements in each, and a swizzle of 0,
//	     32, 64 or 128.
//	P22  The innermost extent of a tensor map's box is a multiple of 16 bytes, and that of its
//	     swizzle if it has one. Its offset and strides are multiples of 16 at every size.
//	P23  A tensor map lies inside its buffer with all dims as close to 1 as their bounds allow, and
//	     with all as close to 4096. Bind holds it to the sizes of a run.
//
// Those of all ranks of a mesh together, P18 to P20, head ranks.go.

import (
	"encoding/hex"
	"fmt"
	"slices"

	"weft/ir"
	"weft/ir/diag"
)

// Verify checks the plan against the rules P1 to P17 and P21 to P23. kernels gives the number of parameters
// of a kernel; nil leaves the kernels out. The error is a diag.List of at most 20 diagnostics
// (W5003) with the rule's number and the place.
func Verify(p *Plan, kernels func(name string) (params int, ok bool)) error {
	v := &verifier{p: p, kernels: kernels, dims: map[string]Dim{}, rankDims: map[string]bool{}, reads: byState(p.Inputs), replaces: byState(p.Outputs)}
	v.header()
	v.mesh()
	v.tensors()
	v.buffers()
	if len(v.faults) > 0 {
		return v.faults.Err() // the steps would be measured by broken tables
	}
	v.steps(p.Steps, 0)
	if len(v.faults) > 0 {
		return v.faults.Err()
	}
	v.dataflow()
	v.disjoint()
	return v.faults.Err()
}

const maxFaults = 20

type verifier struct {
	p       *Plan
	kernels func(string) (int, bool)
	faults  diag.List
	next    int // number of the next step

	dims            map[string]Dim
	rankDims        map[string]bool // coordinates on the mesh
	reads, replaces map[string]int  // input and output by state
}

func (v *verifier) fail(rule int, place, format string, args ...any) {
	if len(v.faults) < maxFaults {
		v.faults = append(v.faults, diag.Errorf(diag.InvalidPlan, place, "P%d: %s", rule, fmt.Sprintf(format, args...)))
	}
}

func at(kind string, i int) string { return fmt.Sprintf("%s %d", kind, i) }

func (v *verifier) header() {
	if checkVersion(v.p.Version) != nil || v.p.Target == "" || v.p.Entry == "" {
		v.fail(1, "", "version %.40q, target %.100q, entry %.100q", v.p.Version, v.p.Target, v.p.Entry)
	}
	for i, d := range v.p.Dims {
		if _, taken := v.dims[d.Name]; d.Name == "" || taken {
			v.fail(1, at("dim", i), "the name %.100q is empty or taken", d.Name)
		}
		v.dims[d.Name] = d
		if d.Min < 0 || d.Max < 0 || d.Max != 0 && d.Max < d.Min || d.Multiple < 0 {
			v.fail(1, at("dim", i), "%.100q has impossible bounds", d.Name)
		}
	}
}

func (v *verifier) tensors() {
	for _, side := range []struct {
		kind string
		list []Tensor
	}{{"input", v.p.Inputs}, {"output", v.p.Outputs}} {
		names, states := map[string]bool{}, map[string]bool{}
		for i, t := range side.list {
			place := at(side.kind, i)
			if t.Name == "" || names[t.Name] {
				v.fail(2, place, "the name %.100q is empty or taken", t.Name)
			}
			if t.State != "" && states[t.State] {
				v.fail(2, place, "state %.100q is named twice", t.State)
			}
			names[t.Name], states[t.State] = true, true
			if dtype, ok := ir.ParseDType(t.DType); !ok || dtype.Bits() == 0 || len(t.Shape) > maxRank || !multipliable(t.Shape) {
				v.fail(2, place, "no tensor has the type %.100s of rank %d", t.DType, len(t.Shape))
			}
			v.declared(place, t.Shape...)
			v.shard(place, t)
		}
	}
	for i, out := range v.p.Outputs {
		if in, ok := v.reads[out.State]; ok {
			if t := v.p.Inputs[in]; t.DType != out.DType || !ir.SameShape(t.Shape, out.Shape) {
				v.fail(2, at("output", i), "%s replaces %s", out, t)
			}
		}
	}
}

// multipliable bounds the terms of the product of dims, which crafted plans could make huge.
func multipliable(shape []ir.Dim) bool {
	terms := 1
	for _, d := range shape {
		n := 1
		d.Walk(func(int64, []ir.Factor) { n++ })
		if terms *= n; terms > 1024 {
			return false
		}
	}
	return true
}

// declared checks P3.
func (v *verifier) declared(place string, dims ...ir.Dim) {
	for _, d := range dims {
		d.Symbols(func(name string) {
			if _, ok := v.dims[name]; !ok {
				v.fail(3, place, "dim %.100q is not declared", name)
			}
		})
	}
}

func (v *verifier) buffers() {
	type owner struct {
		kind  BufferKind
		index int
	}
	used := map[owner]bool{}
	for i, b := range v.p.Buffers {
		place := at("buffer", i)
		v.declared(place, b.Size)
		var tensors []Tensor
		switch b.Kind {
		case Arena:
			v.after(i)
			if b.Index != 0 {
				v.fail(4, place, "an arena buffer has no index")
			}
			continue
		case Input:
			tensors = v.p.Inputs
		case Output:
			tensors = v.p.Outputs
		default:
			v.fail(4, place, "there is no kind %.40q", b.Kind)
			continue
		}
		if b.Index < 0 || b.Index >= len(tensors) {
			v.fail(4, place, "there is no %s %d", b.Kind, b.Index)
			continue
		}
		if used[owner{b.Kind, b.Index}] {
			v.fail(4, place, "%s %d has a buffer already", b.Kind, b.Index)
		}
		used[owner{b.Kind, b.Index}] = true
		if len(b.After) > 0 {
			v.fail(4, place, "only arena buffers are placed")
		}
		if t := tensors[b.Index]; len(v.faults) == 0 && !t.Type().Bytes().Equal(b.Size) {
			v.fail(4, place, "%s bytes for %s of %s bytes", b.Size, t, t.Type().Bytes())
		}
	}
}

// after checks where an arena buffer is placed.
func (v *verifier) after(i int) {
	seen := map[int]bool{}
	for _, a := range v.p.Buffers[i].After {
		if a < 0 || a >= i || v.p.Buffers[a].Kind != Arena || seen[a] {
			v.fail(4, at("buffer", i), "after %d, which is no earlier arena buffer, or is listed twice", a)
		}
		seen[a] = true
	}
}

// maxDepth bounds what nested steps cost.
const maxDepth = 32

// steps checks a list of steps and those inside them.
func (v *verifier) steps(list []Step, depth int) {
	v.asynchronous(list)
	for _, s := range list {
		place := at("step", v.next)
		v.next++
		v.step(s, place)
		if nested := s.lists(); nested != nil && depth == maxDepth {
			v.fail(5, place, "steps are nested more than %d deep", maxDepth)
			return
		}
		for _, inner := range s.lists() {
			v.steps(inner, depth+1)
		}
	}
}

// step checks what can be said of a step alone.
func (v *verifier) step(s Step, place string) {
	kinds := 0
	for _, set := range []bool{s.Launch != nil, s.Copy != nil, s.Fill != nil, s.If != nil, s.While != nil, s.Collective != nil, s.Wait != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		v.fail(5, place, "%d kinds", kinds)
		return
	}
	switch {
	case s.Launch != nil:
		v.launch(place, s.Launch)
	case s.Copy != nil:
		if !v.buffer(place, s.Copy.From) || !v.buffer(place, s.Copy.To) {
			return
		}
		from, to := v.p.Buffers[s.Copy.From].Size, v.p.Buffers[s.Copy.To].Size
		if s.Copy.From == s.Copy.To || !from.Equal(to) {
			v.fail(12, place, "copy of buffer %d of %s bytes to buffer %d of %s", s.Copy.From, from, s.Copy.To, to)
		}
	case s.Fill != nil:
		v.fill(place, s.Fill)
	case s.If != nil:
		v.predicate(place, s.If.Predicate)
	case s.Collective != nil:
		v.collective(place, s.Collective)
	case s.Wait != nil:
		if v.buffer(place, s.Wait.From) {
			v.buffer(place, s.Wait.To)
		}
	default:
		v.predicate(place, s.While.Predicate)
	}
}

func (v *verifier) predicate(place string, b int) {
	if v.buffer(place, b) && !v.p.Buffers[b].Size.Is(1) {
		v.fail(14, place, "the predicate is buffer %d of %s bytes", b, v.p.Buffers[b].Size)
	}
}

func (v *verifier) buffer(place string, b int) bool {
	if b < 0 || b >= len(v.p.Buffers) {
		v.fail(6, place, "there is no buffer %d", b)
		return false
	}
	return true
}

func (v *verifier) fill(place string, f *Fill) {
	if !v.buffer(place, f.Buffer) {
		return
	}
	pattern, err := hex.DecodeString(f.Pattern)
	if n := len(pattern); err != nil || n != 1 && n != 2 && n != 4 && n != 8 {
		v.fail(12, place, "the pattern %.40q is not 1, 2, 4 or 8 bytes in hex", f.Pattern)
		return
	}
	size := v.p.Buffers[f.Buffer].Size
	if !size.DivisibleBy(int64(len(pattern)), v.divisor) {
		v.fail(12, place, "a pattern of %d bytes does not divide buffer %d of %s bytes", len(pattern), f.Buffer, size)
	}
}

func (v *verifier) divisor(name string) int64 { return max(1, v.dims[name].Multiple) }

// maxResident is the number of blocks that a multiprocessor of any GPU runs at a time.
const maxResident = 32

func (v *verifier) launch(place string, l *Launch) {
	v.declared(place, l.Grid[:]...)
	if v.kernels != nil {
		if params, ok := v.kernels(l.Kernel); !ok {
			v.fail(11, place, "there is no kernel %.100q", l.Kernel)
		} else if params != len(l.Args) {
			v.fail(11, place, "%d arguments for the %d parameters of kernel %.100q", len(l.Args), params, l.Kernel)
		}
	}
	if l.Block < 1 || l.Block > 1024 || l.Shared < 0 {
		v.fail(11, place, "a block of %d threads and %d bytes", l.Block, l.Shared)
	}
	if l.Resident < 0 || l.Resident > maxResident || l.Resident > 0 && !(l.Grid[1].Is(1) && l.Grid[2].Is(1)) {
		v.fail(11, place, "at most %d blocks a multiprocessor of a grid of %s", l.Resident, ir.DimList(l.Grid[:]))
	}
	uses := map[int]int{}
	for k, a := range l.Args {
		isValue := a.Buffer == -1 && (a.Bits == 32 || a.Bits == 64) && a.Access == "" && a.Map == nil
		isBuffer := a.Buffer != -1 && a.Bits == 0 && a.Value.IsZero() && (a.Access == Read || a.Map == nil && (a.Access == Write || a.Access == ReadWrite))
		switch {
		case isValue:
			v.declared(place, a.Value)
		case !isBuffer:
			v.fail(6, place, "argument %d is neither a buffer with an access nor a value of 32 or 64 bits", k)
		case v.buffer(place, a.Buffer):
			uses[a.Buffer]++
		}
	}
	for k, a := range l.Args {
		if a.Access == Write && uses[a.Buffer] > 1 {
			v.fail(13, place, "argument %d writes buffer %d, which is another argument too", k, a.Buffer)
		}
	}
	v.tensorMaps(place, l)
}

// dataflow checks P7, P8 and P9.
func (v *verifier) dataflow() {
	p := v.p
	f := &flow{written: make([]bool, len(p.Buffers))}
	f.visit = func(step, b int, reads, writes bool) {
		input := p.Buffers[b].Kind == Input
		if reads && !input && !f.written[b] {
			v.fail(7, at("step", step), "buffer %d is read before anything is written to it", b)
		}
		if writes && input {
			in := p.Inputs[p.Buffers[b].Index]
			if _, ok := v.replaces[in.State]; !ok {
				v.fail(8, at("step", step), "buffer %d is written, but no output replaces %s", b, in)
			}
		}
	}
	f.steps(p.Steps)
	written := f.written
	inputs, outputs := p.InputBuffers(), p.OutputBuffers()
	for i, out := range p.Outputs {
		buffer := outputs[i]
		in, reads := v.reads[out.State]
		switch {
		case buffer < 0 && !reads:
			v.fail(9, at("output", i), "%s has no buffer", out)
		case buffer >= 0 && !written[buffer]:
			v.fail(9, at("output", i), "nothing is written to buffer %d", buffer)
		case buffer >= 0 && reads:
			if state := inputs[in]; state < 0 || !written[state] {
				v.fail(9, at("output", i), "the new value of %s is not written to the state", out)
			}
		}
	}
}

// disjoint checks P10. Every pair that is live together must be listed in After, so the work is
// bounded by the lists and the number of faults.
func (v *verifier) disjoint() {
	lives := v.p.lives()
	order := make([]int, 0, len(lives)) // live arena buffers by first step
	after := make([]map[int]bool, len(lives))
	for i, l := range lives {
		if v.p.Buffers[i].Kind != Arena || !l.live() {
			continue
		}
		order = append(order, i)
		after[i] = map[int]bool{}
		for _, a := range v.p.Buffers[i].After {
			after[i][a] = true
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return lives[a].first - lives[b].first })
	var active []int
	for _, b := range order {
		active = slices.DeleteFunc(active, func(a int) bool { return lives[a].last < lives[b].first })
		for _, a := range active {
			if !after[max(a, b)][min(a, b)] {
				v.fail(10, at("buffer", max(a, b)), "may overlap buffer %d, which is also live at step %d", min(a, b), lives[b].first)
			}
			if len(v.faults) == maxFaults {
				return
			}
		}
		active = append(active, b)
	}
}
