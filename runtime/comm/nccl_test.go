//go:build cgo && linux

package comm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
	"weft/runtime/emu"
)

// fakeGPU is an emulated device with what NCCL needs beside.
type fakeGPU struct {
	*emu.Device
	mapped *[]mapping
}

// mapping is memory of the host and what the emulator has in its place.
type mapping struct {
	host   []uint32
	device []byte
}

func newFakeGPU(d *emu.Device) fakeGPU { return fakeGPU{d, new([]mapping)} }

// Alloc gives memory that counts as written: the library of the test moves nothing.
func (g fakeGPU) Alloc(size int64) (runtime.Pointer, error) {
	at, err := g.Device.Alloc(size)
	if err != nil {
		return 0, err
	}
	return at, g.Upload(at, make([]byte, size))
}

func (g fakeGPU) StreamHandle(s runtime.Stream) (uintptr, error) { return 0x100 + uintptr(s), nil }
func (g fakeGPU) Do(f func() error) error                        { return f() }

// Mapped gives memory that kernels may only write: the emulator refuses to load what nothing has written.
func (g fakeGPU) Mapped(size int64) ([]byte, runtime.Pointer, error) {
	at, err := g.Device.Alloc(size)
	if err != nil {
		return nil, 0, err
	}
	device, err := g.Host(at, size, 0)
	if err != nil {
		return nil, 0, err
	}
	host := make([]uint32, size/4)
	*g.mapped = append(*g.mapped, mapping{host, device})
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(host))), size), at, nil
}

// show brings what kernels wrote to mapped memory to the host, where others read meanwhile.
func (g fakeGPU) show() {
	for _, m := range *g.mapped {
		for i := range m.host {
			atomic.StoreUint32(&m.host[i], binary.NativeEndian.Uint32(m.device[4*i:]))
		}
	}
}

func (g fakeGPU) Launch(s runtime.Stream, l runtime.Launch) error {
	defer g.show()
	return g.Device.Launch(s, l)
}

func (g fakeGPU) EndCapture(s runtime.Stream) (runtime.Graph, error) {
	graph, err := g.Device.EndCapture(s)
	return fakeGraph{graph, g}, err
}

// fakeGraph shows after each run what its kernels wrote.
type fakeGraph struct {
	runtime.Graph
	device fakeGPU
}

func (g fakeGraph) Replay(s runtime.Stream) error {
	defer g.device.show()
	return g.Graph.Replay(s)
}

// fakeNCCL builds the library of the test and has WEFT_NCCL name it. It gives the file of its calls.
func fakeNCCL(t *testing.T) (log string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	library := filepath.Join(dir, "libnccl.so.2")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", library, "testdata/nccl.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log = filepath.Join(dir, "log")
	t.Setenv(LibraryVariable, library)
	t.Setenv("FAKE_NCCL_LOG", log)
	for _, name := range []string{multicastVariable, graphRegistrationVariable} {
		t.Setenv(name, os.Getenv(name)) // so that it is put back
		os.Unsetenv(name)
	}
	return log
}

// ncclRanks meets and makes the communicators of ranks in this process.
func ncclRanks(t *testing.T, m ir.Mesh, over []Over, timeout time.Duration) ([]*Peers, []*NCCL, []error) {
	t.Helper()
	size := int(m.Size())
	peers, errs := meetAll(t, size, timeout, func(o *Options) { o.Mesh = m })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	list, errs := make([]*NCCL, size), make([]error, size)
	var group sync.WaitGroup
	for rank, p := range peers {
		group.Go(func() {
			list[rank], errs[rank] = p.NCCL(context.Background(), newFakeGPU(emu.New(emu.Options{Memory: 1 << 20})), over)
		})
	}
	group.Wait()
	return peers, list, errs
}

// calls are the lines of the log that hold a text, in the order of the ranks.
func calls(t *testing.T, log string, texts ...string) []string {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range bytes.Lines(data) {
		for _, text := range texts {
			if bytes.Contains(line, []byte(text)) {
				lines = append(lines, strings.TrimSuffix(string(line), "\n"))
			}
		}
	}
	return lines
}

func TestNCCLCalls(t *testing.T) {
	log := fakeNCCL(t)
	m := ir.Mesh{Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}
	peers, list, errs := ncclRanks(t, m, []Over{{Axes: []string{"x"}}, {Axes: []string{"y"}, Beside: true}, {Axes: []string{"x", "y"}, Beside: true}}, 20*time.Second)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if v := os.Getenv(multicastVariable); v != "0" {
		t.Errorf("%s is %q", multicastVariable, v)
	}
	inits := calls(t, log, "ncclCommInitRank")
	slices.Sort(inits)
	var want []string
	for range 2 { // groups along an axis
		for rank := range 2 {
			want = append(want, fmt.Sprintf("%d/2 ncclCommInitRankConfig the id blocks 32..64", rank), fmt.Sprintf("%d/2 ncclCommInitRank the id", rank))
		}
	}
	for rank := range 4 {
		want = append(want, fmt.Sprintf("%d/4 ncclCommInitRank the id", rank))
	}
	slices.Sort(want)
	if !slices.Equal(inits, want) {
		t.Errorf("communicators: %q", inits)
	}
	if n := len(calls(t, log, "ncclGetUniqueId")); n != 5 { // two groups along each axis, and one of all
		t.Errorf("%d ids", n)
	}

	n := list[3]
	device := n.device.(fakeGPU)
	from, err := device.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	to, err := device.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	if err := device.Upload(from, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	at := func(p runtime.Pointer, off int) string { return fmt.Sprintf("%#x", uint64(p)+uint64(off)) }
	for i, c := range []struct {
		kind     string
		axes     []string
		dtype    ir.DType
		combine  ir.Combine
		from, to int64
		pairs    [][2]int64
		want     []string
	}{
		{"all_reduce", []string{"x"}, ir.F32, ir.Sum, 64, 64, nil, []string{"1/2 ncclAllReduce FROM TO count 16 type 7 op 0 stream 0x100"}},
		{"all_reduce", []string{"x"}, ir.C64, ir.Sum, 64, 64, nil, []string{"1/2 ncclAllReduce FROM TO count 16 type 7 op 0 stream 0x100"}},
		{"all_reduce", []string{"y"}, ir.BF16, ir.Max, 64, 64, nil, []string{"1/2 ncclAllReduce FROM TO count 32 type 9 op 2 stream 0x100"}},
		{"all_reduce", []string{"y"}, ir.Bool, ir.And, 64, 64, nil, []string{"1/2 ncclAllReduce FROM TO count 64 type 1 op 3 stream 0x100"}},
		{"reduce_scatter", []string{"x", "y"}, ir.I64, ir.Mul, 64, 16, nil, []string{"3/4 ncclReduceScatter FROM TO count 2 type 4 op 1 stream 0x100"}},
		{"all_gather", []string{"x", "y"}, ir.F64, ir.Sum, 16, 64, nil, []string{"3/4 ncclAllGather FROM TO count 16 type 1 stream 0x100"}},
		{"all_to_all", []string{"y"}, ir.F16, ir.Sum, 64, 64, nil, []string{"ncclGroupStart", "1/2 ncclSend FROM count 32 type 1 to 0 stream 0x100", "1/2 ncclRecv TO count 32 type 1 from 0 stream 0x100",
			"1/2 ncclSend " + at(from, 32) + " count 32 type 1 to 1 stream 0x100", "1/2 ncclRecv " + at(to, 32) + " count 32 type 1 from 1 stream 0x100", "ncclGroupEnd"}},
		{"collective_permute", []string{"x", "y"}, ir.F16, ir.Sum, 64, 64, [][2]int64{{3, 0}, {1, 3}, {0, 1}},
			[]string{"ncclGroupStart", "3/4 ncclSend FROM count 64 type 1 to 0 stream 0x100", "3/4 ncclRecv TO count 64 type 1 from 1 stream 0x100", "ncclGroupEnd"}},
		{"collective_permute", []string{"x"}, ir.F16, ir.Sum, 64, 64, [][2]int64{{1, 1}}, []string{"ncclGroupStart", "ncclGroupEnd"}},
		{"all_gather", []string{"x"}, ir.F16, ir.Sum, 0, 0, nil, nil},
	} {
		os.Truncate(log, 0)
		e := carried(m, 3, c.kind, c.axes, c.from, c.to)
		e.DType, e.Combine, e.Pairs, e.From, e.To, e.Async = c.dtype, c.combine, c.pairs, from, to, i%2 == 1
		if err := n.Collective(context.Background(), 0, e); err != nil {
			t.Fatal(err)
		}
		for j, w := range c.want {
			c.want[j] = strings.Replace(strings.Replace(w, "FROM", at(from, 0), 1), "TO", at(to, 0), 1)
		}
		if got := calls(t, log, ""); !slices.Equal(got, c.want) {
			t.Errorf("%s over %v: %q", c.kind, c.axes, got)
		}
		if got := n.Finished(); got != int64(i+1) {
			t.Errorf("after %d collectives the device says %d", i+1, got)
		}
	}
	os.Truncate(log, 0)
	for _, n := range list {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := calls(t, log, ""); len(got) != 12 || len(calls(t, log, "ncclCommDestroy")) != 12 {
		t.Errorf("closing: %q", got)
	}
	closeAll(t, peers)
}

// A communicator beside whose collectives nothing runs gets more blocks, where NCCL takes their number and the
// environment has none.
func TestNCCLBlocks(t *testing.T) {
	for _, c := range []struct {
		name, variable, value string
		beside                bool
		want                  string
	}{
		{"nothing beside", "FAKE_NCCL_VERSION", "23007", false, "Config the id blocks 32..64"},
		{"work beside", "FAKE_NCCL_VERSION", "23007", true, " the id"},
		{"NCCL of 32 blocks", "FAKE_NCCL_VERSION", "21903", false, "Config the id blocks 32..32"},
		{"NCCL with the first configuration", "FAKE_NCCL_VERSION", "21701", false, "Config the id blocks 32..32"},
		{"NCCL without", "FAKE_NCCL_VERSION", "21602", false, " the id"},
		{"the user's least", "NCCL_MIN_CTAS", "4", false, " the id"},
		{"the user's most, by the old name", "NCCL_MAX_NCHANNELS", "8", false, " the id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := fakeNCCL(t)
			t.Setenv(c.variable, c.value)
			peers, list, errs := ncclRanks(t, axis(2), []Over{{Axes: []string{"x"}, Beside: c.beside}}, 20*time.Second)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			inits := calls(t, log, "ncclCommInitRank")
			slices.Sort(inits)
			if want := []string{"0/2 ncclCommInitRank" + c.want, "1/2 ncclCommInitRank" + c.want}; !slices.Equal(inits, want) {
				t.Errorf("%q, want %q", inits, want)
			}
			for _, n := range list {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			}
			closeAll(t, peers)
		})
	}
	a, b := [wishSize]byte{1}, [wishSize]byte{2}
	for _, c := range []struct {
		wishes [][wishSize]byte
		want   int
	}{{[][wishSize]byte{a}, minCTAs}, {[][wishSize]byte{a, a, a}, minCTAs}, {[][wishSize]byte{a, a, b}, 0}, {[][wishSize]byte{a, {}}, 0}, {[][wishSize]byte{{}, {}}, 0}} {
		if got := leastCTAs(c.wishes); got != c.want {
			t.Errorf("%v: %d, want %d", c.wishes, got, c.want)
		}
	}
}

// What NCCL reports ends the run of all ranks, and its communicators are aborted.
func TestNCCLFaults(t *testing.T) {
	m := axis(2)
	axes := []Over{{Axes: []string{"x"}}}
	reduce := func(list []*NCCL) error {
		n := list[1]
		at, err := n.device.Alloc(8)
		if err != nil {
			return err
		}
		c := carried(m, 1, "all_reduce", []string{"x"}, 8, 8)
		c.From, c.To = at, at
		return n.Collective(context.Background(), 0, c)
	}
	for _, c := range []struct {
		name, env, value string
		start            bool // fails when the communicators are made
		want             string
		aborts           int
	}{
		{"id", "FAKE_NCCL_FAIL", "ncclGetUniqueId", true, "ncclGetUniqueId: internal error: as the test wants (3)", 0},
		{"communicator", "FAKE_NCCL_FAIL", "ncclCommInitRankConfig", true, "ncclCommInitRankConfig: internal error", 0},
		{"communicator waits", "FAKE_NCCL_HANG", "ncclCommInitRankConfig", true, "W7101: a collective did not end within 1s: all ranks came to their collectives", 0},
		{"call", "FAKE_NCCL_FAIL", "ncclAllReduce", false, "ncclAllReduce: internal error", 2},
		{"running work", "FAKE_NCCL_ASYNC", "6", false, "NCCL: remote process exited: as the test wants (6)", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := fakeNCCL(t)
			if c.start {
				t.Setenv(c.env, c.value)
			}
			peers, list, errs := ncclRanks(t, m, axes, time.Second)
			if !c.start {
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				t.Setenv(c.env, c.value)
				err := reduce(list)
				for rank, p := range peers {
					<-p.ended
					errs[rank] = p.Err()
				}
				if err != nil && !strings.Contains(err.Error(), c.want) {
					t.Error(err)
				}
			}
			for rank, err := range errs {
				if err == nil || !strings.Contains(err.Error(), c.want) && !(rank == 0 && strings.Contains(err.Error(), "rank 1 failed: ")) {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
			if c.aborts > 0 {
				for deadline := time.Now().Add(5 * time.Second); len(calls(t, log, "ncclCommAbort")) < c.aborts; time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("aborts: %q", calls(t, log, "ncclCommAbort"))
					}
				}
				if err := reduce(list); err == nil {
					t.Error("a collective went on after the end")
				}
				for _, n := range list {
					if err := n.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

func TestNoNCCL(t *testing.T) {
	t.Setenv(LibraryVariable, filepath.Join(t.TempDir(), "none.so"))
	t.Setenv(multicastVariable, "1")
	_, name, err := NCCLVersion()
	if err == nil || diag.All(err)[0].Code != diag.NoNCCL || !strings.HasSuffix(name, "none.so") {
		t.Error(name, err)
	}
	if v := os.Getenv(multicastVariable); v != "1" {
		t.Errorf("%s is %q", multicastVariable, v)
	}
	fakeNCCL(t)
	if version, _, err := NCCLVersion(); version != "2.27.3" {
		t.Error(version, err)
	}
}

func TestReductions(t *testing.T) {
	for _, c := range []struct {
		dtype   ir.DType
		combine ir.Combine
		ok      bool
	}{{ir.F32, ir.Sum, true}, {ir.C128, ir.Sum, true}, {ir.C64, ir.Mul, false}, {ir.I16, ir.Sum, false}, {ir.Bool, ir.Sum, false}, {ir.I32, ir.And, false}, {ir.Bool, ir.Or, true},
		{ir.I32, ir.Xor, false}, {ir.F64, ir.Min, true}} {
		if _, _, _, ok := reduction(c.dtype, c.combine); ok != c.ok {
			t.Errorf("%s by %s: %t", c.dtype, c.combine, ok)
		}
	}
}
