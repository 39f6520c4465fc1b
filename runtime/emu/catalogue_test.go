package emu

import (
	"fmt"
	"strings"
	"testing"

	"weft/codegen/ptx"
)

// TestCatalogue assembles every row of the catalogue into a kernel that the emulator decodes.
func TestCatalogue(t *testing.T) {
	classes := map[string]string{"r": "%r", "l": "%rd", "f": "%f", "d": "%fd", "h": "%rs"}
	for _, row := range ptx.Catalogue() {
		text := row.Text
		for n, c := range strings.Split(row.Constraints, ",") {
			if class, ok := classes[strings.TrimPrefix(c, "=")]; ok {
				text = strings.ReplaceAll(text, fmt.Sprintf("$%d", n), fmt.Sprintf("%s%d", class, n+1))
			} else if c != "~{memory}" {
				t.Errorf("%s: constraint %q", row.Name, c)
			}
		}
		if err := Check(kernelText(".reg .f64 %fd<9>; " + text)); err != nil {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
}
