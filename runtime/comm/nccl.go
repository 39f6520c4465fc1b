package comm

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
)

// GPU is what NCCL needs of a device: cuda.Device has it.
type GPU interface {
	runtime.Device
	// StreamHandle is the CUstream behind a stream.
	StreamHandle(runtime.Stream) (uintptr, error)
	// Do runs f on a thread where the device's context is current. It may be called at any time.
	Do(f func() error) error
	// Mapped allocates memory of the host that the device can write, until the device is closed.
	// It is zero.
	Mapped(size int64) (host []byte, at runtime.Pointer, err error)
}

// LibraryVariable names the library where it is not the system's libnccl.so.2.
const LibraryVariable = "WEFT_NCCL"

// multicastVariable turns NVLink multicast on or off. weft leaves it off: it needs a fabric manager that
// many hosts lack, and then fails late.
const multicastVariable = "NCCL_NVLS_ENABLE"

const ncclIDSize = 128

// ncclType and ncclOp are NCCL's numbers: ncclDataType_t, ncclRedOp_t.
type (
	ncclType int
	ncclOp   int
)

const ncclBytes ncclType = 1 // uint8

// reductions are the element types that NCCL combines, and how many of its elements make one.
var reductions = map[ir.DType]struct {
	dtype ncclType
	parts int64
}{
	ir.I8: {0, 1}, ir.U8: {1, 1}, ir.Bool: {1, 1}, ir.I32: {2, 1}, ir.U32: {3, 1}, ir.I64: {4, 1}, ir.U64: {5, 1},
	ir.F16: {6, 1}, ir.F32: {7, 1}, ir.F64: {8, 1}, ir.BF16: {9, 1}, ir.C32: {6, 2}, ir.C64: {7, 2}, ir.C128: {8, 2},
}

// reduction is how NCCL combines; ok is false where it cannot.
func reduction(dtype ir.DType, combine ir.Combine) (t ncclType, parts int64, op ncclOp, ok bool) {
	r, known := reductions[dtype]
	complex := r.parts == 2
	switch {
	case !known:
	case combine == ir.Sum && dtype != ir.Bool:
		return r.dtype, r.parts, 0, true
	case complex:
	case combine == ir.Mul && dtype != ir.Bool:
		return r.dtype, 1, 1, true
	case combine == ir.Max, combine == ir.Or && dtype == ir.Bool:
		return r.dtype, 1, 2, true
	case combine == ir.Min, combine == ir.And && dtype == ir.Bool:
		return r.dtype, 1, 3, true
	}
	return 0, 0, 0, false
}

// NCCLVersion loads NCCL and gives its version, "2.27.3", and the name that it was loaded by. The
// error is W7103.
func NCCLVersion() (version, name string, err error) {
	_, number, name, err := openNCCL()
	if err != nil {
		return "", name, err
	}
	return fmt.Sprintf("%d.%d.%d", number/10000, number/100%100, number%100), name, nil
}

func openNCCL() (l *ncclLibrary, version int, name string, err error) {
	name = "libnccl.so.2"
	if other, ok := environment(os.LookupEnv).get(LibraryVariable); ok {
		name = other
	}
	if err := setDefault(multicastVariable, "0"); err != nil {
		return nil, 0, name, err
	}
	if l, err = loadNCCL(name); err == nil {
		version, err = l.version()
	}
	if err != nil {
		return nil, 0, name, diag.Errorf(diag.NoNCCL, "", "%v", err).Because(err).
			Suggest("install NVIDIA's libnccl2 or the wheel nvidia-nccl-cu12, and name the library with %s=/path/to/libnccl.so.2", LibraryVariable)
	}
	return l, version, name, nil
}

// setDefault sets a variable of NCCL where its user has not.
func setDefault(name, value string) error {
	if _, set := os.LookupEnv(name); set {
		return nil
	}
	if err := os.Setenv(name, value); err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return nil
}

// NCCL is the communicator of a rank whose collectives NCCL carries between GPUs, on the device's
// streams, also inside captured graphs.
type NCCL struct {
	peers   *Peers
	device  GPU
	library *ncclLibrary
	version int // of the library: 22703 for 2.27.3

	mu      sync.Mutex // held during calls of NCCL
	comms   map[string]ncclComm
	order   []string                   // of comms, as they were made
	alone   []string                   // those of order that have windows, where there are any: nothing runs beside their collectives
	over    bool                       // the communicators are gone
	shares  bool                       // all ranks want windows, have a library that makes them, and are on one host
	refused atomic.Bool                // NCCL makes no windows after all
	windows map[runtime.Pointer]window // by their memory
	stop    chan struct{}
	stopped chan struct{}

	module   runtime.Module
	count    runtime.Kernel
	between  runtime.Kernel  // goes before collectives, see firstOrdered
	counters runtime.Pointer // two of 4 bytes: collectives that have finished, on the session's stream and beside
	mapped   []byte          // what they are, where the host reads it
	shown    runtime.Pointer // the same for the device
	seen     [2]uint32       // that the recorder was told of
}

var (
	_ runtime.GraphCommunicator  = (*NCCL)(nil)
	_ runtime.Gatherer           = (*NCCL)(nil)
	_ runtime.WindowCommunicator = (*NCCL)(nil)
)

//go:embed count.ptx
var countPTX []byte

// NCCL makes the communicators of this rank: one for each list of mesh axes, over the ranks that
// differ only there. All ranks give the same lists. The error is W7103 where there is no NCCL.
func (p *Peers) NCCL(ctx context.Context, device GPU, over []Over) (*NCCL, error) {
	library, version, _, err := openNCCL()
	if err != nil {
		p.Abort(err)
		return nil, err
	}
	n := &NCCL{peers: p, device: device, library: library, version: version, comms: map[string]ncclComm{}, windows: map[runtime.Pointer]window{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	if err := n.prepare(ctx, over); err != nil {
		p.Abort(err)
		n.abandon()
		return nil, err
	}
	go n.poll()
	p.OnEnd(func(error) { go n.abandon() })
	return n, nil
}

// counterSize is that of a counter.
const counterSize = 4

func (n *NCCL) prepare(ctx context.Context, over []Over) (err error) {
	if n.mapped, n.shown, err = n.device.Mapped(2 * counterSize); err != nil {
		return fmt.Errorf("memory that a GPU shows its progress in: %w", err)
	}
	if n.counters, err = n.device.Alloc(2 * counterSize); err != nil {
		return fmt.Errorf("memory that a GPU counts its progress in: %w", err)
	}
	if err := n.device.Upload(n.counters, make([]byte, 2*counterSize)); err != nil {
		return err
	}
	if n.module, err = n.device.Load(countPTX); err != nil {
		return err
	}
	if n.count, err = n.module.Kernel("weft_count"); err != nil {
		return err
	}
	if n.between, err = n.module.Kernel("weft_order"); err != nil {
		return err
	}
	if err := n.shareMemory(ctx, over); err != nil {
		return err
	}
	for i, o := range over {
		if err := n.join(ctx, int64(i), o); err != nil {
			return err
		}
	}
	return nil
}

func groupKey(axes []string) string { return fmt.Sprintf("%q", axes) }

// join makes the communicator over some axes. The first rank of the group makes the id; with it the ranks
// exchange what they know of how many blocks are good.
func (n *NCCL) join(ctx context.Context, number int64, over Over) error {
	p, axes := n.peers, over.Axes
	m, rank := p.options.Mesh, int64(p.me.Rank)
	key := groupKey(axes)
	if _, have := n.comms[key]; have {
		return nil
	}
	group, position := m.Group(rank, axes), m.Position(rank, axes)
	var id [ncclIDSize]byte
	var err error
	if position == 0 {
		if id, err = n.library.uniqueID(); err != nil {
			return n.fault(err)
		}
	}
	const given = ncclIDSize + wishSize
	mine := wish(over, n.version, os.LookupEnv)
	c := runtime.Collective{Kind: "all_gather", Axes: axes, Group: group, Position: position, DType: ir.U8, FromSize: given,
		ToSize: given * int64(len(group)), Sequence: -number, Entry: "the start", Label: "NCCL's id"}
	all, err := p.Carry(ctx, c, slices.Concat(id[:], mine[:]))
	if err != nil {
		return err
	}
	copy(id[:], all)
	var wishes [][wishSize]byte
	for part := range slices.Chunk(all, given) {
		wishes = append(wishes, [wishSize]byte(part[ncclIDSize:]))
	}
	least := leastCTAs(wishes)
	c.Kind, c.Label = "ncclCommInitRank", ""
	var made ncclComm
	err = n.together(ctx, c, func() (err error) {
		made, err = n.library.init(len(group), id, int(position), least, maxCTAs(n.version))
		return err
	})
	if err != nil {
		return err
	}
	n.comms[key] = made
	n.order = append(n.order, key)
	if !over.Beside {
		n.alone = append(n.alone, key)
	}
	return nil
}

// together makes a call of NCCL that returns when all ranks of the group are in it, and cannot be interrupted: where
// they do not come, the thread is left in it, and the process ends.
func (n *NCCL) together(ctx context.Context, c runtime.Collective, call func() error) error {
	p := n.peers
	p.enter(c)
	done := make(chan error, 1)
	go func() { done <- n.device.Do(call) }()
	select {
	case err := <-done:
		p.exit(c, err == nil)
		if err != nil {
			return n.fault(err)
		}
		return nil
	case <-p.ended:
		return p.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fault describes what NCCL reports.
func (n *NCCL) fault(err error) error {
	return diag.Errorf(diag.RankFailed, "", "%v", err).Because(err).Suggest("NCCL_DEBUG=INFO in the environment has NCCL print what it does")
}

// Captures implements runtime.GraphCommunicator.
func (n *NCCL) Captures() bool { return true }

// Collective implements runtime.Communicator.
func (n *NCCL) Collective(ctx context.Context, s runtime.Stream, c runtime.Collective) error {
	if isClosed(n.peers.ended) {
		return n.peers.failure()
	}
	if err := check(c); err != nil {
		panic("BUG: " + err.Error())
	}
	stream, err := n.device.StreamHandle(s)
	if err != nil {
		return err
	}
	if err := n.local(s, c); err != nil {
		return err
	}
	if n.version < firstOrdered && n.inWindows(c) {
		if err := n.device.Launch(s, runtime.Launch{Kernel: n.between, Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Label: "order before a window"}); err != nil {
			return err
		}
	}
	n.mu.Lock()
	comm, ok := n.comms[groupKey(c.Axes)]
	switch {
	case n.over:
		err = errors.New("the communicators are closed")
	case !ok:
		err = fmt.Errorf("no communicator over %v", c.Axes)
	default:
		err = n.device.Do(func() error { return n.issue(c, comm, stream) })
	}
	n.mu.Unlock()
	if err != nil {
		if isClosed(n.peers.ended) {
			return n.peers.failure()
		}
		d := diag.Errorf(diag.RankFailed, place(c), "%s: %v", describe(c), err).Because(err)
		n.peers.Abort(d)
		return d
	}
	counter, shown := n.counters, n.shown
	if c.Async { // another stream: a counter of its own
		counter, shown = counter+counterSize, shown+counterSize
	}
	return n.device.Launch(s, runtime.Launch{Kernel: n.count, Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Label: "progress of collectives",
		Args: []runtime.Arg{
			{Kind: runtime.ArgPointer, Bits: uint64(counter), Size: counterSize, Access: runtime.ReadWrite},
			{Kind: runtime.ArgPointer, Bits: uint64(shown), Size: counterSize, Access: runtime.Write},
		}})
}

// local does what a permutation moves within this rank.
func (n *NCCL) local(s runtime.Stream, c runtime.Collective) error {
	if c.Kind != "collective_permute" || c.ToSize == 0 {
		return nil
	}
	for _, p := range c.Pairs {
		if p[1] == c.Position {
			if p[0] == p[1] {
				return n.device.Copy(s, c.To, c.From, c.ToSize)
			}
			return nil
		}
	}
	return n.device.Fill(s, c.To, []byte{0}, c.ToSize)
}

// issue calls NCCL.
func (n *NCCL) issue(c runtime.Collective, comm ncclComm, stream uintptr) error {
	from, to, l := uint64(c.From), uint64(c.To), n.library
	if c.FromSize == 0 && c.ToSize == 0 {
		return nil
	}
	switch c.Kind {
	case "all_reduce", "reduce_scatter":
		dtype, parts, op, ok := reduction(c.DType, c.Combine)
		if !ok {
			return fmt.Errorf("NCCL does not combine %s by %s", c.DType, c.Combine)
		}
		count := c.ToSize / int64(c.DType.Size()) * parts
		if c.Kind == "all_reduce" {
			return l.allReduce(from, to, count, dtype, op, comm, stream)
		}
		return l.reduceScatter(from, to, count, dtype, op, comm, stream)
	case "all_gather":
		return l.allGather(from, to, c.FromSize, ncclBytes, comm, stream)
	case "all_to_all":
		share := c.FromSize / int64(len(c.Group))
		return l.grouped(func() error {
			for i := range c.Group {
				at := uint64(int64(i) * share)
				if err := errors.Join(l.send(from+at, share, i, comm, stream), l.recv(to+at, share, i, comm, stream)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return l.grouped(func() (err error) {
		for _, p := range c.Pairs {
			if p[0] == p[1] {
				continue
			}
			if p[0] == c.Position {
				err = errors.Join(err, l.send(from, c.FromSize, int(p[1]), comm, stream))
			}
			if p[1] == c.Position {
				err = errors.Join(err, l.recv(to, c.ToSize, int(p[0]), comm, stream))
			}
		}
		return err
	})
}

// pollTime is how often progress and errors are looked at.
const pollTime = 20 * time.Millisecond

// poll tells the recorder what has finished, and ends the run when NCCL reports an error.
func (n *NCCL) poll() {
	defer close(n.stopped)
	ticker := time.NewTicker(pollTime)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-n.stop:
			return
		case <-n.peers.ended:
			return
		}
		n.progress()
		if err := n.failed(); err != nil {
			n.peers.end(n.fault(err), true)
			return
		}
	}
}

// progress tells the recorder which collectives have finished: so many of each stream.
func (n *NCCL) progress() {
	r := n.peers.options.Recorder
	if r == nil {
		return
	}
	now := n.finished()
	left := [2]uint32{now[0] - n.seen[0], now[1] - n.seen[1]}
	r.FinishEach(func(c runtime.Collective) bool {
		stream := 0
		if c.Async {
			stream = 1
		}
		if left[stream] == 0 {
			return false
		}
		left[stream]--
		n.seen[stream]++
		return true
	})
}

// finished counts the collectives that have run, by stream.
func (n *NCCL) finished() (now [2]uint32) {
	for i := range now {
		now[i] = atomic.LoadUint32((*uint32)(unsafe.Pointer(&n.mapped[i*counterSize])))
	}
	return now
}

// Finished counts the collectives that have run on the device.
func (n *NCCL) Finished() int64 {
	now := n.finished()
	return int64(now[0]) + int64(now[1])
}

// failed asks the communicators for errors of what they run.
func (n *NCCL) failed() error {
	if !n.mu.TryLock() {
		return nil // a call is under way: next time
	}
	defer n.mu.Unlock()
	if n.over {
		return nil
	}
	return n.device.Do(func() error {
		for _, key := range n.order {
			if err := n.library.asyncError(n.comms[key]); err != nil {
				return err
			}
		}
		return nil
	})
}

// abandon ends what NCCL waits for, so that the device's streams go on. A call that does not return is not
// waited for longer than a little.
func (n *NCCL) abandon() {
	locked := n.mu.TryLock()
	for deadline := time.Now().Add(n.peers.grace() / 2); !locked && time.Now().Before(deadline); locked = n.mu.TryLock() {
		time.Sleep(time.Millisecond)
	}
	if locked {
		defer n.mu.Unlock()
	}
	if n.over {
		return
	}
	n.over = true
	n.device.Do(func() error { // what fails here ends with the process
		for _, key := range slices.Backward(n.order) {
			n.library.abort(n.comms[key])
		}
		return nil
	})
}

// Abort implements runtime.Communicator.
func (n *NCCL) Abort(cause error) { n.peers.Abort(cause) }

// Gather implements runtime.Gatherer, through the connections.
func (n *NCCL) Gather(ctx context.Context, part []byte) ([][]byte, error) {
	return n.peers.Gather(ctx, part)
}

// Close gives NCCL's communicators up. The device must be idle. The connections stay.
func (n *NCCL) Close() error {
	if n.stop == nil {
		return nil
	}
	close(n.stop)
	<-n.stopped
	n.stop = nil
	n.progress()
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	if !n.over {
		n.over = true
		errs = append(errs, n.device.Do(func() error {
			var errs []error
			for at := range n.windows {
				errs = append(errs, n.deregister(at))
			}
			for _, key := range n.order {
				errs = append(errs, n.library.destroy(n.comms[key]))
			}
			return errors.Join(errs...)
		}))
	}
	return errors.Join(append(errs, n.module.Close(), n.device.Free(n.counters))...)
}
