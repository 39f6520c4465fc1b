package comm

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The handshake. The peer sends a hello: magic, version, 32 random bytes. Rank 0 answers alike, to
// nobody else. The peer's proof is its identity and an HMAC-SHA256, under the job's token, of both
// hellos and the identity; rank 0's verdict is authenticated in the same way. Until then rank 0 has
// read 42 bytes and one frame of at most maxProof, within handshakeTime.
const (
	magic           = "weftmeet"
	protocolVersion = 1
	helloSize       = len(magic) + 2 + nonceSize
	nonceSize       = 32
	handshakeTime   = 10 * time.Second
)

// identity is what a peer shows.
type identity struct {
	Rank   int    `json:"rank"`
	Size   int    `json:"size"`
	Digest string `json:"digest"` // of the artifact
	Mesh   string `json:"mesh"`
}

// refusal is why rank 0 does not take a peer; empty for one that it takes.
type refusal string

const (
	admitted        refusal = ""
	refusedVersion  refusal = "version"
	refusedToken    refusal = "token"
	refusedIdentity refusal = "identity"
	refusedSize     refusal = "size"
	refusedMesh     refusal = "mesh"
	refusedDigest   refusal = "digest"
	refusedRank     refusal = "duplicate"
)

// verdict is rank 0's answer. Its own identity is in it for the peer's message.
type verdict struct {
	Refusal refusal  `json:"refusal,omitempty"`
	Mine    identity `json:"mine"`
}

var errNotWeft = errors.New("what answers there is no weft")

func hello(nonce [nonceSize]byte) []byte {
	b := binary.LittleEndian.AppendUint16([]byte(magic), protocolVersion)
	return append(b, nonce[:]...)
}

// readHello reads the other side's hello.
func readHello(r io.Reader) (version uint16, raw []byte, err error) {
	raw = make([]byte, helloSize)
	if n, err := io.ReadFull(r, raw); err != nil {
		if n > 0 && string(raw[:min(n, len(magic))]) != magic[:min(n, len(magic))] {
			return 0, nil, errNotWeft
		}
		return 0, nil, err
	}
	if string(raw[:len(magic)]) != magic {
		return 0, nil, errNotWeft
	}
	return binary.LittleEndian.Uint16(raw[len(magic):]), raw, nil
}

func newHello() []byte {
	var nonce [nonceSize]byte
	rand.Read(nonce[:]) // never fails
	return hello(nonce)
}

// code authenticates a message of one side within a handshake.
func code(token, side string, peer, root, text []byte) []byte {
	h := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(h, "weft %s\n", side)
	h.Write(peer)
	h.Write(root)
	h.Write(text)
	return h.Sum(nil)
}

// signed is a JSON text with its code after it.
func signed(v any, token, side string, peer, root []byte) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(text, code(token, side, peer, root, text)...)
}

// verify takes the code off; ok is false where it is another one's.
func verify(payload []byte, token, side string, peer, root []byte) (text []byte, ok bool) {
	n := len(payload) - sha256.Size
	if n < 0 {
		return nil, false
	}
	text = payload[:n]
	return text, hmac.Equal(payload[n:], code(token, side, peer, root, text))
}

// introduce is the handshake of a peer. It gives rank 0's verdict; proven tells whether who gave it knows
// the token.
func introduce(conn net.Conn, token string, me identity) (v verdict, proven bool, err error) {
	mine := newHello()
	if _, err := conn.Write(mine); err != nil {
		return v, false, err
	}
	version, theirs, err := readHello(conn)
	if err != nil {
		return v, false, err
	}
	if version != protocolVersion {
		return verdict{Refusal: refusedVersion}, false, nil
	}
	if _, err := conn.Write(appendFrame(nil, frameProof, signed(me, token, "peer", mine, theirs))); err != nil {
		return v, false, err
	}
	var buffer []byte
	kind, payload, err := readFrame(conn, maxProof, &buffer)
	if err != nil {
		return v, false, err
	}
	text, ok := verify(payload, token, "root", mine, theirs)
	if kind != frameVerdict || text == nil || json.Unmarshal(text, &v) != nil {
		return v, false, errNotWeft
	}
	if !ok && v.Refusal == admitted {
		v.Refusal = refusedToken
	}
	return v, ok, nil
}

// examine is the handshake of rank 0. judge looks at the identity of one that knows the token. The peer
// that was admitted, or refused although it spoke the protocol, is in the result.
func examine(conn net.Conn, token string, me identity, judge func(identity) refusal) (who identity, v refusal, err error) {
	version, theirs, err := readHello(conn)
	if err != nil {
		return who, v, err
	}
	mine := newHello()
	if _, err := conn.Write(mine); err != nil {
		return who, v, err
	}
	if version != protocolVersion {
		return who, refusedVersion, nil
	}
	var buffer []byte
	kind, payload, err := readFrame(conn, maxProof, &buffer)
	if err != nil {
		return who, v, err
	}
	if kind != frameProof {
		return who, v, errFrame
	}
	text, ok := verify(payload, token, "peer", theirs, mine)
	switch {
	case !ok:
		v = refusedToken
	case json.Unmarshal(text, &who) != nil:
		who, v = identity{}, refusedIdentity
	default:
		v = judge(who)
	}
	answer := verdict{Refusal: v}
	if ok { // others learn nothing
		answer.Mine = me
	}
	_, err = conn.Write(appendFrame(nil, frameVerdict, signed(answer, token, "root", theirs, mine)))
	return who, v, err
}
