package onnx

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"weft/ir"
)

var update = flag.Bool("update", false, "write testdata again")

const subsetFile = "testdata/node_cases.tar.gz"

// subset reads the checked-in cases of ONNX's node suite: one archive with the files of each
// case in a folder.
func subset(t testing.TB) []nodeCase {
	file, err := os.Open(subsetFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []nodeCase
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return cases
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		name, member, _ := strings.Cut(header.Name, "/")
		if len(cases) == 0 || cases[len(cases)-1].name != name {
			cases = append(cases, nodeCase{name: name, rtol: 1e-3, atol: 1e-7})
		}
		c := &cases[len(cases)-1]
		switch {
		case member == "model.onnx":
			c.model = data
		case member == "limits":
			if _, err := fmt.Sscan(string(data), &c.rtol, &c.atol); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(member, "input"):
			c.inputs = append(c.inputs, data)
		default:
			c.outputs = append(c.outputs, data)
		}
	}
}

// tensors gives the inputs of a case; nil where one is no tensor.
func (c nodeCase) tensors() []*ir.Tensor {
	out := make([]*ir.Tensor, len(c.inputs))
	for i, data := range c.inputs {
		t, err := parseTensor(data)
		if err != nil {
			return nil
		}
		out[i] = t
	}
	return out
}

// TestNodeSubset evaluates the checked-in cases.
func TestNodeSubset(t *testing.T) {
	if *update {
		writeSubset(t)
	}
	for _, c := range subset(t) {
		t.Run(c.name, func(t *testing.T) {
			if o, err := c.run(); o != agrees && o != agreesBound && o != drawn {
				t.Errorf("%s: %v", o, err)
			}
		})
	}
}

// writeSubset picks for each operator the smallest cases that agree, up to two, from the
// folders that WEFT_ONNX_NODE names, and all cases named test_more_*.
func writeSubset(t *testing.T) {
	var cases []nodeCase
	for _, dir := range caseFolders(t) {
		c, err := readCase(dir)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	slices.SortStableFunc(cases, func(a, b nodeCase) int { return a.size() - b.size() })
	taken := map[string]int{}
	var picked []nodeCase
	for _, c := range cases {
		m, err := decodeModel(c.model)
		if err != nil {
			t.Fatal(err)
		}
		new := slices.ContainsFunc(m.graph.nodes, func(n *nodeProto) bool { return taken[n.domain+n.opType] < 2 })
		first := slices.ContainsFunc(m.graph.nodes, func(n *nodeProto) bool { return taken[n.domain+n.opType] == 0 })
		own := strings.HasPrefix(c.name, "test_more_")
		if !own && (!new || c.size() > 8<<10 && !first || c.size() > 64<<10 || strings.Contains(c.name, "_expanded") && !first) {
			continue
		}
		if o, _ := c.run(); o != agrees && o != agreesBound && o != drawn {
			continue
		}
		for _, n := range m.graph.nodes {
			if !own {
				taken[n.domain+n.opType]++
			}
		}
		picked = append(picked, c)
	}
	slices.SortFunc(picked, func(a, b nodeCase) int { return strings.Compare(a.name, b.name) })
	var buffer bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(zipped)
	add := func(name string, data []byte) {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR})
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range picked {
		add(c.name+"/model.onnx", c.model)
		add(c.name+"/limits", fmt.Appendf(nil, "%g %g", c.rtol, c.atol))
		for i, data := range c.inputs {
			add(fmt.Sprintf("%s/input_%d.pb", c.name, i), data)
		}
		for i, data := range c.outputs {
			add(fmt.Sprintf("%s/output_%d.pb", c.name, i), data)
		}
	}
	for _, c := range []io.Closer{w, zipped} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(subsetFile, buffer.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d cases, %d bytes", len(picked), buffer.Len())
}

func (c nodeCase) size() int {
	n := len(c.model)
	for _, data := range slices.Concat(c.inputs, c.outputs) {
		n += len(data)
	}
	return n
}
