package elementary

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of functions into docs/numerics.md")

// TestCoefficientsAreDerived tells whether coefficients.go is what coefficients.py wrote.
func TestCoefficientsAreDerived(t *testing.T) {
	sums, err := os.ReadFile("coefficients.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"coefficients.py", "coefficients.go"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name); !strings.Contains(string(sums), line) {
			t.Errorf("%s is not what coefficients.sum says: run go generate ./codegen/elementary", name)
		}
	}
}

// TestNumericsTable keeps the table of docs/numerics.md equal to the functions.
func TestNumericsTable(t *testing.T) {
	const path = "../../docs/numerics.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	head, rest, ok := strings.Cut(text, "-update -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- end of table -->")
	if !ok || !ok2 {
		t.Fatal("the marks of the table are missing")
	}
	var b strings.Builder
	b.WriteString("| function | float32 ulp | float64 ulp | instructions (float32, float64) | what, special cases | method |\n|---|---|---|---|---|---|\n")
	for _, f := range Functions[typed]() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d, %d | %s | %s |\n", f.Name, ulpText(f.ULP32), ulpText(f.ULP64),
			instructionCount(t, f, F32), instructionCount(t, f, F64), strings.ReplaceAll(f.Doc, "|", `\|`), strings.ReplaceAll(f.Method, "|", `\|`))
	}
	want := head + "-update -->\n" + b.String() + "<!-- end of table -->" + tail
	if text == want {
		return
	}
	if !*update {
		t.Fatal("the table differs from the functions; run go test ./codegen/elementary -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
}

func ulpText(ulp float64) string {
	if ulp == 0 {
		return "exact"
	}
	return fmt.Sprintf("%.2f", ulp)
}
