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
		operand := "2"
		if class, ok := classes[strings.TrimPrefix(c, "=")]; ok {
			operand = fmt.Sprintf("%s%d", class, n)
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("$%d", n), operand)
	}
	return fmt.Sprintf(".visible .entry k%d()\n{\n.reg .b16 %%rs<16>; .reg .b32 %%r<16>; .reg .f32 %%f<16>; .reg .b64 %%rd<16>; .reg .f64 %%fd<16>;\n%s\nret;\n}\n", index, text)
}

// TestCatalogue assembles every row for the oldest target and PTX version that it names.
func TestCatalogue(t *testing.T) {
	a := find(t)
	modules := map[[2]int]string{}
	for i, row := range ptx.Catalogue() {
		modules[[2]int{row.Target, row.Version}] += kernel(i, row)
	}
	for oldest, kernels := range modules {
		target := fmt.Sprintf("sm_%d", oldest[0])
		text := fmt.Sprintf(".version %d.%d\n.target %s\n.address_size 64\n%s", oldest[1]/10, oldest[1]%10, target, kernels)
		if _, err := a.Assemble(context.Background(), []byte(text), target); err != nil {
			t.Errorf("%s, PTX %d.%d: %v", target, oldest[1]/10, oldest[1]%10, err)
		}
	}
}
