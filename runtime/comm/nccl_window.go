package comm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"weft/runtime"
)

// WindowsVariable turns windows off with 0. With windows, the memory that runs work in comes from NCCL and is registered
// with it, so that its kernels read and write the memory of all ranks in place.
const WindowsVariable = "WEFT_NCCL_WINDOWS"

// graphRegistrationVariable has NCCL register what a captured collective works in, until some time after the graph is gone. Memory that
// is freed and given again before is then taken for the old: sends reach memory that nobody reads. With windows it is
// off: a window is registered as long as it exists, and no longer.
const graphRegistrationVariable = "NCCL_GRAPH_REGISTER"

// firstWindows is the first version of NCCL whose windows may be given up by one rank alone. 2.27 has windows too.
const firstWindows = 22800

// firstOrdered is the first version since 2.28 whose kernels for windows wait until what the kernel before them wrote is there. The
// ones before are launched as the dependents of that kernel (programmatic stream serialization), and do not ask for it: a
// kernel that writes nothing goes between, which itself starts when all is written.
const firstOrdered = 23007

// wantsWindows tells whether this rank would have windows, for all that it knows.
func wantsWindows(l *ncclLibrary, version int, world World, look environment) bool {
	value, _ := look.get(WindowsVariable)
	registers, set := look(graphRegistrationVariable)
	return value != "0" && !(set && registers != "0") && version >= firstWindows && l.hasWindows() && (world.LocalSize == 0 || world.LocalSize == world.Size)
}

// shareMemory finds out whether the run has windows: all ranks want them and are on one host, and there is a communicator beside whose
// collectives nothing runs. NCCL has its kernels for windows fill the GPU. It comes before NCCL reads its variables.
func (n *NCCL) shareMemory(ctx context.Context, over []Over) (err error) {
	wants := wantsWindows(n.library, n.version, n.peers.options.World, os.LookupEnv)
	if wants { // also without such a communicator: NCCL reads it once for the process
		if err := setDefault(graphRegistrationVariable, "0"); err != nil {
			return err
		}
	}
	here := host()
	alone := slices.ContainsFunc(over, func(o Over) bool { return !o.Beside })
	n.shares, err = n.agree(ctx, "windows", wants && alone && here != 0, binary.LittleEndian.AppendUint64(nil, here))
	return err
}

// agree tells whether all ranks of the run come with true, and the same bytes.
func (n *NCCL) agree(ctx context.Context, what string, mine bool, same []byte) (bool, error) {
	given := append([]byte{0}, same...)
	if mine {
		given[0] = 1
	}
	c := n.peers.overAll("all_gather", int64(len(given)), "the start", what)
	all, err := n.peers.Carry(ctx, c, given)
	if err != nil || !mine {
		return false, err
	}
	for other := range slices.Chunk(all, len(given)) {
		if !bytes.Equal(other, given) {
			return false, nil
		}
	}
	return true, nil
}

// window is memory that is registered.
type window struct {
	size int64
	of   []ncclWindow // the communicators in alone
}

// inWindows tells whether NCCL may carry a collective by a kernel for windows.
func (n *NCCL) inWindows(c runtime.Collective) bool {
	if c.Kind == "all_to_all" || c.Kind == "collective_permute" || !slices.Contains(n.alone, groupKey(c.Axes)) {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	inside := func(at runtime.Pointer) bool {
		for start, w := range n.windows {
			if at >= start && at < start+runtime.Pointer(w.size) {
				return true
			}
		}
		return false
	}
	return inside(c.From) && inside(c.To)
}

// Windows implements runtime.WindowCommunicator.
func (n *NCCL) Windows() bool { return n.shares && !n.refused.Load() }

// Window implements runtime.WindowCommunicator. What a rank cannot do, as far as NCCL says so, none does: a
// collective between a window and other memory would have the ranks run different kernels.
func (n *NCCL) Window(size int64, layout uint64) (runtime.Pointer, error) {
	ctx := context.Background() // the watchdog ends waits
	var at uint64
	allocated := n.device.Do(func() (err error) { at, err = n.library.memAlloc(max(size, 1)); return err })
	same := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(size)), layout)
	able, err := n.agree(ctx, "memory for a window", allocated == nil, same)
	if able && err == nil {
		var registered bool
		if registered, err = n.register(ctx, at, max(size, 1)); err == nil {
			able, err = n.agree(ctx, "a window", registered, nil)
			n.refused.Store(!able) // for good: this is not for lack of memory
		}
	}
	switch {
	case err != nil: // the run ends, perhaps with a call of NCCL on the memory
		return 0, err
	case able:
		return runtime.Pointer(at), nil
	case allocated == nil:
		return 0, n.CloseWindow(runtime.Pointer(at))
	}
	return 0, nil
}

// register makes memory a window of each communicator that has windows. It is false where NCCL does not.
func (n *NCCL) register(ctx context.Context, at uint64, size int64) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return false, errors.New("the communicators are closed")
	}
	registered := true
	c := n.peers.overAll("ncclCommWindowRegister", 0, "the start", "")
	for _, key := range n.alone {
		var w ncclWindow
		var refused error
		err := n.together(ctx, c, func() error { w, refused = n.library.window(n.comms[key], at, size); return nil })
		if err != nil {
			return false, err
		}
		registered = registered && w != nil && refused == nil
		of := append(n.windows[runtime.Pointer(at)].of, w)
		n.windows[runtime.Pointer(at)] = window{size, of}
	}
	return registered, nil
}

// deregister gives the windows of a memory up, on a thread of the device.
func (n *NCCL) deregister(at runtime.Pointer) error {
	var errs []error
	for i, w := range n.windows[at].of {
		if w != nil {
			errs = append(errs, n.library.windowEnd(n.comms[n.alone[i]], w))
		}
	}
	delete(n.windows, at)
	return errors.Join(errs...)
}

// CloseWindow implements runtime.WindowCommunicator. After Close, which gives windows up, it frees the memory.
func (n *NCCL) CloseWindow(at runtime.Pointer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.device.Do(func() error {
		var err error
		if !n.over {
			err = n.deregister(at)
		}
		return errors.Join(err, n.library.memFree(uint64(at)))
	})
}
