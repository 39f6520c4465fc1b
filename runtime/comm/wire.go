package comm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"weft/ir"
	"weft/runtime"
)

// Two processes of a run talk in frames over a connection. A frame is a kind (1 byte), the length
// of what follows (4 bytes, little endian), and that: JSON, or the bytes of a collective.
//
// The last frame of either side is a goodbye: frameBye or frameAbort. Its sender closes its half of the connection
// behind it and reads on. The other side closes the connection when it has read the goodbye (frameBye), or
// the end after it, and not before: closing with bytes that are unread is a reset, which may overtake what was sent. So a
// connection that ends without a goodbye is that of a rank that was lost.
type frameKind uint8

const (
	frameProof   frameKind = iota + 1 // identity and its code; the first frame of a peer
	frameVerdict                      // the answer
	frameReady                        // all ranks are there
	frameBeat                         // beat: how a rank is
	frameStalled                      // beat of a rank that waited too long
	frameAsk                          // wants a beat
	frameOffer                        // offer: a rank comes to a collective; data follow
	frameResult                       // offer: what the rank gets; data follow
	frameData                         // some bytes of the last offer or result
	frameAbort                        // abortion: the run ends; the last frame
	frameBye                          // the rank issues no more collectives; the last frame
)

const (
	frameHeader = 5
	maxFrame    = 1 << 20   // bytes of a frame between peers that know each other
	maxProof    = 4 << 10   // bytes of a frame before that
	maxOffer    = 64 << 30  // bytes of a collective
	dataFrame   = 256 << 10 // bytes of a frame of data
)

var errFrame = errors.New("malformed frame")

// appendFrame appends a frame.
func appendFrame(b []byte, kind frameKind, payload []byte) []byte {
	b = append(b, byte(kind))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// readFrame reads a frame of at most limit bytes. The payload is valid until the next call with
// the same buffer.
func readFrame(r io.Reader, limit int, buffer *[]byte) (frameKind, []byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	kind, size := frameKind(header[0]), binary.LittleEndian.Uint32(header[1:])
	if kind < frameProof || kind > frameBye || int64(size) > int64(limit) {
		return 0, nil, fmt.Errorf("%w: kind %d of %d bytes", errFrame, kind, size)
	}
	if cap(*buffer) < int(size) {
		*buffer = make([]byte, size)
	}
	payload := (*buffer)[:size]
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, noEOF(err)
	}
	return kind, payload, nil
}

// noEOF tells an end in the middle from one between frames.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// offer is a collective as it travels, ahead of Size bytes of data.
type offer struct {
	Kind     string     `json:"kind"`
	Axes     []string   `json:"axes"` // which give its group
	DType    string     `json:"dtype"`
	Combine  ir.Combine `json:"combine"`
	From     int64      `json:"from"`
	To       int64      `json:"to"`
	Pairs    [][2]int64 `json:"pairs,omitempty"`
	Sequence int64      `json:"sequence"`
	Step     int        `json:"step"`
	Entry    string     `json:"entry"`
	Label    string     `json:"label,omitempty"`
	Size     int64      `json:"size"` // of the data that follow
}

func offerOf(c runtime.Collective, size int64) offer {
	return offer{c.Kind, c.Axes, c.DType.String(), c.Combine, c.FromSize, c.ToSize, c.Pairs, c.Sequence, c.Step, c.Entry, c.Label, size}
}

// decodeOffer reads an offer and checks that a rank of a mesh may make it.
func decodeOffer(text []byte, rank int, m ir.Mesh) (runtime.Collective, int64, error) {
	var o offer
	if err := json.Unmarshal(text, &o); err != nil {
		return runtime.Collective{}, 0, fmt.Errorf("%w: %w", errFrame, err)
	}
	dtype, ok := ir.ParseDType(o.DType)
	if !ok || o.Size < 0 || o.Size > maxOffer {
		return runtime.Collective{}, 0, fmt.Errorf("%w: %d bytes of %.40q", errFrame, o.Size, o.DType)
	}
	if err := checkAxes(o.Axes, m); err != nil {
		return runtime.Collective{}, 0, err
	}
	c := runtime.Collective{Kind: o.Kind, Axes: o.Axes, DType: dtype, Combine: o.Combine, FromSize: o.From, ToSize: o.To,
		Pairs: o.Pairs, Sequence: o.Sequence, Step: o.Step, Entry: o.Entry, Label: o.Label}
	c.Group, c.Position = m.Group(int64(rank), o.Axes), m.Position(int64(rank), o.Axes)
	if err := check(c); err != nil {
		return c, 0, fmt.Errorf("%w: %w", errFrame, err)
	}
	return c, o.Size, nil
}

// checkAxes checks that axes are those of a mesh, each once.
func checkAxes(axes []string, m ir.Mesh) error {
	for i, name := range axes {
		if _, ok := m.Axis(name); !ok || slices.Contains(axes[:i], name) {
			return fmt.Errorf("%w: axis %.40q", errFrame, name)
		}
	}
	return nil
}

// check checks that a collective is one that move can carry out.
func check(c runtime.Collective) error {
	k := int64(len(c.Group))
	element := int64(c.DType.Size())
	if c.FromSize < 0 || c.ToSize < 0 || c.FromSize > maxOffer || c.ToSize > maxOffer || element == 0 || c.FromSize%element != 0 || c.ToSize%element != 0 {
		return fmt.Errorf("%s from %d to %d bytes of %s", c.Kind, c.FromSize, c.ToSize, c.DType)
	}
	fits := false
	switch c.Kind {
	case "all_reduce":
		fits = c.FromSize == c.ToSize && c.Combine < ir.Assign
	case "reduce_scatter":
		fits = c.FromSize == c.ToSize*k && c.Combine < ir.Assign
	case "all_gather", gatherKind:
		fits = c.FromSize*k == c.ToSize
	case "all_to_all":
		fits = c.FromSize == c.ToSize && c.FromSize%k == 0
	case "collective_permute":
		fits = c.FromSize == c.ToSize
	}
	for _, p := range c.Pairs {
		fits = fits && p[0] >= 0 && p[0] < k && p[1] >= 0 && p[1] < k
	}
	if !fits {
		return fmt.Errorf("%.40q from %d to %d bytes on %d ranks", c.Kind, c.FromSize, c.ToSize, k)
	}
	return nil
}

// assembly is data that arrive in frames. Memory grows with what has come, not with what was promised.
type assembly struct {
	collective runtime.Collective
	size       int64
	data       []byte
}

// add takes a frame of data; done says that all is there.
func (a *assembly) add(data []byte) (done bool, err error) {
	if int64(len(a.data)+len(data)) > a.size || len(data) == 0 {
		return false, fmt.Errorf("%w: more data than were offered", errFrame)
	}
	a.data = append(a.data, data...)
	return int64(len(a.data)) == a.size, nil
}
