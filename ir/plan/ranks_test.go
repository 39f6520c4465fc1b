package plan_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"weft/ir/diag"
	"weft/ir/plan"
)

const ranksFile = "testdata/ranks.json"

// ranksEdited is the plan for four ranks with pairs of texts replaced, once each.
func ranksEdited(t testing.TB, pairs ...string) string {
	t.Helper()
	data, err := os.ReadFile(ranksFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(text, pairs[i]) != 1 {
			t.Fatalf("the plan has %d times %s", strings.Count(text, pairs[i]), pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// Parts of the plan for four ranks.
const (
	gatherW     = ` {"collective":{"kind":"all_gather","from":1,"to":7,"axes":["tp"],"ranks":2,"dtype":"f32","channel":1,"async":true}},` + "\n"
	waitW       = ` {"wait":{"from":1,"to":7}},` + "\n"
	reduceSum   = ` {"collective":{"kind":"all_reduce","from":8,"to":9,"axes":["tp"],"ranks":2,"dtype":"f32","combine":"add","channel":2}},` + "\n"
	reduceCount = ` {"collective":{"kind":"all_reduce","from":10,"to":11,"axes":["dp","tp"],"ranks":4,"dtype":"i64","combine":"add","channel":3}},` + "\n"
	finiteOf    = `{"kernel":"finite","grid":["1","1","1"],"block":32,"args":[{"buffer":11,"access":"r"},`
	bounded     = `  {"collective":{"kind":"all_reduce","from":9,"to":15,"axes":["dp"],"ranks":2,"dtype":"f32","combine":"maximum","channel":4,"label":"bounded at model.py:12"}},` + "\n"
	lessThan    = `{"kernel":"less","grid":["1","1","1"],"block":32,"args":[{"buffer":13,"access":"r"},{"buffer":2,"access":"r"},`
	nextI       = `"args":[{"buffer":13,"access":"rw"}]`
	reduceMixed = `  {"collective":{"kind":"all_reduce","from":8,"to":4,"axes":["tp"],"ranks":2,"dtype":"f32","combine":"add","channel":5}},` + "\n"
	permute     = ` {"collective":{"kind":"collective_permute","from":1,"to":5,"axes":["tp"],"ranks":2,"dtype":"f32","channel":6,"pairs":[[0,1],[1,0]]}},` + "\n"
	largest     = ` {"collective":{"kind":"all_reduce","from":1,"to":6,"axes":["dp"],"ranks":2,"dtype":"f32","combine":"maximum","channel":7}}]` + "\n"
	fillI       = ` {"fill":{"buffer":13,`
)

// swapped exchanges the last two collectives.
var swapped = []string{permute, strings.TrimSuffix(largest, "]\n") + ",\n", largest, strings.TrimSuffix(permute, ",\n") + "]\n"}

// damages are plans that are damaged on purpose: on all ranks, or on some while the others have the
// good one. The words are in the trace.
var damages = []struct {
	name  string
	ranks []int // nil: all
	edits []string
	rule  string
	words []string
}{
	// Ranks that hold another plan than the others.
	{"missing", []int{3}, []string{reduceCount, "", finiteOf, strings.Replace(finiteOf, "11", "10", 1)}, "P18",
		[]string{"rank 3 (dp=1,tp=1), step 7", "rank 2 (dp=1,tp=0)"}},
	{"missing between others", []int{3}, []string{reduceMixed, `  {"copy":{"from":8,"to":4}},` + "\n"}, "P20",
		[]string{"rank 3 (dp=1,tp=1), step 17", "rank 3 (dp=1,tp=1) waits at step 17: collective_permute of f32 channel 6", "rank 2 (dp=1,tp=0) waits at step 15: all_reduce of f32 by add channel 5", "with rank 3"}},
	{"missing at the end", []int{1}, []string{largest, ` {"copy":{"from":1,"to":6}}]` + "\n"}, "P20",
		[]string{"rank 1 (dp=0,tp=1)", "rank 3 (dp=1,tp=1) waits at step 18", "with rank 1", "rank 1 (dp=0,tp=1) has ended"}},
	{"duplicated", []int{2}, []string{permute, permute + permute}, "P20",
		[]string{"rank 2 (dp=1,tp=0), step 18", "rank 2 (dp=1,tp=0) waits at step 18: collective_permute", "rank 3 (dp=1,tp=1) has ended"}},
	{"duplicated before another of the group", []int{2}, []string{reduceSum, reduceSum + strings.Replace(reduceSum, `"channel":2`, `"channel":9`, 1)}, "P20",
		[]string{"rank 2 (dp=1,tp=0), step 4", "rank 2 (dp=1,tp=0) waits at step 4: all_reduce of f32 by add channel 9 over tp", "rank 3 (dp=1,tp=1) waits at step 5: all_reduce of i64"}},
	{"swapped in one group", []int{3}, []string{permute, "", reduceSum, permute + reduceSum}, "P20",
		[]string{"rank 3 (dp=1,tp=1), step 3", "another kind", "rank 2 (dp=1,tp=0) waits at step 3: all_reduce"}},
	{"swapped in a circle", []int{0, 3}, swapped, "P20",
		[]string{"in a circle", "rank 0 (dp=0,tp=0) waits at step 17: all_reduce", "with rank 2", "rank 2 (dp=1,tp=0) waits at step 17: collective_permute", "with rank 3", "rank 3 (dp=1,tp=1) waits at step 17: all_reduce", "with rank 1", "rank 1 (dp=0,tp=1) waits at step 17: collective_permute"}},
	{"mistyped", []int{3}, []string{reduceSum, strings.Replace(reduceSum, "f32", "i32", 1)}, "P20",
		[]string{"rank 3 (dp=1,tp=1), step 3", "another element type than rank 2", "all_reduce of i32", "all_reduce of f32"}},
	{"wrong combination", []int{1}, []string{reduceSum, strings.Replace(reduceSum, "add", "maximum", 1)}, "P20",
		[]string{"rank 1 (dp=0,tp=1), step 3", "another combination than rank 0", "by maximum", "by add"}},
	{"wrong axis", []int{2}, []string{reduceSum, strings.Replace(reduceSum, "tp", "dp", 1)}, "P20",
		[]string{"rank 2 (dp=1,tp=0), step 3", "rank 2 (dp=1,tp=0) waits at step 3: all_reduce of f32 by add channel 2 over dp", "with rank 0"}},
	{"wrong group", []int{3}, []string{`{"kind":"arena","size":"32","name":"whole w"}`, `{"kind":"arena","size":"64","name":"whole w"}`, `"from":1,"to":7,"axes":["tp"],"ranks":2`, `"from":1,"to":7,"axes":["dp","tp"],"ranks":4`}, "P20",
		[]string{"rank 3 (dp=1,tp=1), step 0", "rank 3 (dp=1,tp=1) waits at step 0: all_gather of f32 channel 1 over dp,tp, 16 bytes to 64 with ranks 0, 1, 2"}},
	{"wrong size", []int{3}, []string{`"size":"4*n","after":[7],`, `"size":"8*n","after":[7],`, `"size":"4*n","after":[7,8],`, `"size":"8*n","after":[7,8],`, `{"copy":{"from":9,"to":4}}`, `{"fill":{"buffer":4,"pattern":"00"}}`,
		`"from":9,"to":15`, `"from":1,"to":15`, `"size":"4*n","after":[7,8,9,10,11,12,13,14]`, `"size":"16","after":[7,8,9,10,11,12,13,14]`, `{"copy":{"from":15,"to":4}}`, `{"copy":{"from":0,"to":4}}`, reduceMixed, ""}, "P20",
		[]string{"rank 3 (dp=1,tp=1), step 3", "another size", "8*n bytes to 8*n", "4*n bytes to 4*n"}},
	{"wrong channel", []int{3}, []string{reduceSum, strings.Replace(reduceSum, `"channel":2`, `"channel":8`, 1)}, "P20",
		[]string{"rank 3 (dp=1,tp=1), step 3", "another channel than rank 2", "channel 8", "channel 2"}},
	{"wrong kind", []int{0}, []string{largest, ` {"collective":{"kind":"all_to_all","from":1,"to":6,"axes":["dp"],"ranks":2,"dtype":"f32","channel":7}}]` + "\n"}, "P20",
		[]string{"rank 0 (dp=0,tp=0), step 18", "another kind than rank 2"}},
	{"pair missing", []int{1}, []string{`"pairs":[[0,1],[1,0]]`, `"pairs":[[0,1]]`}, "P20",
		[]string{"rank 1 (dp=0,tp=1), step 17", "another pairs than rank 0", "pairs [[0 1]]", "pairs [[0 1] [1 0]]"}},
	{"pairs of others", []int{2}, []string{`"pairs":[[0,1],[1,0]]`, `"pairs":[[0,0],[1,1]]`}, "P20", []string{"rank 2 (dp=1,tp=0), step 17", "pairs"}},
	{"outside of the if", []int{3}, []string{bounded, "", fillI, strings.TrimSpace(bounded) + "\n" + fillI, `{"copy":{"from":15,"to":4}}`, `{"copy":{"from":9,"to":4}}`}, "P20",
		[]string{"rank 3 (dp=1,tp=1), step 10", "another decision around it than rank 1", "inside if 0 first"}},
	{"in the other branch", []int{1}, []string{bounded, "", `{"copy":{"from":9,"to":4}}]`, strings.TrimSpace(bounded) + `{"copy":{"from":9,"to":4}}]`, `{"copy":{"from":15,"to":4}}`, `{"copy":{"from":9,"to":4}}`}, "P20",
		[]string{"rank 1 (dp=0,tp=1), step 9", "another decision around it than rank 3", "inside if 0 second", "inside if 0 first"}},
	{"another mesh", []int{3}, []string{`[{"name":"dp","size":2},{"name":"tp","size":2}]`, `[{"name":"dp","size":2},{"name":"tp","size":2},{"name":"pp","size":1}]`}, "P20", []string{"rank 3 (dp=1,tp=1)", "other mesh", "dp=2,tp=2,pp=1"}},
	{"other dims", []int{3}, []string{`"max":1024`, `"max":2048`}, "P20", []string{"rank 3 (dp=1,tp=1)", "other dims", "2048"}},
	{"other inputs", []int{2}, []string{`"name":"steps"`, `"name":"times"`}, "P20", []string{"rank 2 (dp=1,tp=0)", "other inputs", "times"}},

	// One plan for all ranks, in which they would decide differently.
	{"if by coordinates", nil, []string{finiteOf, finiteOf + `{"buffer":-1,"value":"\"rank.dp\"","bits":64},`}, "P18",
		[]string{"step 8", "rank 2 (dp=1,tp=0) waits at step 8: all_reduce of f32 by maximum channel 4 over dp (bounded at model.py:12) with rank 0", "rank 0 (dp=0,tp=0) skips it when the if of step 7 takes its else branch there",
			"buffer 12, the predicate, may differ along dp: step 6 passes rank.dp to a kernel"}},
	{"if by a divided tensor", nil, []string{finiteOf, finiteOf + `{"buffer":0,"access":"r"},`}, "P18",
		[]string{"step 8", `may differ along dp: input 0, "x", is divided over dp, which step 6 reads`}},
	{"if by what was not reduced", nil, []string{finiteOf, strings.Replace(finiteOf, "11", "10", 1)}, "P18",
		[]string{"step 8", `input 0, "x", is divided over dp, which step 1 reads, which step 3 reads, which step 4 reads, which step 6 reads`}},
	{"if by a reduction in place over another axis", nil, []string{reduceCount, strings.Replace(strings.Replace(reduceCount, `["dp","tp"],"ranks":4`, `["tp"],"ranks":2`, 1), `"to":11`, `"to":10`, 1), finiteOf, strings.Replace(finiteOf, "11", "10", 1)}, "P18",
		[]string{"step 8", "buffer 12, the predicate, may differ along dp", "which step 5 reads, which step 6 reads"}},
	{"if by what was read before a reduction in place", nil, []string{reduceCount, "", finiteOf, strings.Replace(finiteOf, "11", "10", 1), ` {"if":`, strings.Replace(reduceCount, `"to":11`, `"to":10`, 1) + ` {"if":`}, "P18",
		[]string{"step 8", "which step 5 reads"}},
	{"if by what was reduced over another axis", nil, []string{reduceCount, strings.Replace(reduceCount, `["dp","tp"],"ranks":4`, `["tp"],"ranks":2`, 1)}, "P18", []string{"step 8", "along dp"}},
	{"if by shares", nil, []string{reduceCount, strings.Replace(strings.Replace(reduceCount, `,"combine":"add"`, "", 1), `all_reduce`, `collective_permute`, 1)}, "P18", []string{"step 8", "step 5, collective_permute, gives each rank along dp another share"}},
	{"if by a state of the run before", nil, []string{nextI, `"args":[{"buffer":13,"access":"rw"},{"buffer":3,"access":"rw"},{"buffer":-1,"value":"\"rank.dp\"","bits":64}]`}, "P18",
		[]string{"step 8", "step 16 passes rank.dp to a kernel", "which step 6 reads"}},
	{"else branch", nil, []string{finiteOf, finiteOf + `{"buffer":0,"access":"r"},`, bounded, "", `{"copy":{"from":9,"to":4}}]`, strings.TrimSpace(bounded) + `{"copy":{"from":9,"to":4}}]`, `{"copy":{"from":15,"to":4}}`, `{"copy":{"from":9,"to":4}}`}, "P18",
		[]string{"step 9", "rank 0 (dp=0,tp=0) skips it when the if of step 7 takes its then branch there"}},
	{"while by coordinates", nil, []string{lessThan, lessThan + `{"buffer":-1,"value":"\"rank.tp\"","bits":64},`}, "P18",
		[]string{"step 15", "rank 1 (dp=0,tp=1) waits at step 15: all_reduce of f32 by add channel 5 over tp with rank 0", "rank 0 (dp=0,tp=0) skips it when the while of step 12 ends an iteration earlier there"}},
	{"while that counts by the rank", nil, []string{nextI, `"args":[{"buffer":13,"access":"rw"},{"buffer":-1,"value":"\"rank.tp\"","bits":64}]`}, "P18", []string{"step 15", "step 16 passes rank.tp to a kernel, which step 13 reads"}},
	{"while by a decision of ranks", nil, []string{finiteOf, finiteOf + `{"buffer":0,"access":"r"},`, lessThan, strings.Replace(lessThan, `{"buffer":2,`, `{"buffer":4,`, 1), reduceMixed, strings.Replace(reduceMixed, "tp", "dp", 1)}, "P18",
		[]string{"step 15", "along dp"}},
	{"a channel twice", nil, []string{reduceCount, strings.Replace(reduceCount, `"channel":3`, `"channel":2`, 1)}, "P19",
		[]string{"step 5", "channel 2 is that of step 3 too, with another axes", "ranks 0, 1, 2, 3 wait at step 5"}},

	// Buffers and waits, on one rank.
	{"missing wait", []int{3}, []string{waitW, ""}, "P17", []string{"rank 3 (dp=1,tp=1), step 0", "nothing waits"}},
	{"double wait", []int{2}, []string{waitW, waitW + waitW}, "P17", []string{"rank 2 (dp=1,tp=0), step 3", "from buffer 1 to 7"}},
	{"wait before start", []int{1}, []string{waitW, "", gatherW, waitW + gatherW}, "P17", []string{"rank 1 (dp=0,tp=1), step 0", "is on its way"}},
	{"wait for others", []int{1}, []string{waitW, strings.Replace(waitW, `"from":1`, `"from":0`, 1)}, "P17", []string{"rank 1 (dp=0,tp=1), step 2"}},
	{"wait inside a decision", []int{1}, []string{waitW, "", bounded, waitW + bounded}, "P17", []string{"rank 1 (dp=0,tp=1), step 7"}},
	{"operand overwritten in flight", []int{3}, []string{gatherW, strings.Replace(gatherW, `"from":1`, `"from":15`, 1), waitW, strings.Replace(waitW, `"from":1`, `"from":15`, 1), `"args":[{"buffer":0,"access":"r"},{"buffer":8,"access":"w"}`,
		`"args":[{"buffer":0,"access":"r"},{"buffer":15,"access":"w"}`, `{"kind":"arena","size":"4*n","after":[7,8,9,10,11,12,13,14]`, `{"kind":"arena","size":"16","after":[7,8,9,10,11,12,13,14]`,
		`"from":9,"to":15`, `"from":1,"to":15`, `{"copy":{"from":15,"to":4}}`, `{"copy":{"from":9,"to":4}}`}, "P17", []string{"rank 3 (dp=1,tp=1), step 1", "buffer 15 is in use by the asynchronous collective of step 0"}},
	{"result read in flight", []int{3}, []string{`"args":[{"buffer":0,"access":"r"},{"buffer":8`, `"args":[{"buffer":0,"access":"r"},{"buffer":7,"access":"r"},{"buffer":8`}, "P17", []string{"rank 3 (dp=1,tp=1), step 1", "buffer 7"}},
	{"result written in flight", []int{0}, []string{waitW, ` {"fill":{"buffer":7,"pattern":"00"}},` + "\n" + waitW}, "P17", []string{"rank 0 (dp=0,tp=0), step 2", "buffer 7"}},
	{"early reuse", []int{3}, []string{`"after":[7],"name":"partial"`, `"name":"partial"`}, "P10", []string{"rank 3 (dp=1,tp=1), buffer 8", "may overlap buffer 7", "step 1"}},
	{"operand reused while in use", []int{2}, []string{`"after":[7,8],"name":"sum"`, `"after":[7],"name":"sum"`}, "P10", []string{"rank 2 (dp=1,tp=0), buffer 9", "buffer 8", "step 3"}},
	{"size of the rank", []int{3}, []string{`"size":"4*n","after":[7],`, `"size":"4*\"rank.dp\"","after":[7],`}, "P16", []string{"rank 3 (dp=1,tp=1), step 3"}},
	{"group of another size", []int{3}, []string{reduceSum, strings.Replace(reduceSum, `"ranks":2`, `"ranks":4`, 1)}, "P15", []string{"rank 3 (dp=1,tp=1), step 3"}},
	{"pair of a rank outside", []int{3}, []string{`[[0,1],[1,0]]`, `[[0,1],[1,2]]`}, "P15", []string{"rank 3 (dp=1,tp=1), step 17"}},
	{"read before the collective", []int{1}, []string{reduceSum, "", reduceCount, reduceSum + reduceCount}, "P7", []string{"rank 1 (dp=0,tp=1), step 3", "buffer 9"}},
}

// peersOf are plans by rank: the damaged one on some ranks of four, or on all.
func peersOf(good, bad *plan.Plan, ranks []int) []*plan.Plan {
	plans := slices.Repeat([]*plan.Plan{good}, 4)
	for rank := range plans {
		if ranks == nil || slices.Contains(ranks, rank) {
			plans[rank] = bad
		}
	}
	return plans
}

// TestDamagedRanks refuses each damaged plan with a trace.
func TestDamagedRanks(t *testing.T) {
	good := decode(t, ranksEdited(t))
	for _, test := range damages {
		t.Run(test.name, func(t *testing.T) {
			err := plan.VerifyPeers(peersOf(good, decode(t, ranksEdited(t, test.edits...)), test.ranks))
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			if !slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool {
				ok := (d.Code == diag.RanksDisagree || d.Code == diag.InvalidPlan) && strings.HasPrefix(d.Message, test.rule+": ")
				for _, w := range test.words {
					ok = ok && strings.Contains(d.Error(), w)
				}
				return ok
			}) {
				t.Errorf("want a fault of rule %s with %q", test.rule, test.words)
			}
		})
	}
}

// TestGoodRanks accepts what no rank is held up by.
func TestGoodRanks(t *testing.T) {
	good := decode(t, ranksEdited(t))
	for _, test := range []struct {
		name  string
		ranks []int
		edits []string
	}{
		{"as it is", nil, nil},
		{"a copy", []int{3}, nil},
		{"a reduction in place", nil, []string{reduceCount, strings.Replace(reduceCount, `"to":11`, `"to":10`, 1), finiteOf, strings.Replace(finiteOf, "11", "10", 1)}},
		{"a decision by a reduction in place", nil, []string{` {"if":`, ` {"collective":{"kind":"all_reduce","from":12,"to":12,"axes":["dp","tp"],"ranks":4,"dtype":"i1","combine":"and","channel":8}},` + "\n" + ` {"if":`, finiteOf, strings.Replace(finiteOf, "11", "10", 1)}},
		{"a reduction of a state in place", nil, []string{` {"fill":{"buffer":13,`, ` {"collective":{"kind":"all_reduce","from":3,"to":3,"axes":["dp","tp"],"ranks":4,"dtype":"i64","combine":"add","channel":8}},` + "\n" + ` {"fill":{"buffer":13,`}},
		{"another label", []int{2}, []string{"model.py:12", "model.py:13"}},
		{"another grid", []int{1}, []string{`{"kernel":"count","grid":["1","1","1"]`, `{"kernel":"count","grid":["n","1","1"]`}},
		{"an order without a circle", []int{3}, swapped},
		{"the other order on all ranks", nil, swapped},
		{"a synchronous one", []int{3}, []string{`,"async":true`, "", waitW, ""}},
		{"decision of a group", nil, []string{bounded, strings.Replace(bounded, "dp", "tp", 1), finiteOf, finiteOf + `{"buffer":0,"access":"r"},`}},
		{"trips of a group", nil, []string{lessThan, lessThan + `{"buffer":-1,"value":"\"rank.dp\"","bits":64},`}},
		{"the same values by a ring", nil, []string{reduceCount, reduceCount + strings.NewReplacer(`"all_reduce"`, `"collective_permute"`, `,"combine":"add"`, "", `"from":10,"to":11`, `"from":11,"to":16`, `"channel":3`, `"channel":9,"pairs":[[0,1],[1,2],[2,3],[3,0]]`).Replace(reduceCount),
			finiteOf, strings.Replace(finiteOf, "11", "16", 1), `,"name":"bounded"}],`, `,"name":"bounded"},{"kind":"arena","size":"8","after":[7,8,9,10,11,12,13,14,15]}],`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bad := decode(t, ranksEdited(t, test.edits...))
			if err := plan.VerifyPeers(peersOf(good, bad, test.ranks)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPeersCount refuses sets of plans that are no mesh.
func TestPeersCount(t *testing.T) {
	good := decode(t, ranksEdited(t))
	for _, test := range []struct {
		plans []*plan.Plan
		word  string
	}{
		{[]*plan.Plan{good, good, good}, "3 ranks have plans for a mesh of 4"},
		{[]*plan.Plan{good, nil, good, good}, "rank 1: error W5005: P20: the rank has no plan"},
	} {
		if err := plan.VerifyPeers(test.plans); err == nil || !strings.Contains(err.Error(), test.word) {
			t.Errorf("%v, want %q", err, test.word)
		}
	}
	if err := plan.VerifyPeers(nil); err != nil {
		t.Error(err)
	}
}

// TestVerifyRanksEntries follows states from one entry to another, and refuses entries of other meshes.
func TestVerifyRanksEntries(t *testing.T) {
	good := decode(t, ranksEdited(t))
	other := decode(t, ranksEdited(t, `"entry": "step"`, `"entry": "reset"`, nextI, `"args":[{"buffer":13,"access":"rw"},{"buffer":3,"access":"rw"},{"buffer":-1,"value":"\"rank.dp\"","bits":64}]`,
		finiteOf, strings.Replace(finiteOf, "finite", "other", 1), bounded, `  {"copy":{"from":9,"to":15}},`+"\n"))
	for _, one := range []*plan.Plan{good, other} {
		if err := plan.VerifyRanks(one); err != nil {
			t.Error(err)
		}
	}
	err := plan.VerifyRanks(good, other)
	if err == nil || !strings.Contains(err.Error(), `entry "step", step 8: error W5005: P18`) || !strings.Contains(err.Error(), `step 16 of entry "reset" passes rank.dp to a kernel`) {
		t.Error(err)
	}
	mesh := decode(t, ranksEdited(t, `{"name":"tp","size":2}],`, `{"name":"tp","size":2},{"name":"pp","size":3}],`))
	if err := plan.VerifyRanks(good, mesh); err == nil || !strings.Contains(err.Error(), "dp=2,tp=2,pp=3") {
		t.Error(err)
	}
	if err := plan.VerifyRanks(); err != nil {
		t.Error(err)
	}
}

// TestFits compares memory with limits.
func TestFits(t *testing.T) {
	p := decode(t, ranksEdited(t))
	least, most, bounded := p.MemoryBounds()
	if least >= most || !bounded {
		t.Errorf("%d to %d, %v", least, most, bounded)
	}
	for _, test := range []struct {
		limit    int64
		severity diag.Severity
		words    []string
	}{
		{least - 1, diag.Error, []string{"each of the 4 ranks needs at least", "states: 24 bytes", "8*n"}},
		{most - 1, diag.Warning, []string{"needs up to", "at the largest sizes"}},
	} {
		d := p.Fits(test.limit)
		if d == nil || d.Severity != test.severity || d.Code != diag.PlanMemory {
			t.Errorf("%v", d)
			continue
		}
		for _, w := range test.words {
			if !strings.Contains(d.Error(), w) {
				t.Errorf("%v has no %q", d, w)
			}
		}
	}
	if d := p.Fits(most); d != nil {
		t.Error(d)
	}
	open := decode(t, ranksEdited(t, `"min":1,"max":1024`, `"min":1`))
	if low, _, bounded := open.MemoryBounds(); low != least || bounded || open.Fits(least) != nil {
		t.Errorf("%d, bounded %v, %v", low, bounded, open.Fits(least))
	}
}

// meshSizes are those for which times are reported.
var meshSizes = []int{8, 64, 512, 16384}

// largePlans are a long plan for a mesh, and the same with its last collective missing.
func largePlans(t testing.TB, ranks int) (good, bad *plan.Plan) {
	t.Helper()
	size := fmt.Sprintf(`[{"name":"dp","size":%d},{"name":"tp","size":4}]`, ranks/4)
	text := strings.NewReplacer(`[{"name":"dp","size":2},{"name":"tp","size":2}]`, size, `"name":"rank.dp","min":0,"max":1`, fmt.Sprintf(`"name":"rank.dp","min":0,"max":%d`, ranks/4-1),
		`"name":"rank.tp","min":0,"max":1`, `"name":"rank.tp","min":0,"max":3`, `["dp","tp"],"ranks":4`, fmt.Sprintf(`["dp","tp"],"ranks":%d`, ranks), `["tp"],"ranks":2`, `["tp"],"ranks":4`,
		`["dp"],"ranks":2`, fmt.Sprintf(`["dp"],"ranks":%d`, ranks/4), `"2*n"`, fmt.Sprintf(`"%d*n"`, ranks/4), `"size":"8","axes":["tp"]`, `"size":"16","axes":["tp"]`, `"size":"32"`, `"size":"64"`).Replace(ranksEdited(t))
	good, bad = decode(t, text), decode(t, text)
	for _, p := range []*plan.Plan{good, bad} {
		layer := p.Steps[:10] // up to the while
		for range 79 {
			p.Steps = append(slices.Clone(layer), p.Steps...)
		}
	}
	bad.Steps[len(bad.Steps)-1] = plan.Step{Copy: &plan.Copy{From: 1, To: 6}}
	return good, bad
}

// TestLargeMeshes finds the one rank of many that has a damaged plan.
func TestLargeMeshes(t *testing.T) {
	for _, ranks := range meshSizes {
		good, bad := largePlans(t, ranks)
		plans := slices.Repeat([]*plan.Plan{good}, ranks)
		if err := plan.VerifyPeers(plans); err != nil {
			t.Fatal(err)
		}
		plans[ranks-2] = bad
		err := plan.VerifyPeers(plans)
		if want := fmt.Sprintf("rank %d (dp=%d,tp=2) has ended", ranks-2, ranks/4-1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// BenchmarkVerifyRanks proves a plan of about a thousand steps, and finds the damaged one of a rank.
func BenchmarkVerifyRanks(b *testing.B) {
	for _, ranks := range meshSizes {
		good, bad := largePlans(b, ranks)
		steps := len(good.Flat())
		b.Run(fmt.Sprintf("%d/one-plan", ranks), func(b *testing.B) {
			for b.Loop() {
				if err := plan.VerifyRanks(good); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(steps), "steps")
		})
		plans := slices.Repeat([]*plan.Plan{good}, ranks)
		plans[ranks-2] = bad
		b.Run(fmt.Sprintf("%d/one-damaged", ranks), func(b *testing.B) {
			for b.Loop() {
				if err := plan.VerifyPeers(plans); err == nil {
					b.Fatal("no error")
				}
			}
		})
	}
}
