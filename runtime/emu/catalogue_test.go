package emu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/codegen/ptx"
)

// TestCatalogue assembles every row of the catalogue into a kernel that the emulator decodes.
func TestCatalogue(t *testing.T) {
	classes := map[string]string{"r": "%r", "l": "%rd", "f": "%f", "d": "%fd", "h": "%rs"}
	for _, row := range ptx.Catalogue() {
		text := row.Text
		for n, c := range slices.Backward(strings.Split(row.Constraints, ",")) { // $10 before $1
			if class, ok := classes[strings.TrimPrefix(c, "=")]; ok {
				text = strings.ReplaceAll(text, fmt.Sprintf("$%d", n), fmt.Sprintf("%s%d", class, n+1))
			} else if c == "n" {
				constant := "1"
				if strings.HasPrefix(row.Name, "setmaxnreg.") {
					constant = "40"
				}
				text = strings.ReplaceAll(text, fmt.Sprintf("$%d", n), constant)
			} else if output, err := strconv.Atoi(c); err == nil && output < n { // the register of that output, which the text names
				text = strings.ReplaceAll(text, fmt.Sprintf("$%d", n), fmt.Sprintf("$%d", output))
			} else if c != "~{memory}" {
				t.Errorf("%s: constraint %q", row.Name, c)
			}
		}
		if err := Check(kernelText("{ .reg .b16 %rs<20>; .reg .f64 %fd<20>; .reg .b32 %r<300>; .reg .f32 %f<300>; .reg .b64 %rd<300>; " + text + " }")); err != nil {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
}
