package comm

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// link is a connection to a peer that was admitted.
type link struct {
	rank  int
	conn  net.Conn
	write sync.Mutex
	torn  bool          // under write: a part of a frame was written, or nothing can be
	last  atomic.Bool   // the last frame has been sent or is about to be
	done  chan struct{} // closed when nothing is read from it any more

	// Under Peers.mu.
	heard    time.Time
	beat     beat
	answered bool // since the last frameAsk
	left     bool
}

// errUnsent is the error of frames that come after the last one, or after a part of one.
var errUnsent = errors.New("nothing more is sent on this connection")

// readOutTime is how long what a peer has sent is read when nothing can be sent to it any more.
const readOutTime = 2 * time.Second

func newLink(rank int, conn net.Conn) *link {
	return &link{rank: rank, conn: conn, done: make(chan struct{}), heard: time.Now()}
}

// send writes frames, all or none of them together. It fails after sendLast.
func (l *link) send(frames []byte, within time.Duration) error {
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if l.last.Load() { // looked at after the deadline is set: sendLast shortens it
		return errUnsent
	}
	return l.put(frames)
}

// put writes frames. l.write is held.
func (l *link) put(frames []byte) error {
	if l.torn {
		return errUnsent
	}
	n, err := l.conn.Write(frames)
	if err != nil && (n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
		l.torn = true
		l.readOut()
	}
	return err
}

// sendData sends the head of a collective and its bytes. Other frames may come between.
func (l *link) sendData(kind frameKind, head, data []byte, within time.Duration) error {
	frames := appendFrame(nil, kind, head)
	for {
		n := min(len(data), dataFrame)
		if n > 0 {
			frames = appendFrame(frames, frameData, data[:n])
		}
		if err := l.send(frames, within); err != nil {
			return err
		}
		if data = data[n:]; len(data) == 0 {
			return nil
		}
		frames = frames[:0]
	}
}

// sendLast sends a goodbye, after which this side sends nothing: the peer reads it, and then the end of
// the connection. What is being written now gets no more time than the goodbye. The first goodbye counts.
func (l *link) sendLast(frame []byte, within time.Duration) error {
	again := l.last.Swap(true)
	if err := l.conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	l.write.Lock()
	defer l.write.Unlock()
	if again {
		return errUnsent
	}
	if err := l.conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	err := l.put(frame)
	if half, ok := l.conn.(interface{ CloseWrite() error }); ok {
		err = errors.Join(err, half.CloseWrite())
	}
	return err
}

// readOut bounds the time in which the peer is read, because nothing can be sent to it: what it said last is
// not lost, and the reader finds the end.
func (l *link) readOut() {
	l.conn.SetReadDeadline(time.Now().Add(readOutTime)) // fails where the connection is closed
}

// discard reads on, for a while, what a peer sends that is not understood.
func (l *link) discard() {
	l.readOut()
	io.Copy(io.Discard, l.conn)
}

// drain waits until nothing is read from the peer any more: it has read what it was sent, and closed.
func (l *link) drain(within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}
