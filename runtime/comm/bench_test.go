package comm

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"weft/ir"
	"weft/runtime"
)

// BenchmarkLocal measures collectives of emulated ranks. Bytes are those that the ranks give, so
// that "copy" (each rank copies as many from one place to another) is what memory can do: a
// collective reads and writes as much.
func BenchmarkLocal(b *testing.B) {
	for _, size := range []int64{4 << 10, 1 << 20, 64 << 20} {
		for _, ranks := range []int64{2, 4} {
			for _, c := range []struct {
				kind  string
				dtype ir.DType
			}{{"copy", ir.F32}, {"all_reduce", ir.F32}, {"all_reduce", ir.BF16}, {"all_reduce", ir.F16}, {"all_reduce", ir.F64}, {"all_reduce", ir.I32},
				{"reduce_scatter", ir.F32}, {"all_gather", ir.F32}, {"all_to_all", ir.F32}, {"collective_permute", ir.F32}} {
				b.Run(fmt.Sprintf("%s-%s/ranks=%d/KiB=%d", c.kind, c.dtype, ranks, size>>10), func(b *testing.B) { benchmarkLocal(b, c.kind, c.dtype, ranks, size) })
			}
		}
	}
}

func benchmarkLocal(b *testing.B, kind string, dtype ir.DType, ranks, size int64) {
	devices, comms := localRanks(b, int(ranks), time.Minute, false)
	issued := make([]runtime.Collective, ranks)
	for i := range issued {
		c := runtime.Collective{Kind: kind, Axes: []string{"x"}, Position: int64(i), DType: dtype, FromSize: size, ToSize: size}
		switch kind {
		case "reduce_scatter":
			c.ToSize = size / ranks
		case "all_gather":
			c.FromSize = size / ranks
		}
		for r := range ranks {
			c.Group = append(c.Group, r)
			c.Pairs = append(c.Pairs, [2]int64{r, (r + 1) % ranks})
		}
		c.From, _ = devices[i].Alloc(c.FromSize)
		c.To, _ = devices[i].Alloc(c.ToSize)
		for _, at := range []runtime.Pointer{c.From, c.To} { // also touches the memory
			if err := devices[i].Upload(at, make([]byte, min(c.FromSize, c.ToSize))); err != nil {
				b.Fatal(err)
			}
		}
		if err := devices[i].Fill(0, c.From, make([]byte, 8), c.FromSize/8); err != nil {
			b.Fatal(err)
		}
		issued[i] = c
	}
	b.SetBytes(size * ranks)
	b.ResetTimer()
	var wait sync.WaitGroup
	for i := range ranks {
		wait.Go(func() {
			for range b.N {
				var err error
				if kind == "copy" {
					err = devices[i].Copy(0, issued[i].To, issued[i].From, size)
				} else {
					err = comms[i].Collective(context.Background(), 0, issued[i])
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
}
