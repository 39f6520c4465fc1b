package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/scanner"

	"google.golang.org/protobuf/encoding/protowire"

	"weft/runtime/artifact"
)

// makers are commands of examples that make their files. The page does not show them.
var makers = map[string]func(t *testing.T, args []string){
	"tensors": func(t *testing.T, args []string) {
		if err := writeTensors(args[0], string(readFile(t, args[1]))); err != nil {
			t.Fatal(err)
		}
	},
	"cut": func(t *testing.T, args []string) {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, args[1], readFile(t, args[0])[:n])
	},
	"protobuf": encodeProtobuf,
	"edit": func(t *testing.T, args []string) {
		writeFile(t, args[1], edits(t, args[2], readFile(t, args[0])))
	},
	"archive": editArchive,
	"repack":  repack,
	"safetensors": func(t *testing.T, args []string) {
		header := bytes.TrimSpace(readFile(t, args[1]))
		writeFile(t, args[0], append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...))
	},
	"zip": func(t *testing.T, args []string) {
		writeFile(t, args[0], zipOf(t, args[1:]))
	},
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// edits applies a file with lines "OLD => NEW" to a text, each to the first place that it fits.
func edits(t *testing.T, file string, data []byte) []byte {
	t.Helper()
	for line := range strings.Lines(string(readFile(t, file))) {
		old, with, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		if !ok || !bytes.Contains(data, []byte(old)) {
			t.Fatalf("%s: the text has no place for %q", file, line)
		}
		data = bytes.Replace(data, []byte(old), []byte(with), 1)
	}
	return data
}

// encodeProtobuf is "protobuf TO TEXT": the message whose text is as protoc --decode_raw prints it.
func encodeProtobuf(t *testing.T, args []string) {
	var s scanner.Scanner
	s.Init(bytes.NewReader(readFile(t, args[1])))
	var message func() []byte
	message = func() (out []byte) {
		for {
			switch token := s.Scan(); token {
			case scanner.EOF, '}':
				return out
			case scanner.Int:
			default:
				t.Fatalf("%s: %s is no field number", s.Pos(), s.TokenText())
			}
			n, err := strconv.Atoi(s.TokenText())
			if err != nil {
				t.Fatal(err)
			}
			number := protowire.Number(n)
			if s.Scan() == '{' {
				out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), message())
				continue
			}
			if s.Scan() == scanner.String {
				text, err := strconv.Unquote(s.TokenText())
				if err != nil {
					t.Fatal(err)
				}
				out = protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), []byte(text))
				continue
			}
			v, err := strconv.ParseUint(s.TokenText(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), v)
		}
	}
	writeFile(t, args[0], message())
}

// editArchive is "archive FROM TO EDITS [MEMBER]": the model JSON of a torch.export archive is
// edited, or what the path of a member has MEMBER in it.
func editArchive(t *testing.T, args []string) {
	from, err := zip.OpenReader(args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	member := "models/"
	if len(args) > 3 {
		member = args[3]
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range from.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(f.Name, member) {
			data = edits(t, args[2], data)
		}
		addMember(t, w, f.Name, data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, args[1], out.Bytes())
}

func addMember(t *testing.T, w *zip.Writer, name string, data []byte) {
	t.Helper()
	to, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err == nil {
		_, err = to.Write(data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// zipOf is an archive of files.
func zipOf(t *testing.T, files []string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range files {
		addMember(t, w, name, readFile(t, name))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// repack is "repack FROM TO EDITS [ptx]": the plans of an artifact, or its PTX, are edited, and it
// is written again with the digests that then are right.
func repack(t *testing.T, args []string) {
	a, err := artifact.Open(args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	c := artifact.Contents{Manifest: a.Manifest, Program: a.Program(), Weights: source, Report: []byte("{}")}
	for _, target := range a.Manifest.Targets {
		ptx, err := a.Kernels(target.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(args) > 3 {
			ptx = edits(t, args[2], ptx)
		}
		c.Kernels = append(c.Kernels, artifact.Kernels{Target: target.Name, PTX: ptx})
		for _, e := range a.Manifest.Entries {
			text, err := a.Plan(target.Name, e.Name, "")
			if err != nil {
				t.Fatal(err)
			}
			if len(args) == 3 {
				text = edits(t, args[2], text)
			}
			c.Plans = append(c.Plans, artifact.Plan{Target: target.Name, Entry: e.Name, JSON: text})
		}
	}
	if err := artifact.Write(args[1], c); err != nil {
		t.Fatal(err)
	}
}
