package weft

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weft/ir"
	"weft/runtime"
)

// TestRandomWarpgroups compares evaluator and emulator on random products and attention of half types that run by warpgroups: all
// tiles, layouts of operands, sizes that tiles do not divide, operands that are computed on the way, epilogues, masks. As many as
// TestRandomPrograms has.
func TestRandomWarpgroups(t *testing.T) {
	const batch = 40
	for first := 0; first < *randomPrograms; first += batch {
		var subjects []*subject
		others := 0
		for i := first; i < min(first+batch, *randomPrograms); i++ {
			s := warpgroupSubject(t, *randomSeed+uint64(i), i%2 == 1)
			if subjects = append(subjects, s); len(s.compiled.Lowered) > 1 {
				others++
			}
		}
		// A product of one row, column or k is no product any more.
		if others < len(subjects)*3/4 {
			t.Errorf("%d of %d programs have a kernel for warpgroups", others, len(subjects))
		}
		kernels, owner := assembleAll(t, subjects)
		t.Run("ptxas", func(t *testing.T) { checkAssembly(t, kernels[1], owner, corpusTargets[1]) })
		for _, s := range subjects {
			t.Run(s.name, func(t *testing.T) {
				s.check(t)
				if t.Failed() {
					t.Logf("the program:\n%s", s.compiled.Scheduled)
				}
			})
		}
	}
}

// warpgroupSubject is a random product, or attention, with a schedule for warpgroups.
func warpgroupSubject(t *testing.T, seed uint64, attention bool) *subject {
	w := &warpgroupProgram{r: rand.New(rand.NewPCG(seed, 11)), styles: map[string]string{}}
	var text string
	var o override
	if attention {
		text, o = w.attention(), override{"attention.warpgroup", w.attentionTile()}
	} else {
		text, o = w.product(), override{"contract.warpgroup", w.tile()}
	}
	p, err := ir.ParseProgram(fmt.Sprintf("seed%d", seed), []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s := &subject{name: fmt.Sprintf("warpgroups/seed%d", seed), program: p, spec: spec{sizes: w.sizes, styles: w.styles, ulps: 1, relative: 2e-2}}
	if err := s.schedule(nil, &o); err != nil {
		t.Fatalf("%s: %v\n%s", s.name, err, text)
	}
	return s
}

// bulkTiles are those that products by bulk copies have.
var bulkTiles = []ir.Schedule{
	{Threads: 384, TileM: 128, TileN: 256, TileK: 64, WarpM: 16, WarpN: 256, Stages: 4, Bulk: true},
	{Threads: 384, TileM: 128, TileN: 192, TileK: 64, WarpM: 16, WarpN: 192, Stages: 4, Bulk: true},
	{Threads: 384, TileM: 128, TileN: 128, TileK: 64, WarpM: 32, WarpN: 128, Stages: 6, Bulk: true},
	{Threads: 384, TileM: 128, TileN: 64, TileK: 64, WarpM: 16, WarpN: 64, Stages: 6, Bulk: true},
}

// bulkPrograms read operands of products, and keys and values, in all the ways in which bulk copies can bring them.
var bulkPrograms = map[string]string{
	"nt": `entry forward(%a "a": bf16[300, 520], %b "b": bf16[392, 520]) {
  %y: bf16[300, 392] = dot_general(%a, %b) {lhs_contract = [1], rhs_contract = [1], to = bf16}
  return %y "y"
}`,
	"nn, deep": `entry forward(%a "a": f16[264, 584], %b "b": f16[584, 392]) {
  %y: f16[264, 392] = dot_general(%a, %b) {lhs_contract = [1], rhs_contract = [0], to = f16}
  return %y "y"
}`,
	"tn, not rounded": `entry forward(%a "a": bf16[456, 264], %b "b": bf16[456, 136]) {
  %y: f32[264, 136] = dot_general(%a, %b) {lhs_contract = [0], rhs_contract = [0], to = f32}
  return %y "y"
}`,
	"single columns, residuals": `entry forward(%a "a": bf16[200, 136], %b "b": bf16[301, 136], %c "c": f32[200, 301], %d "d": f32[200, 301], %e "e": f32[301]) {
  %0: f32[200, 301] = dot_general(%a, %b) {lhs_contract = [1], rhs_contract = [1], to = f32}
  %1: f32[200, 301] = broadcast_in_dim(%e) {dims = [200, 301], axes = [1]}
  %2: f32[200, 301] = add(%0, %1)
  %3: f32[200, 301] = add(%2, %c)
  %4: f32[200, 301] = add(%3, %d)
  return %4 "y"
}`,
	"batches, views": `dim n in 1..300
entry forward(%a "a": bf16[n, 4, 64], %b "b": bf16[2, 144, 64]) {
  %0: bf16[n, 2, 64] = slice(%a) {start = [0, 1, 0], limit = [n, 3, 64], stride = [1, 1, 1]}
  %1: bf16[2, n, 64] = transpose(%0) {permutation = [1, 0, 2]}
  %2: bf16[2, n, 144] = dot_general(%1, %b) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2], to = bf16}
  %3: bf16[2, n, 144] = tanh(%2)
  return %3 "y"
}`,
	"heads, residual": `entry forward(%a "a": bf16[3, 256, 64], %b "b": bf16[256, 192], %c "c": bf16[256, 256]) {
  %0: bf16[256, 3, 64] = transpose(%a) {permutation = [1, 0, 2]}
  %1: bf16[256, 192] = reshape(%0) {dims = [256, 192]}
  %2: bf16[256, 256] = dot_general(%1, %b) {lhs_contract = [1], rhs_contract = [1], to = bf16}
  %3: bf16[256, 256] = add(%2, %c)
  return %3 "y"
}`,
	"rows that begin anywhere, bias": `entry forward(%a "a": bf16[200, 136], %b "b": bf16[333, 136], %c "c": f32[333]) {
  %0: f32[200, 333] = dot_general(%a, %b) {lhs_contract = [1], rhs_contract = [1], to = f32}
  %1: f32[200, 333] = broadcast_in_dim(%c) {dims = [200, 333], axes = [1]}
  %2: f32[200, 333] = add(%0, %1)
  %3: bf16[200, 333] = convert(%2) {to = bf16}
  %4: bf16[2, 100, 333] = reshape(%3) {dims = [2, 100, 333]}
  return %4 "y"
}`,
	"batches of rows that begin anywhere": `dim n in 1..300
entry forward(%a "a": f16[2, 150, 72], %b "b": f16[2, n, 72]) {
  %y: f16[2, 150, n] = dot_general(%a, %b) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2], to = f16}
  return %y "y"
}`,
	"long epilogue, residual": `entry forward(%a "a": bf16[300, 72], %b "b": bf16[72, 392], %c "c": bf16[392], %d "d": bf16[300, 392]) {
  %0: f32[300, 392] = dot_general(%a, %b) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %1: f32[392] = convert(%c) {to = f32}
  %2: f32[300, 392] = broadcast_in_dim(%1) {dims = [300, 392], axes = [1]}
  %3: f32[300, 392] = add(%0, %2)
  %4: bf16[300, 392] = convert(%3) {to = bf16}
  %5: f32[300, 392] = convert(%4) {to = f32}
  %6: f32[300, 392] = erf(%5)
  %7: f32[300, 392] = logistic(%6)
  %8: bf16[300, 392] = convert(%7) {to = bf16}
  %9: bf16[300, 392] = tanh(%8)
  %10: bf16[300, 392] = multiply(%4, %9)
  %11: bf16[300, 392] = subtract(%10, %d)
  return %11 "y"
}`,
	"attention": `dim n in 1..200
entry forward(%q "q": bf16[2, 4, n, 64], %x "x": bf16[2, n, 256]) {
  %0: bf16[2, n, 128] = slice(%x) {start = [0, 0, 0], limit = [2, n, 128], stride = [1, 1, 1]}
  %1: bf16[2, n, 2, 64] = reshape(%0) {dims = [2, n, 2, 64]}
  %2: bf16[2, 2, n, 64] = transpose(%1) {permutation = [0, 2, 1, 3]}
  %3: bf16[2, 2, 2, n, 64] = broadcast_in_dim(%2) {dims = [2, 2, 2, n, 64], axes = [0, 1, 3, 4]}
  %4: bf16[2, 4, n, 64] = reshape(%3) {dims = [2, 4, n, 64]}
  %5: bf16[2, n, 128] = slice(%x) {start = [0, 0, 128], limit = [2, n, 256], stride = [1, 1, 1]}
  %6: bf16[2, n, 2, 64] = reshape(%5) {dims = [2, n, 2, 64]}
  %7: bf16[2, 2, n, 64] = transpose(%6) {permutation = [0, 2, 1, 3]}
  %8: bf16[2, 2, 2, n, 64] = broadcast_in_dim(%7) {dims = [2, 2, 2, n, 64], axes = [0, 1, 3, 4]}
  %9: bf16[2, 4, n, 64] = reshape(%8) {dims = [2, 4, n, 64]}
  %10: bf16[2, 4, n, 64] = attention(%q, %4, %9) {scale = 0.125, causal = true}
  return %10 "y"
}`,
	"attention of two panels": `entry forward(%q "q": f16[1, 2, 70, 128], %k "k": f16[1, 1, 200, 128], %v "v": f16[1, 1, 200, 64]) {
  %y: f16[1, 2, 70, 64] = attention(%q, %k, %v) {scale = 0.1}
  return %y "y"
}`,
}

// bulkSubjects are a program with all schedules by bulk copies, in blocks that compute one tile or several.
func bulkSubjects(t *testing.T, name string) []*subject {
	tiles, group := bulkTiles, "contract.warpgroup"
	if strings.Contains(name, "attention") {
		tiles, group = []ir.Schedule{{Threads: 128, TileM: 64, TileN: 64, Stages: 2, Bulk: true}}, "attention.warpgroup"
	}
	var subjects []*subject
	for _, tile := range tiles {
		for _, blocks := range []int{2, 132} {
			if tile.TileK > 0 {
				tile.Blocks = blocks
			} else if blocks > 2 {
				continue
			}
			s := &subject{name: fmt.Sprintf("bulk/%s/%d columns, %d blocks of %d", name, tile.TileN, blocks, tile.Threads), spec: spec{ulps: 1, relative: 2e-2, sizes: []map[string]int64{{}}}}
			if strings.HasPrefix(bulkPrograms[name], "dim") {
				s.spec.sizes = []map[string]int64{{"n": 1}, {"n": 193}}
			}
			var err error
			if s.program, err = ir.ParseProgram(name, []byte(bulkPrograms[name])); err != nil {
				t.Fatal(err)
			}
			if err := s.schedule(nil, &override{group, tile}); err != nil {
				t.Fatal(err)
			}
			if text := s.compiled.Scheduled.String(); !strings.Contains(text, "bulk = true") {
				t.Errorf("%s: not by bulk copies:\n%s", s.name, text)
			}
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// TestBulk compares evaluator and emulator on what comes by bulk copies.
func TestBulk(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(bulkPrograms)) {
		t.Run(name, func(t *testing.T) {
			subjects := bulkSubjects(t, name)
			kernels, owner := assembleAll(t, subjects)
			checkAssembly(t, kernels[1], owner, corpusTargets[1])
			for _, s := range subjects {
				t.Run(s.name, func(t *testing.T) { s.check(t) })
			}
		})
	}
}

// fewer is a device that says how many multiprocessors it has, and counts the blocks of launches.
type fewer struct {
	runtime.Device
	most   int
	blocks []int
}

func (d *fewer) Properties() runtime.Properties {
	p := d.Device.Properties()
	p.Multiprocessors = d.most
	return p
}

func (d *fewer) Launch(s runtime.Stream, l runtime.Launch) error {
	d.blocks = append(d.blocks, l.Grid[0])
	return d.Device.Launch(s, l)
}

// TestFewerMultiprocessors: kernels that take one tile after the other have as many blocks as the device runs at a time.
func TestFewerMultiprocessors(t *testing.T) {
	for _, most := range []int{1, 3, 132} {
		s := bulkSubjects(t, "nt")[5] // 12 tiles of 128×128, at most 132 blocks
		assembleAll(t, []*subject{s})
		s.compiled.aim(corpusTargets...)
		a, device, values := s.open(t)
		d := &fewer{Device: device, most: most}
		s.checkTarget(t, a, d, corpusTargets[1], values)
		if want := min(most, 12); !slices.Equal(d.blocks, []int{want}) {
			t.Errorf("%d multiprocessors: launches of %d blocks, want %d", most, d.blocks, want)
		}
	}
}

// warpgroupProgram makes the text of a program.
type warpgroupProgram struct {
	r      *rand.Rand
	sizes  []map[string]int64
	styles map[string]string
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// tile is one that the compiler may choose.
func (w *warpgroupProgram) tile() ir.Schedule {
	s := ir.Schedule{Threads: 256, TileM: 128, TileK: 64, WarpM: 16, Stages: 4}
	s.WarpN = pick(w.r, 64, 128, 192, 256)
	s.TileN = s.WarpN
	if s.WarpN == 128 {
		s.Stages = pick(w.r, 3, 6)
	}
	if w.r.IntN(2) == 0 { // by bulk copies, where they can
		s.Threads, s.Bulk, s.Blocks = 384, true, pick(w.r, 1, 2, 5, 132)
		if s.TileN == 128 {
			s.WarpM = pick(w.r, 16, 32)
		}
	}
	return s
}

func (w *warpgroupProgram) attentionTile() ir.Schedule {
	return ir.Schedule{Threads: 128, TileM: 64, TileN: 64, Stages: 2, Bulk: w.r.IntN(2) == 0}
}

func (w *warpgroupProgram) size() int {
	return pick(w.r, 1+w.r.IntN(20), 8*(1+w.r.IntN(30)), 64*(1+w.r.IntN(4)), 1+w.r.IntN(300))
}

// product is a product of two operands, each plain, rounded from float32 or seen through a reshape, with an epilogue.
func (w *warpgroupProgram) product() string {
	dtype := pick(w.r, "bf16", "f16")
	m, n, k := fmt.Sprint(w.size()), w.size(), w.size()
	if w.r.IntN(5) == 0 { // the buffers have several rounds
		k = 64*(6+w.r.IntN(14)) + pick(w.r, 0, 0, 8, 33)
	}
	head := ""
	w.sizes = []map[string]int64{{}}
	if w.r.IntN(3) == 0 {
		head, m = "dim rows in 1..300\n", "rows"
		w.sizes = []map[string]int64{{"rows": 1}, {"rows": int64(w.size())}}
	}
	batch, attribute, shape := "", "", ""
	if w.r.IntN(3) == 0 {
		batch, attribute = "2, ", "lhs_batch = [0], rhs_batch = [0], "
	}
	rank := strings.Count(batch, ",")
	var inputs, body []string
	operand := func(name, free string) (value string, contract int) {
		shape := fmt.Sprintf("[%s%s, %d]", batch, free, k)
		contract = rank + 1
		if w.r.IntN(2) == 0 {
			shape, contract = fmt.Sprintf("[%s%d, %s]", batch, k, free), rank
		}
		if w.r.IntN(3) > 0 {
			inputs = append(inputs, fmt.Sprintf("%%%s \"%s\": %s%s", name, name, dtype, shape))
			return "%" + name, contract
		}
		inputs = append(inputs, fmt.Sprintf("%%%s \"%s\": f32%s", name, name, shape))
		body = append(body, fmt.Sprintf("  %%%s1: %s%s = convert(%%%s) {to = %s}", name, dtype, shape, name, dtype))
		return "%" + name + "1", contract
	}
	x, lhs := operand("a", m)
	y, rhs := operand("b", fmt.Sprint(n))
	shape = fmt.Sprintf("[%s%s, %d]", batch, m, n)
	body = append(body, fmt.Sprintf("  %%y: %s%s = dot_general(%s, %s) {%slhs_contract = [%d], rhs_contract = [%d], to = %s}", dtype, shape, x, y, attribute, lhs, rhs, dtype))
	result := "%y"
	switch w.r.IntN(3) {
	case 0:
		inputs = append(inputs, fmt.Sprintf("%%c \"c\": %s%s", dtype, shape))
		body = append(body, fmt.Sprintf("  %%z: %s%s = add(%%y, %%c)", dtype, shape))
		result = "%z"
	case 1:
		moved, permutation := fmt.Sprintf("[%s%d, %s]", batch, n, m), "[1, 0]"
		if rank == 1 {
			permutation = "[0, 2, 1]"
		}
		body = append(body, fmt.Sprintf("  %%z: %s%s = transpose(%%y) {permutation = %s}", dtype, moved, permutation))
		result = "%z"
	}
	return fmt.Sprintf("%sentry forward(%s) {\n%s\n  return %s \"y\"\n}\n", head, strings.Join(inputs, ", "), strings.Join(body, "\n"), result)
}

// attention has heads of 64 or 128 elements, perhaps grouped, causal or masked, perhaps with values that are not finite.
func (w *warpgroupProgram) attention() string {
	dtype := pick(w.r, "bf16", "f16")
	depth, width := pick(w.r, 64, 128), pick(w.r, 64, 128)
	groups := 1 + w.r.IntN(2)
	heads := groups * (1 + w.r.IntN(2))
	s, t := fmt.Sprint(w.size()), fmt.Sprint(w.size())
	head := ""
	w.sizes = []map[string]int64{{}}
	if w.r.IntN(3) == 0 {
		head, s, t = "dim s in 1..300\n", "s", "s"
		w.sizes = []map[string]int64{{"s": 1}, {"s": int64(w.size())}}
	}
	inputs := fmt.Sprintf("%%q \"q\": %s[1, %d, %s, %d], %%k \"k\": %s[1, %d, %s, %d], %%v \"v\": %s[1, %d, %s, %d]", dtype, heads, s, depth, dtype, groups, t, depth, dtype, groups, t, width)
	operands, attributes := "%q, %k, %v", fmt.Sprintf("scale = %v", pick(w.r, 0.125, 0.09, -0.1))
	mask := w.r.IntN(4)
	if depth+width > 128 {
		mask = 2 // the compiler takes no warpgroups
	}
	switch mask {
	case 0:
		inputs += fmt.Sprintf(", %%m \"m\": i1[1, 1, %s, %s]", s, t)
		operands += ", %m"
	case 1:
		inputs += fmt.Sprintf(", %%m \"m\": %s[1, %d, %s, %s]", dtype, heads, s, t)
		operands += ", %m"
	}
	if w.r.IntN(2) == 0 {
		attributes += ", causal = true"
		if w.r.IntN(2) == 0 {
			attributes += ", align_end = true"
		}
		if w.r.IntN(4) == 0 {
			w.styles["v"] = "fewspecial"
		}
	}
	return fmt.Sprintf("%sentry forward(%s) {\n  %%y: %s[1, %d, %s, %d] = attention(%s) {%s}\n  return %%y \"y\"\n}\n", head, inputs, dtype, heads, s, width, operands, attributes)
}
