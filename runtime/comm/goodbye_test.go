package comm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/ir/diag"
)

// lateReader is a connection whose reads wait: what was sent stays unread.
type lateReader struct {
	*net.TCPConn
	open chan struct{}
}

func (c lateReader) Read(b []byte) (int, error) {
	<-c.open
	return c.TCPConn.Read(b)
}

// connected gives both ends of a connection.
func connected(t *testing.T) (mine, other *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	theirs, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours.(*net.TCPConn), theirs.(*net.TCPConn)
}

// served is a rank of two that has met the other one, at the end of a connection.
func served(t *testing.T, rank int, conn net.Conn, timeout time.Duration) (*Peers, *link) {
	t.Helper()
	p := newPeers(optionsOf("", rank, 2, timeout))
	close(p.met)
	l := newLink(1-rank, conn)
	p.links[len(p.links)-1] = l
	go p.serve(l)
	go p.watch()
	t.Cleanup(p.shut)
	return p, l
}

// The reason of the end reaches a rank although the one that sends it closes, and the sending takes a while.
func TestSlowGoodbye(t *testing.T) {
	for ending := range 2 {
		peers, errs := meetAll(t, 2, 20*time.Second, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		waiting := 1 - ending
		l := peers[ending].links[len(peers[ending].links)-1]
		l.write.Lock() // as if the connection took nothing
		time.AfterFunc(150*time.Millisecond, l.write.Unlock)
		var group sync.WaitGroup
		group.Go(func() { peers[ending].Close() })
		_, err := peers[waiting].Carry(context.Background(), carried(axis(2), waiting, "all_reduce", []string{"x"}, 8, 8), make([]byte, 8))
		if want := []string{"rank 0 has ended", "rank 1 has ended"}[ending]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v", waiting, err)
		}
		peers[waiting].Close()
		group.Wait()
	}
}

// A goodbye that has arrived counts, also where a write to the peer fails before it is read, and the peer's kernel
// has reset the connection.
func TestUnreadGoodbye(t *testing.T) {
	abort := lastWord(diag.RankFailed, "out of luck", 0)
	for _, c := range []struct {
		name  string
		rank  int // that reads
		frame []byte
		want  string
	}{
		{"abort to rank 0", 0, abort, "W7105: rank 1 failed: out of luck"},
		{"bye to rank 0", 0, appendFrame(nil, frameBye, nil), "rank 1 has ended, and others wait for it in all_reduce"},
		{"abort to rank 1", 1, abort, "W7105: out of luck"},
		{"nothing to rank 0", 0, nil, "rank 1 went away: its connection ended"},
		{"nothing to rank 1", 1, nil, "rank 0 went away: its connection ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mine, other := connected(t)
			open := make(chan struct{})
			p, l := served(t, c.rank, lateReader{mine, open}, 20*time.Second)
			if _, err := other.Write(c.frame); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(other.SetLinger(0), other.Close()); err != nil { // reset
				t.Fatal(err)
			}
			for deadline := time.Now().Add(5 * time.Second); l.send(appendFrame(nil, frameAsk, nil), time.Second) == nil; {
				if time.Now().After(deadline) {
					t.Fatal("the connection is not reset")
				}
			}
			call := carried(axis(2), c.rank, "all_reduce", []string{"x"}, 8, 8)
			if c.rank == 0 {
				p.deliver(l, call, make([]byte, 8)) // fails
			}
			time.AfterFunc(50*time.Millisecond, func() { close(open) })
			_, err := p.Carry(context.Background(), call, make([]byte, 8))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %q", err, c.want)
			}
		})
	}
}

// goodbyeOf reads frames until the end and gives the goodbye among them, which is the last.
func goodbyeOf(t *testing.T, conn net.Conn) (a abortion) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var buffer []byte
	for {
		kind, payload, err := readFrame(conn, maxFrame, &buffer)
		if err != nil {
			t.Fatalf("no goodbye: %v", err)
		}
		if kind == frameAbort {
			if err := json.Unmarshal(payload, &a); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(make([]byte, 1)); n > 0 {
				t.Errorf("more after the goodbye, %v", err)
			}
			return a
		}
	}
}

// A peer that is not understood learns it, whatever it sends behind that.
func TestGoodbyeToStranger(t *testing.T) {
	for rank := range 2 {
		mine, other := connected(t)
		served(t, rank, mine, 20*time.Second)
		if _, err := other.Write(append(appendFrame(nil, frameVerdict, nil), bytes.Repeat([]byte{9}, 1<<16)...)); err != nil {
			t.Fatal(err)
		}
		if a := goodbyeOf(t, other); !strings.Contains(a.Message, "went away: malformed frame") {
			t.Errorf("rank %d says %q", rank, a.Message)
		}
	}
}

// A rank that gives up because rank 0 is stopped says so to it, for the time when it goes on.
func TestGoodbyeToStopped(t *testing.T) {
	mine, other := connected(t)
	p, _ := served(t, 1, mine, 200*time.Millisecond)
	if _, err := p.Carry(context.Background(), carried(axis(2), 1, "all_reduce", []string{"x"}, 8, 8), make([]byte, 8)); err == nil {
		t.Fatal("a collective of one rank")
	}
	p.Close()
	if a := goodbyeOf(t, other); a.Code != diag.CollectiveStuck || !strings.HasPrefix(a.Message, "rank 0 is missing: it was last heard ") {
		t.Errorf("%s %q", a.Code, a.Message)
	}
}

// slowListener takes connections whose verdict waits.
type slowListener struct {
	net.Listener
	judged chan struct{} // gets one when a verdict is about to be sent
	open   chan struct{}
}

type slowVerdict struct {
	*net.TCPConn
	l *slowListener
}

func (l *slowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowVerdict{conn.(*net.TCPConn), l}, nil
}

func (c slowVerdict) Write(b []byte) (int, error) {
	if len(b) > 0 && b[0] == byte(frameVerdict) {
		c.l.judged <- struct{}{}
		<-c.l.open
	}
	return c.TCPConn.Write(b)
}

// A rank that is being admitted when the ranks give up to meet learns why.
func TestGoodbyeWhileAdmitted(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &slowListener{inner, make(chan struct{}, 1), make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := optionsOf(inner.Addr().String(), 0, 3, 20*time.Second)
	o.Listener = listener
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := Meet(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("rank 0: %v", err)
		}
	})
	group.Go(func() {
		_, err := Meet(context.Background(), optionsOf(inner.Addr().String(), 1, 3, 20*time.Second))
		if err == nil || !strings.Contains(err.Error(), "W7105: rank 0 was interrupted") {
			t.Errorf("rank 1: %v", err)
		}
	})
	<-listener.judged
	cancel()
	time.Sleep(100 * time.Millisecond)
	close(listener.open)
	group.Wait()
}

// A rank that is interrupted while it waits for the others says so. Rank 0 goes on waiting where not all have come.
func TestGoodbyeOfInterrupted(t *testing.T) {
	for _, all := range []bool{false, true} {
		mine, other := connected(t)
		root := newPeers(optionsOf("", 0, 2, 20*time.Second))
		root.links[1], root.there = newLink(1, other), 1
		if all {
			close(root.met)
		}
		go root.serve(root.links[1])
		p := newPeers(optionsOf("", 1, 2, 20*time.Second))
		p.links[0] = newLink(0, mine)
		go p.serve(p.links[0])
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := p.ready(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.settle()
		p.shut()
		if all {
			<-root.ended
			if err := root.Err(); !strings.Contains(err.Error(), "W7105: rank 1 failed: it was interrupted") {
				t.Error(err)
			}
		} else if absent := root.absent(); len(absent) != 1 || root.Err() != nil {
			t.Errorf("rank 0 misses %v, %v", absent, root.Err())
		}
		root.shut()
	}
}
