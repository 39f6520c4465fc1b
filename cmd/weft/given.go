package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft"
	"weft/frontend/lower"
	"weft/ir"
	"weft/ir/diag"
)

// givenFlags are the flags that say more about the inputs of a model file than the file does.
type givenFlags struct {
	dims      []string
	constants []string // INPUT=VALUES or INPUT=FILE, as they are given; values after resolve
}

func (g *givenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&g.dims, "dim", nil, "facts about a dim: batch=1..64, batch=8, in.0[0]=batch:1..64; repeatable")
	cmd.Flags().StringArrayVar(&g.constants, "constant", nil, "fix an input, which then is none, to values or those of a tensor file:\n`INPUT=VALUES` (in.1=[1,3], depth=5, mask=FILE); repeatable")
}

// resolve replaces names of tensor files by what is in them.
func (g *givenFlags) resolve() error {
	for i, fact := range g.constants {
		input, text, _ := strings.Cut(fact, "=")
		if !isTensorFile(text) {
			if _, _, err := lower.ParseConstant(fact); err != nil {
				return err
			}
			continue
		}
		t, err := tensorFor(input, text)
		if err != nil {
			return err
		}
		values, ok := lower.FormatConstant(t)
		if !ok {
			return diag.Errorf(diag.CommandLine, "--constant", "input %q cannot be fixed to %s: it may have %d elements, none of them infinite or NaN", input, t.Type(), lower.MaxConstantElements).In(text)
		}
		g.constants[i] = input + "=" + values
	}
	return nil
}

// isTensorFile tells names of files from values.
func isTensorFile(text string) bool {
	return slices.Contains([]string{".safetensors", ".npz", ".npy"}, filepath.Ext(text))
}

// tensorFor is the tensor of an input in a file: the one with its name, else the only one.
func tensorFor(input, path string) (*ir.Tensor, error) {
	f, err := readTensors(path, input)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := f.tensors[input]
	if t == nil && len(f.names) == 1 {
		t = f.tensors[f.names[0]]
	}
	if t == nil {
		return nil, diag.Errorf(diag.RunInputMissing, "--constant", "the file has no tensor %q", input).In(path).Suggest("it has %s", strings.Join(f.names, ", "))
	}
	return &ir.Tensor{DType: t.DType, Shape: t.Shape, Data: append([]byte(nil), t.Data...)}, nil
}

// give gives each of the files the constants that concern it: with several, those with the name
// of its entry and a dot in front.
func (g *givenFlags) give(files []weft.File) error {
	for _, fact := range g.constants {
		found := len(files) == 1
		if found {
			files[0].Constants = append(files[0].Constants, fact)
		}
		for i := range files {
			if own, ok := strings.CutPrefix(fact, files[i].Entry+"."); ok && len(files) > 1 {
				files[i].Constants, found = append(files[i].Constants, own), true
			}
		}
		if !found {
			return diag.Errorf(diag.CommandLine, "--constant", "%q names no entry", fact).Suggest("with several files write ENTRY.INPUT=VALUES")
		}
	}
	return nil
}

// file is a model file with what is given about it.
func (g *givenFlags) file(path string) []weft.File {
	return []weft.File{{Path: path, Constants: g.constants}}
}

// none fails where something is given about an artifact, which is compiled already.
func (g *givenFlags) none(path string) error {
	if len(g.dims) == 0 && len(g.constants) == 0 {
		return nil
	}
	return diag.Errorf(diag.CommandLine, "", "--dim and --constant are for model files, and this is an artifact").In(path).Suggest("compile it with them")
}
