//go:build cgo && linux

package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/frontend/weights"
	"weft/ir"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/emu"
)

// sumPlan is for two ranks. Its entry sum adds up the input of the ranks twice.
const sumPlan = `{"version":"1.0","target":"sm_80","entry":"sum","mesh":[{"name":"x","size":2}],
"dims":[{"name":"rank.x","min":0,"max":1}],
"inputs":[{"name":"a","dtype":"f32","shape":["2"],"shard":[[{"size":"4","axes":["x"]}]]}],
"outputs":[{"name":"b","dtype":"f32","shape":["2"]}],
"buffers":[{"kind":"input","size":"8"},{"kind":"output","size":"8"},{"kind":"arena","size":"8"},{"kind":"arena","size":"8","after":[2]}],
"steps":[{"copy":{"from":0,"to":2}},
 {"collective":{"kind":"all_reduce","from":2,"to":3,"axes":["x"],"ranks":2,"dtype":"f32","combine":"add","label":"first"}},
 {"collective":{"kind":"all_reduce","from":3,"to":1,"axes":["x"],"ranks":2,"dtype":"f32","combine":"add","label":"second"}}]}`

// planArtifact is for two ranks and has a plan of the entry sum.
func planArtifact(t *testing.T, plan string) *artifact.Artifact {
	t.Helper()
	none, err := weights.NewSource(nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sum.weft")
	err = artifact.Write(path, artifact.Contents{
		Program: []byte("\n"), Report: []byte("{}\n"), Weights: none,
		Manifest: artifact.Manifest{Weft: "test", Targets: []artifact.Target{{Name: "sm_80"}}, Entries: []artifact.Entry{{Name: "sum"}},
			Mesh: artifact.Mesh{Axes: []artifact.Axis{{Name: "x", Size: 2}}}},
		Kernels: []artifact.Kernels{{Target: "sm_80", PTX: []byte(".version 7.0\n.target sm_80\n.address_size 64\n")}},
		Plans:   []artifact.Plan{{Target: "sm_80", Entry: "sum", JSON: []byte(plan)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// stuckGPU stops to count collectives: what NCCL carries there does not end. A host would wait for it in
// Synchronize.
type stuckGPU struct {
	fakeGPU
	runs  *int
	after int
	ended <-chan struct{}
}

func (g stuckGPU) Launch(s runtime.Stream, l runtime.Launch) error {
	if *g.runs++; *g.runs > g.after {
		return nil
	}
	return g.fakeGPU.Launch(s, l)
}

func (g stuckGPU) Synchronize() error {
	if *g.runs > g.after {
		<-g.ended
	}
	return g.fakeGPU.Synchronize()
}

// Sessions of two ranks run a captured graph with collectives again and again, and the recorders say how
// far the device is. Then a collective does not end: it is what the report names.
func TestNCCLSession(t *testing.T) {
	log := fakeNCCL(t)
	t.Setenv("FAKE_NCCL_VERSION", "22809")
	art := planArtifact(t, sumPlan)
	a := ir.NewTensor(ir.F32, 4)
	for _, c := range []struct{ graph, windows bool }{{true, false}, {true, true}, {false, false}} {
		graph := c.graph
		t.Run(fmt.Sprintf("graph %t, windows %t", graph, c.windows), func(t *testing.T) {
			recorders := []*runtime.Recorder{runtime.NewRecorder(0), runtime.NewRecorder(1)}
			peers, errs := meetAll(t, 2, 700*time.Millisecond, func(o *Options) { o.Recorder = recorders[o.World.Rank] })
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			devices := make([]GPU, 2)
			for rank := range devices {
				devices[rank] = newFakeGPU(emu.New(emu.Options{Memory: 1 << 20, ComputeMajor: 8}))
				t.Setenv("FAKE_NCCL_MEMORY", fakeMemory(t, devices[rank])) // the same on both
				if !c.windows {
					t.Setenv(WindowsVariable, "0")
				}
			}
			os.Truncate(log, 0)
			var group sync.WaitGroup
			for rank, p := range peers {
				group.Go(func() {
					device := devices[rank]
					if !graph {
						device = stuckGPU{device.(fakeGPU), new(int), 3, p.ended}
					}
					errs[rank] = runSession(p, device, art, a, runtime.Options{Rank: int64(rank), Recorder: recorders[rank], NoGraph: !graph})
				})
			}
			group.Wait()
			for rank, err := range errs {
				p, now := peers[rank], recorders[rank].Progress()
				switch {
				case graph:
					if err != nil || now.Pending != nil || now.Finished == nil || now.Finished.Sequence != 6 {
						t.Errorf("rank %d: %v, %s", rank, err, now)
					}
					want := 0
					if c.windows {
						want = 8
					}
					end := p.atTheEnd("gather", 4, "a test")
					p.enter(end) // the report names what ran last, and not what the ranks agreed on before
					if b := p.present(); !strings.Contains(b.Last, "number 6") || b.Waiting == nil || !strings.Contains(b.Waiting.Text, "the end") {
						t.Errorf("rank %d: last %s, waits in %+v", rank, b.Last, b.Waiting)
					}
					p.exit(end, false)
					if got := calls(t, log, "ncclMem", "Window"); len(got) != want {
						t.Errorf("windows: %q", got)
					}
				default:
					err = peers[rank].Err()
					if err == nil || !strings.Contains(err.Error(), "W7101") ||
						!strings.Contains(err.Error(), "last finished all_reduce over x (number 3, step 1 of sum, first), pending all_reduce over x (number 4, step 2 of sum, second)") {
						t.Errorf("rank %d: %v", rank, err)
					}
				}
			}
		})
	}
}

func runSession(p *Peers, device GPU, art *artifact.Artifact, a *ir.Tensor, o runtime.Options) error {
	n, err := p.NCCL(context.Background(), device, []Over{{Axes: []string{"x"}}})
	if err != nil {
		return err
	}
	defer n.Close()
	o.Communicator = n
	s, err := runtime.Open(art, device, o)
	if err != nil {
		return err
	}
	defer s.Close()
	for range 3 {
		if _, err := s.Run("sum", []*ir.Tensor{a}); err != nil {
			return err
		}
	}
	if err := n.Close(); err != nil {
		return err
	}
	return p.Close()
}
