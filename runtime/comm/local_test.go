package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/eval"
	"weft/runtime"
	"weft/runtime/emu"
)

// staged hides that the host can touch an emulator's memory.
type staged struct{ runtime.Device }

// localRanks are emulators with a communicator each.
func localRanks(t testing.TB, n int, timeout time.Duration, stage bool) ([]runtime.Device, []runtime.Communicator) {
	local := NewLocal(timeout)
	devices, comms := make([]runtime.Device, n), make([]runtime.Communicator, n)
	for i := range devices {
		devices[i] = emu.New(emu.Options{Workers: 1})
		if stage {
			devices[i] = staged{devices[i]}
		}
		comms[i] = local.Rank(int64(i), devices[i], nil)
		t.Cleanup(func() { devices[i].Close() })
	}
	return devices, comms
}

// kinds by name, with how many shares their operand and result have of n ranks.
var kinds = []struct {
	name     string
	kind     ir.Kind
	from, to func(n int64) int64
}{
	{"all_reduce", ir.OpAllReduce, one, one},
	{"all_gather", ir.OpAllGather, one, all},
	{"reduce_scatter", ir.OpReduceScatter, all, one},
	{"all_to_all", ir.OpAllToAll, all, all},
	{"collective_permute", ir.OpCollectivePermute, one, one},
}

func one(int64) int64   { return 1 }
func all(n int64) int64 { return n }

// random fills a tensor; floats have values of every size.
func random(r *rand.Rand, dtype ir.DType, n int64) *ir.Tensor {
	t := ir.NewTensor(dtype, n)
	switch {
	case dtype == ir.Bool:
		for i := range n {
			t.SetInt(i, int64(r.IntN(2)))
		}
	case dtype.IsFloat():
		for i := range n {
			t.SetFloat(i, r.NormFloat64()*math.Pow(2, float64(r.IntN(12)-6)))
		}
	case dtype.IsComplex():
		part := map[ir.DType]ir.DType{ir.C32: ir.F16, ir.C64: ir.F32, ir.C128: ir.F64}[dtype]
		pairs := random(r, part, 2*n)
		t.Data = pairs.Data
	default:
		for i := range t.Data {
			t.Data[i] = byte(r.Uint32())
		}
	}
	return t
}

// TestLocal compares every collective with the evaluator's, for types, combinations and numbers
// of ranks.
func TestLocal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, ranks := range []int64{1, 2, 3, 4, 8} {
		for _, k := range kinds {
			for dtype := ir.Bool; dtype < ir.String; dtype++ {
				if dtype.Size() == 0 {
					continue
				}
				for c := ir.Sum; c < ir.Assign; c++ {
					reduces := k.kind == ir.OpAllReduce || k.kind == ir.OpReduceScatter
					if reduces && ir.CombineTakes(c, dtype) != nil || !reduces && c != ir.Sum {
						continue
					}
					for _, n := range []int64{0, 1, 5, 2051} {
						if n > 5 && ranks == 8 {
							continue
						}
						testCollective(t, r, k.kind, dtype, c, ranks, n*k.from(ranks), n*k.to(ranks), r.IntN(2) == 0)
					}
				}
			}
		}
	}
}

func testCollective(t *testing.T, r *rand.Rand, kind ir.Kind, dtype ir.DType, combine ir.Combine, ranks, from, to int64, stage bool) {
	t.Helper()
	devices, comms := localRanks(t, int(ranks), time.Minute, stage)
	attrs := &ir.CollectiveAttrs{Combine: combine, Axes: []string{"x"}, Size: ranks}
	group := make([]int64, ranks)
	var pairs [][2]int64
	for i := range ranks {
		group[i] = i
		if kind == ir.OpCollectivePermute && i > 0 {
			pairs = append(pairs, [2]int64{i, (i + 2) % ranks})
			attrs.Pairs = append(attrs.Pairs, ir.MeshPair{Source: i, Target: (i + 2) % ranks})
		}
	}
	given, got := make([]*ir.Tensor, ranks), make([]*ir.Tensor, ranks)
	for i := range given {
		given[i], got[i] = random(r, dtype, from), ir.NewTensor(dtype, to)
	}
	inPlace := kind == ir.OpAllReduce && r.IntN(2) == 0
	var g errgroup.Group
	for i := range ranks {
		g.Go(func() error {
			d := devices[i]
			a, err1 := d.Alloc(int64(len(given[i].Data)))
			b, err2 := d.Alloc(int64(len(got[i].Data)))
			if inPlace {
				b = a
			}
			err := comms[i].Collective(context.Background(), 0, runtime.Collective{Kind: kind.String(), Axes: attrs.Axes, Group: group, Position: i,
				DType: dtype, Combine: combine, Pairs: pairs, From: a, To: b, FromSize: int64(len(given[i].Data)), ToSize: int64(len(got[i].Data)), Sequence: 1})
			if from > 0 {
				err = errors.Join(d.Upload(a, given[i].Data), comms[i].Collective(context.Background(), 0, runtime.Collective{Kind: kind.String(), Axes: attrs.Axes, Group: group, Position: i,
					DType: dtype, Combine: combine, Pairs: pairs, From: a, To: b, FromSize: int64(len(given[i].Data)), ToSize: int64(len(got[i].Data)), Sequence: 1}))
			}
			return errors.Join(err1, err2, err, d.Download(got[i].Data, b))
		})
	}
	what := fmt.Sprintf("%s of %s by %s on %d ranks, in place %t", kind, dtype, combine, ranks, inPlace)
	if err := g.Wait(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i := range ranks {
		want, err := eval.Collective(kind, attrs, i, given)
		if err != nil {
			t.Fatal(err)
		}
		if !near(got[i], want) {
			t.Fatalf("%s: rank %d has %.200q, want %.200q", what, i, fmt.Sprint(got[i].Data), fmt.Sprint(want.Data))
		}
		if kind == ir.OpAllReduce && !slices.Equal(got[i].Data, got[0].Data) {
			t.Fatalf("%s: ranks differ", what)
		}
	}
}

// near tells whether two tensors are equal but for the rounding of sums and products in the
// type that they are computed in, which the evaluator does in float64.
func near(a, b *ir.Tensor) bool {
	if slices.Equal(a.Data, b.Data) {
		return true
	}
	dtype, n := a.DType, a.Numel()
	tolerance := map[ir.DType]float64{ir.F32: 1e-5, ir.C64: 1e-4, ir.F64: 1e-12, ir.C128: 1e-12, ir.BF16: 1e-2, ir.F16: 2e-3, ir.C32: 2e-2}[dtype]
	if tolerance == 0 && !dtype.IsFloat() { // 8-bit floats may differ in the sign of zero
		return false
	}
	if part, ok := map[ir.DType]ir.DType{ir.C32: ir.F16, ir.C64: ir.F32, ir.C128: ir.F64}[dtype]; ok {
		dtype, n = part, 2*n
	}
	x, y := &ir.Tensor{DType: dtype, Shape: []int64{n}, Data: a.Data}, &ir.Tensor{DType: dtype, Shape: []int64{n}, Data: b.Data}
	scale := 1.0
	for i := range n {
		if v := math.Abs(y.Float(i)); !math.IsInf(v, 0) {
			scale = max(scale, v)
		}
	}
	for i := range n {
		if p, q := x.Float(i), y.Float(i); p != q && !(math.Abs(p-q) <= tolerance*scale) && !(math.IsNaN(p) && math.IsNaN(q)) {
			return false
		}
	}
	return true
}

// collectiveOf is an all_reduce of a float that rank i of n issues on new memory.
func collectiveOf(t testing.TB, d runtime.Device, i, n int64) runtime.Collective {
	t.Helper()
	c := runtime.Collective{Kind: "all_reduce", Axes: []string{"x"}, Position: i, DType: ir.F32, FromSize: 4, ToSize: 4, Sequence: 3, Step: 7, Entry: "forward", Label: "loss at model.py:4"}
	for r := range n {
		c.Group = append(c.Group, r)
	}
	var err1, err2 error
	c.From, err1 = d.Alloc(4)
	c.To, err2 = d.Alloc(4)
	if err := errors.Join(err1, err2, d.Upload(c.From, make([]byte, 4))); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLocalMissing leaves out ranks: the others say so in time, and so does all that comes after.
func TestLocalMissing(t *testing.T) {
	devices, comms := localRanks(t, 4, 50*time.Millisecond, false)
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for _, i := range []int64{0, 2} {
		wait.Add(1)
		go func() {
			defer wait.Done()
			errs[i] = comms[i].Collective(context.Background(), 0, collectiveOf(t, devices[i], i, 4))
		}()
	}
	wait.Wait()
	errs[1] = comms[1].Collective(context.Background(), 0, collectiveOf(t, devices[1], 1, 4))
	stuck := 0
	for _, i := range []int{0, 1, 2} {
		t.Log(errs[i])
		switch d := diag.All(errs[i])[0]; d.Code {
		case diag.CollectiveStuck:
			stuck++
			if !strings.Contains(d.Message, "all_reduce") || !strings.Contains(d.Message, "waited 50ms for ranks 1, 3") || !strings.Contains(d.Message, "loss at model.py:4") {
				t.Error(d)
			}
		case diag.RankFailed:
			if !strings.Contains(d.Message, "waited 50ms for ranks 1, 3") {
				t.Error(d)
			}
		default:
			t.Errorf("rank %d: %v", i, errs[i])
		}
	}
	if stuck != 1 {
		t.Errorf("%d ranks report what is missing, the others should pass it on", stuck)
	}
}

// TestLocalAbort ends a wait from outside, by a cause and by a context.
func TestLocalAbort(t *testing.T) {
	devices, comms := localRanks(t, 2, time.Minute, false)
	go func() {
		time.Sleep(10 * time.Millisecond)
		comms[1].Abort(errors.New("the fan stopped\nand more"))
	}()
	err := comms[0].Collective(context.Background(), 0, collectiveOf(t, devices[0], 0, 2))
	if d := diag.All(err)[0]; d.Code != diag.RankFailed || !strings.Contains(d.Message, "the fan stopped") || strings.Contains(d.Message, "more") {
		t.Error(err)
	}
	devices, comms = localRanks(t, 2, time.Minute, false)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := comms[0].Collective(ctx, 0, collectiveOf(t, devices[0], 0, 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := comms[1].Collective(context.Background(), 0, collectiveOf(t, devices[1], 1, 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestLocalDisagree has ranks that issue different collectives: all end, none waits.
func TestLocalDisagree(t *testing.T) {
	for name, change := range map[string]func(*runtime.Collective){
		"kind":    func(c *runtime.Collective) { c.Kind = "all_to_all" },
		"type":    func(c *runtime.Collective) { c.DType = ir.I32 },
		"combine": func(c *runtime.Collective) { c.Combine = ir.Max },
		"step":    func(c *runtime.Collective) { c.Step++ },
		"twice":   func(c *runtime.Collective) { c.Position = 0 },
	} {
		devices, comms := localRanks(t, 2, time.Minute, false)
		errs := make([]error, 2)
		var wait sync.WaitGroup
		for i := range int64(2) {
			c := collectiveOf(t, devices[i], i, 2)
			if i == 1 {
				change(&c)
			}
			wait.Add(1)
			go func() {
				defer wait.Done()
				errs[i] = comms[i].Collective(context.Background(), 0, c)
			}()
		}
		wait.Wait()
		for _, err := range errs {
			if err == nil || diag.All(err)[0].Code != diag.RankFailed || !strings.Contains(err.Error(), "different collectives") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestLocalUnwritten refuses to send memory that nobody wrote.
func TestLocalUnwritten(t *testing.T) {
	devices, comms := localRanks(t, 1, time.Minute, false)
	c := collectiveOf(t, devices[0], 0, 1)
	c.From, c.To = c.To, c.From
	if err := comms[0].Collective(context.Background(), 0, c); err == nil || !strings.Contains(err.Error(), "never written") {
		t.Error(err)
	}
}

// view is bytes as elements.
func view[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}
