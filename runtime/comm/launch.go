package comm

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"weft/ir/diag"
)

// Launch is a command to be started once for each rank, on this host.
type Launch struct {
	Path   string
	Name   string // argv[0]; Path where it is empty
	Args   []string
	Ranks  int
	Env    []string      // of all; those of the ranks are added
	Stdout io.Writer     // what rank 0 prints
	Stderr io.Writer     // what all print to standard error, and the others to standard output, with their rank before each line
	Grace  time.Duration // DefaultGrace if 0
}

// listenerVariable has the number of the file that rank 0 inherits as its listening socket.
const listenerVariable = "WEFT_RENDEZVOUS_FD"

// DefaultGrace is how long the other ranks have for their reports when one has failed, before they are
// asked to end; killGrace is what they have then.
const (
	DefaultGrace = 3 * time.Second
	killGrace    = time.Second
)

// ended is a process that ended.
type ended struct {
	rank int
	err  error
}

// Run starts the processes and waits for them. When one fails, the others get some time to end by themselves,
// and are then killed. status is the exit status of the first that failed, 6 where a signal
// ended it; the error is one of starting them.
func (l Launch) Run(ctx context.Context) (status int, err error) {
	// The kernel kills the processes when the thread that started them ends, and so when this
	// process does, however that happens.
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, diag.Errorf(diag.Rendezvous, "", "no port for the ranks to meet: %v", err).Because(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return 0, diag.Errorf(diag.Rendezvous, "", "the socket where the ranks meet cannot be handed on: %v", err).Because(err)
	}
	defer socket.Close()
	token := os.Getenv(TokenVariable)
	if token == "" {
		token = newToken()
	}
	stderr := &lockedWriter{w: l.Stderr}
	var commands []*exec.Cmd
	var outputs []*prefixed
	done := make(chan ended, l.Ranks)
	for rank := range l.Ranks {
		world := World{Rank: rank, Size: l.Ranks, LocalRank: rank, LocalSize: l.Ranks, Address: listener.Addr().String(), Token: token}
		cmd := exec.Command(l.Path, l.Args...)
		if l.Name != "" {
			cmd.Args[0] = l.Name
		}
		lines := &prefixed{to: stderr, prefix: fmt.Sprintf("[rank %d] ", rank)}
		more := &prefixed{to: stderr, prefix: lines.prefix}
		cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = world.Environ(l.Env), more, lines, dieWithParent()
		cmd.WaitDelay = time.Second // for those that a process started and left
		if rank == 0 {
			cmd.Stdout, cmd.ExtraFiles = l.Stdout, []*os.File{socket}
			cmd.Env = append(cmd.Env, listenerVariable+"=3")
		}
		outputs = append(outputs, lines, more)
		if err := cmd.Start(); err != nil {
			kill(commands, syscall.SIGKILL)
			return 0, diag.Errorf(diag.RankFailed, "", "rank %d cannot be started: %v", rank, err).Because(err)
		}
		commands = append(commands, cmd)
		go func() { done <- ended{rank, cmd.Wait()} }()
	}
	listener.Close()
	socket.Close()
	status = l.wait(ctx, commands, done, stderr)
	for _, o := range outputs {
		o.flush()
	}
	return status, nil
}

// newToken is a token that nobody guesses.
func newToken() string {
	var secret [16]byte
	rand.Read(secret[:]) // never fails
	return hex.EncodeToString(secret[:])
}

// wait waits for all processes, and ends them when one fails or the context does.
func (l Launch) wait(ctx context.Context, commands []*exec.Cmd, done chan ended, stderr io.Writer) (status int) {
	grace := l.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	var next <-chan time.Time // the next signal, once one has failed
	signal := syscall.SIGTERM
	cancelled := ctx.Done()
	for left := len(commands); left > 0; {
		select {
		case e := <-done:
			left--
			if e.err == nil || status != 0 {
				continue
			}
			status = int(diag.RunFailed)
			var exit *exec.ExitError
			if errors.As(e.err, &exit) && exit.ExitCode() > 0 {
				status = exit.ExitCode()
			}
			fmt.Fprintf(stderr, "[rank %d] ended: %v\n", e.rank, e.err)
			next = time.After(grace)
		case <-cancelled:
			cancelled = nil
			if status == 0 {
				status = int(diag.RunFailed)
			}
			kill(commands, signal)
			signal, next = syscall.SIGKILL, time.After(killGrace)
		case <-next:
			kill(commands, signal)
			signal, next = syscall.SIGKILL, time.After(killGrace)
		}
	}
	return status
}

// kill sends a signal to the processes that are left.
func kill(commands []*exec.Cmd, signal syscall.Signal) {
	for _, c := range commands {
		c.Process.Signal(signal) // fails for those that have ended
	}
}

// Inherited is the socket that Launch handed to rank 0; nil where there is none.
func Inherited(lookup func(string) (string, bool)) (net.Listener, error) {
	text, ok := environment(lookup).get(listenerVariable)
	if !ok {
		return nil, nil
	}
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil, diag.Errorf(diag.Rendezvous, "environment", "%s is %.40q", listenerVariable, text)
	}
	f := os.NewFile(uintptr(fd), "rendezvous")
	defer f.Close()
	listener, err := net.FileListener(f)
	if err != nil {
		return nil, diag.Errorf(diag.Rendezvous, "environment", "%s=%d is no socket: %v", listenerVariable, fd, err).Because(err)
	}
	return listener, nil
}

// lockedWriter serves several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// prefixed writes whole lines with something before each.
type prefixed struct {
	to     io.Writer
	prefix string
	rest   []byte
}

// longLine is how much of a line is kept until its end.
const longLine = 64 << 10

func (p *prefixed) Write(data []byte) (int, error) {
	n := len(data)
	for len(data) > 0 {
		i := bytes.IndexByte(data, '\n')
		if i < 0 && len(p.rest)+len(data) < longLine {
			p.rest = append(p.rest, data...)
			break
		}
		if i < 0 {
			i = len(data) - 1
		}
		p.rest = append(p.rest, data[:i+1]...)
		data = data[i+1:]
		p.flush()
	}
	return n, nil
}

// flush writes what is kept as a line. That nobody reads it must not stop the process.
func (p *prefixed) flush() {
	if len(p.rest) > 0 {
		fmt.Fprintf(p.to, "%s%s\n", p.prefix, bytes.TrimSuffix(p.rest, []byte("\n")))
		p.rest = p.rest[:0]
	}
}
