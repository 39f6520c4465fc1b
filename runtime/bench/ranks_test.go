package bench

import (
	"context"
	"testing"
	"time"

	"weft/frontend/weights"
	"weft/ir"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/comm"
	"weft/runtime/emu"
)

// timed is an emulator that claims to know when its events happened: every run takes as long.
type timed struct {
	*emu.Device
	step time.Duration
}

func (d timed) Elapsed(from, to runtime.Event) (time.Duration, error) { return d.step, nil }

const sumPlan = `{"version":"1.0","target":"sm_80","entry":"sum","mesh":[{"name":"x","size":2}],
"dims":[{"name":"rank.x","min":0,"max":1}],
"inputs":[{"name":"a","dtype":"f32","shape":["2"],"shard":[[{"size":"4","axes":["x"]}]]}],
"outputs":[{"name":"b","dtype":"f32","shape":["2"]}],
"buffers":[{"kind":"input","size":"8"},{"kind":"output","size":"8"}],
"steps":[{"collective":{"kind":"all_reduce","from":0,"to":1,"axes":["x"],"ranks":2,"dtype":"f32","combine":"add"}}]}`

func sumArtifact(t *testing.T) *artifact.Artifact {
	t.Helper()
	none, err := weights.NewSource(nil)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/sum.weft"
	err = artifact.Write(path, artifact.Contents{
		Program: []byte("\n"), Report: []byte("{}\n"), Weights: none,
		Manifest: artifact.Manifest{Weft: "test", Targets: []artifact.Target{{Name: "sm_80"}}, Entries: []artifact.Entry{{Name: "sum"}},
			Mesh: artifact.Mesh{Axes: []artifact.Axis{{Name: "x", Size: 2}}}},
		Kernels: []artifact.Kernels{{Target: "sm_80", PTX: []byte(".version 7.0\n.target sm_80\n.address_size 64\n")}},
		Plans:   []artifact.Plan{{Target: "sm_80", Entry: "sum", JSON: []byte(sumPlan)}},
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

// Ranks are timed by the events of their devices, and the slowest counts; without events by wall time.
func TestRanks(t *testing.T) {
	a := sumArtifact(t)
	for _, events := range []bool{true, false} {
		local := comm.NewLocal(10 * time.Second)
		members := make([]runtime.Member, 2)
		for i := range members {
			recorder := runtime.NewRecorder(int64(i))
			d := emu.New(emu.Options{Memory: 1 << 20, ComputeMajor: 8})
			members[i] = runtime.Member{Rank: int64(i), Device: d, Communicator: local.Rank(int64(i), d, recorder), Recorder: recorder}
			if events {
				members[i].Device = timed{d, time.Duration(2-i) * time.Hour}
			}
		}
		r, err := runtime.OpenRanks(a, members, runtime.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Bind("sum", func(int64) []*ir.Tensor { return []*ir.Tensor{ir.NewTensor(ir.F32, 4)} })
		if err != nil {
			t.Fatal(err)
		}
		times, err := Ranks(context.Background(), b, Options{Steps: 40, Warmup: 2})
		if err != nil || times.Count != 40 || events != (times.Median == float64(2*time.Hour/time.Millisecond)) {
			t.Errorf("events %t: %+v, %v", events, times, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
