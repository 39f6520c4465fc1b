package comm

import (
	"fmt"
	"reflect"
	"sync"

	"weft/ir/diag"
	"weft/runtime"
)

// hub is where the collectives of processes meet: at rank 0, which computes what each rank gets
// as the ranks of one process would, and sends it to them.
type hub struct {
	peers *Peers

	mu         sync.Mutex
	gatherings map[string]*gathering // by group
	left       []int64               // ranks that issue no more collectives
}

// gathering is a collective that waits for ranks.
type gathering struct {
	first   runtime.Collective
	given   []*share // by position; nil for those that have not come
	reply   []func(out []byte)
	arrived int
}

// arrive enters a rank's bytes. reply gets the result, unless the run ends before. The error is that of
// a rank that breaks the rules.
func (h *hub) arrive(rank int, c runtime.Collective, from []byte, reply func(out []byte)) error {
	if int64(len(from)) != c.FromSize {
		return fmt.Errorf("%w: %d bytes for %s", errFrame, len(from), describe(c))
	}
	key := fmt.Sprint(c.Group[0], c.Axes)
	h.mu.Lock()
	g := h.gatherings[key]
	if g == nil {
		g = &gathering{first: c, given: make([]*share, len(c.Group)), reply: make([]func([]byte), len(c.Group))}
		h.gatherings[key] = g
	}
	if g.given[c.Position] != nil {
		h.mu.Unlock()
		return fmt.Errorf("%w: a second collective before the first ended", errFrame)
	}
	var fault error
	if first := g.first.Group[g.first.Position]; !reflect.DeepEqual(offerOf(g.first, 0), offerOf(c, 0)) {
		fault = diag.Errorf(diag.RankFailed, place(c), "ranks issue different collectives").
			Note("rank %d: %s", first, describe(g.first)).Note("rank %d: %s", rank, describe(c))
	}
	g.given[c.Position] = &share{from: from}
	g.reply[c.Position] = reply
	g.arrived++
	complete := g.arrived == len(c.Group)
	if complete {
		delete(h.gatherings, key)
	}
	if fault == nil && !complete {
		fault = h.absent(g)
	}
	h.mu.Unlock()
	switch {
	case fault != nil:
		h.peers.end(fault, true)
	case complete:
		go g.finish()
	}
	return nil
}

// absent is the error of a gathering that a rank will not come to any more.
func (h *hub) absent(g *gathering) error {
	for i, rank := range g.first.Group {
		if g.given[i] != nil {
			continue
		}
		for _, r := range h.left {
			if r == rank {
				return diag.Errorf(diag.RankFailed, place(g.first), "rank %d has ended, and others wait for it in %s", rank, describe(g.first))
			}
		}
	}
	return nil
}

// leave notes that a rank issues no more collectives.
func (h *hub) leave(rank int64) {
	h.mu.Lock()
	h.left = append(h.left, rank)
	var fault error
	for _, g := range h.gatherings {
		if err := h.absent(g); err != nil && (fault == nil || err.Error() < fault.Error()) {
			fault = err
		}
	}
	h.mu.Unlock()
	if fault != nil {
		h.peers.end(fault, true)
	}
}

// finish computes the results and hands them out.
func (g *gathering) finish() {
	c := g.first
	if c.Kind == gatherKind { // for the first rank alone
		c.Kind, c.Position = "all_gather", 0
		g.given[0].to = make([]byte, c.ToSize)
		move(c, g.given)
	} else {
		g.share()
	}
	for i, reply := range g.reply {
		reply(g.given[i].to)
	}
}

// share computes the results of all ranks.
func (g *gathering) share() {
	c := g.first
	var same []byte
	for _, s := range g.given {
		if s.to = same; same == nil {
			s.to = make([]byte, c.ToSize)
		}
		if c.Kind == "all_reduce" {
			same = s.to // all get the same
		}
	}
	for i := range g.given {
		c.Position = int64(i)
		move(c, g.given)
	}
}
