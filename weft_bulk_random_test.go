package weft

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weft/ir"
	"weft/passes/precision"
)

var (
	randomViews     = flag.Int("random-views", 16, "`number` of random programs for TestRandomViews")
	randomViewsSeed = flag.Uint64("random-views-seed", 1, "`seed` of the first one, and of those after it")
)

// TestRandomViews compares evaluator and emulator on random products and attention whose operands are views of inputs and come by bulk
// copies: transposes, slices with offsets and strides, reshapes and broadcasts, of symbolic sizes too, which may be 0. Sums of the products
// are exact, so the results have to be.
func TestRandomViews(t *testing.T) {
	const batch = 24
	seed := *randomViewsSeed
	for done := 0; done < *randomViews; {
		var subjects []*subject
		for ; len(subjects) < min(batch, *randomViews-done); seed++ {
			if s := viewSubject(t, seed); s != nil {
				subjects = append(subjects, s)
			}
		}
		done += len(subjects)
		owner := map[string]string{}
		kernels := assemble(t, subjects, corpusTargets[1], owner)
		t.Run("ptxas", func(t *testing.T) { checkAssembly(t, kernels, owner, corpusTargets[1]) })
		for _, s := range subjects {
			t.Run(s.name, func(t *testing.T) {
				s.check(t)
				if t.Failed() {
					t.Logf("the program:\n%s\nscheduled:\n%s", s.program, s.compiled.Scheduled)
				}
			})
		}
	}
	t.Logf("seeds %d to %d", *randomViewsSeed, seed-1)
}

// viewSubject is a random program with views; nil where bulk copies cannot bring its operands.
func viewSubject(t *testing.T, seed uint64) *subject {
	w := &viewProgram{r: rand.New(rand.NewPCG(seed, 12)), sizes: []map[string]int64{{}, {}, {}}, styles: map[string]string{}}
	within := spec{ulps: 1}
	if seed%3 == 0 {
		w.attention()
		within = spec{ulps: 1, relative: 1e-2}
	} else {
		w.product()
	}
	text := w.text()
	p, err := ir.ParseProgram(fmt.Sprintf("seed%d", seed), []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if w.elements(p) > 1<<19 || !w.bound(p) {
		return nil // takes too long, or sizes are not known
	}
	tile := bulkTiles[w.r.IntN(len(bulkTiles))]
	tile.Blocks = pick(w.r, 1, 2, 5, 132)
	s := forcedSubject(t, fmt.Sprintf("views/seed%d", seed), p, precision.Policy{}, tile, true)
	if s != nil {
		within.sizes, within.styles = w.sizes, w.styles
		s.spec = within
	}
	return s
}

// elements is the most elements that the inputs and the result have.
func (w *viewProgram) elements(p *ir.Program) (most int64) {
	e := &p.Entries[0].Body
	for _, sizes := range w.sizes {
		all := int64(0)
		for _, v := range slices.Concat(e.Params, e.Results) {
			n, _ := p.Entries[0].Type(v).Numel().Eval(sizes)
			all += n
		}
		most = max(most, all)
	}
	return most
}

// bound tells whether each symbol is a dim of an input.
func (w *viewProgram) bound(p *ir.Program) bool {
	e := p.Entries[0]
	for name := range w.sizes[0] {
		if !slices.ContainsFunc(e.Body.Params, func(v ir.Value) bool {
			return slices.ContainsFunc(e.Type(v).Shape, func(d ir.Dim) bool { return d.Equal(ir.Sym(name)) })
		}) {
			return false
		}
	}
	return true
}

// viewProgram makes the text of a program.
type viewProgram struct {
	r            *rand.Rand
	dims         []string
	inputs, body []string
	result       string
	sizes        []map[string]int64
	styles       map[string]string
	names        int
}

func (w *viewProgram) text() string {
	return fmt.Sprintf("%s\nentry forward(%s) {\n%s\n  return %s \"y\"\n}\n", strings.Join(w.dims, "\n"), strings.Join(w.inputs, ", "), strings.Join(w.body, "\n"), w.result)
}

// symbol declares a dim, and gives it a size in each run.
func (w *viewProgram) symbol(name string, multiple int, sizes ...int64) ir.Dim {
	low, high := slices.Min(sizes), pick(w.r, int64(1000), 1000, 1<<33) // the last: places are of 64 bits
	line := fmt.Sprintf("dim %s in %d..%d", name, low, high/int64(multiple)*int64(multiple))
	if multiple > 1 {
		line += fmt.Sprintf(" multiple %d", multiple)
	}
	w.dims = append(w.dims, line)
	for i := range w.sizes {
		w.sizes[i][name] = sizes[w.r.IntN(len(sizes))]
	}
	return ir.Sym(name)
}

func (w *viewProgram) name() string {
	w.names++
	return fmt.Sprintf("%%v%d", w.names)
}

// operand declares an input of which a value is a random view. The ways are found backwards.
func (w *viewProgram) operand(dtype string, shape []ir.Dim) string {
	at := w.name()
	value, lines := at, []string{}
	for range w.r.IntN(6) {
		from := w.name()
		next, line := w.step(shape, from)
		if line == "" {
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s: %s%s = %s", at, dtype, ir.DimList(shape), line))
		shape, at = next, from
	}
	slices.Reverse(lines)
	w.body = append(w.body, lines...)
	w.inputs = append(w.inputs, fmt.Sprintf("%s \"%s\": %s%s", at, at[1:], dtype, ir.DimList(shape)))
	w.styles[at[1:]] = "few"
	return value
}

// last is the name of the last input.
func (w *viewProgram) last() string {
	name, _, _ := strings.Cut(w.inputs[len(w.inputs)-1], " ")
	return name[1:]
}

// step is an operation whose result has a shape, and the shape of its operand.
func (w *viewProgram) step(shape []ir.Dim, from string) (operand []ir.Dim, line string) {
	r, n := w.r, len(shape)
	i := r.IntN(n)
	switch r.IntN(5) {
	case 0:
		permutation := r.Perm(n)
		if r.IntN(2) == 0 && n > 1 { // neighbours
			for k := range permutation {
				permutation[k] = k
			}
			j := r.IntN(n - 1)
			permutation[j], permutation[j+1] = j+1, j
		}
		operand = make([]ir.Dim, n)
		for k, p := range permutation {
			operand[p] = shape[k]
		}
		return operand, fmt.Sprintf("transpose(%s) {permutation = %s}", from, list(permutation))
	case 1:
		operand = slices.Clone(shape)
		start, limit, stride := make([]int, n), make([]string, n), make([]int, n)
		for k, d := range shape {
			limit[k], stride[k] = d.String(), 1
		}
		start[i] = pick(r, 0, 8, 16, 64, 128, 1)
		c, ok := shape[i].IsConst()
		if ok && c > 0 && r.IntN(3) == 0 {
			stride[i] = 2
			end := int64(start[i]) + 2*(c-1) + 1
			limit[i] = fmt.Sprint(end)
			operand[i] = ir.Const(end + int64(pick(r, 0, 1, 8)))
		} else {
			end := shape[i].AddConst(int64(start[i]))
			limit[i] = end.String()
			operand[i] = end.AddConst(int64(pick(r, 0, 8, 64)))
		}
		return operand, fmt.Sprintf("slice(%s) {start = %s, limit = [%s], stride = %s}", from, list(start), strings.Join(limit, ", "), list(stride))
	case 2: // a dim is two of the operand
		d := int64(pick(r, 2, 3, 4, 64))
		rest, ok := shape[i].DivExact(ir.Const(d))
		if !ok || rest.Is(0) {
			return nil, ""
		}
		if r.IntN(2) == 0 {
			operand = slices.Replace(slices.Clone(shape), i, i+1, rest, ir.Const(d))
		} else {
			operand = slices.Replace(slices.Clone(shape), i, i+1, ir.Const(d), rest)
		}
	case 3: // two are one of the operand
		if i+1 >= n || n == 6 {
			return nil, ""
		}
		operand = slices.Replace(slices.Clone(shape), i, i+2, shape[i].Mul(shape[i+1]))
	default:
		if n < 3 || r.IntN(3) > 0 {
			return nil, ""
		}
		operand = slices.Delete(slices.Clone(shape), i, i+1)
		var axes []int
		for k := range shape {
			if k != i {
				axes = append(axes, k)
			}
		}
		return operand, fmt.Sprintf("broadcast_in_dim(%s) {dims = %s, axes = %s}", from, ir.DimList(shape), list(axes))
	}
	return operand, fmt.Sprintf("reshape(%s) {dims = %s}", from, ir.DimList(shape))
}

func list(xs []int) string { return strings.ReplaceAll(fmt.Sprint(xs), " ", ", ") }

// product sums over one or two dims, for no, one or two batch dims.
func (w *viewProgram) product() {
	r := w.r
	dtype := pick(r, "bf16", "f16")
	var batch, k []ir.Dim
	for i := range pick(r, 0, 0, 1, 1, 2) {
		if r.IntN(3) == 0 {
			batch = append(batch, w.symbol(fmt.Sprintf("b%d", i), 1, 0, 1, 2, 3))
		} else {
			batch = append(batch, ir.Const(int64(pick(r, 2, 3, 1))))
		}
	}
	free := func(name string) []ir.Dim {
		switch r.IntN(5) {
		case 0:
			return []ir.Dim{w.symbol(name, 1, 0, 1, 2, 63, 127, 129, 200)}
		case 1:
			return []ir.Dim{w.symbol(name, 8, 0, 8, 64, 128, 136, 256, 264)}
		case 2:
			return []ir.Dim{ir.Const(int64(pick(r, 2, 3, 4))), ir.Const(int64(pick(r, 16, 33, 64)))}
		}
		return []ir.Dim{ir.Const(int64(pick(r, 2, 9, 24, 40, 64, 127, 128, 129, 192, 256, 264, 300)))}
	}
	m, n := free("m"), free("n")
	switch r.IntN(6) {
	case 0:
		k = []ir.Dim{w.symbol("k", 8, 8, 16, 64, 72, 128, 400)}
	case 1:
		k = []ir.Dim{ir.Const(int64(pick(r, 2, 3))), ir.Const(64)}
	case 2:
		k = []ir.Dim{w.symbol("k", 1, 1, 2, 5, 13), ir.Const(int64(pick(r, 64, 128)))}
	case 3:
		k = []ir.Dim{w.symbol("k", 1, 8, 9, 63, 64, 65, 200)}
	default:
		k = []ir.Dim{ir.Const(int64(pick(r, 8, 16, 24, 33, 56, 64, 72, 120, 128, 192, 256, 384, 448, 840)))}
	}
	x, xa := w.shuffled(batch, m, k)
	y, ya := w.shuffled(batch, n, k)
	a, b := w.operand(dtype, x), ""
	if b = w.operand(dtype, y); slices.EqualFunc(x, y, ir.Dim.Equal) && r.IntN(3) == 0 {
		b = a
	}
	if r.IntN(6) == 0 { // what is beyond an operand must not meet infinities
		w.styles[w.last()] = "fewspecial"
	}
	to := pick(r, dtype, dtype, "f32")
	shape := slices.Concat(batch, inOrder(m, xa[len(batch):]), inOrder(n, ya[len(batch):]))
	w.result = w.name()
	w.body = append(w.body, fmt.Sprintf("  %s: %s%s = dot_general(%s, %s) {lhs_batch = %s, rhs_batch = %s, lhs_contract = %s, rhs_contract = %s, to = %s}", w.result, to, ir.DimList(shape), a, b,
		list(xa[:len(batch)]), list(ya[:len(batch)]), list(xa[len(batch)+len(m):]), list(ya[len(batch)+len(n):]), to))
	for range r.IntN(3) {
		from := w.result
		w.result = w.name()
		line := ""
		switch r.IntN(3) {
		case 0:
			line = fmt.Sprintf("maximum(%s, %s)", from, w.operand(to, shape))
		case 1:
			line = fmt.Sprintf("negate(%s)", from)
		case 2:
			permutation := r.Perm(len(shape))
			next := make([]ir.Dim, len(shape))
			for k, p := range permutation {
				next[k] = shape[p]
			}
			shape, line = next, fmt.Sprintf("transpose(%s) {permutation = %s}", from, list(permutation))
		}
		w.body = append(w.body, fmt.Sprintf("  %s: %s%s = %s", w.result, to, ir.DimList(shape), line))
	}
}

// shuffled puts groups of dims in a random order, and tells where each went.
func (w *viewProgram) shuffled(groups ...[]ir.Dim) (shape []ir.Dim, at []int) {
	all := slices.Concat(groups...)
	at = w.r.Perm(len(all))
	if w.r.IntN(3) > 0 {
		slices.Sort(at)
	}
	shape = make([]ir.Dim, len(all))
	for i, d := range all {
		shape[at[i]] = d
	}
	return shape, at
}

// inOrder puts dims in the order of their places.
func inOrder(dims []ir.Dim, at []int) []ir.Dim {
	out := slices.Clone(dims)
	if len(dims) == 2 && at[0] > at[1] {
		slices.Reverse(out)
	}
	return out
}

func (w *viewProgram) attention() {
	r := w.r
	dtype := pick(r, "bf16", "f16")
	depth, width := int64(pick(r, 64, 64, 128)), int64(pick(r, 64, 64, 128))
	batch := ir.Const(int64(pick(r, 1, 2)))
	if r.IntN(3) == 0 {
		batch = w.symbol("b", 1, 0, 1, 2, 3)
	}
	length := func(name string) ir.Dim {
		if r.IntN(2) == 0 {
			return w.symbol(name, 1, 0, 1, 2, 63, 64, 65, 130)
		}
		return ir.Const(int64(pick(r, 2, 16, 33, 64, 65, 128, 150)))
	}
	s := length("s")
	t := s
	if r.IntN(2) == 0 {
		t = length("t")
	}
	groups := int64(pick(r, 1, 2, 3))
	heads := groups * int64(pick(r, 1, 2, 3))
	q := w.operand(dtype, []ir.Dim{batch, ir.Const(heads), s, ir.Const(depth)})
	k := w.operand(dtype, []ir.Dim{batch, ir.Const(groups), t, ir.Const(depth)})
	v := w.operand(dtype, []ir.Dim{batch, ir.Const(groups), t, ir.Const(width)})
	operands := []string{q, k, v}
	switch r.IntN(6) {
	case 0:
		operands = append(operands, w.operand(dtype, []ir.Dim{batch, ir.Const(heads), s, t}))
	case 1:
		operands = append(operands, w.operand("i1", []ir.Dim{ir.Const(1), ir.Const(1), s, t}))
	}
	attributes := "scale = " + pick(r, "0.125", "0.02", "-0.1")
	if r.IntN(2) == 0 {
		attributes += ", causal = true"
		if r.IntN(2) == 0 {
			attributes += ", align_end = true"
		}
	}
	w.result = w.name()
	w.body = append(w.body, fmt.Sprintf("  %s: %s%s = attention(%s) {%s}", w.result, dtype, ir.DimList([]ir.Dim{batch, ir.Const(heads), s, ir.Const(width)}), strings.Join(operands, ", "), attributes))
}
