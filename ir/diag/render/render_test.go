package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"weft/ir/diag"
)

// list has a diagnostic of each kind of place, and text that formats must escape.
var list = diag.List{
	diag.Errorf(diag.TextSyntax, "3:14", "expected %q, found %q", ":", "<f32>").In("models/a b,c.weft"),
	diag.Errorf(diag.UnsupportedOperators, "layer 2 (nn/linear.py:134)", "100%% of it\nis unsupported").In("model.pt2").
		Note("aten.bincount: once").Suggest("use another operator"),
	diag.Warnf(diag.FXAssertion, "", "an assertion is left out"),
	{Code: "W9999", Severity: diag.Note, Place: "1:2: x", Message: "a code that the table lacks"},
}

func text(t *testing.T, f Format, list diag.List) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, f, list, "0.1.0"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	want := `models/a b,c.weft: 3:14: error W3000: expected ":", found "<f32>"
model.pt2: layer 2 (nn/linear.py:134): error W2001: 100% of it
is unsupported
  note: aten.bincount: once
  help: use another operator
warning W1110: an assertion is left out
1:2: x: note W9999: a code that the table lacks
`
	if diff := cmp.Diff(want, text(t, Text, list)); diff != "" {
		t.Error(diff)
	}
}

func TestGitHub(t *testing.T) {
	want := `::error file=models/a b%2Cc.weft,line=3,col=14,title=W3000 program text has a syntax error::expected ":", found "<f32>"
::error file=model.pt2,title=W2001 operators that weft does not compile::layer 2 (nn/linear.py:134): 100%25 of it%0Ais unsupported%0Anote: aten.bincount: once%0Ahelp: use another operator
::warning title=W1110 runtime assertion left out::an assertion is left out
::notice title=W9999::a code that the table lacks
`
	if diff := cmp.Diff(want, text(t, GitHub, list)); diff != "" {
		t.Error(diff)
	}
}

func TestJSON(t *testing.T) {
	var doc struct{ Diagnostics []map[string]any }
	if err := json.Unmarshal([]byte(text(t, JSON, list)), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"code": "W3000", "title": "program text has a syntax error", "severity": "error", "file": "models/a b,c.weft",
		"place": "3:14", "line": 3.0, "column": 14.0, "message": `expected ":", found "<f32>"`}
	if diff := cmp.Diff(want, doc.Diagnostics[0]); diff != "" {
		t.Error(diff)
	}
	if len(doc.Diagnostics) != len(list) {
		t.Errorf("%d diagnostics, expected %d", len(doc.Diagnostics), len(list))
	}
	if got := text(t, JSON, nil); got != "{\n  \"diagnostics\": []\n}\n" {
		t.Errorf("no diagnostics: %s", got)
	}
}

func TestSARIFKeepsToTheSchema(t *testing.T) {
	for _, list := range []diag.List{nil, list, append(list[:2:2], list[0])} {
		log, err := sarif.FromString(text(t, SARIF, list))
		if err != nil {
			t.Fatal(err)
		}
		// What the log leaves out, the library writes as empty, which the schema refuses.
		run := log.Runs[0]
		run.Language, run.Tool.Driver.Language, run.NewlineSequences = "en", "en", []string{"\n"}
		if err := log.Validate(); err != nil {
			t.Error(err)
		}
		if n := len(run.Results); n != len(list) {
			t.Errorf("%d results, expected %d", n, len(list))
		}
	}
	log, err := sarif.FromString(text(t, SARIF, list))
	if err != nil {
		t.Fatal(err)
	}
	first := log.Runs[0].Results[0].Locations[0].PhysicalLocation
	if got := *first.ArtifactLocation.URI; got != "models/a%20b,c.weft" {
		t.Errorf("URI %s", got)
	}
	if r := first.Region; *r.StartLine != 3 || *r.StartColumn != 14 {
		t.Errorf("region %d:%d", *r.StartLine, *r.StartColumn)
	}
	second := log.Runs[0].Results[1]
	if got := second.Locations[0].LogicalLocations[0].FullyQualifiedName; *got != "layer 2 (nn/linear.py:134)" {
		t.Errorf("logical location %s", *got)
	}
	if rules := log.Runs[0].Tool.Driver.Rules; len(rules) != 4 || *rules[1].ID != "W2001" {
		t.Errorf("%d rules", len(rules))
	}
}

func TestFormatsAreDocumented(t *testing.T) {
	if got := strings.Join(Formats(), " "); got != "text json sarif github" {
		t.Error(got)
	}
}
