package ptxas

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/codegen/ptx"
)

// kernel writes a catalogue row as a kernel whose operands are registers.
func kernel(index int, row ptx.Intrinsic) string {
	classes := map[string]string{"r": "%r", "l": "%rd", "f": "%f", "d": "%fd", "h": "%rs"}
	text := row.Text
	for n, c := range slices.Backward(strings.Split(row.Constraints, ",")) { // $10 before $1
		operand := "1" // a constant
		if strings.HasPrefix(row.Name, "setmaxnreg.") {
			operand = "40"
		}
		if class, ok := classes[strings.TrimPrefix(c, "=")]; ok {
			operand = fmt.Sprintf("%s%d", class, n)
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", n), operand)
	}
	if strings.HasPrefix(row.Name, "wgmma.") {
		text = "wgmma.fence.sync.aligned;\n" + text + "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
	}
	return fmt.Sprintf(".visible .entry k%d() .reqntid 128, 1, 1 .minnctapersm 1\n{\n.reg .b16 %%rs<16>; .reg .b32 %%r<300>; .reg .f32 %%f<300>; .reg .b64 %%rd<300>; .reg .f64 %%fd<16>;\n%s\nret;\n}\n", index, text)
}

// TestCatalogue assembles every row for the oldest target and PTX version that it names.
func TestCatalogue(t *testing.T) {
	a := find(t)
	type module struct {
		target  string
		version int
	}
	modules := map[module]string{}
	for i, row := range ptx.Catalogue() {
		target := fmt.Sprintf("sm_%d", row.Target)
		if row.Specific() {
			target += "a"
		}
		modules[module{target, row.Version}] += kernel(i, row)
	}
	for m, kernels := range modules {
		text := fmt.Sprintf(".version %d.%d\n.target %s\n.address_size 64\n%s", m.version/10, m.version%10, m.target, kernels)
		if _, err := a.Assemble(context.Background(), []byte(text), m.target); err != nil {
			t.Errorf("%s, PTX %d.%d: %v", m.target, m.version/10, m.version%10, err)
		}
	}
}
