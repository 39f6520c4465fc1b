package emu

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"
)

func TestTmpTimes(t *testing.T) {
	if os.Getenv("TIMES") == "" {
		t.Skip()
	}
	ins := hardwareInstructions()
	h := newHarness(t, Options{}, hardwareModule(ins))
	type row struct {
		name string
		ns   float64
	}
	var rows []row
	for i, name := range ins {
		k := h.kernel(fmt.Sprintf("k%d", i)).(*kernel)
		s := &launchState{device: h.device, kernel: k, threads: 32, block: [3]int{32, 1, 1}, grid: [3]int{1, 1, 1}, budget: 1 << 40}
		w := newWorker(s)
		wp := &w.warps[0]
		w.startWarp(wp)
		for j := range wp.r32 {
			for l := range 32 {
				wp.r32[j][l] = uint32(l*77777 + j*3)
			}
		}
		for j := range k.code {
			in := k.code[j]
			if in.source == nil || in.source.Text != strings.Join(strings.Fields(name), " ") {
				continue
			}
			saved := k.code
			k.code = []instruction{in, {op: opBranch, guard: noSlot, target: 0}}
			wp.pc = 0
			best := 1e9
			for range 5 {
				start := time.Now()
				w.budget = w.executed + 3000
				w.step(wp)
				best = min(best, float64(time.Since(start).Nanoseconds())/1500)
			}
			k.code = saved
			rows = append(rows, row{name, best})
			break
		}
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].ns > rows[j].ns })
	for _, r := range rows {
		t.Logf("%7.1f %s", r.ns, r.name)
	}
}
