package codegen

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"weft/codegen/llvm"
	"weft/codegen/ptx"
	"weft/codegen/ptxas"
	"weft/ir/target"
)

// LLVM is the LLVM IR of all kernels, one after the other, each once.
func LLVM(lowered []*Lowered) string {
	var b strings.Builder
	written := map[string]bool{}
	for _, l := range lowered {
		for _, k := range l.Kernels {
			if !written[k.Name] {
				written[k.Name] = true
				b.WriteString(k.Text + "\n")
			}
		}
	}
	return b.String()
}

// PTX compiles the kernels for every target with llc, jobs processes at a time. It gives the text by
// target, and the version line of llc.
func PTX(ctx context.Context, lowered []*Lowered, targets []target.Target, jobs int) (text map[string][]byte, llc string, err error) {
	compiler, err := llvm.FindCompiler(ctx)
	if err != nil {
		return nil, "", err
	}
	compiler.Jobs = jobs
	text = map[string][]byte{}
	for _, t := range targets {
		entries, err := compiler.Compile(ctx, For(lowered, t.Name).Kernels, t.Name)
		if err != nil {
			return nil, "", err
		}
		header := fmt.Sprintf(".version %s\n.target %s\n.address_size 64\n", t.PTX, t.Name)
		if len(entries) > 0 {
			header = entries[0].Header
		}
		module, err := ptx.Join(header, entries)
		if err != nil {
			return nil, "", err
		}
		text[t.Name] = []byte(module)
	}
	return text, compiler.Version, nil
}

// Cubins assembles the PTX of every target with ptxas, jobs processes at a time. It gives the machine
// code by target, and the version of ptxas.
func Cubins(ctx context.Context, text map[string][]byte, targets []target.Target, jobs int) (cubins map[string][]byte, version string, err error) {
	assembler, err := ptxas.Find(ctx)
	if err != nil {
		return nil, "", err
	}
	results := make([][]byte, len(targets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(jobs, 1))
	for i, t := range targets {
		group.Go(func() (err error) {
			results[i], err = assembler.Assemble(ctx, text[t.Name], t.Name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, "", err
	}
	cubins = map[string][]byte{}
	for i, t := range targets {
		cubins[t.Name] = results[i]
	}
	return cubins, assembler.Version, nil
}
