//go:build cuda

package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"weft/ir"
	"weft/runtime"
	"weft/runtime/cuda"
)

var _ GPU = (*cuda.Device)(nil)

// gpuRanks are as many ranks of this process as there are GPUs (one, two, four or eight), with NCCL
// between them.
func gpuRanks(t testing.TB) (ir.Mesh, []*Peers, []*cuda.Device, []*NCCL) {
	t.Helper()
	count, err := cuda.Count()
	if err != nil {
		t.Skip(err)
	}
	if _, _, err := NCCLVersion(); err != nil {
		t.Skip(err)
	}
	size := 1
	for 2*size <= min(count, 8) {
		size *= 2
	}
	m, address := axis(size), free(t)
	peers, devices, list, errs := make([]*Peers, size), make([]*cuda.Device, size), make([]*NCCL, size), make([]error, size)
	var group sync.WaitGroup
	for rank := range size {
		group.Go(func() {
			if peers[rank], errs[rank] = Meet(context.Background(), optionsOf(address, rank, size, time.Minute)); errs[rank] != nil {
				return
			}
			if devices[rank], errs[rank] = cuda.Open(rank); errs[rank] == nil {
				list[rank], errs[rank] = peers[rank].NCCL(context.Background(), devices[rank], []Over{{Axes: []string{"x"}}})
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return m, peers, devices, list
}

func closeGPUs(t testing.TB, peers []*Peers, devices []*cuda.Device, list []*NCCL) {
	t.Helper()
	var group sync.WaitGroup
	for rank := range peers {
		group.Go(func() {
			if err := errors.Join(list[rank].Close(), peers[rank].Close(), devices[rank].Close()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// All collectives, in a captured graph that is replayed, give what move gives; sums of float32 may differ
// in their last bits, since NCCL adds in an order of its own. Their memory is used for a while, and then given again, as that of
// bindings is: in windows both operand and result, or one of them.
func TestNCCLOnGPUs(t *testing.T) {
	for _, c := range []struct{ windows, outside string }{{windows: "1"}, {"1", "operand"}, {"1", "result"}, {windows: "0"}} {
		t.Run(fmt.Sprintf("windows %s %s", c.windows, c.outside), func(t *testing.T) {
			t.Setenv(WindowsVariable, c.windows)
			testNCCLOnGPUs(t, c.outside)
		})
	}
}

func testNCCLOnGPUs(t *testing.T, outside string) {
	m, peers, devices, list := gpuRanks(t)
	size := m.Size()
	random := rand.New(rand.NewPCG(5, 6))
	if v := os.Getenv(multicastVariable); v != "0" {
		t.Logf("%s is %q", multicastVariable, v)
	}
	const replays = 3
	issued := int64(0)
	for _, elements := range []int64{size, 1 << 10 * size, 1 << 18 * size} {
		kinds := []string{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "collective_permute"}
		if outside != "" {
			kinds = kinds[:3] // what is sent from rank to rank is in windows at both ends, or at none
		}
		for _, kind := range kinds {
			for _, dtype := range []ir.DType{ir.F32, ir.I32} {
				from := 4 * elements
				to := map[string]int64{"all_gather": from * size, "reduce_scatter": from / size}[kind]
				if to == 0 {
					to = from
				}
				given, got := make([]*share, size), make([][]byte, size)
				calls, errs := make([]runtime.Collective, size), make([]error, size)
				for rank := range given {
					given[rank] = &share{make([]byte, from), make([]byte, to)}
					for i, v := range view[int32](given[rank].from) {
						v = random.Int32N(1 << 20)
						if dtype == ir.F32 {
							v = int32(math.Float32bits(float32(v) / 3))
						}
						view[int32](given[rank].from)[i] = v
					}
					c := carried(m, rank, kind, []string{"x"}, from, to)
					c.DType, c.Pairs = dtype, [][2]int64{{0, size - 1}}
					calls[rank] = c
				}
				var group sync.WaitGroup
				for rank := range given {
					group.Go(func() {
						got[rank], errs[rank] = replayed(devices[rank], list[rank], calls[rank], given[rank].from, outside, replays)
					})
				}
				group.Wait()
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				issued += replays
				for rank := range given {
					move(calls[rank], given)
				}
				for rank := range given {
					if n := list[rank].Finished(); n != issued {
						t.Errorf("rank %d: the device counts %d collectives of %d", rank, n, issued)
					}
					if !alike(got[rank], given[rank].to, dtype == ir.F32 && (kind == "all_reduce" || kind == "reduce_scatter")) {
						t.Errorf("%s of %d %s: rank %d got something else", kind, elements, dtype, rank)
					}
				}
			}
		}
	}
	closeGPUs(t, peers, devices, list)
}

// alike compares bits, or float32 sums within a few units in the last place.
func alike(a, b []byte, sums bool) bool {
	if !sums {
		return bytes.Equal(a, b)
	}
	y := view[float32](b)
	for i, x := range view[float32](a) {
		if d := math.Abs(float64(x - y[i])); !(d <= 1e-6*math.Abs(float64(y[i]))) {
			return false
		}
	}
	return true
}

// replayed captures a collective and runs it a few times.
func replayed(d *cuda.Device, n *NCCL, c runtime.Collective, from []byte, outside string, times int) ([]byte, error) {
	free, err := placeIn(d, n, &c, outside)
	if err != nil {
		return nil, err
	}
	if err := d.Upload(c.From, from); err != nil {
		return nil, err
	}
	if err := d.BeginCapture(0); err != nil {
		return nil, err
	}
	issued := n.Collective(context.Background(), 0, c)
	graph, err := d.EndCapture(0)
	if err := errors.Join(issued, err); err != nil {
		return nil, err
	}
	for range times {
		if err := graph.Replay(0); err != nil {
			return nil, err
		}
	}
	out := make([]byte, c.ToSize)
	return out, errors.Join(d.Download(out, c.To), graph.Close(), free())
}

// placeIn gives a collective memory for operand and result: a window where there are any, but for the one that is outside.
func placeIn(d *cuda.Device, n *NCCL, c *runtime.Collective, outside string) (free func() error, err error) {
	second := (c.FromSize + 255) &^ 255
	plain, err := d.Alloc(second + c.ToSize)
	if err != nil {
		return nil, err
	}
	c.From, c.To = plain, plain+runtime.Pointer(second)
	if !n.Windows() {
		return func() error { return d.Free(plain) }, nil
	}
	window, err := n.Window(second+c.ToSize, 1)
	if err == nil && window == 0 {
		err = errors.New("NCCL gives no window")
	}
	if outside != "operand" {
		c.From = window
	}
	if outside != "result" {
		c.To = window + runtime.Pointer(second)
	}
	return func() error { return errors.Join(n.CloseWindow(window), d.Free(plain)) }, err
}

// BenchmarkNCCLOnGPUs is the time of a graph of 32 collectives of bfloat16, a collective, in memory of the device and in windows. The
// size is that of the whole tensor; all_reduce is in place.
func BenchmarkNCCLOnGPUs(b *testing.B) {
	for _, windows := range []string{"0", "1"} {
		b.Run("windows="+windows, func(b *testing.B) {
			b.Setenv(WindowsVariable, windows)
			m, peers, devices, list := gpuRanks(b)
			for _, kind := range []string{"all_reduce", "all_gather", "reduce_scatter"} {
				for _, bytes := range []int64{16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20} {
					b.Run(fmt.Sprintf("%s/%d", kind, bytes), func(b *testing.B) { benchmarkCollective(b, m, devices, list, kind, bytes) })
				}
			}
			closeGPUs(b, peers, devices, list)
		})
	}
}

func benchmarkCollective(b *testing.B, m ir.Mesh, devices []*cuda.Device, list []*NCCL, kind string, bytes int64) {
	const each = 32
	share := bytes / m.Size()
	sizes := map[string][2]int64{"all_reduce": {bytes, bytes}, "all_gather": {share, bytes}, "reduce_scatter": {bytes, share}}[kind]
	graphs, frees, errs := make([]runtime.Graph, m.Size()), make([]func() error, m.Size()), make([]error, m.Size())
	everyRank := func(f func(rank int) error) {
		var group sync.WaitGroup
		for rank := range devices {
			group.Go(func() { errs[rank] = f(rank) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			b.Fatal(err)
		}
	}
	everyRank(func(rank int) error {
		d := devices[rank]
		c := carried(m, rank, kind, []string{"x"}, sizes[0], sizes[1])
		c.DType = ir.BF16
		var err error
		if frees[rank], err = placeIn(d, list[rank], &c, ""); err != nil {
			return err
		}
		if kind == "all_reduce" {
			c.To = c.From
		}
		if err := errors.Join(d.Upload(c.From, make([]byte, c.FromSize)), d.BeginCapture(0)); err != nil {
			return err
		}
		for range each {
			err = errors.Join(err, list[rank].Collective(context.Background(), 0, c))
		}
		var end error
		graphs[rank], end = d.EndCapture(0)
		return errors.Join(err, end)
	})
	start := time.Now()
	runs := 0
	for b.Loop() {
		if runs++; runs == 2 { // the first run sets up
			start = time.Now()
		}
		everyRank(func(rank int) error { return errors.Join(graphs[rank].Replay(0), devices[rank].Synchronize()) })
	}
	b.ReportMetric(float64(time.Since(start).Microseconds())/float64(max(runs-1, 1)*each), "µs/collective")
	everyRank(func(rank int) error { return errors.Join(graphs[rank].Close(), frees[rank]()) })
}
