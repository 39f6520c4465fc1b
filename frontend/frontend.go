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
)

// Import reads a model file: a torch.export archive (.pt2, or a graph-only .json.zip), an ONNX
// file, or program text. The contents decide, not the name. facts are what --dim says of the
// dims: sizes decide branches of ONNX files; ApplyDims applies all of them to the program.
// constants are "INPUT=VALUES", which make constants of inputs.
func Import(path string, facts, constants []string) (*lower.Imported, error) {
	fixed, err := parseConstants(constants)
	if err != nil {
		return nil, err
	}
	head, err := readHead(path)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) && !isProgramText(head) {
		return onnx.Import(path, onnx.Options{Sizes: fixedSizes(facts), Constants: fixed})
	}
	imported, err := importProgram(path, head)
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
func importProgram(path string, head []byte) (*lower.Imported, error) {
	if !isProgramText(head) {
		return fx.Import(path, fx.Options{})
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
