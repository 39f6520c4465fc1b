//go:build cgo && linux

package comm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/ir"
	"weft/runtime"
)

// fakeMemory allocates what the library of the test can give, and says where it is.
func fakeMemory(t *testing.T, device runtime.Device) string {
	t.Helper()
	at, err := device.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%#x", uint64(at))
}

// both calls f for two ranks at a time.
func both(f func(rank int) error) error {
	var errs [2]error
	var group sync.WaitGroup
	for rank := range errs {
		group.Go(func() { errs[rank] = f(rank) })
	}
	group.Wait()
	return errors.Join(errs[:]...)
}

// A rank wants windows unless it is told otherwise, its library lacks them, or it knows of other hosts.
func TestWantsWindows(t *testing.T) {
	fakeNCCL(t)
	library, _, _, err := openNCCL()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		version     int
		ranks, here int
		env         map[string]string
		want        bool
	}{
		{version: 22800, ranks: 2, here: 2, want: true},
		{version: 22800, ranks: 2, want: true},
		{version: 22800, ranks: 2, here: 1},
		{version: 22703, ranks: 2, here: 2},
		{version: 22800, ranks: 2, here: 2, env: map[string]string{WindowsVariable: "1", graphRegistrationVariable: "0"}, want: true},
		{version: 22800, ranks: 2, here: 2, env: map[string]string{WindowsVariable: "0"}},
		{version: 22800, ranks: 2, here: 2, env: map[string]string{graphRegistrationVariable: "1"}},
	} {
		look := func(name string) (string, bool) { value, ok := c.env[name]; return value, ok }
		if got := wantsWindows(library, c.version, World{Size: c.ranks, LocalSize: c.here}, look); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// All ranks get a window, or none does and nothing stays behind.
func TestNCCLWindows(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     map[string]string
		beside  bool // something runs beside all collectives
		layouts [2]uint64
		wants   bool // windows are on
		windows bool // the ranks get one
		calls   []string
	}{
		{name: "off", env: map[string]string{WindowsVariable: "0"}},
		{name: "a library without", env: map[string]string{"FAKE_NCCL_VERSION": "22703"}},
		{name: "beside others", beside: true},
		{name: "captured graphs register", env: map[string]string{graphRegistrationVariable: "1"}},
		{name: "on", layouts: [2]uint64{7, 7}, wants: true, windows: true, calls: []string{
			"0/2 ncclCommWindowDeregister", "0/2 ncclCommWindowRegister AT 100 flags 1", "1/2 ncclCommWindowDeregister", "1/2 ncclCommWindowRegister AT 100 flags 1",
			"ncclMemAlloc 100", "ncclMemAlloc 100", "ncclMemFree AT", "ncclMemFree AT"}},
		{name: "other places", layouts: [2]uint64{7, 8}, wants: true, calls: []string{
			"ncclMemAlloc 100", "ncclMemAlloc 100", "ncclMemFree AT", "ncclMemFree AT"}},
		{name: "no memory", env: map[string]string{"FAKE_NCCL_MEMORY": "0"}, wants: true, calls: []string{"ncclMemAlloc 100", "ncclMemAlloc 100"}},
		{name: "a rank is refused", env: map[string]string{"FAKE_NCCL_FAIL": "ncclCommWindowRegister", "FAKE_NCCL_FAIL_RANK": "1"}, wants: true, calls: []string{
			"0/2 ncclCommWindowDeregister", "0/2 ncclCommWindowRegister AT 100 flags 1", "1/2 ncclCommWindowDeregister", "1/2 ncclCommWindowRegister AT 100 flags 1",
			"ncclMemAlloc 100", "ncclMemAlloc 100", "ncclMemFree AT", "ncclMemFree AT"}},
		{name: "GPUs that do not reach each other", env: map[string]string{"FAKE_NCCL_NO_WINDOW": "1"}, wants: true, calls: []string{
			"0/2 ncclCommWindowRegister AT 100 flags 1", "1/2 ncclCommWindowRegister AT 100 flags 1",
			"ncclMemAlloc 100", "ncclMemAlloc 100", "ncclMemFree AT", "ncclMemFree AT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := fakeNCCL(t)
			t.Setenv("FAKE_NCCL_VERSION", "22809")
			t.Setenv("FAKE_NCCL_MEMORY", "0x70000")
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			peers, list, errs := ncclRanks(t, axis(2), []Over{{Axes: []string{"x"}, Beside: c.beside}}, 20*time.Second)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			os.Truncate(log, 0)
			err := both(func(rank int) error {
				n := list[rank]
				if c.wants && os.Getenv(graphRegistrationVariable) != "0" {
					return errors.New("captured graphs register what they work in")
				}
				if n.Windows() != c.wants || !c.wants {
					if n.Windows() {
						return errors.New("windows are on")
					}
					return nil
				}
				at, err := n.Window(100, c.layouts[rank])
				if err != nil || at != 0 != c.windows {
					return fmt.Errorf("rank %d: a window at %#x, %w", rank, at, err)
				}
				if at == 0 {
					return nil
				}
				return n.CloseWindow(at)
			})
			if err != nil {
				t.Error(err)
			}
			got := calls(t, log, "")
			slices.Sort(got)
			for i, call := range c.calls {
				c.calls[i] = strings.ReplaceAll(call, "AT", "0x70000")
			}
			if !slices.Equal(got, c.calls) {
				t.Errorf("calls %q\nwant %q", got, c.calls)
			}
			if err := errors.Join(list[0].Close(), list[1].Close()); err != nil {
				t.Error(err)
			}
			closeAll(t, peers)
		})
	}
}

// A window that is open when the communicators close is given up before them; its memory can be freed later.
func TestNCCLWindowsClose(t *testing.T) {
	log := fakeNCCL(t)
	t.Setenv("FAKE_NCCL_VERSION", "22809")
	t.Setenv("FAKE_NCCL_MEMORY", "0x70000")
	peers, list, errs := ncclRanks(t, axis(2), []Over{{Axes: []string{"x"}}}, 20*time.Second)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := both(func(rank int) error {
		same, err := list[rank].agree(context.Background(), "a test", rank == 0, nil)
		if same {
			return errors.New("ranks that differ agree")
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	windows := make([]runtime.Pointer, 2)
	if err := both(func(rank int) (err error) { windows[rank], err = list[rank].Window(100, 1); return err }); err != nil {
		t.Fatal(err)
	}
	os.Truncate(log, 0)
	for rank, n := range list {
		if err := errors.Join(n.Close(), n.CloseWindow(windows[rank])); err != nil {
			t.Error(err)
		}
	}
	want := []string{"0/2 ncclCommWindowDeregister", "0/2 ncclCommDestroy", "ncclMemFree 0x70000", "1/2 ncclCommWindowDeregister", "1/2 ncclCommDestroy", "ncclMemFree 0x70000"}
	if got := calls(t, log, ""); !slices.Equal(got, want) {
		t.Errorf("closing: %q", got)
	}
	closeAll(t, peers)
}

// labelsGPU notes what is launched.
type labelsGPU struct {
	GPU
	labels *[]string
}

func (g labelsGPU) Launch(s runtime.Stream, l runtime.Launch) error {
	*g.labels = append(*g.labels, l.Label)
	return g.GPU.Launch(s, l)
}

// Before a collective in windows of a version whose kernels do not wait for memory comes a kernel that writes none. Communicators beside whose
// collectives something runs have no windows.
func TestNCCLWindowsOrder(t *testing.T) {
	const progress, order = "progress of collectives", "order before a window"
	for _, c := range []struct {
		name, version, axis, kind string
		inside                    [2]bool // operand and result are in the window
		want                      []string
	}{
		{"in a window", "22809", "x", "all_reduce", [2]bool{true, true}, []string{order, progress}},
		{"in plain memory", "22809", "x", "all_reduce", [2]bool{}, []string{progress}},
		{"to a window", "22809", "x", "all_reduce", [2]bool{false, true}, []string{progress}},
		{"from a window", "22809", "x", "all_reduce", [2]bool{true, false}, []string{progress}},
		{"between ranks alone", "22809", "x", "all_to_all", [2]bool{true, true}, []string{progress}},
		{"beside others", "22809", "y", "all_reduce", [2]bool{true, true}, []string{progress}},
		{"a version that waits", "23007", "x", "all_reduce", [2]bool{true, true}, []string{progress}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := fakeNCCL(t)
			t.Setenv("FAKE_NCCL_VERSION", c.version)
			t.Setenv("FAKE_NCCL_MEMORY", "0x70000")
			m := ir.Mesh{Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 1}}}
			peers, list, errs := ncclRanks(t, m, []Over{{Axes: []string{"x"}}, {Axes: []string{"y"}, Beside: true}}, 20*time.Second)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			var windows [2]runtime.Pointer
			if err := both(func(rank int) (err error) { windows[rank], err = list[rank].Window(100, 1); return err }); err != nil {
				t.Fatal(err)
			}
			if got := calls(t, log, "WindowRegister"); len(got) != 2 {
				t.Errorf("windows: %q", got)
			}
			n, labels := list[0], []string(nil)
			call := carried(m, 0, c.kind, []string{c.axis}, 8, 8)
			plain, err := n.device.Alloc(16)
			if err != nil {
				t.Fatal(err)
			}
			place := map[bool]runtime.Pointer{true: windows[0], false: plain}
			call.From, call.To = place[c.inside[0]], place[c.inside[1]]+8
			n.device = labelsGPU{n.device, &labels}
			if err := n.Collective(context.Background(), 0, call); err != nil {
				t.Error(err)
			}
			if !slices.Equal(labels, c.want) {
				t.Errorf("%q, want %q", labels, c.want)
			}
			if err := errors.Join(list[0].Close(), list[1].Close()); err != nil {
				t.Error(err)
			}
			closeAll(t, peers)
		})
	}
}
