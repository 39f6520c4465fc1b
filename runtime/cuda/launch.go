//go:build cuda

package cuda

/*
#cgo noescape launch
#cgo nocallback launch
#include <stdint.h>
#include <string.h>
#include <cuda.h>

// launch enqueues a kernel whose n parameters lie in slots, 8 bytes each: what a smaller one needs
// comes first there. Instead of a slot, the parameters with the numbers in which have one of the m
// tensor maps each, for which the driver wants an alignment that Go's memory may lack. One call
// from Go does all of it.
static CUresult launch(CUcontext context, CUfunction function, const CUlaunchConfig *config, uint64_t *slots, size_t n,
		const void *maps, const uint32_t *which, size_t m) {
	void *parameters[n + 1];
	CUtensorMap aligned[m + 1];
	for (size_t i = 0; i < n; i++) {
		parameters[i] = &slots[i];
	}
	memcpy(aligned, maps, m * sizeof *aligned);
	for (size_t i = 0; i < m; i++) {
		parameters[which[i]] = &aligned[i];
	}
	CUresult result = cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS) {
		CUlaunchConfig c = *config;
		result = cuLaunchKernelEx(&c, function, parameters, NULL);
	}
	return result;
}

static CUresult replay(CUcontext context, CUgraphExec graph, CUstream stream) {
	CUresult result = cuCtxSetCurrent(context);
	return result == CUDA_SUCCESS ? cuGraphLaunch(graph, stream) : result;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"weft/runtime"
)

// maxArguments is how many bytes CUDA allows the parameters of one launch, to which each is aligned by
// its size, a tensor map to 64.
const maxArguments = 32764

// argumentSize is how many bytes an argument of each kind has.
var argumentSize = [...]int{
	runtime.ArgPointer:   8,
	runtime.ArgI32:       4,
	runtime.ArgI64:       8,
	runtime.ArgF32:       4,
	runtime.ArgF64:       8,
	runtime.ArgTensorMap: runtime.TensorMapSize,
}

// Launch enqueues one kernel.
func (d *Device) Launch(s runtime.Stream, l runtime.Launch) error {
	if err := d.launch(s, l); err != nil {
		return fmt.Errorf("launch of %s: %w", describe(l), err)
	}
	d.pending.launches++
	d.pending.last = l
	return nil
}

func (d *Device) launch(s runtime.Stream, l runtime.Launch) error {
	k, ok := l.Kernel.(*kernel)
	if !ok || k.device != d || k.handle == nil {
		return errors.New("the kernel is not loaded on this device")
	}
	stream, err := d.stream(s)
	if err != nil {
		return err
	}
	if err := checkShape(l); err != nil {
		return err
	}
	if err := k.allow(l.Shared); err != nil {
		return err
	}
	if err := k.multiple(l.Grid); err != nil {
		return err
	}
	if err := k.takes(l.Args); err != nil {
		return err
	}
	var some [32]C.uint64_t
	var few [4]encodedMap
	var their [len(few)]C.uint32_t
	slots, maps, which := some[:0], few[:0], their[:0]
	for i, a := range l.Args {
		slots = append(slots, C.uint64_t(a.Bits))
		if a.Kind != runtime.ArgTensorMap {
			continue
		}
		m, err := d.encoded(a)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
		maps, which = append(maps, m), append(which, C.uint32_t(i))
	}
	config := C.CUlaunchConfig{
		gridDimX: C.uint(l.Grid[0]), gridDimY: C.uint(l.Grid[1]), gridDimZ: C.uint(l.Grid[2]),
		blockDimX: C.uint(l.Block[0]), blockDimY: C.uint(l.Block[1]), blockDimZ: C.uint(l.Block[2]),
		sharedMemBytes: C.uint(l.Shared),
		hStream:        C.CUstream(unsafe.Pointer(stream.C())),
	}
	return check("cuLaunchKernelEx", C.launch(d.current, k.handle, &config, unsafe.SliceData(slots), C.size_t(len(l.Args)),
		unsafe.Pointer(unsafe.SliceData(maps)), unsafe.SliceData(which), C.size_t(len(maps))))
}

// multiple rejects a grid that the clusters of the kernel do not divide.
func (k *kernel) multiple(grid [3]int) error {
	for i, n := range k.cluster {
		if n > 0 && grid[i]%n != 0 {
			return fmt.Errorf("the grid is no multiple of the kernel's clusters of %d×%d×%d blocks", k.cluster[0], k.cluster[1], k.cluster[2])
		}
	}
	return nil
}

// takes rejects arguments of other sizes than the parameters.
func (k *kernel) takes(args []runtime.Arg) error {
	if k.parameters != nil && len(args) != len(k.parameters) {
		return fmt.Errorf("%d arguments: the entry has %d parameters", len(args), len(k.parameters))
	}
	bytes := 0
	for i, a := range args {
		if int(a.Kind) >= len(argumentSize) {
			return fmt.Errorf("argument %d is of unknown kind %d", i, a.Kind)
		}
		size := argumentSize[a.Kind]
		if k.parameters != nil && k.parameters[i] != size {
			return fmt.Errorf("argument %d has %d bytes: the parameter has %d", i, size, k.parameters[i])
		}
		alignment := min(size, 64)
		if bytes = (bytes+alignment-1)&^(alignment-1) + size; bytes > maxArguments {
			return fmt.Errorf("the arguments have more than %d bytes", maxArguments)
		}
	}
	return nil
}

// checkShape rejects what would not survive the conversion to the driver's types. The driver
// checks the rest.
func checkShape(l runtime.Launch) error {
	for i := range 3 {
		const most = 1<<31 - 1
		if l.Grid[i] < 1 || l.Block[i] < 1 || l.Grid[i] > most || l.Block[i] > most {
			return errors.New("each dimension of grid and block must be at least 1, and below 2³¹")
		}
	}
	if l.Shared < 0 {
		return errors.New("a negative size of dynamic shared memory")
	}
	return nil
}

// describe names a launch in messages.
func describe(l runtime.Launch) string {
	name := "no kernel"
	if l.Kernel != nil {
		name = l.Kernel.Name()
	}
	if l.Label != "" {
		name += " (" + l.Label + ")"
	}
	return fmt.Sprintf("%s, grid %d×%d×%d, block %d×%d×%d", name,
		l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1], l.Block[2])
}

// graph is recorded work, ready to be enqueued.
type graph struct {
	device *Device
	handle C.CUgraphExec
	work   pending // what was recorded
}

// BeginCapture starts to record the work of s, and of streams that wait for events of s.
func (d *Device) BeginCapture(s runtime.Stream) error {
	if d.capturing {
		return errors.New("BeginCapture inside a capture")
	}
	stream, err := d.stream(s)
	if err != nil {
		return err
	}
	err = d.Do(func() error {
		// Relaxed: kernels may be loaded and memory allocated meanwhile, which is not recorded.
		handle := C.CUstream(unsafe.Pointer(stream.C()))
		return check("cuStreamBeginCapture", C.cuStreamBeginCapture(handle, C.CU_STREAM_CAPTURE_MODE_RELAXED))
	})
	if err == nil {
		d.capturing = true
		d.before, d.pending = d.pending, pending{}
	}
	return err
}

// EndCapture ends the recording that began on s. Every stream that joined it must have been
// joined back: s must wait for its last event.
func (d *Device) EndCapture(s runtime.Stream) (runtime.Graph, error) {
	if !d.capturing {
		return nil, errors.New("EndCapture without BeginCapture")
	}
	stream, err := d.stream(s)
	if err != nil {
		return nil, err
	}
	g := &graph{device: d, work: d.pending}
	d.capturing = false
	d.pending = d.before
	err = d.Do(func() error {
		var recorded C.CUgraph
		if err := check("cuStreamEndCapture", C.cuStreamEndCapture(C.CUstream(unsafe.Pointer(stream.C())), &recorded)); err != nil {
			return err
		}
		return errors.Join(
			check("cuGraphInstantiate", C.cuGraphInstantiateWithFlags(&g.handle, recorded, 0)),
			check("cuGraphDestroy", C.cuGraphDestroy(recorded)))
	})
	if err != nil {
		return nil, fmt.Errorf("capture of %d launches: %w", g.work.launches, err)
	}
	d.open[g] = true
	return g, nil
}

// Replay enqueues the recorded work on s.
func (g *graph) Replay(s runtime.Stream) error {
	d := g.device
	stream, err := d.stream(s)
	if err != nil {
		return err
	}
	if g.handle == nil {
		return errors.New("replay of a closed graph")
	}
	if err := check("cuGraphLaunch", C.replay(d.current, g.handle, C.CUstream(unsafe.Pointer(stream.C())))); err != nil {
		return fmt.Errorf("replay of %d launches: %w", g.work.launches, err)
	}
	if g.work.launches > 0 {
		d.pending.launches += g.work.launches
		d.pending.last = g.work.last
	}
	return nil
}

// Close gives the graph up.
func (g *graph) Close() error {
	if g.handle == nil {
		return nil
	}
	delete(g.device.open, g)
	err := g.device.Do(func() error { return check("cuGraphExecDestroy", C.cuGraphExecDestroy(g.handle)) })
	g.handle = nil
	return err
}
