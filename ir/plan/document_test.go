package plan_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"weft/ir/plan"
)

// TestDocument decodes and verifies the examples of docs/plan.md: a whole plan, its text, and
// steps that may follow its own.
func TestDocument(t *testing.T) {
	const path = "../../docs/plan.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole *plan.Plan
	kinds := map[string]bool{}
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if whole == nil {
			whole = decode(t, m[1])
			if out, err := whole.Encode(); err != nil || string(out) != m[1] {
				t.Errorf("%v, the plan is written as\n%s", err, out)
			}
			if err := plan.Verify(whole, nil); err != nil {
				t.Error(err)
			}
			continue
		}
		p := *whole
		p.Mesh = []plan.Axis{{Name: "dp", Size: 4}} // that of the example of a collective
		var step plan.Step
		dec := json.NewDecoder(strings.NewReader(m[1]))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&step); err != nil {
			t.Errorf("%v\n%s", err, m[1])
			continue
		}
		p.Steps = p.Steps[:len(p.Steps):len(p.Steps)]
		if w := step.Wait; w != nil {
			p.Steps = append(p.Steps, plan.Step{Collective: &plan.Collective{Kind: "all_reduce", From: w.From, To: w.To, Axes: []string{"dp"}, Ranks: 4,
				DType: "f32", Combine: "add", Async: true}})
		}
		p.Steps = append(p.Steps, step)
		if err := plan.Verify(&p, nil); err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
		var field map[string]json.RawMessage
		if err := json.Unmarshal([]byte(m[1]), &field); err != nil {
			t.Error(err)
		}
		for kind := range field {
			kinds[kind] = true
		}
	}
	for _, kind := range []string{"launch", "copy", "fill", "if", "while", "collective", "wait"} {
		if !kinds[kind] {
			t.Errorf("no example of a step %s", kind)
		}
	}
	inText := regexp.MustCompile("(?s)```text\n.*?```")
	want := "```text\n" + whole.String() + "```"
	if *update {
		text = inText.ReplaceAllLiteral(text, []byte(want))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Contains(text, []byte(want)) {
		t.Errorf("%s does not have the text of its plan; run go test ./ir/plan -update", path)
	}
}
