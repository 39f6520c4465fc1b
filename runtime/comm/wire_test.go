package comm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/ir"
)

// tape is a connection that plays what it holds.
type tape struct {
	net.Conn
	io.Reader
}

func (t *tape) Read(p []byte) (int, error)       { return t.Reader.Read(p) }
func (t *tape) Write(p []byte) (int, error)      { return len(p), nil }
func (t *tape) Close() error                     { return nil }
func (t *tape) SetWriteDeadline(time.Time) error { return nil }
func (t *tape) SetReadDeadline(time.Time) error  { return nil }

// bounded fails where f allocates much more than the bytes that it reads.
func bounded(t *testing.T, size int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(16*size+(8<<20)) {
		t.Errorf("%d bytes were allocated for %d", grown, size)
	}
}

// Nobody who does not know the token is admitted, whatever they say.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(newHello())
	f.Add(append(newHello(), appendFrame(nil, frameProof, signed(identity{Rank: 1, Size: 2}, "other", "peer", nil, nil))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		bounded(t, len(data), func() {
			if _, v, err := examine(&tape{Reader: bytes.NewReader(data)}, "token", identity{}, func(identity) refusal { return admitted }); err == nil && v == admitted {
				t.Error("a stranger was admitted")
			}
			if v, proven, err := introduce(&tape{Reader: bytes.NewReader(data)}, "token", identity{}); err == nil && (proven || v.Refusal == admitted) {
				t.Error("a stranger was taken for rank 0")
			}
		})
	})
}

// A peer that sends anything at all ends its own connection at worst.
func FuzzFrames(f *testing.F) {
	m := ir.Mesh{Axes: []ir.MeshAxis{{Name: "x", Size: 3}, {Name: "y", Size: 1}}}
	head := func(c string, from, size int64) []byte {
		text, err := json.Marshal(offer{Kind: c, Axes: []string{"y"}, DType: "f32", From: from, To: from, Size: size})
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	f.Add(appendFrame(appendFrame(nil, frameOffer, head("all_reduce", 8, 8)), frameData, make([]byte, 8)))
	f.Add(appendFrame(appendFrame(nil, frameOffer, head("all_gather", 1<<36, 1<<36)), frameData, make([]byte, 8)))
	f.Add(appendFrame(appendFrame(nil, frameResult, head("all_to_all", 4, 4)), frameData, make([]byte, 4)))
	f.Add(appendFrame(nil, frameBeat, beat{At: "x", Waiting: &waiting{Axes: []string{"x"}}}.encode()))
	f.Add(appendFrame(nil, frameStalled, beat{Waiting: &waiting{Axes: slices.Repeat([]string{"x"}, 80)}}.encode()))
	f.Add(appendFrame(appendFrame(nil, frameStalled, beat{}.encode()), frameAsk, nil))
	f.Add(appendFrame(nil, frameAbort, []byte(`{"message":"m"}`)))
	f.Add(appendFrame(appendFrame(nil, frameReady, nil), frameBye, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		for rank := range 2 {
			p := newPeers(Options{World: World{Rank: rank, Size: 3}, Mesh: m, Timeout: time.Millisecond})
			other := 1 - rank
			l := newLink(other, &tape{Reader: bytes.NewReader(data)})
			p.links[other*(1-rank)] = l
			if rank == 0 {
				close(p.met)
			}
			bounded(t, len(data), func() { p.serve(l) })
			p.shut()
		}
	})
}

// Two versions of the protocol say so, and nothing more.
func TestVersions(t *testing.T) {
	other := newHello()
	other[len(magic)]++
	if _, v, err := examine(&tape{Reader: bytes.NewReader(other)}, "", identity{}, nil); v != refusedVersion || err != nil {
		t.Errorf("rank 0: %q, %v", v, err)
	}
	v, proven, err := introduce(&tape{Reader: bytes.NewReader(other)}, "", identity{})
	if v.Refusal != refusedVersion || proven || err != nil {
		t.Errorf("a peer: %v, %t, %v", v, proven, err)
	}
	if _, _, err := introduce(&tape{Reader: strings.NewReader("HTTP/1.1 400 Bad Request")}, "", identity{}); !errors.Is(err, errNotWeft) {
		t.Error(err)
	}
	for _, v := range []refusal{refusedVersion, refusedToken, refusedIdentity, refusedSize, refusedMesh, refusedDigest, refusedRank} {
		if d := refusalOf(v, identity{}, identity{}, "1.2.3.4:5"); !strings.HasPrefix(d.Message, "a peer at 1.2.3.4:5 ") {
			t.Errorf("%s: %s", v, d.Message)
		}
	}
}

func TestOffers(t *testing.T) {
	m := ir.Mesh{Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 3}}}
	for _, c := range []struct {
		text, wrong string
	}{
		{`{"kind":"all_gather","axes":["y"],"dtype":"f32","combine":"add","from":8,"to":24,"size":8}`, ""},
		{`{"kind":"all_gather","axes":["y"],"dtype":"f32","combine":"add","from":8,"to":25,"size":8}`, "all_gather from 8 to 25 bytes"},
		{`{"kind":"all_gather","axes":["y"],"dtype":"f32","combine":"add","from":8,"to":16,"size":8}`, `"all_gather" from 8 to 16 bytes on 3 ranks`},
		{`{"kind":"all_reduce","axes":["x"],"dtype":"f32","combine":"assign","from":8,"to":8,"size":8}`, "all_reduce"},
		{`{"kind":"all_to_all","axes":["y"],"dtype":"i8","combine":"add","from":4,"to":4,"size":4}`, "on 3 ranks"},
		{`{"kind":"collective_permute","axes":["x"],"dtype":"i8","combine":"add","from":4,"to":4,"pairs":[[0,2]],"size":4}`, "on 2 ranks"},
		{`{"kind":"reduce_scatter","axes":["x","x"],"dtype":"f32","combine":"add","from":8,"to":4}`, `axis "x"`},
		{`{"kind":"reduce_scatter","axes":["z"],"dtype":"f32","combine":"add","from":8,"to":4}`, `axis "z"`},
		{`{"kind":"all_reduce","axes":["x"],"dtype":"f33","combine":"add","from":8,"to":8}`, "f33"},
		{`{"kind":"all_reduce","axes":["x"],"dtype":"f32","combine":"sum","from":8,"to":8}`, "malformed"},
		{`{"kind":"all_reduce","axes":["x"],"dtype":"f32","combine":"add","from":-8,"to":-8}`, "all_reduce"},
		{`{"kind":"all_reduce","axes":["x"],"dtype":"f32","combine":"add","from":8,"to":8,"size":-1}`, "-1 bytes"},
		{`{"kind":"gather","axes":["x"],"dtype":"f32","combine":"add","from":8,"to":8}`, `"gather"`},
		{`[]`, "malformed"},
	} {
		got, size, err := decodeOffer([]byte(c.text), 4, m)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		if err != nil || size != 8 || got.Position != 1 || !slices.Equal(got.Group, []int64{3, 4, 5}) {
			t.Errorf("%s: %+v, %v", c.text, got, err)
		}
	}
}

func TestSummarize(t *testing.T) {
	m := ir.Mesh{Axes: []ir.MeshAxis{{Name: "x", Size: 2}, {Name: "y", Size: 2}}}
	in := func(rank int64, sequence int64, axes ...string) standing {
		return standing{rank: rank, answered: true, beat: beat{Waiting: &waiting{Axes: axes, Sequence: sequence, Text: "C" + string(rune('0'+sequence))}}}
	}
	busy := standing{rank: 3, answered: true, beat: beat{At: "step 7 of entry forward", Last: "C1"}}
	silent := standing{rank: 3, silent: 3 * time.Second}
	for _, c := range []struct {
		name    string
		states  []standing
		missing []int64
		text    string
		notes   []string
	}{
		{"one is slow", []standing{in(0, 2, "x", "y"), in(1, 2, "x", "y"), in(2, 2, "x", "y"), busy}, []int64{3},
			"rank 3 is missing: it is alive, and has not come to the collective: slow, or stuck in a step",
			[]string{"ranks 0, 1, 2 wait for rank 3 in C2", "rank 3: it is alive, and has not come to the collective: slow, or stuck in a step; in step 7 of entry forward; last finished C1, none is pending"}},
		{"one is silent, and others wait for those that wait for it", []standing{in(0, 2, "x"), in(1, 2, "y"), in(2, 2, "y"), silent}, []int64{3},
			"rank 3 is missing: it was last heard 3s ago: stopped, or its host is",
			[]string{"rank 0 waits for rank 2 in C2", "rank 1 waits for rank 0 in C2", "rank 2 waits for rank 3 in C2",
				"rank 3: it was last heard 3s ago: stopped, or its host is; finished no collective, none is pending"}},
		{"one has ended", []standing{in(0, 2, "y"), {rank: 1, left: true, answered: true}, in(2, 3, "y"), in(3, 3, "y")}, []int64{1}, "rank 1 is missing: it has ended",
			[]string{"rank 0 waits for rank 1 in C2", "ranks 2, 3 wait in C3", "rank 1: it has ended; finished no collective, none is pending"}},
		{"a cycle", []standing{in(0, 2, "x"), in(1, 2, "y"), in(2, 2, "y"), in(3, 2, "x")}, nil, "the ranks wait for each other in different collectives",
			[]string{"rank 0 waits for rank 2 in C2", "rank 1 waits for rank 0 in C2", "rank 2 waits for rank 3 in C2", "rank 3 waits for rank 1 in C2"}},
		{"the transport", []standing{in(0, 2, "x"), in(1, 2, "x"), in(2, 2, "x"), in(3, 2, "x")}, nil, "all ranks came to their collectives, which do not end: the transport between them is stuck",
			[]string{"ranks 0, 2 wait in C2", "ranks 1, 3 wait in C2"}},
	} {
		s := summarize(m, c.states)
		if !slices.Equal(s.missing, c.missing) || s.text != c.text || !slices.Equal(s.notes, c.notes) {
			t.Errorf("%s: %v, %s\n%s", c.name, s.missing, s.text, strings.Join(s.notes, "\n"))
		}
	}
}
