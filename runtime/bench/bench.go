// Package bench measures entries on devices: a whole step as the runtime replays it, and each
// kernel of its plan alone. On a device that knows when its events happened (cuda.Timer) times
// are between events, on another they are wall time.
package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/runtime"
	"weft/runtime/cuda"
)

// Options of a measurement.
type Options struct {
	Steps  int // times that are taken, at least 1
	Warmup int // runs before the first of them
}

// Times sums up repeated measurements, in milliseconds.
type Times struct {
	Count  int     `json:"count"`
	Median float64 `json:"median_ms"`
	Min    float64 `json:"min_ms"`
	Max    float64 `json:"max_ms"`
}

// Summarize sums up at least one time.
func Summarize(times []time.Duration) Times {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	median := (sorted[(n-1)/2] + sorted[n/2]) / 2
	return Times{n, ms(median), ms(sorted[0]), ms(sorted[n-1])}
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// Clock names what times are taken with: device events or wall time.
func Clock(d runtime.Device) string {
	if _, ok := d.(cuda.Timer); ok {
		return "device events"
	}
	return "wall time"
}

// Step measures whole runs of a binding, with no transfers in them.
func Step(ctx context.Context, device runtime.Device, b *runtime.Binding, o Options) (Times, error) {
	once := func() error { return b.ReplayContext(ctx) }
	for range o.Warmup {
		if err := once(); err != nil {
			return Times{}, err
		}
	}
	if err := b.Synchronize(); err != nil {
		return Times{}, err
	}
	times, err := repeat(ctx, device, o.Steps, once, decides(b))
	if err != nil {
		return Times{}, err
	}
	return Summarize(times), nil
}

// Ranks measures whole runs of all ranks that the process drives: on devices that know when their
// events happened each rank as Step does, beside the others, of which the slowest counts; else by
// wall time.
func Ranks(ctx context.Context, b *runtime.RanksBinding, o Options) (slowest Times, err error) {
	timed := true
	var mu sync.Mutex
	err = b.Each(func(m runtime.Member, own *runtime.Binding) error {
		if _, ok := m.Device.(cuda.Timer); !ok {
			mu.Lock()
			defer mu.Unlock()
			timed = false
			return nil
		}
		times, err := Step(ctx, m.Device, own, o)
		mu.Lock()
		defer mu.Unlock()
		if times.Median > slowest.Median {
			slowest = times
		}
		return err
	})
	if timed || err != nil {
		return slowest, err
	}
	return ranksByWall(ctx, b, o)
}

func ranksByWall(ctx context.Context, b *runtime.RanksBinding, o Options) (Times, error) {
	var times []time.Duration
	for i := range o.Warmup + o.Steps {
		start := time.Now()
		if err := b.ReplayContext(ctx); err != nil {
			return Times{}, err
		}
		if err := b.Synchronize(); err != nil {
			return Times{}, err
		}
		if err := ctx.Err(); err != nil {
			return Times{}, err
		}
		if i >= o.Warmup {
			times = append(times, time.Since(start))
		}
	}
	return Summarize(times), nil
}

// decides tells whether a run waits for the device inside: it has an if or a while.
func decides(b *runtime.Binding) bool {
	for _, s := range b.Plan().Steps {
		if s.If != nil || s.While != nil {
			return true
		}
	}
	return false
}

// inFlight is how many runs are enqueued before their times are read, so that the device never
// waits for the host between them.
const inFlight = 32

// repeat times n runs of work. waits says that work itself waits for the device.
func repeat(ctx context.Context, device runtime.Device, n int, work func() error, waits bool) ([]time.Duration, error) {
	timer, ok := device.(cuda.Timer)
	var times []time.Duration
	batch := inFlight
	if waits {
		batch = 1
	}
	for len(times) < n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !ok {
			start := time.Now()
			if err := work(); err != nil {
				return nil, err
			}
			if err := device.Synchronize(); err != nil {
				return nil, err
			}
			times = append(times, time.Since(start))
			continue
		}
		some, err := between(device, timer, min(batch, n-len(times)), work)
		if err != nil {
			return nil, err
		}
		times = append(times, some...)
	}
	return times, nil
}

// between times n runs by events around each.
func between(device runtime.Device, timer cuda.Timer, n int, work func() error) ([]time.Duration, error) {
	marks := make([][2]runtime.Event, n)
	for i := range marks {
		var err error
		if marks[i][0], err = device.Record(0); err != nil {
			return nil, err
		}
		if err = work(); err != nil {
			return nil, err
		}
		if marks[i][1], err = device.Record(0); err != nil {
			return nil, err
		}
	}
	times := make([]time.Duration, n)
	for i, m := range marks {
		var err error
		if times[i], err = timer.Elapsed(m[0], m[1]); err != nil {
			return nil, err
		}
	}
	return times, device.Synchronize()
}

// Kernel is what was measured of equal launches: the same kernel over the same sizes.
type Kernel struct {
	Name  string  `json:"kernel"`
	Label string  `json:"label,omitempty"` // of the first
	Count int     `json:"count"`           // launches in a step; one inside an if or while counts once
	Grid  [3]int  `json:"grid"`
	Block int     `json:"block"`
	Times Times   `json:"time"`            // of one launch
	Bytes int64   `json:"bytes"`           // extents of the arguments
	FLOPs int64   `json:"flops,omitempty"` // of contractions
	Share float64 `json:"share"`           // of the sum of all kernels' medians
	Error string  `json:"error,omitempty"` // why it could not be run alone
}

// GBs is the rate at which the arguments are moved, each byte counted once, in 10^9 bytes a second.
func (k Kernel) GBs() float64 { return rate(k.Bytes, k.Times.Median) }

// TFLOPs is 10^12 operations of contractions a second.
func (k Kernel) TFLOPs() float64 { return rate(k.FLOPs, k.Times.Median) / 1000 }

func rate(n int64, ms float64) float64 {
	if ms <= 0 {
		return 0
	}
	return float64(n) / ms / 1e6
}

// Kernels measures each distinct launch of a binding alone, after a whole run, whose values the
// launches find in memory; then states may differ from what they were. The result is sorted by
// the time in a step, the longest first.
func Kernels(ctx context.Context, device runtime.Device, b *runtime.Binding, o Options) ([]Kernel, error) {
	if err := b.ReplayContext(ctx); err != nil {
		return nil, err
	}
	if err := b.Synchronize(); err != nil {
		return nil, err
	}
	return RankKernels(ctx, device, b, o)
}

// RankKernels is Kernels for the binding of a rank, after a run of all ranks.
func RankKernels(ctx context.Context, device runtime.Device, b *runtime.Binding, o Options) ([]Kernel, error) {
	var list []Kernel
	index := map[string]int{}
	steps := b.Plan().Flat()
	for _, l := range b.Launches() {
		key := launchKey(l.Launch)
		if i, ok := index[key]; ok {
			list[i].Count++
			continue
		}
		k := Kernel{Name: l.Launch.Kernel.Name(), Label: l.Launch.Label, Count: 1, Grid: l.Launch.Grid, Block: l.Launch.Block[0], Bytes: bytesOf(l.Launch)}
		if n, err := steps[l.Step].Launch.FLOPs.Eval(b.Dims()); err == nil {
			k.FLOPs = n
		}
		times, err := alone(ctx, device, l.Launch, o)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			// A launch of a branch that was not taken reads what nobody wrote, which the
			// emulator refuses.
			k.Error = err.Error()
		default:
			k.Times = times
		}
		index[key] = len(list)
		list = append(list, k)
	}
	total := 0.0
	for _, k := range list {
		total += k.Times.Median * float64(k.Count)
	}
	for i := range list {
		if total > 0 {
			list[i].Share = list[i].Times.Median * float64(list[i].Count) / total
		}
	}
	slices.SortStableFunc(list, func(x, y Kernel) int {
		return -compareFloats(x.Times.Median*float64(x.Count), y.Times.Median*float64(y.Count))
	})
	return list, nil
}

func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// launchKey is equal for launches that do the same work on other memory.
func launchKey(l runtime.Launch) string {
	var b strings.Builder
	fmt.Fprint(&b, l.Kernel.Name(), l.Grid, l.Block, l.Shared)
	for _, a := range l.Args {
		switch a.Kind {
		case runtime.ArgPointer:
			fmt.Fprint(&b, " ", a.Size)
		case runtime.ArgTensorMap:
			fmt.Fprint(&b, " ", a.Size, *a.Map)
		default:
			fmt.Fprint(&b, " =", a.Bits)
		}
	}
	return b.String()
}

// bytesOf sums the extents of pointer arguments, and of tensor maps of what no argument before them
// has; what is read and written counts twice.
func bytesOf(l runtime.Launch) int64 {
	total := int64(0)
	for k, a := range l.Args {
		if a.Kind != runtime.ArgPointer && a.Kind != runtime.ArgTensorMap {
			continue
		}
		before := func(other runtime.Arg) bool {
			memory := other.Kind == runtime.ArgPointer || other.Kind == runtime.ArgTensorMap
			return memory && other.Bits <= a.Bits && a.Bits-other.Bits < uint64(other.Size)
		}
		if a.Kind == runtime.ArgTensorMap && slices.ContainsFunc(l.Args[:k], before) {
			continue
		}
		total += a.Size
		if a.Access&runtime.ReadWrite == runtime.ReadWrite {
			total += a.Size
		}
	}
	return total
}

const (
	aloneTime = 2 * time.Millisecond // that one captured group of launches should take
	aloneMost = 200                  // launches in a group
)

// alone times one launch. On a device with events, groups of equal launches are replayed as one
// graph and the time is divided by their number: what the host does between launches would
// otherwise hide short kernels.
func alone(ctx context.Context, device runtime.Device, l runtime.Launch, o Options) (Times, error) {
	launch := func() error { return device.Launch(0, l) }
	capturer, graphs := device.(runtime.Capturer)
	timer, events := device.(cuda.Timer)
	if err := launch(); err != nil {
		return Times{}, err
	}
	if err := device.Synchronize(); err != nil {
		return Times{}, err
	}
	if !graphs || !events {
		times, err := repeat(ctx, device, o.Steps, launch, false)
		if err != nil {
			return Times{}, err
		}
		return Summarize(times), nil
	}
	first, err := between(device, timer, 3, launch)
	if err != nil {
		return Times{}, err
	}
	n := int(aloneTime/max(slices.Min(first), time.Microsecond)) + 1
	n = min(n, aloneMost)
	return grouped(ctx, device, capturer, launch, n, o)
}

// grouped times groups of n launches, each group replayed as one graph.
func grouped(ctx context.Context, device runtime.Device, capturer runtime.Capturer, launch func() error, n int, o Options) (t Times, err error) {
	if err := capturer.BeginCapture(0); err != nil {
		return t, err
	}
	var failed error
	for range n {
		if failed = launch(); failed != nil {
			break
		}
	}
	graph, err := capturer.EndCapture(0)
	if err != nil {
		return t, err
	}
	defer func() {
		if closed := graph.Close(); err == nil {
			err = closed
		}
	}()
	if failed != nil {
		return t, failed
	}
	replay := func() error { return graph.Replay(0) }
	for range 2 {
		if err := replay(); err != nil {
			return t, err
		}
	}
	times, err := repeat(ctx, device, min(o.Steps, 20), replay, false)
	if err != nil {
		return t, err
	}
	for i := range times {
		times[i] /= time.Duration(n)
	}
	return Summarize(times), nil
}
