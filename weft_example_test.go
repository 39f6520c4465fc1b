package weft_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"weft"
	"weft/ir"
	"weft/runtime"
	"weft/runtime/emu"
)

// A program is compiled for a GPU, and run on the CPU.
func Example() {
	folder, err := os.MkdirTemp("", "weft")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	model, file := filepath.Join(folder, "model.weft"), filepath.Join(folder, "artifact.weft")
	text := "entry forward(%x \"x\": f32[2]) {\n  %y: f32[2] = add(%x, %x)\n  return %y \"y\"\n}\n"
	if err := os.WriteFile(model, []byte(text), 0o666); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	options := weft.Options{Config: weft.Config{Targets: []string{"sm_80"}}, Files: []weft.File{{Path: model}}, Jobs: 1}
	compiled, err := weft.Compile(ctx, options, weft.StagePTX)
	if err != nil {
		log.Fatal(err)
	}
	defer compiled.Close()
	if err := compiled.Write(file); err != nil {
		log.Fatal(err)
	}

	session, err := weft.Open(file, emu.New(emu.Options{}), runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	x := ir.NewTensor(ir.F32, 2)
	x.SetFloat(0, 1)
	x.SetFloat(1, 2.5)
	result, err := session.RunContext(ctx, "forward", []*ir.Tensor{x})
	if err != nil {
		log.Fatal(err)
	}
	y := result.Outputs[0]
	fmt.Println(y.Float(0), y.Float(1))
	// Output: 2 5
}
