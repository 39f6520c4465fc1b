package cuda

import (
	"slices"
	"testing"
)

func TestKernelNames(t *testing.T) {
	for name, test := range map[string]struct {
		image string
		want  []string
	}{
		"none":     {"", nil},
		"no PTX":   {"\x7fELF of sorts", nil},
		"entries":  {".visible .entry b(\n.param .u64 p)\n{ ret; }\n.visible .func f\n.entry  $a_1 () {ret;}", []string{"$a_1", "b"}},
		"comments": {"// .entry x\n/* .entry\n y */ .entry /* z */ k", []string{"k"}},
	} {
		if got := kernelNames([]byte(test.image)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// emptyCubin is the header of a cubin as ptxas 12.9 writes it, with 0x81 for the version, and no
// sections.
const emptyCubin = "\x7fELF\x02\x01\x01\x33\x07\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\xbe\x00\x81\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x5a\x0d\x5a\x00\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00"

func TestCheckImage(t *testing.T) {
	for image, good := range map[string]bool{
		"":                             false,
		"some text":                    false,
		"\x7fELF":                      false,
		"\x50\xed\x55\xba":             false, // a fat binary
		emptyCubin:                     true,
		emptyCubin[:40]:                false,
		"// made\n\n.version 8.0\n":    true,
		".version 8.0\n\x00.entry k()": false,
	} {
		if err := checkImage([]byte(image)); (err == nil) != good {
			t.Errorf("%q: %v", image, err)
		}
	}
}

func FuzzImage(f *testing.F) {
	f.Add([]byte(".visible .entry k(.param .u64 p) { ret; }"))
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, image []byte) {
		if checkImage(image) != nil {
			return
		}
		for _, name := range kernelNames(image) {
			if len(name) > len(image) {
				t.Errorf("name %q is longer than the image", name)
			}
		}
	})
}
