package emu

import (
	"bytes"
	"strings"
	"testing"

	"weft/runtime"
)

// TestWorkers: the number of workers changes neither results nor counts.
func TestWorkers(t *testing.T) {
	a, b := gemmInputs()
	var first []byte
	var firstCount int64
	for _, workers := range []int{1, 2, 3, 8} {
		var seen []LaunchStatistics
		h := newHarness(t, Options{Workers: workers, Observe: func(s LaunchStatistics) { seen = append(seen, s) }}, readTestdata(t, "gemm.ptx"))
		pa, pb, pc := h.buffer(len(a)*4, fromFloats(a)), h.buffer(len(b)*4, fromFloats(b)), h.buffer(len(a)*4, nil)
		h.launchGEMM(pa, pb, pc)
		got := h.download(pc, len(a)*4)
		if first == nil {
			first, firstCount = got, h.device.Instructions()
		}
		if !bytes.Equal(got, first) || h.device.Instructions() != firstCount {
			t.Errorf("%d workers: another result or count", workers)
		}
		if len(seen) != 1 || seen[0].Kernel != "gemm" || seen[0].Label != "gemm" || seen[0].Blocks != 4 || seen[0].Warps != 32 || seen[0].Instructions != firstCount {
			t.Errorf("%d workers: %+v", workers, seen)
		}
	}
}

// TestCapture: captured work runs at replay only, follows events across streams, and must be
// joined.
func TestCapture(t *testing.T) {
	d := New(Options{})
	p, err := d.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fail := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	second, err := d.NewStream()
	check(err)
	outside, err := d.Record(second)
	check(err)
	check(d.BeginCapture(0))
	fail(d.BeginCapture(second), "captured already")
	fail(d.Download(make([]byte, 1), p), "during a capture")
	fail(d.Upload(p, make([]byte, 1)), "during a capture")
	fail(d.Wait(0, outside), "from outside the capture")
	check(d.Fill(0, p, []byte{1}, 16))
	fork, err := d.Record(0)
	check(err)
	check(d.Wait(second, fork))
	check(d.Fill(second, p+8, []byte{2}, 8))
	join, err := d.Record(second)
	check(err)
	check(d.Wait(0, join))
	graph, err := d.EndCapture(0)
	check(err)
	fail(d.Download(make([]byte, 1), p), "never written")
	check(graph.Replay(second))
	got := make([]byte, 16)
	check(d.Download(got, p))
	if want := "\x01\x01\x01\x01\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02\x02\x02"; string(got) != want {
		t.Errorf("got %v", got)
	}
	check(graph.Close())
	fail(graph.Replay(0), "closed graph")

	check(d.BeginCapture(0))
	fork, err = d.Record(0)
	check(err)
	check(d.Wait(second, fork))
	check(d.Fill(second, p, []byte{3}, 1))
	_, err = d.EndCapture(0)
	fail(err, "was not joined")
	fail(d.Wait(0, fork), "belongs to another capture")
	fail(d.Wait(0, 99), "no event 99")
	_, err = d.EndCapture(0)
	fail(err, "no capture began")
}

// TestErrorsStopWork: after a fault, later work is dropped until the fault has been reported.
func TestErrorsStopWork(t *testing.T) {
	h := newHarness(t, Options{}, kernelText("trap;"))
	p := h.buffer(16, make([]byte, 16))
	launch := runtime.Launch{
		Kernel: h.kernel("k"), Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1},
		Args: []runtime.Arg{pointer(p, 16, runtime.Read), pointer(p, 16, runtime.Read), int32Arg(0)},
	}
	if err := h.device.Launch(0, launch); err != nil {
		t.Fatal(err)
	}
	if err := h.device.Fill(0, p, []byte{9}, 16); err != nil {
		t.Fatal(err)
	}
	if err := h.device.Download(make([]byte, 16), p); err == nil {
		t.Error("the trap is not reported")
	}
	if got := h.download(p, 16); got[0] != 0 {
		t.Errorf("work after the fault has run: %v", got)
	}
}

// TestModuleVariables: initial values, pointers between variables, state over launches.
func TestModuleVariables(t *testing.T) {
	text := strings.Replace(kernelText(`ld.global.u32 %r3, [counter]; add.s32 %r3, %r3, 1; st.global.u32 [counter], %r3;
	ld.global.u64 %rd8, [link]; ld.u32 %r6, [%rd8+8]; add.s32 %r3, %r3, %r6; st.global.u32 [%rd5], %r3;`),
		".visible .entry", ".global .align 8 .u64 link[1] = {table};\n.visible .entry", 1)
	h := newHarness(t, Options{}, text)
	out := h.buffer(4, nil)
	for n := range uint32(3) {
		h.mustLaunch("k", 1, 1, pointer(out, 4, runtime.Read), pointer(out, 4, runtime.Write|runtime.Discard), int32Arg(0))
		if got := words(h.download(out, 4))[0]; got != 12+1+n {
			t.Errorf("launch %d: %d", n, got)
		}
	}
	if err := h.module.Close(); err != nil {
		t.Error(err)
	}
	if err := h.module.Close(); err == nil {
		t.Error("closed twice")
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct {
		target       string
		major, minor int
		want         bool
	}{
		{"sm_80", 8, 0, true}, {"sm_80", 9, 0, true}, {"sm_90", 8, 0, false}, {"sm_90a", 9, 0, true},
		{"sm_90a", 10, 0, false}, {"sm_86", 8, 0, false}, {"sm_86", 8, 9, true}, {"sm_x", 9, 0, false},
	} {
		d := New(Options{ComputeMajor: c.major, ComputeMinor: c.minor})
		_, err := d.Load([]byte(strings.Replace(kernelText(""), "sm_90", c.target, 1)))
		if (err == nil) != c.want {
			t.Errorf("%s on %d.%d: %v", c.target, c.major, c.minor, err)
		}
	}
}
