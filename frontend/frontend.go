// Package frontend recognises model files and hands them to the frontend that reads them.
package frontend

import (
	"bytes"

	"weft/frontend/fx"
	"weft/frontend/lower"
	"weft/frontend/onnx"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
)

// Options say how a model file is read.
type Options struct {
	// Dims are what --dim says of the dims: sizes decide branches of ONNX files; ApplyDims applies all
	// of them to the program.
	Dims []string
	// Constants are "INPUT=VALUES", which make constants of inputs.
	Constants []string
	// Mesh has the sizes of the process groups of a model with collectives, as axes; see fx.Options.
	Mesh string
}

// Import reads a model file: a torch.export archive (.pt2, or a graph-only .json.zip), an ONNX
// file, or program text. The contents decide, not the name.
func Import(path string, o Options) (*lower.Imported, error) {
	fixed, err := parseConstants(o.Constants)
	if err != nil {
		return nil, err
	}
	head, err := readHead(path)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) && !isProgramText(head) {
		return onnx.Import(path, onnx.Options{Sizes: fixedSizes(o.Dims), Constants: fixed})
	}
	imported, err := importProgram(path, head, o.Mesh)
	if err != nil {
		return nil, err
	}
	if err := fixInputs(imported.Program, fixed); err != nil {
		imported.Close()
		return nil, err
	}
	return imported, nil
}

// importProgram reads a file whose shapes do not depend on the values of its inputs.
func importProgram(path string, head []byte, axes string) (*lower.Imported, error) {
	if !isProgramText(head) {
		var o fx.Options
		var err error
		if axes != "" {
			if o.Mesh, err = mesh.Parse(axes); err != nil {
				return nil, err
			}
		}
		return fx.Import(path, o)
	}
	file, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	text := bytes.Clone(file.Data)
	file.Close()
	p, err := ir.ParseProgram(path, text)
	if err != nil {
		return nil, err
	}
	if err := ir.Verify(p); err != nil {
		for _, d := range diag.All(err) {
			d.In(path)
		}
		return nil, err
	}
	return &lower.Imported{Program: p}, nil
}

// isProgramText tells whether a file starts as program text does: a comment, a dim, a state
// or an entry.
func isProgramText(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	for _, word := range []string{"//", "mesh ", "dim ", "state ", "entry "} {
		if bytes.HasPrefix(head, []byte(word)) {
			return true
		}
	}
	return false
}

func readHead(path string) ([]byte, error) {
	file, err := weights.Map(path) // refuses pipes and devices
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if len(file.Data) == 0 {
		return nil, diag.Errorf(diag.FileTruncated, "", "the file is empty").In(path).Suggest("export the model again")
	}
	return bytes.Clone(file.Data[:min(len(file.Data), 512)]), nil
}
