package plan

// accesses visits the buffers that a step itself names, those that it reads before those that
// it writes. The predicate of a while is left out: it is read after the condition.
func (s Step) accesses(visit func(buffer int, reads, writes bool)) {
	switch {
	case s.Launch != nil:
		for _, a := range s.Launch.Args {
			if a.Buffer >= 0 && a.Access != Write {
				visit(a.Buffer, true, a.Access == ReadWrite)
			}
		}
		for _, a := range s.Launch.Args {
			if a.Buffer >= 0 && a.Access == Write {
				visit(a.Buffer, false, true)
			}
		}
	case s.Copy != nil:
		visit(s.Copy.From, true, false)
		visit(s.Copy.To, false, true)
	case s.Fill != nil:
		visit(s.Fill.Buffer, false, true)
	case s.Collective != nil:
		visit(s.Collective.From, true, false)
		visit(s.Collective.To, false, true)
	case s.Wait != nil:
		visit(s.Wait.From, true, false)
		visit(s.Wait.To, true, false)
	case s.If != nil:
		visit(s.If.Predicate, true, false)
	}
}

// flow walks over steps with the set of buffers that are written on every way to where it is.
type flow struct {
	next    int    // number of the next step
	written []bool // by buffer
	log     []int  // the buffers of written, in the order in which they came in
	// visit is called for each access, before what is written counts.
	visit func(step, buffer int, reads, writes bool)
}

func (f *flow) access(step, buffer int, reads, writes bool) {
	f.visit(step, buffer, reads, writes)
	if writes && !f.written[buffer] {
		f.written[buffer] = true
		f.log = append(f.log, buffer)
	}
}

// undo forgets what was written since the log had a length, and returns it.
func (f *flow) undo(length int) []int {
	since := append([]int(nil), f.log[length:]...)
	for _, b := range since {
		f.written[b] = false
	}
	f.log = f.log[:length]
	return since
}

func (f *flow) steps(list []Step) {
	for _, s := range list {
		number := f.next
		f.next++
		s.accesses(func(b int, reads, writes bool) { f.access(number, b, reads, writes) })
		switch {
		case s.If != nil:
			f.branches(s.If)
		case s.While != nil:
			f.iteration(s.While)
			// The condition has run when the loop ends; the body may not have.
		}
	}
}

// branches walks over both: written is what both write.
func (f *flow) branches(s *If) {
	start := len(f.log)
	f.steps(s.Then)
	then := f.undo(start)
	f.steps(s.Else)
	inElse := map[int]bool{}
	for _, b := range f.undo(start) {
		inElse[b] = true
	}
	for _, b := range then {
		if inElse[b] {
			f.written[b] = true
			f.log = append(f.log, b)
		}
	}
}

// iteration walks over a while from its condition to the end of its body; written is what the
// condition writes.
func (f *flow) iteration(s *While) {
	f.steps(s.Condition)
	f.access(f.next-1, s.Predicate, true, false)
	start := len(f.log)
	f.steps(s.Body)
	f.undo(start)
}

// live is an inclusive range of numbers of steps; empty for none.
type live struct{ first, last int }

func (l live) live() bool { return l.last >= l.first }

func (l live) with(other live) live { return live{min(l.first, other.first), max(l.last, other.last)} }

// lives gives the live range of each buffer: from the first to the last step that names it,
// and all of a while that names it unless its value is of one iteration only: nothing outside
// of the while names it, and each iteration writes it before it reads it.
func (p *Plan) lives() []live {
	named := make([]live, len(p.Buffers))
	for i := range named {
		named[i] = live{int(^uint(0) >> 1), -1}
	}
	f := &flow{written: make([]bool, len(p.Buffers)), visit: func(step, b int, _, _ bool) {
		named[b] = named[b].with(live{step, step})
	}}
	f.steps(p.Steps)
	lives := append([]live(nil), named...)
	w := &loops{named: named, lives: lives, written: make([]bool, len(p.Buffers))}
	w.steps(p.Steps)
	return lives
}

// loops extends lives over the whiles that they must span.
type loops struct {
	next         int
	named, lives []live
	written      []bool // all false between uses
}

func (w *loops) steps(list []Step) {
	for _, s := range list {
		number := w.next
		w.next++
		if s.While != nil {
			w.span(number, s.While)
		}
		for _, inner := range s.lists() {
			w.steps(inner)
		}
	}
}

func (w *loops) span(number int, s *While) {
	var span []int
	f := &flow{next: number + 1, written: w.written}
	inside := map[int]live{}
	f.visit = func(step, b int, reads, _ bool) {
		if n := w.named[b]; reads && !f.written[b] {
			span = append(span, b)
		} else if _, known := inside[b]; !known {
			inside[b] = n
		}
	}
	f.iteration(s)
	f.undo(0)
	whole := live{number, f.next - 1}
	for b, n := range inside {
		if n.first < whole.first || n.last > whole.last {
			span = append(span, b)
		}
	}
	for _, b := range span {
		w.lives[b] = w.lives[b].with(whole)
	}
}
