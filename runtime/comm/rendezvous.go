package comm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"weft/ir/diag"
	"weft/runtime"
)

// receive waits at the rendezvous until all other ranks have come.
func (p *Peers) receive(ctx context.Context) error {
	if p.me.Size == 1 {
		close(p.met)
		return nil
	}
	listener, err := p.options.Listener, error(nil)
	if listener == nil {
		listener, err = listen(ctx, p.options.World.Address)
	}
	if err != nil {
		return diag.Errorf(diag.Rendezvous, "", "rank 0 cannot listen at %s: %v", p.options.World.Address, err).Because(err).
			Suggest("MASTER_ADDR is the host of rank 0, MASTER_PORT a port that is free there")
	}
	p.listener = listener
	go p.accept(listener)
	timer := time.NewTimer(p.options.Timeout)
	defer timer.Stop()
	var d *diag.Diagnostic
	select {
	case <-p.met:
		ready := appendFrame(nil, frameReady, nil)
		p.others(func(l *link) { go l.send(ready, p.options.Timeout) }) // serve finds out where it fails
		return nil
	case d = <-p.hopeless:
	case <-p.ended:
		return p.failure()
	case <-ctx.Done():
		p.Abort(diag.Errorf(diag.RankFailed, "", "rank 0 was interrupted"))
		return ctx.Err()
	case <-timer.C:
		d = diag.Errorf(diag.Rendezvous, "", "%s of %d did not come to %s within %s", rankList(p.absent()), p.me.Size, p.options.World.Address, p.options.Timeout).
			Suggest("look at what those ranks print; --comm-timeout waits longer")
	}
	p.Abort(d)
	return d
}

// MeetHere brings all ranks of a mesh together in this process, by the same connections as between
// processes; NCCL wants them for its ids. World and Listener of the options are left out of consideration.
func MeetHere(ctx context.Context, o Options, recorder func(rank int) *runtime.Recorder) ([]*Peers, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, diag.Errorf(diag.Rendezvous, "", "no port for the ranks to meet: %v", err).Because(err)
	}
	list, errs := make([]*Peers, o.Mesh.Size()), make([]error, o.Mesh.Size())
	token := newToken()
	var group sync.WaitGroup
	for rank := range list {
		one := o
		one.World = World{Rank: rank, Size: len(list), Address: listener.Addr().String(), Token: token, Launcher: "this process"}
		one.Recorder, one.Listener = recorder(rank), nil
		if rank == 0 {
			one.Listener = listener
		}
		group.Go(func() { list[rank], errs[rank] = Meet(ctx, one) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, p := range list {
			if p != nil {
				p.Abort(err)
				p.Close()
			}
		}
		return nil, err
	}
	return list, nil
}

// listen listens at the address of rank 0: on that interface where it is a number of this host, else on all. Names are
// no help: many hosts know their own as 127.0.1.1, where others do not reach them.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "localhost" || net.ParseIP(host) != nil {
		listener, err := config.Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRNOTAVAIL) { // a translated address
			return listener, err
		}
	}
	return config.Listen(ctx, "tcp", ":"+port)
}

// absent lists the ranks that have not come.
func (p *Peers) absent() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ranks []int64
	for rank, l := range p.links {
		if rank > 0 && l == nil {
			ranks = append(ranks, int64(rank))
		}
	}
	return ranks
}

// lobby holds the connections in the handshake. There is room for maxUnknown; one more ends the
// oldest: a peer needs milliseconds, and who takes longer is none.
type lobby struct {
	mu    sync.Mutex
	conns []net.Conn
}

const maxUnknown = 64

func (l *lobby) enter(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) == maxUnknown {
		l.conns[0].Close()
		l.conns = slices.Delete(l.conns, 0, 1)
	}
	l.conns = append(l.conns, conn)
}

func (l *lobby) leave(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(c net.Conn) bool { return c == conn })
}

// accept takes connections until the listener is closed, also when all ranks are there: a second process
// of a rank learns that it is one.
func (p *Peers) accept(listener net.Listener) {
	var unknown lobby
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			unknown.enter(conn)
			go p.admit(conn, &unknown)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of file descriptors, say: some will be free again
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// admit does the handshake with a connection, and serves the peer that it is from.
func (p *Peers) admit(conn net.Conn, unknown *lobby) {
	conn.SetDeadline(time.Now().Add(min(handshakeTime, p.options.Timeout)))
	reserved := false
	who, v, err := examine(conn, p.options.World.Token, p.me, func(who identity) refusal {
		v := p.judge(who)
		if reserved = v == admitted; reserved {
			unknown.leave(conn) // it is known now: nobody pushes it out
		}
		return v
	})
	unknown.leave(conn)
	if err == nil && v == admitted {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil || v != admitted {
		conn.Close()
		if reserved {
			p.mu.Lock()
			delete(p.reserved, who.Rank)
			p.mu.Unlock()
		}
		if v != admitted {
			p.refuse(v, who, conn.RemoteAddr().String())
		}
		return
	}
	l := newLink(who.Rank, conn)
	p.mu.Lock()
	delete(p.reserved, who.Rank)
	p.links[who.Rank] = l
	if p.there++; p.there == p.me.Size-1 && !isClosed(p.met) {
		close(p.met)
	}
	word, closed := p.word, p.closed
	p.mu.Unlock()
	switch {
	case word != nil: // it came too late, and learns why
		l.sendLast(word, p.grace())
		l.readOut()
	case closed:
		conn.Close()
	}
	p.serve(l)
}

// judge decides whether a peer that knows the token is one of this run, and keeps its place.
func (p *Peers) judge(who identity) refusal {
	switch {
	case who.Size != p.me.Size:
		return refusedSize
	case who.Mesh != p.me.Mesh:
		return refusedMesh
	case who.Digest != p.me.Digest:
		return refusedDigest
	case who.Rank <= 0 || who.Rank >= p.me.Size:
		return refusedIdentity
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links[who.Rank] != nil || p.reserved[who.Rank] {
		return refusedRank
	}
	p.reserved[who.Rank] = true
	return admitted
}

// refuse reports a peer that was refused. One that knows the job's token belongs to the run, which then
// cannot begin; without a token it may be anybody's, and rank 0 goes on waiting.
func (p *Peers) refuse(v refusal, who identity, from string) {
	d := refusalOf(v, p.me, who, from)
	if p.options.World.Token != "" && d.Code == diag.PeerDiffers && !isClosed(p.met) {
		select {
		case p.hopeless <- d:
			return
		default:
		}
	}
	p.warn(d)
}

// refusalOf says for both sides why a peer was refused. from is where it is, or empty.
func refusalOf(v refusal, root, who identity, from string) *diag.Diagnostic {
	name := "a peer"
	if who.Size > 0 {
		name = fmt.Sprintf("rank %d", who.Rank)
	}
	if from != "" {
		name += " at " + from
	}
	switch v {
	case refusedVersion:
		return diag.Errorf(diag.Rendezvous, "", "%s speaks another version of the protocol than rank 0", name).Suggest("run the same weft on all hosts")
	case refusedToken:
		return diag.Errorf(diag.Rendezvous, "", "%s does not have the token of rank 0's job", name).Suggest("give all ranks of a job the same %s", TokenVariable)
	case refusedSize:
		return diag.Errorf(diag.PeerDiffers, "", "%s is of %d ranks, rank 0 of %d", name, who.Size, root.Size)
	case refusedMesh:
		return diag.Errorf(diag.PeerDiffers, "", "%s has the mesh %.200s, rank 0 %.200s", name, who.Mesh, root.Mesh)
	case refusedDigest:
		return diag.Errorf(diag.PeerDiffers, "", "%s runs another artifact than rank 0", name).
			Note("rank %d: %.100s", who.Rank, who.Digest).Note("rank 0: %.100s", root.Digest).Suggest("give all ranks the same file")
	case refusedRank:
		return diag.Errorf(diag.Rendezvous, "", "%s was refused: a process of that rank is there already", name).
			Suggest("each process of a run has another rank: look at what the launcher sets; another run may use the same port")
	}
	return diag.Errorf(diag.Rendezvous, "", "%s was refused: it is not a rank of this run", name)
}

// join connects to rank 0 and waits until all ranks are there.
func (p *Peers) join(ctx context.Context) error {
	deadline := time.Now().Add(p.options.Timeout)
	address := p.options.World.Address
	pause := 20 * time.Millisecond
	for {
		l, again, err := p.connect(ctx, address, deadline)
		if err == nil {
			p.mu.Lock()
			p.links[0] = l
			p.mu.Unlock()
			go p.serve(l)
			return p.ready(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !again {
			return err
		}
		if time.Now().Add(pause).After(deadline) {
			return diag.Errorf(diag.Rendezvous, "", "rank %d did not reach rank 0 at %s within %s: %v", p.me.Rank, address, p.options.Timeout, err).Because(err).
				Suggest("rank 0 runs on the host MASTER_ADDR and listens at MASTER_PORT: is it there, and does a firewall let connections through?")
		}
		time.Sleep(pause)
		pause = min(2*pause, 500*time.Millisecond)
	}
}

// connect does one attempt. again says that another may succeed.
func (p *Peers) connect(ctx context.Context, address string, deadline time.Time) (l *link, again bool, err error) {
	within := min(handshakeTime, time.Until(deadline))
	dialer := net.Dialer{Timeout: within}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, true, err
	}
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		conn.Close()
		return nil, true, err
	}
	v, proven, err := introduce(conn, p.options.World.Token, p.me)
	if err == nil && v.Refusal == admitted {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		return nil, true, err
	}
	if v.Refusal != admitted {
		conn.Close()
		if !proven {
			v.Mine = identity{}
		}
		return nil, false, refusalOf(v.Refusal, v.Mine, p.me, "")
	}
	return newLink(0, conn), false, nil
}

// ready waits until rank 0 says that all ranks are there. Rank 0 began to wait before, and tells when it
// gives up.
func (p *Peers) ready(ctx context.Context) error {
	timer := time.NewTimer(p.options.Timeout + time.Second + p.grace())
	defer timer.Stop()
	select {
	case <-p.met:
		return nil
	case <-p.ended:
		return p.failure()
	case <-ctx.Done():
		p.Abort(diag.Errorf(diag.RankFailed, "", "it was interrupted"))
		return ctx.Err()
	case <-timer.C:
		d := diag.Errorf(diag.Rendezvous, "", "rank 0 at %s did not say within %s that all ranks are there", p.options.World.Address, p.options.Timeout)
		p.Abort(d)
		return d
	}
}
