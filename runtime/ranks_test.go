package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/comm"
	"weft/runtime/emu"
)

// The artifact of the tests is for a mesh dp=2, tp=3, without kernels. Its entries:
//
//	sum:    y = the sum of x over tp; x is divided by rows over dp, and each rank has its own x
//	gather: all of w, a state whose columns tp divides, and of seen, which takes the new value
//	own:    z = w, divided as w is; v = x, which all ranks should have the same
const (
	meshPlanHead = `{"version":"1.0","target":"sm_80","entry":"%s","mesh":[{"name":"dp","size":2},{"name":"tp","size":3}],
`
	sumPlan = `"dims":[{"name":"n","min":0,"max":1000},{"name":"rank.dp","min":0,"max":1},{"name":"rank.tp","min":0,"max":2}],
"inputs":[{"name":"x","dtype":"f32","shape":["floordiv(n + 1, 2)","2"],"shard":[[{"size":"n","axes":["dp"]}],[{"size":"2"}]]}],
"outputs":[{"name":"y","dtype":"f32","shape":["floordiv(n + 1, 2)","2"],"shard":[[{"size":"n","axes":["dp"]}],[{"size":"2"}]]}],
"buffers":[{"kind":"input","size":"8*floordiv(n + 1, 2)"},{"kind":"output","size":"8*floordiv(n + 1, 2)"},{"kind":"arena","size":"8*floordiv(n + 1, 2)"}],
"steps":[{"copy":{"from":0,"to":2}},
 {"collective":{"kind":"all_reduce","from":2,"to":1,"axes":["tp"],"ranks":3,"dtype":"f32","combine":"add","label":"loss at model.py:4"}}]}`
	gatherPlan = `
"inputs":[{"name":"w","state":"w","dtype":"f32","shape":["2","2"],"shard":[[{"size":"2"}],[{"size":"4","axes":["tp"]}]]},
 {"name":"seen","state":"seen","dtype":"f32","shape":["3","2","2"]}],
"outputs":[{"name":"all","dtype":"f32","shape":["3","2","2"]},{"name":"seen","state":"seen","dtype":"f32","shape":["3","2","2"]}],
"buffers":[{"kind":"input","size":"16"},{"kind":"input","index":1,"size":"48"},{"kind":"output","size":"48"}],
"steps":[{"collective":{"kind":"all_gather","from":0,"to":2,"axes":["tp"],"ranks":3,"dtype":"f32"}},{"copy":{"from":2,"to":1}}]}`
	ownPlan = `
"inputs":[{"name":"w","state":"w","dtype":"f32","shape":["2","2"],"shard":[[{"size":"2"}],[{"size":"4","axes":["tp"]}]]},{"name":"x","dtype":"f32","shape":["2"]}],
"outputs":[{"name":"z","dtype":"f32","shape":["2","2"],"shard":[[{"size":"2"}],[{"size":"4","axes":["tp"]}]]},{"name":"v","dtype":"f32","shape":["2"]}],
"buffers":[{"kind":"input","size":"16"},{"kind":"input","index":1,"size":"8"},{"kind":"output","size":"16"},{"kind":"output","index":1,"size":"8"}],
"steps":[{"copy":{"from":0,"to":2}},{"copy":{"from":1,"to":3}}]}`
)

// meshArtifact writes the artifact; edit changes its plans.
func meshArtifact(t testing.TB, edit func(text string) string) *artifact.Artifact {
	t.Helper()
	w := ir.NewTensor(ir.F32, 2, 4)
	for i := range int64(8) {
		w.SetFloat(i, float64(i))
	}
	source, err := weights.FromRegions([]weights.Region{
		{Name: "w", DType: ir.F32, Shape: []int64{2, 4}, Data: w.Data},
		{Name: "seen", DType: ir.F32, Shape: []int64{3, 2, 2}, Data: make([]byte, 48)},
	})
	check(t, err)
	c := artifact.Contents{
		Program: []byte("\n"), Report: []byte("{}\n"), Weights: source,
		Manifest: artifact.Manifest{
			Weft: "test", Targets: []artifact.Target{{Name: "sm_80"}},
			Mesh: artifact.Mesh{Axes: []artifact.Axis{{Name: "dp", Size: 2}, {Name: "tp", Size: 3}}},
			State: []artifact.State{
				{Name: "w", Type: "f32[2, 4]", Shard: "[2, 4@tp]", Kind: "parameter", From: artifact.From{Embedded: &artifact.Embedded{}}},
				{Name: "seen", Type: "f32[3, 2, 2]", Kind: "buffer", From: artifact.From{Embedded: &artifact.Embedded{}}},
			},
		},
		Kernels: []artifact.Kernels{{Target: "sm_80", PTX: []byte(".version 7.0\n.target sm_80\n.address_size 64\n")}},
	}
	for name, text := range map[string]string{"sum": sumPlan, "gather": gatherPlan, "own": ownPlan} {
		text = fmt.Sprintf(meshPlanHead, name) + text
		if edit != nil {
			text = edit(text)
		}
		c.Manifest.Entries = append(c.Manifest.Entries, artifact.Entry{Name: name})
		c.Plans = append(c.Plans, artifact.Plan{Target: "sm_80", Entry: name, JSON: []byte(text)})
	}
	slices.SortFunc(c.Manifest.Entries, func(a, b artifact.Entry) int { return strings.Compare(a.Name, b.Name) })
	path := filepath.Join(t.TempDir(), "mesh.weft")
	check(t, artifact.Write(path, c))
	a, err := artifact.Open(path)
	check(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

// members are ranks on emulators of their own; wrap may put something around a device.
func members(t testing.TB, n int64, timeout time.Duration, wrap func(rank int64, d runtime.Device) runtime.Device) []runtime.Member {
	local := comm.NewLocal(timeout)
	var list []runtime.Member
	for rank := range n {
		var d runtime.Device = emu.New(emu.Options{Workers: 1})
		t.Cleanup(func() { d.Close() })
		if wrap != nil {
			d = wrap(rank, d)
		}
		recorder := runtime.NewRecorder(rank)
		list = append(list, runtime.Member{Rank: rank, Device: d, Communicator: local.Rank(rank, d, recorder), Recorder: recorder})
	}
	return list
}

func openRanks(t testing.TB, list []runtime.Member) *runtime.Ranks {
	t.Helper()
	r, err := runtime.OpenRanks(meshArtifact(t, nil), list, runtime.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, r.Close()) })
	return r
}

func matrix(rows, columns int64, values ...float32) *ir.Tensor {
	t := vector(values...)
	t.Shape = []int64{rows, columns}
	return t
}

// TestRanks runs all entries on six ranks, with rows that two ranks cannot divide.
func TestRanks(t *testing.T) {
	r := openRanks(t, members(t, 6, time.Minute, nil))
	if m := r.Mesh(); m.String() != "dp=2,tp=3" || len(r.Members()) != 6 {
		t.Errorf("mesh %s", m)
	}
	for _, rows := range []int64{3, 0, 4, 1, 3} {
		x, want := ir.NewTensor(ir.F32, rows, 2), ir.NewTensor(ir.F32, rows, 2)
		for i := range 2 * rows {
			x.SetFloat(i, float64(i+1))
			want.SetFloat(i, 3*float64(i+1))
		}
		got, err := r.RunContext(context.Background(), "sum", []*ir.Tensor{x})
		check(t, err)
		same(t, "y", got.Outputs[0].Whole, want)
		if len(got.Dims) != 1 || got.Dims["n"] != rows {
			t.Errorf("dims %v", got.Dims)
		}
	}
	got, err := r.RunContext(context.Background(), "gather", nil)
	check(t, err)
	all := vector(0, 1, 4, 5, 2, 3, 6, 7, 0, 0, 0, 0) // the last rank has padding alone
	all.Shape = []int64{3, 2, 2}
	same(t, "all", got.Outputs[0].Whole, all)
	seen, err := r.State("seen")
	check(t, err)
	same(t, "seen", seen.Whole, all)
	w, err := r.State("w")
	check(t, err)
	same(t, "w", w.Whole, matrix(2, 4, 0, 1, 2, 3, 4, 5, 6, 7))
	check(t, r.SetState("w", matrix(2, 4, 7, 6, 5, 4, 3, 2, 1, 0)))
	got, err = r.RunContext(context.Background(), "own", []*ir.Tensor{vector(1, 2)})
	check(t, err)
	same(t, "z", got.Outputs[0].Whole, matrix(2, 4, 7, 6, 5, 4, 3, 2, 1, 0))
	same(t, "v", got.Outputs[1].Whole, vector(1, 2))
	wantError(t, r.SetState("w", matrix(4, 2, 7, 6, 5, 4, 3, 2, 1, 0)), diag.RunInputType, "f32[2, 4]")
	if list := r.States(); len(list) != 2 || list[0].Type.String() != "f32[2, 4]" || list[0].Shard.String() != "[2, 4@tp]" {
		t.Errorf("states %v", list)
	}
	if e, err := r.Entry("sum"); err != nil || e.Inputs[0].Type.String() != "f32[n, 2]" || e.Outputs[0].Shard.String() != "[n@dp, 2]" {
		t.Errorf("%v %+v", err, e)
	}
	_, err = r.RunContext(context.Background(), "sum", []*ir.Tensor{matrix(1, 3, 1, 2, 3)})
	wantError(t, err, diag.RunInputShape, "f32[n, 2]")
	_, err = r.RunContext(context.Background(), "own", []*ir.Tensor{vector(3, 4)})
	check(t, err) // wrong inputs end nothing
}

// windowed is a communicator with so many windows at a time.
type windowed struct {
	runtime.Communicator
	device               runtime.Device
	most                 int
	open                 map[runtime.Pointer]bool
	made, refused, wrong int
	layouts              map[uint64]bool
}

func (w *windowed) Windows() bool { return true }

func (w *windowed) Window(size int64, layout uint64) (runtime.Pointer, error) {
	if len(w.open) == w.most {
		w.refused++
		return 0, nil
	}
	at, err := w.device.Alloc(size)
	w.open[at] = true
	w.layouts[layout] = true
	w.made++
	return at, err
}

func (w *windowed) CloseWindow(at runtime.Pointer) error {
	if !w.open[at] {
		w.wrong++
	}
	delete(w.open, at)
	return w.device.Free(at)
}

// openWindowed opens the artifact of the mesh, with edited plans, on ranks with so many windows at a time.
func openWindowed(t *testing.T, edit *strings.Replacer, most int) (*runtime.Ranks, []*windowed) {
	list, windows := members(t, 6, time.Minute, nil), make([]*windowed, 6)
	for i := range list {
		windows[i] = &windowed{Communicator: list[i].Communicator, device: list[i].Device, most: most, open: map[runtime.Pointer]bool{}, layouts: map[uint64]bool{}}
		list[i].Communicator = windows[i]
	}
	r, err := runtime.OpenRanks(meshArtifact(t, edit.Replace), list, runtime.Options{})
	check(t, err)
	return r, windows
}

// TestWindows has arenas in windows. Where there is no more of them, all ranks give up the binding that was used longest ago, and where there is
// none to give up they use plain memory from then on.
func TestWindows(t *testing.T) {
	inArena := strings.NewReplacer(`"from":2,"to":1,"axes"`, `"from":2,"to":2,"axes"`, `"label":"loss at model.py:4"}}`, `"label":"loss"}},{"copy":{"from":2,"to":1}}`)
	for _, c := range []struct{ most, made, refused int }{{2, 4, 2}, {0, 0, 1}} {
		r, windows := openWindowed(t, inArena, c.most)
		for _, rows := range []int64{2, 4, 2, 6, 8} {
			x, want := ir.NewTensor(ir.F32, rows, 2), ir.NewTensor(ir.F32, rows, 2)
			for i := range 2 * rows {
				x.SetFloat(i, float64(i))
				want.SetFloat(i, 3*float64(i))
			}
			got, err := r.RunContext(context.Background(), "sum", []*ir.Tensor{x})
			check(t, err)
			same(t, "y", got.Outputs[0].Whole, want)
		}
		_, err := r.RunContext(context.Background(), "gather", nil) // in no arena
		check(t, err)
		check(t, r.Close())
		for rank, w := range windows {
			if w.made != c.made || w.refused != c.refused || w.wrong != 0 || len(w.open) != 0 || len(w.layouts) != c.made {
				t.Errorf("rank %d, at most %d: %+v", rank, c.most, *w)
			}
		}
	}
}

// TestNoWindows has a rank send from its arena to another's output, which is in no window.
func TestNoWindows(t *testing.T) {
	sends := strings.NewReplacer(`"kind":"all_reduce"`, `"kind":"collective_permute"`, `"combine":"add"`, `"pairs":[[0,1],[1,2],[2,0]]`)
	r, windows := openWindowed(t, sends, 2)
	x := matrix(2, 2, 1, 2, 3, 4)
	got, err := r.RunContext(context.Background(), "sum", []*ir.Tensor{x})
	check(t, err)
	same(t, "y", got.Outputs[0].Whole, x)
	check(t, r.Close())
	for rank, w := range windows {
		if w.made != 0 || w.refused != 0 {
			t.Errorf("rank %d: %+v", rank, *w)
		}
	}
}

// TestRanksDiffer has ranks with inputs of their own, which their outputs show.
func TestRanksDiffer(t *testing.T) {
	r := openRanks(t, members(t, 6, time.Minute, nil))
	inputs := func(rank int64) []*ir.Tensor { return []*ir.Tensor{vector(float32(rank%3), 1)} }
	got, err := r.RunEach(context.Background(), "own", inputs)
	check(t, err)
	if got.Outputs[0].Whole == nil || got.Outputs[1].Whole != nil || len(got.Outputs[1].Parts) != 6 {
		t.Fatalf("outputs %+v", got.Outputs)
	}
	for rank, part := range got.Outputs[1].Parts {
		same(t, "v", part, vector(float32(rank%3), 1))
	}
	x := func(rank int64) []*ir.Tensor { return []*ir.Tensor{matrix(2, 2, 1, 2, 3, float32(rank%3))} }
	got, err = r.RunEach(context.Background(), "sum", x)
	check(t, err)
	same(t, "y", got.Outputs[0].Whole, matrix(2, 2, 3, 6, 9, 3))
	for range 2 { // repeated without transfers
		b, err := r.Bind("sum", x)
		check(t, err)
		check(t, b.ReplayContext(context.Background()))
		check(t, b.ReplayContext(context.Background()))
		check(t, b.Synchronize())
		got, err := b.Download()
		check(t, err)
		same(t, "y", got.Outputs[0].Whole, matrix(2, 2, 3, 6, 9, 3))
		check(t, b.Close())
	}
}

// TestSomeRanks drives the ranks of tp alone, as a process of several does.
func TestSomeRanks(t *testing.T) {
	r := openRanks(t, members(t, 3, time.Minute, nil))
	x := matrix(3, 2, 1, 2, 3, 4, 5, 6)
	got, err := r.RunContext(context.Background(), "sum", []*ir.Tensor{x})
	check(t, err)
	if got.Outputs[0].Whole != nil || len(got.Outputs[0].Parts) != 3 {
		t.Fatalf("%+v", got.Outputs)
	}
	same(t, "y", got.Outputs[0].Parts[2], matrix(2, 2, 3, 6, 9, 12))
	got, err = r.RunContext(context.Background(), "own", []*ir.Tensor{vector(1, 2)})
	check(t, err)
	if got.Outputs[0].Whole == nil {
		t.Error("the ranks of tp have all of z")
	}
}

// TestWrongRanks refuses numbers of ranks that are not the mesh's.
func TestWrongRanks(t *testing.T) {
	a := meshArtifact(t, nil)
	device := emu.New(emu.Options{})
	defer device.Close()
	_, err := runtime.Open(a, device, runtime.Options{})
	wantError(t, err, diag.WrongRanks, "6 ranks (mesh dp=2,tp=3)", "one runs")
	list := members(t, 7, time.Minute, nil)
	for _, bad := range [][]runtime.Member{list, {list[0], list[0]}, nil, {{Rank: -1}}} {
		_, err := runtime.OpenRanks(a, bad, runtime.Options{})
		wantError(t, err, diag.WrongRanks, "6")
	}
	one := whole.write(t)
	_, err = runtime.OpenRanks(one, list[:2], runtime.Options{})
	wantError(t, err, diag.WrongRanks, "rank 1", "no mesh")
	_, err = runtime.Open(one, device, runtime.Options{Rank: 1})
	wantError(t, err, diag.WrongRanks)
	r, err := runtime.OpenRanks(one, list[:1], runtime.Options{})
	check(t, err)
	x, y := rows(3)
	got, err := r.RunContext(context.Background(), "forward", []*ir.Tensor{x})
	check(t, err)
	same(t, "y", got.Outputs[0].Whole, y)
	check(t, r.Close())
	check(t, r.Close())
	if _, err := r.RunContext(context.Background(), "forward", []*ir.Tensor{x}); err == nil {
		t.Error("a run after Close")
	}
}

// TestRanksDisagree refuses to open a plan in which ranks may decide differently about a collective.
func TestRanksDisagree(t *testing.T) {
	a := meshArtifact(t, strings.NewReplacer(
		`"shard":[[{"size":"n","axes":["dp"]}],[{"size":"2"}]]}],
"outputs":[{"name":"y"`, `"shard":[[{"size":"n","axes":["dp"]}],[{"size":"2"}]]},{"name":"p","dtype":"i1","shape":["1"],"shard":[[{"size":"3","axes":["tp"]}]]}],
"outputs":[{"name":"y"`,
		`{"kind":"arena","size":"8*floordiv(n + 1, 2)"}]`, `{"kind":"arena","size":"8*floordiv(n + 1, 2)"},{"kind":"input","index":1,"size":"1"}]`,
		`"label":"loss at model.py:4"}}]`, `"label":"loss at model.py:4"}}],"else":[{"copy":{"from":2,"to":1}}]}}]`,
		` {"collective":{"kind":"all_reduce","from":2`, ` {"if":{"predicate":3,"then":[{"collective":{"kind":"all_reduce","from":2`).Replace)
	_, err := runtime.OpenRanks(a, members(t, 6, time.Second, nil), runtime.Options{})
	wantError(t, err, diag.RanksDisagree, `entry "sum", step 2`, "rank 1 (dp=0,tp=1) waits at step 2", "loss at model.py:4", `input 1, "p", is divided over tp`)
}

// TestMeshMismatch has plans that are not for the manifest's mesh or states.
func TestMeshMismatch(t *testing.T) {
	for name, edit := range map[string][2]string{
		"mesh":  {`{"name":"dp","size":2},{"name":"tp","size":3}`, `{"name":"dp","size":2},{"name":"tp","size":3},{"name":"pp","size":1}`},
		"shard": {`[{"size":"2"}],[{"size":"4","axes":["tp"]}]`, `[{"size":"2"}],[{"size":"4","axes":["dp"]}]`},
		"size":  {`[{"size":"2"}],[{"size":"4","axes":["tp"]}]`, `[{"size":"2"}],[{"size":"5","axes":["tp"]}]`},
	} {
		a := meshArtifact(t, func(text string) string { return strings.ReplaceAll(text, edit[0], edit[1]) })
		_, err := runtime.OpenRanks(a, members(t, 6, time.Minute, nil), runtime.Options{})
		t.Log(name)
		wantError(t, err, diag.PlanMismatch)
	}
}

// broken is a device whose copies fail, or wait.
type broken struct {
	*emu.Device
	err  error
	wait <-chan struct{}
}

func (b *broken) Copy(s runtime.Stream, dst, src runtime.Pointer, size int64) error {
	if b.wait != nil {
		<-b.wait
	}
	if b.err != nil {
		return b.err
	}
	return b.Device.Copy(s, dst, src, size)
}

// TestRankFails ends all ranks with the error of the one that failed.
func TestRankFails(t *testing.T) {
	r := openRanks(t, members(t, 6, time.Minute, func(rank int64, d runtime.Device) runtime.Device {
		b := &broken{Device: d.(*emu.Device)}
		if rank == 4 {
			b.err = errors.New("the fan stopped")
		}
		return b
	}))
	start := time.Now()
	x := matrix(1, 2, 1, 2)
	_, err := r.RunContext(context.Background(), "sum", []*ir.Tensor{x})
	wantError(t, err, diag.RunDevice, "the fan stopped", "on rank 4")
	_, err = r.RunContext(context.Background(), "gather", nil)
	wantError(t, err, diag.RankFailed, "the fan stopped")
	if time.Since(start) > 30*time.Second {
		t.Error("ranks waited")
	}
}

// TestProgress looks at ranks while they run and one is late: the others report it within the
// timeout, with what each does.
func TestProgress(t *testing.T) {
	release := make(chan struct{})
	r := openRanks(t, members(t, 6, 300*time.Millisecond, func(rank int64, d runtime.Device) runtime.Device {
		b := &broken{Device: d.(*emu.Device)}
		if rank == 4 {
			b.wait = release
		}
		return b
	}))
	if p := r.Progress()[0]; p.String() != "rank 0: has run nothing" {
		t.Error(p)
	}
	var seen []runtime.Progress
	var wait sync.WaitGroup
	wait.Go(func() {
		time.Sleep(100 * time.Millisecond)
		seen = r.Progress()
		time.Sleep(400 * time.Millisecond)
		close(release)
	})
	_, err := r.RunContext(context.Background(), "sum", []*ir.Tensor{matrix(1, 2, 1, 2)})
	wait.Wait()
	wantError(t, err, diag.CollectiveStuck, "waited 300ms for rank 4", "all_reduce", "loss at model.py:4", "rank 4: entry sum, step 0; finished no collective", "rank 3: entry sum, step 1; finished no collective, pending all_reduce over tp (number 1, step 1 of sum, loss at model.py:4)",
		"rank 0: entry sum, step 1; last finished all_reduce over tp (number 1")
	if p := seen[5]; p.Pending == nil || p.Pending.Kind != "all_reduce" || p.Finished != nil || p.Entry != "sum" {
		t.Errorf("%+v", p)
	}
	if p := seen[1]; p.Pending != nil || p.Finished == nil {
		t.Errorf("%+v", p)
	}
}

// TestRankLost does not wait for a rank that does not come back.
func TestRankLost(t *testing.T) {
	release := make(chan struct{})
	list := members(t, 6, 50*time.Millisecond, func(rank int64, d runtime.Device) runtime.Device {
		b := &broken{Device: d.(*emu.Device)}
		if rank == 4 {
			b.wait = release
		}
		return b
	})
	r, err := runtime.OpenRanks(meshArtifact(t, nil), list, runtime.Options{})
	check(t, err)
	r.SetGrace(50 * time.Millisecond)
	_, err = r.RunContext(context.Background(), "sum", []*ir.Tensor{matrix(1, 2, 1, 2)})
	wantError(t, err, diag.CollectiveStuck, "rank 4")
	if !r.Lost() {
		t.Error("the rank is not lost")
	}
	if _, err := r.State("w"); err == nil {
		t.Error("the ranks go on")
	}
	check(t, r.Close())
	close(release)
	time.Sleep(50 * time.Millisecond) // the rank ends before its device is closed
}

// noted notes what is looked at of weights.
type noted struct {
	weights.Source
	mu   sync.Mutex
	seen map[string]int64
}

type notedReader struct {
	weights.Reader
	view func(n int64)
}

func (n *noted) Open(name string) (weights.Reader, error) {
	r, err := n.Source.Open(name)
	return &notedReader{r, func(count int64) {
		n.mu.Lock()
		n.seen[name] += count
		n.mu.Unlock()
	}}, err
}

func (r *notedReader) View(off, n int64) ([]byte, error) {
	r.view(n)
	return r.Reader.View(off, n)
}

// TestSlices has ranks that look only at what they own, also where that takes several uploads.
func TestSlices(t *testing.T) {
	const columns = 5_000_001
	big := ir.NewTensor(ir.F32, 2, columns)
	for i := range big.Data {
		big.Data[i] = byte(i * 7 >> 3)
	}
	sharded := largeArtifact(t, columns)
	source, err := weights.FromTensors([]weights.Named{{Name: "w", Tensor: big}})
	check(t, err)
	n := &noted{Source: source, seen: map[string]int64{}}
	list := members(t, 6, time.Minute, nil)
	r, err := runtime.OpenRanks(sharded, list, runtime.Options{Weights: n})
	check(t, err)
	defer r.Close()
	if want := int64(2 * len(big.Data)); n.seen["w"] != want { // dp has it twice
		t.Errorf("%d bytes were looked at, the ranks have %d", n.seen["w"], want)
	}
	w, err := r.State("w")
	check(t, err)
	if !slices.Equal(w.Whole.Data, big.Data) {
		t.Error("the state is not the weight")
	}
}

// largeArtifact has one state of 2 rows, whose columns tp divides, and an entry that keeps it.
func largeArtifact(t testing.TB, columns int64) *artifact.Artifact {
	t.Helper()
	local := (columns + 2) / 3
	text := fmt.Sprintf(meshPlanHead, "own") + fmt.Sprintf(`
"inputs":[{"name":"w","state":"w","dtype":"f32","shape":["2","%d"],"shard":[[{"size":"2"}],[{"size":"%d","axes":["tp"]}]]}],"outputs":[],"buffers":[],"steps":[]}`, local, columns)
	c := artifact.Contents{
		Program: []byte("\n"), Report: []byte("{}\n"),
		Manifest: artifact.Manifest{
			Weft: "test", Targets: []artifact.Target{{Name: "sm_80"}}, Entries: []artifact.Entry{{Name: "own"}},
			Mesh: artifact.Mesh{Axes: []artifact.Axis{{Name: "dp", Size: 2}, {Name: "tp", Size: 3}}},
			State: []artifact.State{{Name: "w", Type: fmt.Sprintf("f32[2, %d]", columns), Shard: fmt.Sprintf("[2, %d@tp]", columns), Kind: "parameter",
				From: artifact.From{Reference: &artifact.Reference{Name: "w"}}}},
		},
		Kernels: []artifact.Kernels{{Target: "sm_80", PTX: []byte(".version 7.0\n.target sm_80\n.address_size 64\n")}},
		Plans:   []artifact.Plan{{Target: "sm_80", Entry: "own", JSON: []byte(text)}},
	}
	path := filepath.Join(t.TempDir(), "large.weft")
	check(t, artifact.Write(path, c))
	a, err := artifact.Open(path)
	check(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}
