// Package reproducer is the form in which a bug of the compiler is kept: a text file with the
// program as it was before the step that failed, the passes that were still to run, and the
// options. Its header is comments, so that it is program text, too.
package reproducer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"weft/ir/diag"
)

// File is a reproducer.
type File struct {
	Weft    string          // version that failed
	Failed  string          // the step that failed, as the diagnostic names it: "pass fuse", "kernels"
	Message string          // the first line of what was said
	Passes  []string        // that were still to run, beginning with the one that failed
	Options json.RawMessage // of the compile, a JSON object
	Program string          // text
}

const first = "// weft reproducer: `weft reproduce FILE` replays it"

// fields are the lines of the header, in their order.
func (f *File) fields() []struct {
	name  string
	value string
} {
	return []struct{ name, value string }{
		{"weft", f.Weft}, {"failed", f.Failed}, {"message", f.Message}, {"passes", strings.Join(f.Passes, " ")}, {"options", string(f.Options)},
	}
}

// Encode prints a reproducer.
func (f *File) Encode() []byte {
	var b bytes.Buffer
	b.WriteString(first + "\n")
	for _, field := range f.fields() {
		line, _, _ := strings.Cut(field.value, "\n")
		fmt.Fprintf(&b, "// %s: %s\n", field.name, line)
	}
	b.WriteString("\n" + f.Program)
	return b.Bytes()
}

// Keep writes a reproducer into the first of the folders where it can be written, and gives its path.
// write makes a file whole or not at all with what its argument produces.
func (f *File) Keep(folders []string, write func(path string, produce func(io.Writer) error) error) (path string, err error) {
	text := f.Encode()
	for _, folder := range folders {
		path = filepath.Join(folder, Name(text))
		err = write(path, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err == nil {
			return path, nil
		}
	}
	return "", err
}

// Name is the file's name: it has a hash of the contents.
func Name(text []byte) string {
	sum := sha256.Sum256(text)
	return "weft-reproducer-" + hex.EncodeToString(sum[:8]) + ".weft.txt"
}

// Decode reads a reproducer. The program is left as text.
func Decode(name string, text []byte) (*File, error) {
	rest, ok := strings.CutPrefix(string(text), first+"\n")
	if !ok {
		return nil, malformed(name, 1, "the file does not begin as a reproducer does")
	}
	f := &File{}
	values := map[string]string{}
	for i, field := range f.fields() {
		line, after, found := strings.Cut(rest, "\n")
		value, named := strings.CutPrefix(line, "// "+field.name+":")
		if !found || !named {
			return nil, malformed(name, i+2, "the line \"// %s: ...\" is missing", field.name)
		}
		values[field.name], rest = strings.TrimPrefix(value, " "), after
	}
	f.Weft, f.Failed, f.Message = values["weft"], values["failed"], values["message"]
	f.Passes = strings.Fields(values["passes"])
	f.Options = json.RawMessage(values["options"])
	var object map[string]json.RawMessage
	if err := json.Unmarshal(f.Options, &object); err != nil || object == nil {
		return nil, malformed(name, 6, "the options are no JSON object")
	}
	f.Program = strings.TrimPrefix(rest, "\n")
	return f, nil
}

func malformed(name string, line int, format string, args ...any) error {
	return diag.Errorf(diag.NotReproducer, fmt.Sprint(line), format, args...).In(name).
		Suggest("reproducers are written when a compile fails with %s", diag.Bug)
}
