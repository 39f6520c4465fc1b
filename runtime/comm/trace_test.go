//go:build cgo && linux

package comm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/ir"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/devicetest"
	"weft/runtime/emu"
	"weft/runtime/trace"
)

// asyncPlan adds up the input of the ranks, copies it meanwhile, and adds up the sum again.
const asyncPlan = `{"version":"1.0","target":"sm_80","entry":"sum","mesh":[{"name":"x","size":2}],
"dims":[{"name":"rank.x","min":0,"max":1}],
"inputs":[{"name":"a","dtype":"f32","shape":["2"],"shard":[[{"size":"4","axes":["x"]}]]}],
"outputs":[{"name":"b","dtype":"f32","shape":["2"]}],
"buffers":[{"kind":"input","size":"8"},{"kind":"output","size":"8"},{"kind":"arena","size":"8"},
 {"kind":"arena","size":"8","after":[2],"name":"first"},{"kind":"arena","size":"8","after":[2,3],"name":"meanwhile"}],
"steps":[{"copy":{"from":0,"to":2}},
 {"collective":{"kind":"all_reduce","from":2,"to":3,"axes":["x"],"ranks":2,"dtype":"f32","combine":"add","async":true,"label":"first"}},
 {"copy":{"from":0,"to":4}},
 {"wait":{"from":2,"to":3}},
 {"collective":{"kind":"all_reduce","from":3,"to":1,"axes":["x"],"ranks":2,"dtype":"f32","combine":"add","label":"second"}}]}`

// clockedGPU is a fake GPU that marks times.
type clockedGPU struct {
	lentGPU
	*devicetest.Marks
}

type lentGPU struct{ fakeGPU }

// A collective beside computation has its times from its own stream, also in a graph, where marks join the capture.
func TestTraceAsync(t *testing.T) {
	fakeNCCL(t)
	art := planArtifact(t, asyncPlan)
	for _, noGraph := range []bool{false, true} {
		t.Run(fmt.Sprintf("NoGraph %t", noGraph), func(t *testing.T) {
			peers, errs := meetAll(t, 2, 20*time.Second, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			traces := make([]trace.Rank, 2)
			var group sync.WaitGroup
			for rank, p := range peers {
				group.Go(func() {
					traces[rank], errs[rank] = traceSession(p, runtime.Options{Rank: int64(rank), NoGraph: noGraph, Trace: true}, art)
				})
			}
			group.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for rank, r := range traces {
				checkAsync(t, rank, r, noGraph)
			}
		})
	}
}

// traceSession runs the entry three times on one rank and gives the trace of the last run.
func traceSession(p *Peers, o runtime.Options, art *artifact.Artifact) (r trace.Rank, err error) {
	d := emu.New(emu.Options{Memory: 1 << 20, ComputeMajor: 8})
	marks, err := devicetest.NewMarks(d)
	if err != nil {
		return r, err
	}
	device := clockedGPU{lentGPU{newFakeGPU(d)}, marks}
	n, err := p.NCCL(context.Background(), device, []Over{{Axes: []string{"x"}, Beside: true}})
	if err != nil {
		return r, err
	}
	o.Communicator = n
	s, err := runtime.Open(art, device, o)
	if err != nil {
		return r, err
	}
	for range 3 {
		if _, err := s.Run("sum", []*ir.Tensor{ir.NewTensor(ir.F32, 4)}); err != nil {
			return r, err
		}
	}
	r, err = s.Trace()
	if err = errors.Join(err, s.Close(), n.Close(), p.Close()); err == nil && len(marks.Live) > 0 {
		err = fmt.Errorf("%d marks are left", len(marks.Live))
	}
	return r, err
}

// checkAsync checks the trace of asyncPlan: without a graph its collectives are not asynchronous.
func checkAsync(t *testing.T, rank int, r trace.Rank, noGraph bool) {
	t.Helper()
	var got []string
	for _, s := range r.Spans {
		got = append(got, fmt.Sprint(s.Step, " ", s.Name, " ", s.Beside))
	}
	want, hidden := "0 copy false/1 all_reduce true/2 copy false/3 wait false/4 all_reduce false", 1.0
	if noGraph {
		want, hidden = "0 copy false/1 all_reduce false/2 copy false/4 all_reduce false", 0
	}
	if r.Rank != int64(rank) || strings.Join(got, "/") != want {
		t.Fatalf("rank %d: %s", r.Rank, strings.Join(got, "/"))
	}
	if s := trace.Summarize(r); s.Communicating != 2 || s.Hidden != hidden || s.Share != hidden/2 {
		t.Errorf("rank %d: %+v", rank, s)
	}
	if noGraph {
		return
	}
	collective, beside, wait := r.Spans[1], r.Spans[2], r.Spans[3]
	if beside.Start > collective.Start || collective.End > beside.End || wait.Start != beside.End {
		t.Errorf("rank %d: collective %+v, beside it %+v, wait %+v", rank, collective, beside, wait)
	}
}
