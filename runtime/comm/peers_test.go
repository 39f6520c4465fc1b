package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
)

// free is an address of this host where nothing listens.
func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func axis(n int) ir.Mesh { return ir.Mesh{Axes: []ir.MeshAxis{{Name: "x", Size: int64(n)}}} }

// optionsOf are those of a rank of a run in this process.
func optionsOf(address string, rank, size int, timeout time.Duration) Options {
	return Options{World: World{Rank: rank, Size: size, Address: address, Launcher: "test"}, Mesh: axis(size), Digest: "d", Timeout: timeout}
}

// meetAll has all ranks meet; change may change what one of them is.
func meetAll(t *testing.T, size int, timeout time.Duration, change func(*Options)) ([]*Peers, []error) {
	t.Helper()
	address := free(t)
	peers, errs := make([]*Peers, size), make([]error, size)
	var group sync.WaitGroup
	for rank := range size {
		o := optionsOf(address, rank, size, timeout)
		if change != nil {
			change(&o)
		}
		group.Go(func() { peers[rank], errs[rank] = Meet(context.Background(), o) })
	}
	group.Wait()
	t.Cleanup(func() {
		for _, p := range peers {
			if p != nil {
				p.Abort(context.Canceled)
				p.Close()
			}
		}
	})
	return peers, errs
}

func carried(m ir.Mesh, rank int, kind string, axes []string, from, to int64) runtime.Collective {
	return runtime.Collective{Kind: kind, Axes: axes, Group: m.Group(int64(rank), axes), Position: m.Position(int64(rank), axes), DType: ir.F32, Combine: ir.Sum,
		FromSize: from, ToSize: to, Sequence: 1, Entry: "forward"}
}

// Every collective gives every rank the bits that move, which ranks of one process use, gives it.
func TestCarry(t *testing.T) {
	const size = 6
	m := ir.Mesh{Axes: []ir.MeshAxis{{Name: "x", Size: 3}, {Name: "y", Size: 2}}}
	peers, errs := meetAll(t, size, 20*time.Second, func(o *Options) { o.Mesh, o.World.Token = m, "secret" })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	random := rand.New(rand.NewPCG(1, 2))
	step := int64(0)
	for _, axes := range [][]string{{"x"}, {"y"}, {"x", "y"}, {"y", "x"}, {}} {
		k := m.Extent(axes)
		for _, kind := range []string{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "collective_permute"} {
			for _, elements := range []int64{0, 6, 6 * 20000} {
				step++
				from, to := 4*elements, 4*elements
				switch kind {
				case "all_gather":
					to *= k
				case "reduce_scatter":
					to /= k
				}
				given, got := make([][]byte, size), make([][]byte, size)
				calls := make([]runtime.Collective, size)
				for rank := range size {
					c := carried(m, rank, kind, axes, from, to)
					c.Sequence, c.Step = step, int(step)
					if kind == "collective_permute" {
						c.Pairs = [][2]int64{{0, k - 1}}
					}
					calls[rank] = c
					given[rank] = make([]byte, from)
					values := view[float32](given[rank])
					for i := range values {
						values[i] = random.Float32() * float32(random.IntN(1000))
					}
					group.Go(func() {
						out, err := peers[rank].Carry(context.Background(), c, given[rank])
						if err != nil {
							t.Error(err)
						}
						got[rank] = out
					})
				}
				group.Wait()
				for rank := range size {
					c := calls[rank]
					shares := make([]*share, k)
					for i, r := range c.Group {
						shares[i] = &share{given[r], make([]byte, to)}
					}
					for i := range shares {
						c.Position = int64(i)
						move(c, shares)
					}
					if !bytes.Equal(got[rank], shares[calls[rank].Position].to) {
						t.Fatalf("%s of %d over %v: rank %d got something else", kind, elements, axes, rank)
					}
				}
			}
		}
	}
	for rank, p := range peers {
		group.Go(func() {
			all, err := p.Gather(context.Background(), []byte{byte(rank), 7})
			if err != nil || rank > 0 && all != nil || rank == 0 && (len(all) != size || !bytes.Equal(all[4], []byte{4, 7})) {
				t.Errorf("rank %d gathers %v, %v", rank, all, err)
			}
		})
	}
	group.Wait()
	closeAll(t, peers)
}

// closeAll ends a run in which all went well.
func closeAll(t *testing.T, peers []*Peers) {
	t.Helper()
	var group sync.WaitGroup
	for _, p := range peers {
		group.Go(func() {
			if err := p.Close(); err != nil {
				t.Errorf("rank %d: %v", p.Rank(), err)
			}
		})
	}
	group.Wait()
}

// Rank 0 listens where the others reach it.
func TestListen(t *testing.T) {
	_, port, err := net.SplitHostPort(free(t))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"127.0.0.1": true, "localhost": true, "a-name-of-this-host": false, "192.0.2.1": false} {
		l, err := listen(context.Background(), net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().(*net.TCPAddr).IP; got.IsLoopback() != want {
			t.Errorf("%s: listens at %s", host, got)
		}
		l.Close()
	}
}

// The ranks of one process meet as those of several do.
func TestMeetHere(t *testing.T) {
	recorders := []*runtime.Recorder{runtime.NewRecorder(0), runtime.NewRecorder(1), runtime.NewRecorder(2)}
	peers, err := MeetHere(context.Background(), Options{Mesh: axis(3), Digest: "d", Timeout: 20 * time.Second}, func(rank int) *runtime.Recorder { return recorders[rank] })
	if err != nil {
		t.Fatal(err)
	}
	for rank, p := range peers {
		if p.Rank() != rank || p.Size() != 3 || p.options.Recorder != recorders[rank] {
			t.Errorf("rank %d of %d at %d", p.Rank(), p.Size(), rank)
		}
	}
	for i := len(peers) - 1; i >= 0; i-- { // one after the other, rank 0 last
		if err := peers[i].Close(); err != nil {
			t.Error(err)
		}
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := MeetHere(done, Options{Mesh: axis(2)}, func(int) *runtime.Recorder { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What ranks differ in is said on both sides.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, token string
		change      func(*Options) // of rank 2
		root, peer  string
	}{
		{"artifact", "", func(o *Options) { o.Digest = "e" }, "W7102: rank 2 at ", "W7102: rank 2 runs another artifact than rank 0"},
		{"artifact of a job", "t", func(o *Options) { o.Digest = "e" }, "W7102: rank 2 at ", "note: rank 0: d"},
		{"mesh", "", func(o *Options) { o.Mesh.Axes[0].Name = "z" }, "W7102: rank 2 at ", "W7102: rank 2 has the mesh z=3, rank 0 x=3"},
		{"size", "", func(o *Options) { o.World.Size, o.Mesh = 4, axis(4) }, "W7102: rank 2 at ", "W7102: rank 2 is of 4 ranks, rank 0 of 3"},
		{"token", "t", func(o *Options) { o.World.Token = "u" }, "does not have the token of rank 0's job", "W7104: rank 2 does not have the token"},
		{"no token", "t", func(o *Options) { o.World.Token = "" }, "does not have the token of rank 0's job", "W7104: rank 2 does not have the token"},
		{"rank", "", func(o *Options) { o.World.Rank = 1 }, "W7104: rank 1 at ", "W7104: rank 1 was refused: a process of that rank is there already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var warnings []string
			_, errs := meetAll(t, 3, 700*time.Millisecond, func(o *Options) {
				o.World.Token = c.token
				o.Warn = func(d *diag.Diagnostic) {
					mu.Lock()
					warnings = append(warnings, d.Error())
					mu.Unlock()
				}
				if o.World.Rank == 2 {
					time.Sleep(100 * time.Millisecond)
					c.change(o)
				}
			})
			for rank, err := range errs {
				if err == nil {
					t.Fatalf("rank %d met the others", rank)
				}
			}
			peer := errs[2].Error()
			mu.Lock()
			root := errs[0].Error() + "\n" + strings.Join(warnings, "\n")
			mu.Unlock()
			if !strings.Contains(root, c.root) || !strings.Contains(peer, c.peer) {
				t.Errorf("rank 0: %s\nrank 2: %s", root, peer)
			}
		})
	}
}

// Ranks that do not come are named, by all that wait.
func TestMissingRanks(t *testing.T) {
	address := free(t)
	var group sync.WaitGroup
	start := time.Now()
	for _, rank := range []int{0, 2} {
		group.Go(func() {
			_, err := Meet(context.Background(), optionsOf(address, rank, 5, 300*time.Millisecond))
			if err == nil || !strings.Contains(err.Error(), "W7104: ranks 1, 3, 4 of 5 did not come") {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	group.Wait()
	_, err := Meet(context.Background(), optionsOf(free(t), 1, 2, 200*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "W7104: rank 1 did not reach rank 0") {
		t.Error(err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Strangers on the port disturb nothing, before the ranks have met and after.
func TestStrangers(t *testing.T) {
	address := free(t)
	stop := make(chan struct{})
	var strangers sync.WaitGroup
	for i := range 80 {
		strangers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := net.Dial("tcp", address)
				if err != nil {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
				stranger(conn, random)
				conn.Close()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	peers := make([]*Peers, 4)
	var group sync.WaitGroup
	for rank := range peers {
		group.Go(func() {
			time.Sleep(time.Duration(rank) * 50 * time.Millisecond)
			var err error
			if peers[rank], err = Meet(context.Background(), optionsOf(address, rank, len(peers), 20*time.Second)); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	group.Wait()
	if !t.Failed() {
		for i := range 20 {
			for rank, p := range peers {
				group.Go(func() {
					c := carried(axis(4), rank, "all_gather", []string{"x"}, 4, 16)
					c.Sequence = int64(i)
					out, err := p.Carry(context.Background(), c, []byte{byte(rank), 0, 0, byte(i)})
					if err != nil || out[4*3] != 3 || out[4*2+3] != byte(i) {
						t.Errorf("rank %d: %v, %v", rank, out, err)
					}
				})
			}
			group.Wait()
		}
		closeAll(t, peers)
	}
	close(stop)
	strangers.Wait()
}

// stranger does one of the things that strangers do to a port.
func stranger(conn net.Conn, random *rand.Rand) {
	noise := make([]byte, random.IntN(3000))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	reply := make([]byte, 4096)
	switch random.IntN(7) {
	case 0: // a scanner
	case 1:
		conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		conn.Read(reply)
	case 2:
		conn.Write(noise)
		conn.Read(reply)
	case 3: // half a hello, then silence
		conn.Write([]byte(magic))
		conn.Read(reply)
	case 4: // a hello, then a frame of 4 GiB
		conn.Write(newHello())
		conn.Read(reply)
		conn.Write([]byte{byte(frameProof), 255, 255, 255, 255})
		conn.Write(noise)
		conn.Read(reply)
	case 5: // a proof that is none
		conn.Write(newHello())
		conn.Read(reply)
		conn.Write(appendFrame(nil, frameProof, noise))
		conn.Read(reply)
	case 6: // byte by byte
		for _, b := range newHello()[:10] {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// A rank that fails ends the run of the others at once, with what it said.
func TestAbort(t *testing.T) {
	for failing := range 3 {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			t.Parallel()
			peers, errs := meetAll(t, 3, 20*time.Second, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			var group sync.WaitGroup
			for rank, p := range peers {
				if rank == failing {
					continue
				}
				group.Go(func() {
					_, err := p.Carry(context.Background(), carried(axis(3), rank, "all_reduce", []string{"x"}, 8, 8), make([]byte, 8))
					if err == nil || !strings.Contains(err.Error(), "W7105") || !strings.Contains(err.Error(), "out of luck") ||
						!strings.Contains(err.Error(), fmt.Sprintf("note: this rank, %d: finished no collective, pending all_reduce over x", rank)) {
						t.Errorf("rank %d: %v", rank, err)
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
			peers[failing].Abort(diag.Errorf(diag.RunDevice, "", "out of luck"))
			group.Wait()
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Ranks that issue different collectives, and one that ends while others wait for it, end the run with the reason.
func TestDisagreement(t *testing.T) {
	peers, errs := meetAll(t, 2, 20*time.Second, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for rank, p := range peers {
		kind := []string{"all_reduce", "all_to_all"}[rank]
		group.Go(func() {
			_, err := p.Carry(context.Background(), carried(axis(2), rank, kind, []string{"x"}, 8, 8), make([]byte, 8))
			if err == nil || !strings.Contains(err.Error(), "ranks issue different collectives") {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	group.Wait()

	for ending := range 2 {
		peers, errs := meetAll(t, 2, 20*time.Second, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		group.Go(func() { peers[ending].Close() })
		rank := 1 - ending
		_, err := peers[rank].Carry(context.Background(), carried(axis(2), rank, "all_reduce", []string{"x"}, 8, 8), make([]byte, 8))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d has ended", ending)) {
			t.Errorf("rank %d: %v", rank, err)
		}
		peers[rank].Close()
		group.Wait()
	}
}

// A rank that does not come to a collective is named after the timeout; Fatal ends the one that
// does not notice.
func TestSlowRank(t *testing.T) {
	for slow := range 3 {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			t.Parallel()
			fatal := make(chan error, 3)
			peers, errs := meetAll(t, 3, 500*time.Millisecond, func(o *Options) { o.Fatal = func(err error) { fatal <- err } })
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			var group sync.WaitGroup
			for rank, p := range peers {
				if rank == slow {
					continue
				}
				group.Go(func() {
					_, err := p.Carry(context.Background(), carried(axis(3), rank, "all_reduce", []string{"x"}, 8, 8), make([]byte, 8))
					if err == nil || !strings.Contains(err.Error(), "W7101") || !strings.Contains(err.Error(), fmt.Sprintf("rank %d is missing: it is alive", slow)) {
						t.Errorf("rank %d: %v", rank, err)
					}
					if rank == 0 && !strings.Contains(fmt.Sprint(err), fmt.Sprintf("for rank %d in all_reduce", slow)) {
						t.Errorf("no summary at rank 0: %v", err)
					}
				})
			}
			group.Wait()
			if err := <-fatal; !strings.Contains(err.Error(), fmt.Sprintf("this rank, %d: finished no collective, none is pending", slow)) {
				t.Error(err)
			}
			if took := time.Since(start); took < 500*time.Millisecond || took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
