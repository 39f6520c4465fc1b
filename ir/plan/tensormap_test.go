package plan_test

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/ir/diag"
	"weft/ir/plan"
)

const mapsFile = "testdata/maps.json"

// mapsEdited is the plan with tensor maps with pairs of texts replaced, once each.
func mapsEdited(t testing.TB, pairs ...string) string {
	t.Helper()
	data, err := os.ReadFile(mapsFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the plan has no %s", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func mapsKernels(name string) (int, bool) { return 5, name == "product" }

func TestMapsRoundTrip(t *testing.T) {
	p := decode(t, mapsEdited(t))
	if err := plan.Verify(p, mapsKernels); err != nil {
		t.Fatal(err)
	}
	out, err := p.Encode()
	if err != nil || string(out) != mapsEdited(t) {
		t.Errorf("%v, encoded:\n%s", err, out)
	}
	if again := decode(t, string(out)); !reflect.DeepEqual(again, p) {
		t.Errorf("%+v, want %+v", again, p)
	}
	const file = "testdata/maps.txt"
	if *update {
		if err := os.WriteFile(file, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || p.String() != string(want) {
		t.Errorf("%v, got\n%s", err, p)
	}
}

const (
	firstMap  = `{"buffer":0,"access":"r","map":{"dtype":"bf16","dims":["k","rows"],"strides":["2*k"],"box":[64,128],"swizzle":128}}`
	lastValue = `{"buffer":-1,"value":"rows","bits":32}`
)

// mapFaults damages the plan with tensor maps, each time against one rule.
var mapFaults = []struct {
	rule, name string
	edits      []string
	words      []string
}{
	{"P3", "offset", []string{`"offset":"512*k"`, `"offset":"512*q"`}, []string{"step 0", `"q"`}},
	{"P3", "dims", []string{`["k","rows"]`, `["q","rows"]`}, []string{"step 0", `"q"`}},
	{"P3", "strides", []string{`["2*k"]`, `["16*q"]`}, []string{"step 0", `"q"`}},
	{"P6", "no access", []string{`{"buffer":0,"access":"r"`, `{"buffer":0`}, []string{"argument 2"}},
	{"P6", "written", []string{`{"buffer":0,"access":"r"`, `{"buffer":0,"access":"rw"`}, []string{"argument 2"}},
	{"P6", "no buffer", []string{`{"buffer":0,"access":"r","map"`, `{"buffer":-1,"bits":32,"map"`}, []string{"argument 2"}},
	{"P6", "another buffer", []string{`{"buffer":0,"access":"r","map"`, `{"buffer":7,"access":"r","map"`}, []string{"buffer 7"}},
	{"P21", "order", []string{lastValue + "," + firstMap, firstMap + "," + lastValue}, []string{"argument 2 comes after argument 1"}},
	{"P21", "of what is written", []string{`{"buffer":0,"access":"r"`, `{"buffer":2,"access":"r"`}, []string{"buffer 2, which the launch writes"}},
	{"P21", "element type", []string{`"dtype":"bf16","dims"`, `"dtype":"b16","dims"`}, []string{`"b16"`}},
	{"P21", "complex", []string{`"dtype":"bf16","dims"`, `"dtype":"c64","dims"`}, []string{`"c64"`}},
	{"P21", "packed", []string{`"dtype":"bf16","dims"`, `"dtype":"i4","dims"`}, []string{`"i4"`}},
	{"P21", "strings", []string{`"dtype":"bf16","dims"`, `"dtype":"string","dims"`}, []string{`"string"`}},
	{"P21", "no dims", []string{`"dims":["1536*k"],"box":[256]`, `"dims":[],"box":[]`}, []string{"argument 4", "0 dims"}},
	{"P21", "six dims", []string{`"dims":["1536*k"],"box":[256]`, `"dims":["1","1","1","1","1","1"],"strides":["16","16","16","16","16"],"box":[16,1,1,1,1,1]`}, []string{"6 dims"}},
	{"P21", "strides", []string{`"strides":["2*k"],"box":[64,128]`, `"box":[64,128]`}, []string{"0 strides"}},
	{"P21", "box", []string{`"box":[64,128]`, `"box":[64]`}, []string{"a box of 1"}},
	{"P21", "empty box", []string{`"box":[64,128]`, `"box":[64,0]`}, []string{"0 elements in dimension 1"}},
	{"P21", "large box", []string{`"box":[64,128]`, `"box":[64,257]`}, []string{"257 elements"}},
	{"P21", "swizzle", []string{`"swizzle":128`, `"swizzle":16`}, []string{"swizzle of 16"}},
	{"P22", "box over a swizzle", []string{`"box":[64,128]`, `"box":[72,128]`}, []string{"144 bytes", "128"}},
	{"P22", "box under a swizzle", []string{`"box":[64,128]`, `"box":[32,128]`}, []string{"64 bytes", "128"}},
	{"P22", "odd box", []string{`"box":[256]`, `"box":[250]`}, []string{"argument 4", "250 bytes"}},
	{"P22", "stride", []string{`{"name":"k","min":8,"multiple":8}`, `{"name":"k","min":8,"multiple":4}`}, []string{"2*k bytes"}},
	{"P22", "offset", []string{`"offset":"512*k"`, `"offset":"512*k + 8"`}, []string{"512*k + 8 bytes"}},
	{"P23", "offset", []string{`"offset":"512*k"`, `"offset":"1024*k + 16"`}, []string{"argument 3", "leaves its buffer of 12288 bytes", "k = 8"}},
	{"P23", "negative offset", []string{`"offset":"512*k"`, `"offset":"-16"`}, []string{"argument 3", "-16"}},
	{"P23", "rows", []string{`["k","rows"]`, `["k","rows + 1"]`}, []string{"argument 2", "rows = 1, k = 8"}},
	{"P23", "columns", []string{`["k","rows"]`, `["k + 1","rows"]`}, []string{"argument 2"}},
	{"P23", "stride", []string{`"strides":["2*k"]`, `"strides":["2*k + 16"]`}, []string{"argument 2", "rows = 4096"}},
	{"P23", "stride of nothing", []string{`"strides":["2*k"],"box":[64,256]`, `"strides":["0"],"box":[64,256]`}, []string{"argument 3", "0 is not in 16.."}},
	{"P23", "negative dim", []string{`["k","256"]`, `["k","-1"]`}, []string{"argument 3"}},
	{"P23", "large dim", []string{`["k","256"]`, `["k","2147483649"]`}, []string{"argument 3", "2147483649"}},
	{"P23", "beyond counting", []string{`["k","256"],"strides":["2*k"]`, `["2147483648","2147483648"],"strides":["1099511627760"]`}, []string{"argument 3", "leaves"}},
}

func TestVerifyMaps(t *testing.T) {
	for _, test := range mapFaults {
		t.Run(test.rule+" "+test.name, func(t *testing.T) {
			err := plan.Verify(decode(t, mapsEdited(t, test.edits...)), mapsKernels)
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			if !slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool {
				ok := d.Code == diag.InvalidPlan && strings.HasPrefix(d.Message, test.rule+": ")
				for _, w := range test.words {
					ok = ok && strings.Contains(d.Error(), w)
				}
				return ok
			}) {
				t.Errorf("no fault of rule %s with %q", test.rule, test.words)
			}
		})
	}
	for name, edits := range map[string][]string{
		"of a buffer that is read otherwise":   {lastValue, `{"buffer":0,"access":"r"}`},
		"a launch that never has blocks":       {`"floordiv(rows + 127, 128)"`, `"0"`, `"offset":"512*k"`, `"offset":"2048*k"`},
		"no sizes near those that are tried":   {`{"name":"k","min":8,"multiple":8}`, `{"name":"k","min":9,"max":15,"multiple":8}`, `"offset":"512*k"`, `"offset":"2048*k"`},
		"a dim that is 0 where it would leave": {`"offset":"512*k","dims":["k","256"]`, `"offset":"2048*k","dims":["k","0"]`},
	} {
		if err := plan.Verify(decode(t, mapsEdited(t, edits...)), mapsKernels); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBindMaps(t *testing.T) {
	p := decode(t, mapsEdited(t))
	for _, test := range []struct {
		rows, k int64
		want    []*plan.BoundMap
	}{
		{200, 72, []*plan.BoundMap{
			{Size: 28800, Dims: []uint64{72, 200}, Strides: []uint64{144}},
			{Offset: 36864, Size: 73728, Dims: []uint64{72, 256}, Strides: []uint64{144}},
			{Size: 110592, Dims: []uint64{110592}, Strides: []uint64{}}}},
		{0, 72, nil}, // no blocks
		{1, 0, []*plan.BoundMap{
			{Dims: []uint64{0, 1}, Strides: []uint64{0}},
			{Dims: []uint64{0, 256}, Strides: []uint64{0}},
			{Dims: []uint64{0}, Strides: []uint64{}}}},
	} {
		b, err := plan.Bind(p, map[string]int64{"rows": test.rows, "k": test.k})
		if err != nil {
			t.Fatal(err)
		}
		got := b.Steps[0].Maps
		if test.want == nil && got != nil || test.want != nil && (len(got) != 5 || !reflect.DeepEqual(got[2:], test.want)) {
			t.Errorf("rows = %d, k = %d: %+v", test.rows, test.k, got)
		}
	}
	for name, test := range map[string]struct {
		edits []string
		word  string
	}{
		"leaves":    {[]string{`["k","rows"]`, `["k","max(rows, 10*rows - 50000)"]`}, "y at model.py:3"},
		"unaligned": {[]string{}, "9"},
		"stride":    {[]string{`["k","rows"],"strides":["2*k"]`, `["k","rows"],"strides":["8*k - 32*max(k, 6554)"]`}, "is not in 16.."},
	} {
		p := decode(t, mapsEdited(t, test.edits...))
		k := int64(8)
		if name == "unaligned" {
			k = 9
		}
		_, err := plan.Bind(p, map[string]int64{"rows": 60000, "k": k})
		var d *diag.Diagnostic
		if !errors.As(err, &d) || d.Code != diag.RunSize || !strings.Contains(err.Error(), test.word) || !strings.Contains(err.Error(), "rows = 60000") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
