package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
)

// Options say how a process meets the others.
type Options struct {
	World  World
	Mesh   ir.Mesh
	Digest string // of the artifact; all ranks show the same
	// Timeout is how long ranks wait for each other, when they meet and in each collective; 0 is
	// DefaultTimeout.
	Timeout time.Duration
	// Listener is where rank 0 takes connections (Inherited); nil where it listens at the world's address.
	Listener net.Listener
	// Recorder is that of this rank's session, for reports, and to watch the collectives of captured
	// graphs; nil where only those are known that the connections carry.
	Recorder *runtime.Recorder
	// Warn gets a diagnostic for each peer that rank 0 refuses while it goes on; nil drops them.
	Warn func(*diag.Diagnostic)
	// Fatal is called with the report when the run has ended for what happened on another rank, and
	// this one does not notice for some time: it is in a step that does not end. nil waits.
	Fatal func(error)
}

// Peers are the connections of a process to the others of its run. Rank 0 has one to each, the
// others one to rank 0. They carry the ranks' signs of life, the end of the run when one rank fails, and
// collectives (Communicator, Carry).
type Peers struct {
	options  Options
	me       identity
	listener net.Listener // of rank 0
	hub      *hub         // of rank 0
	met      chan struct{}
	ended    chan struct{}         // closed when the run is given up
	informed chan struct{}         // closed after that, when the others have been sent the reason
	stopped  chan struct{}         // closed by Close
	alone    chan struct{}         // closed when all links have left
	hopeless chan *diag.Diagnostic // why rank 0 need not wait for the others
	results  chan []byte           // of ranks other than 0

	mu       sync.Mutex
	links    []*link             // of rank 0 by rank, without itself; of the others links[0] alone
	reserved map[int]bool        // ranks whose handshake is about to end well
	there    int                 // links
	left     int                 // links that said bye
	last     *runtime.Collective // that finished
	recorded *runtime.Collective // that the recorder had as finished when it was looked at
	wait     *runtime.Collective // that this rank is in
	waitFrom time.Time
	carrying bool // Carry watches over wait
	cause    error
	word     []byte // the frame that tells the cause, where the others have to hear of it
	noticed  bool
	hooks    []func(error)
	warned   int
	stalling bool
	closed   bool
}

// Meet brings the ranks of a run together: rank 0 listens at the world's address, the others connect
// there and show who they are. It returns when all are there. The error says who is missing, or why
// rank 0 refused this one.
func Meet(ctx context.Context, o Options) (*Peers, error) {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if err := o.World.CheckSize(o.Mesh.String(), o.Mesh.Size()); err != nil {
		return nil, err
	}
	p := newPeers(o)
	var err error
	if p.hub != nil {
		err = p.receive(ctx)
	} else {
		err = p.join(ctx)
	}
	if err != nil {
		p.settle()
		p.shut()
		return nil, err
	}
	go p.watch()
	return p, nil
}

// newPeers has no connections yet.
func newPeers(o Options) *Peers {
	p := &Peers{
		options: o, me: identity{Rank: o.World.Rank, Size: o.World.Size, Digest: o.Digest, Mesh: o.Mesh.String()},
		met: make(chan struct{}), ended: make(chan struct{}), informed: make(chan struct{}), stopped: make(chan struct{}), alone: make(chan struct{}),
		results: make(chan []byte, 1), hopeless: make(chan *diag.Diagnostic, 1), reserved: map[int]bool{},
	}
	if p.me.Rank == 0 {
		p.hub = &hub{peers: p, gatherings: map[string]*gathering{}}
		p.links = make([]*link, p.me.Size)
	} else {
		p.links = make([]*link, 1)
	}
	return p
}

// Rank is this process's place.
func (p *Peers) Rank() int { return p.me.Rank }

// Size is the number of ranks.
func (p *Peers) Size() int { return p.me.Size }

// others visits the links there are.
func (p *Peers) others(visit func(*link)) {
	p.mu.Lock()
	var list []*link
	for _, l := range p.links {
		if l != nil {
			list = append(list, l)
		}
	}
	p.mu.Unlock()
	for _, l := range list {
		visit(l)
	}
}

// interval is how often ranks show that they live.
func (p *Peers) interval() time.Duration {
	return min(max(p.options.Timeout/10, 10*time.Millisecond), time.Second)
}

// grace is how long a rank that was asked may take to answer, and one whose run has ended to notice.
func (p *Peers) grace() time.Duration {
	return min(max(p.options.Timeout/5, 100*time.Millisecond), 2*time.Second)
}

// present is the beat of this rank now.
func (p *Peers) present() beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look()
	var b beat
	if p.options.Recorder != nil {
		if now := p.options.Recorder.Progress(); now.Entry != "" {
			b.At = fmt.Sprintf("step %d of entry %s", now.Step, now.Entry)
		}
	}
	if p.last != nil {
		b.Last = p.last.String()
	}
	if p.wait != nil {
		b.Waiting = waitingIn(*p.wait, p.waitFrom)
	}
	return b
}

// look takes from the recorder what this rank has finished and, while the connections carry nothing, what it waits for. p.mu is held.
func (p *Peers) look() {
	if p.options.Recorder == nil {
		return
	}
	now := p.options.Recorder.Progress()
	if now.Finished != p.recorded {
		p.last, p.recorded = now.Finished, now.Finished
	}
	if p.carrying {
		return
	}
	if now.Pending == nil {
		p.wait = nil
	} else if p.wait == nil || p.wait.Sequence != now.Pending.Sequence {
		p.wait, p.waitFrom = now.Pending, time.Now()
	}
}

// serve reads what a peer sends until its connection ends. Nothing else tells that a peer is lost: what it said
// last may still be unread when a write to it fails.
func (p *Peers) serve(l *link) {
	defer close(l.done)
	defer l.conn.Close()
	go p.beats(l)
	var buffer []byte
	var incoming *assembly
	for {
		kind, payload, err := readFrame(l.conn, maxFrame, &buffer)
		if err == nil {
			p.mu.Lock()
			l.heard = time.Now()
			p.mu.Unlock()
			incoming, err = p.handle(l, kind, payload, incoming)
		}
		if err != nil {
			p.lost(l, err)
			if errors.Is(err, errFrame) {
				l.discard() // it has something to read: why it is refused
			}
			return
		}
	}
}

// beats shows a peer that this rank lives, until the end.
func (p *Peers) beats(l *link) {
	ticker := time.NewTicker(p.interval())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b := p.present()
			if l.rank == deputy {
				b.Others = p.told()
			}
			if l.send(appendFrame(nil, frameBeat, b.encode()), p.options.Timeout) != nil {
				return // serve finds out
			}
		case <-p.ended:
			return
		case <-p.stopped:
			return
		}
	}
}

// deputy is the rank that tells how the others are when rank 0 is lost.
const deputy = 1

// told is what rank 0 knows of the others, not of more than a report lists.
func (p *Peers) told() []told {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []told
	for _, l := range p.links {
		if l != nil && l.rank != deputy && len(list) < shownRanks {
			list = append(list, told{int64(l.rank), l.beat.String()})
		}
	}
	return list
}

// retold adds to a report that rank 0 is lost what it told of the others last.
func (p *Peers) retold(d *diag.Diagnostic, root beat) {
	if p.me.Rank != deputy {
		return
	}
	for _, o := range root.Others {
		d.Note("rank %d, as rank 0 told last: %s", o.Rank, o.Text)
	}
}

// handle does what a frame asks for. incoming is the collective whose data come next.
func (p *Peers) handle(l *link, kind frameKind, payload []byte, incoming *assembly) (*assembly, error) {
	switch kind {
	case frameReady:
		if p.hub != nil {
			return incoming, errFrame
		}
		select {
		case <-p.met:
			return incoming, errFrame
		default:
			close(p.met)
		}
	case frameBeat, frameStalled:
		var b beat
		if err := json.Unmarshal(payload, &b); err != nil {
			return incoming, fmt.Errorf("%w: %w", errFrame, err)
		}
		if b.Waiting != nil {
			if err := checkAxes(b.Waiting.Axes, p.options.Mesh); err != nil {
				return incoming, err
			}
		}
		p.mu.Lock()
		l.beat, l.answered = b, true
		p.mu.Unlock()
		if kind == frameStalled && p.hub != nil {
			go p.stall()
		}
	case frameAsk:
		l.send(appendFrame(nil, frameBeat, p.present().encode()), p.options.Timeout) // where it fails, the next read does
	case frameOffer, frameResult:
		if incoming != nil || (kind == frameOffer) != (p.hub != nil) {
			return incoming, errFrame
		}
		rank := l.rank
		if kind == frameResult {
			rank = p.me.Rank
		}
		c, size, err := decodeOffer(payload, rank, p.options.Mesh)
		if err != nil {
			return nil, err
		}
		incoming = &assembly{collective: c, size: size}
		if size > 0 {
			return incoming, nil
		}
		return nil, p.arrived(l, incoming)
	case frameData:
		if incoming == nil {
			return nil, errFrame
		}
		done, err := incoming.add(payload)
		if err != nil || !done {
			return incoming, err
		}
		return nil, p.arrived(l, incoming)
	case frameAbort:
		return incoming, p.abortedBy(l, payload)
	case frameBye:
		p.bye(l)
	default:
		return incoming, errFrame
	}
	return incoming, nil
}

// arrived takes the whole of an offer or a result.
func (p *Peers) arrived(l *link, a *assembly) error {
	if p.hub != nil {
		return p.hub.arrive(l.rank, a.collective, a.data, func(out []byte) { go p.deliver(l, a.collective, out) })
	}
	select {
	case p.results <- a.data:
		return nil
	default:
		return errFrame
	}
}

// deliver sends a peer its result.
func (p *Peers) deliver(l *link, c runtime.Collective, out []byte) {
	head, err := json.Marshal(offerOf(c, int64(len(out))))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if l.sendData(frameResult, head, out, p.options.Timeout) != nil {
		l.readOut()
	}
}

// bye notes that a peer issues no more collectives.
func (p *Peers) bye(l *link) {
	p.mu.Lock()
	already := l.left
	l.left = true
	if !already {
		p.left++
		if p.hub != nil && p.left == p.me.Size-1 {
			close(p.alone)
		}
	}
	p.mu.Unlock()
	if p.hub != nil && !already {
		p.hub.leave(int64(l.rank))
		l.conn.Close()
	}
}

// lost notes that nothing more is read from a peer, which said no last word.
func (p *Peers) lost(l *link, err error) {
	p.mu.Lock()
	over := l.left || p.cause != nil || p.closed
	if p.hub != nil && !over && !isClosed(p.met) {
		// Not all are there: another process may come for the rank.
		p.links[l.rank] = nil
		p.there--
		over = true
	}
	b := l.beat
	p.mu.Unlock()
	if over {
		return
	}
	how := "its connection ended"
	if errors.Is(err, errFrame) {
		how = err.Error()
	}
	d := diag.Errorf(diag.RankFailed, "", "rank %d went away: %s", l.rank, how)
	d.Note("rank %d, as last heard: %s", l.rank, b)
	p.retold(d, b)
	p.end(d, true)
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// warn reports a peer that was refused; not more of them than people read.
func (p *Peers) warn(d *diag.Diagnostic) {
	const most = 20
	p.mu.Lock()
	p.warned++
	n := p.warned
	p.mu.Unlock()
	if p.options.Warn != nil && n <= most {
		d.Severity = diag.Warning
		p.options.Warn(d)
	}
}

// Close ends the part of this rank in the run. Rank 0 stays until the others have ended theirs, or
// the timeout.
func (p *Peers) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.noticed = true
	over := p.cause != nil
	p.mu.Unlock()
	var err error
	if !over {
		err = p.farewell()
	}
	p.settle()
	p.shut()
	return err
}

// settle waits, where the run was given up, until the others have read why, but not longer than the time in which
// they have to notice. Closing a connection before could take the reason back.
func (p *Peers) settle() {
	if !isClosed(p.ended) {
		return
	}
	<-p.informed
	until := time.Now().Add(p.grace())
	for p.admitting() && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	p.others(func(l *link) { l.drain(time.Until(until)) })
}

// admitting tells whether a handshake is about to end well.
func (p *Peers) admitting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.reserved) > 0
}

// farewell says bye. A peer waits until rank 0 has read it; rank 0 until all have said it.
func (p *Peers) farewell() error {
	timer := time.NewTimer(p.options.Timeout)
	defer timer.Stop()
	if p.hub != nil {
		if p.me.Size == 1 {
			return nil
		}
		p.hub.leave(0)
		select {
		case <-p.alone:
			return nil
		case <-p.ended:
			return p.failure()
		case <-timer.C:
			p.end(diag.Errorf(diag.CollectiveStuck, "", "rank 0 has ended and %s not, for %s", rankList(p.staying()), p.options.Timeout), true)
			return p.failure()
		}
	}
	l := p.links[0]
	p.mu.Lock()
	l.left = true
	p.mu.Unlock()
	if l.sendLast(appendFrame(nil, frameBye, nil), p.grace()) == nil {
		l.drain(p.grace())
	}
	return nil
}

// staying lists the ranks that have not said bye.
func (p *Peers) staying() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ranks []int64
	for _, l := range p.links {
		if l != nil && !l.left {
			ranks = append(ranks, int64(l.rank))
		}
	}
	return ranks
}

// shut closes all connections.
func (p *Peers) shut() {
	p.mu.Lock()
	already := p.closed
	p.closed = true
	p.mu.Unlock()
	if already {
		return
	}
	close(p.stopped)
	if p.listener != nil {
		p.listener.Close()
	}
	p.others(func(l *link) { l.conn.Close() })
}
