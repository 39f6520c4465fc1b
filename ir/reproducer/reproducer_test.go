package reproducer

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/ir/diag"
)

func example() *File {
	return &File{Weft: "0.1.0", Failed: "pass fuse", Message: "index out of range [3]", Passes: []string{"fuse", "memory"},
		Options: json.RawMessage(`{"targets":["sm_80"]}`), Program: "entry forward() {\n  return\n}\n"}
}

func TestRoundTrip(t *testing.T) {
	f := example()
	text := f.Encode()
	got, err := Decode("x", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got); diff != "" {
		t.Error(diff)
	}
	if Name(text) == Name(append(text, '\n')) {
		t.Error("other contents have the same name")
	}
}

func TestMalformed(t *testing.T) {
	text := example().Encode()
	for _, bad := range [][]byte{nil, []byte("entry forward() { return }"), text[:70], bytes.Replace(text, []byte("{\"targets"), []byte("[\"targets"), 1)} {
		if _, err := Decode("x", bad); err == nil || diag.All(err)[0].Code != diag.NotReproducer {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(example().Encode())
	f.Add([]byte(first + "\n// weft:\n// failed:\n// message:\n// passes:\n// options: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Decode("x", text)
		if err != nil {
			return
		}
		again, err := Decode("x", file.Encode())
		if err != nil || !cmp.Equal(file, again) {
			t.Errorf("read again: %v, %v", again, err)
		}
	})
}
