package comm

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
)

// Communicator carries the collectives of this rank over the connections, through the host's memory.
func (p *Peers) Communicator(device runtime.Device) runtime.Communicator {
	return &remote{peers: p, device: device}
}

type remote struct {
	peers   *Peers
	device  runtime.Device
	staging []byte // where the device's memory is not the host's
}

// Collective implements runtime.Communicator. It returns when the result is there.
func (r *remote) Collective(ctx context.Context, _ runtime.Stream, c runtime.Collective) error {
	if err := r.device.Synchronize(); err != nil {
		return err
	}
	host, mapped := r.device.(runtime.HostMemory)
	var from []byte
	var err error
	if mapped {
		from, err = host.Host(c.From, c.FromSize, runtime.Read)
	} else {
		if int64(cap(r.staging)) < c.FromSize {
			r.staging = make([]byte, c.FromSize)
		}
		from = r.staging[:c.FromSize]
		err = r.device.Download(from, c.From)
	}
	if err != nil {
		return err
	}
	out, err := r.peers.Carry(ctx, c, from)
	if err != nil {
		return err
	}
	if !mapped {
		return r.device.Upload(c.To, out)
	}
	to, err := host.Host(c.To, c.ToSize, runtime.Write)
	copy(to, out)
	return err
}

// Gather implements runtime.Gatherer.
func (r *remote) Gather(ctx context.Context, part []byte) ([][]byte, error) {
	return r.peers.Gather(ctx, part)
}

// gatherKind is a collective of no plan: rank 0 gets the bytes of all.
const gatherKind = "gather"

// Gather gives rank 0 the bytes of all ranks, in their order, and the others nothing. All ranks
// call it at the same place, with as many bytes.
func (p *Peers) Gather(ctx context.Context, part []byte) ([][]byte, error) {
	all, err := p.Carry(ctx, p.atTheEnd(gatherKind, int64(len(part)), "results of the ranks for rank 0"), part)
	if err != nil || p.me.Rank > 0 {
		return nil, err
	}
	n := len(part)
	parts := make([][]byte, p.options.Mesh.Size())
	for i := range parts {
		parts[i] = all[i*n : (i+1)*n]
	}
	return parts, nil
}

// GatherAny is Gather of parts of any length up to most bytes, each a rank's noun.
func (p *Peers) GatherAny(ctx context.Context, part []byte, most uint64, noun string) ([][]byte, error) {
	c := p.atTheEnd("all_gather", 8, "sizes of the ranks' "+noun+"s")
	sizes, err := p.Carry(ctx, c, binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
	if err != nil {
		return nil, err
	}
	longest := uint64(0)
	for size := range slices.Chunk(sizes, 8) {
		longest = max(longest, binary.LittleEndian.Uint64(size))
	}
	if longest > most {
		return nil, diag.Errorf(diag.RankFailed, "", "a rank has a %s of %d bytes; %d are gathered at most", noun, longest, most)
	}
	parts, err := p.Gather(ctx, append(slices.Clone(part), make([]byte, longest-uint64(len(part)))...))
	for i := range parts {
		parts[i] = parts[i][:binary.LittleEndian.Uint64(sizes[8*i:])]
	}
	return parts, err
}

// atTheEnd is overAll at the end of a run.
func (p *Peers) atTheEnd(kind string, n int64, label string) runtime.Collective {
	return p.overAll(kind, n, "the end", label)
}

// overAll is a collective of no plan: of n bytes of each rank, over all ranks.
func (p *Peers) overAll(kind string, n int64, entry, label string) runtime.Collective {
	m, rank := p.options.Mesh, int64(p.me.Rank)
	var axes []string
	for _, a := range m.Axes {
		axes = append(axes, a.Name)
	}
	return runtime.Collective{Kind: kind, Axes: axes, Group: m.Group(rank, axes), Position: m.Position(rank, axes), DType: ir.U8,
		FromSize: n, ToSize: n * m.Size(), Entry: entry, Label: label}
}

// Abort implements runtime.Communicator.
func (r *remote) Abort(cause error) { r.peers.Abort(cause) }

// Close implements runtime.Communicator. The connections stay: Peers.Close ends them.
func (r *remote) Close() error { return nil }

// Carry does the part of this rank in a collective of bytes: it gives the result, ToSize bytes.
// Pointers count for nothing. One at a time.
func (p *Peers) Carry(ctx context.Context, c runtime.Collective, from []byte) ([]byte, error) {
	if err := check(c); err != nil {
		panic("BUG: " + err.Error())
	}
	if isClosed(p.ended) {
		return nil, p.failure()
	}
	done := false
	p.enter(c)
	defer func() { p.exit(c, done) }()
	reply := p.results
	var err error
	if p.hub != nil {
		reply = make(chan []byte, 1)
		err = p.hub.arrive(0, c, from, func(out []byte) { reply <- out })
	} else {
		p.offer(c, from)
	}
	if err != nil && !isClosed(p.ended) {
		return nil, err
	}
	select {
	case out := <-reply:
		done = true
		return out, nil
	case <-p.ended:
		return nil, p.failure()
	case <-ctx.Done():
		p.Abort(ctx.Err())
		return nil, ctx.Err()
	}
}

// offer sends this rank's bytes to rank 0. Where that fails, the reader of the connection ends the run.
func (p *Peers) offer(c runtime.Collective, from []byte) {
	head, err := json.Marshal(offerOf(c, int64(len(from))))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if l := p.links[0]; l.sendData(frameOffer, head, from, p.options.Timeout) != nil {
		l.readOut()
	}
}

// enter notes that this rank waits in a collective.
func (p *Peers) enter(c runtime.Collective) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait, p.waitFrom, p.carrying = &c, time.Now(), true
}

// exit notes that it does not any more.
func (p *Peers) exit(c runtime.Collective, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait, p.carrying = nil, false
	if done {
		p.last = &c
	}
}
