package emu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"weft/runtime"
)

// region is memory that a launch may touch: the extent of a pointer argument, or a variable of
// the module.
type region struct {
	base      uint64
	data      []byte
	init      initMap
	start     int64 // of data in its allocation, for init
	access    runtime.Access
	checkRead bool // some of it was not written when the launch began
	argument  int  // -1 for a variable
	name      string
}

func (r *region) describe() string {
	if r.argument < 0 {
		return "variable " + r.name
	}
	return fmt.Sprintf("argument %d", r.argument)
}

// launchState is one launch while it runs.
type launchState struct {
	device       *Device
	kernel       *kernel
	label        string
	grid, block  [3]int
	blockCount   int64
	threads      int
	shared       int // static and dynamic, bytes
	dynamic      int
	params       []byte
	regions      []region
	regionOf     []int        // by memory access: the only region it may touch, or -1
	maps         []*tensorMap // by parameter, nil if there are none
	budget       int64
	next         atomic.Int64 // next cluster of blocks to run
	firstFailure atomic.Int64 // lowest cluster that failed
	instructions atomic.Int64
	leaked       atomic.Int64 // asynchronous copies that no thread waited for
	mutex        sync.Mutex   // guards fault, and atomics in global memory
	fault        *Fault
}

// Launch implements runtime.Device. What is wrong with the launch itself is reported at once,
// what the kernel does wrong by Synchronize or Download.
func (d *Device) Launch(s runtime.Stream, l runtime.Launch) error {
	k, ok := l.Kernel.(*kernel)
	if !ok || k.module.device != d {
		return fmt.Errorf("emulator: launch %q: the kernel is not of this device", l.Label)
	}
	if k.module.closed {
		return fmt.Errorf("emulator: launch %q: the module of kernel %s is closed", l.Label, k.name)
	}
	l.Args = slices.Clone(l.Args)
	if _, err := d.prepare(k, l); err != nil {
		return fmt.Errorf("emulator: launch of kernel %s (%s): %w", k.name, l.Label, err)
	}
	return d.enqueue(s, func() error {
		state, err := d.prepare(k, l)
		if err != nil {
			return fmt.Errorf("emulator: launch of kernel %s (%s): %w", k.name, l.Label, err)
		}
		return state.run()
	})
}

// prepare checks a launch and sets up its state.
func (d *Device) prepare(k *kernel, l runtime.Launch) (*launchState, error) {
	state := &launchState{
		device: d, kernel: k, label: l.Label, grid: l.Grid, block: l.Block, blockCount: 1, threads: 1,
		dynamic: l.Shared, shared: k.staticShared + l.Shared, budget: d.options.MaxInstructions,
	}
	limits := [3]int{math.MaxInt32, 65535, 65535}
	for axis := range 3 {
		if l.Grid[axis] < 1 || l.Grid[axis] > limits[axis] {
			return nil, fmt.Errorf("grid %v is out of range", l.Grid)
		}
		if l.Block[axis] < 1 || l.Block[axis] > 1024 {
			return nil, fmt.Errorf("block %v is out of range", l.Block)
		}
		if l.Grid[axis]%k.clusterBlocks[axis] != 0 {
			return nil, fmt.Errorf("grid %v is no multiple of .reqnctapercluster %v", l.Grid, k.clusterBlocks)
		}
		state.blockCount *= int64(l.Grid[axis])
		state.threads *= l.Block[axis]
	}
	maximum := k.maxThreads[0] * k.maxThreads[1] * k.maxThreads[2]
	switch {
	case state.threads > 1024 || l.Block[2] > 64:
		return nil, fmt.Errorf("block %v has more than 1024 threads or a depth over 64", l.Block)
	case maximum > 0 && state.threads > maximum:
		return nil, fmt.Errorf("block %v has more threads than .maxntid %v", l.Block, k.maxThreads)
	case k.reqThreads != [3]int{} && k.reqThreads != l.Block:
		return nil, fmt.Errorf("block %v is not .reqntid %v", l.Block, k.reqThreads)
	case l.Shared < 0 || state.shared > d.sharedPerBlock():
		return nil, fmt.Errorf("%d bytes of shared memory, a block may use %d", state.shared, d.sharedPerBlock())
	case state.clusterSize() > maxCluster:
		return nil, fmt.Errorf("clusters of %d blocks, at most %d are possible", state.clusterSize(), maxCluster)
	case len(l.Args) != len(k.parameters):
		return nil, fmt.Errorf("%d arguments for %d parameters", len(l.Args), len(k.parameters))
	}
	if err := state.bindArguments(l.Args); err != nil {
		return nil, err
	}
	state.firstFailure.Store(math.MaxInt64)
	return state, nil
}

// clusterSize is how many blocks a cluster has.
func (s *launchState) clusterSize() int {
	n := s.kernel.clusterBlocks
	return n[0] * n[1] * n[2]
}

// argumentSize is the size of an argument in parameter memory.
func argumentSize(kind runtime.ArgKind) int {
	switch kind {
	case runtime.ArgI32, runtime.ArgF32:
		return 4
	case runtime.ArgTensorMap:
		return runtime.TensorMapSize
	}
	return 8
}

// bindArguments lays out the parameters and finds the regions.
func (s *launchState) bindArguments(args []runtime.Arg) error {
	s.params = make([]byte, s.kernel.paramBytes)
	pointers := pointees(0)
	s.regions = make([]region, len(args))
	for i, arg := range args {
		p := s.kernel.parameters[i]
		if size := argumentSize(arg.Kind); size != p.size {
			return fmt.Errorf("argument %d has %d bytes, parameter %s has %d", i, size, p.name, p.size)
		}
		s.regions[i].argument = i
		if arg.Kind == runtime.ArgTensorMap {
			if err := s.bindTensorMap(i, arg); err != nil {
				return fmt.Errorf("argument %d: %w", i, err)
			}
			continue
		}
		var bytes [8]byte
		binary.LittleEndian.PutUint64(bytes[:], arg.Bits)
		copy(s.params[p.offset:p.offset+p.size], bytes[:])
		if arg.Kind != runtime.ArgPointer {
			continue
		}
		pointers |= pointee(i)
		s.regions[i] = region{base: arg.Bits, argument: i, access: arg.Access}
		if arg.Size == 0 {
			continue
		}
		a, offset, err := s.device.memory.find(arg.Bits, arg.Size)
		if err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
		r := &s.regions[i]
		r.data, r.init, r.start = a.data[offset:offset+arg.Size], a.init, offset
	}
	for i, v := range s.kernel.module.variables {
		access := runtime.ReadWrite
		if v.constant {
			access = runtime.Read
		}
		pointers |= pointee(len(args) + i)
		s.regions = append(s.regions, region{base: v.base, data: v.data, init: v.init, access: access, argument: -1, name: v.name})
	}
	s.regionOf = make([]int, len(s.kernel.accesses))
	for i, a := range s.kernel.accesses {
		s.regionOf[i] = a.pointees.only(pointers)
	}
	return nil
}

// discard makes what the launch declares dead uninitialised, and finds the regions whose reads
// must be checked.
func (s *launchState) discard() {
	for i := range s.regions {
		if r := &s.regions[i]; r.access&runtime.Discard != 0 {
			r.init.clear(r.start, r.start+int64(len(r.data)))
		}
	}
	for i := range s.regions {
		r := &s.regions[i]
		r.checkRead = r.init.firstUnset(r.start, r.start+int64(len(r.data))) >= 0
	}
	for _, t := range s.maps {
		if t != nil {
			t.checkRead = t.init.firstUnset(t.start, t.start+int64(len(t.data))) >= 0
		}
	}
}

// run executes all blocks and returns the fault of the lowest one that failed.
func (s *launchState) run() error {
	s.discard()
	workers := int(min(int64(s.device.options.Workers), s.blockCount/int64(s.clusterSize())))
	if s.kernel.sequential {
		workers = 1
	}
	if workers == 1 {
		newCluster(s).runAll()
	} else {
		var group sync.WaitGroup
		for range workers {
			group.Go(func() { newCluster(s).runAll() })
		}
		group.Wait()
	}
	count := s.instructions.Load()
	s.device.total += count
	if observe := s.device.options.Observe; observe != nil {
		warps := s.blockCount * int64((s.threads+warpSize-1)/warpSize)
		observe(LaunchStatistics{s.kernel.name, s.label, s.blockCount, warps, count, s.leaked.Load()})
	}
	if s.fault != nil {
		return s.fault
	}
	return nil
}

// report keeps the fault if its cluster is the lowest so far.
func (s *launchState) report(cluster int64, f *Fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if cluster < s.firstFailure.Load() {
		s.firstFailure.Store(cluster)
		s.fault = f
	}
}
