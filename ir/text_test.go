package ir

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/ir/diag"
)

// textFiles reads testdata/text: programs that cover the grammar.
func textFiles(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("testdata/text/*.weft")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no programs in testdata/text: %v", err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestTextFixpoint(t *testing.T) {
	for path, text := range textFiles(t) {
		p, err := ParseProgram(path, text)
		if err != nil {
			t.Fatal(err)
		}
		once := p.String()
		q, err := ParseProgram(path, []byte(once))
		if err != nil {
			t.Fatalf("printed text does not parse: %v\n%s", err, once)
		}
		if diff := cmp.Diff(once, q.String()); diff != "" {
			t.Errorf("%s: printing again differs: %s", path, diff)
		}
		if strings.HasSuffix(path, "printed.weft") {
			if diff := cmp.Diff(string(text), once); diff != "" {
				t.Errorf("%s: (-text +printed) %s", path, diff)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	deep := func(open, close string, n int) string { return strings.Repeat(open, n) + strings.Repeat(close, n) }
	for _, c := range []struct{ text, want string }{
		{"foo", `t: 1:1: error W3000: expected mesh, dim, state or entry, found "foo"`},
		{"dim a\n  dim a", `2:7: error W3005: dim "a" is declared twice`},
		{"dim a in 1", `1:11: error W3000: expected "..", found the end of the text`},
		{"dim a in 1..99999999999999999999", `W3000: "99999999999999999999" is not a 64-bit integer`},
		{"dim é", `1:5: error W3000: unexpected character 'é'`},
		{"state @\"s: f32[]", `1:8: error W3000: the string that starts here does not end`},
		{`state @"s": f33[] buffer`, `W3001: there is no element type "f33"`},
		{`state @"s": f32[] buffer state @"s": f32[] buffer`, `W3005: state "s" is declared twice`},
		{`entry f() { return } entry f() { return }`, `W3005: entry "f" is declared twice`},
		{`entry f() { `, `expected an operation or return, found the end`},
		{`entry f() { %0: f32[] = foo() return }`, `W3001: there is no operator "foo"`},
		{`entry f() { %0: f32[] = abs(%1) return }`, `1:29: error W3002: %1 is not defined`},
		{`entry f(%0 "": f32[], %0 "": f32[]) { return }`, `W3002: %0 is defined twice`},
		{`entry f(%0 "": f32[]) { return memory { %1 in input 0 } }`, `W3002: %1 is not defined`},
		{`entry f(%0 "": f32[]) { return memory { %0 in space 0 } }`, `expected buffer, input or output, found "space"`},
		{`entry f() { return memory { buffer 1: 4 live 0..1 } }`, `buffer 1 comes where buffer 0 should`},
		{`entry f(%0 "": f32[2]) { %1: f32[] = abs(%0) return }`, `W3003: abs gives [f32[2]], declared is [f32[]]`},
		{`entry f(%0 "": i1[2]) { %1: i1[2] = abs(%0) return }`, `W3003: abs: not defined for i1`},
		{`entry f(%0 "": f32[2]) { %1: f32[2] = abs(%0) {axis = 1} return }`, `W3001: abs has no attributes`},
		{`entry f(%0 "": f32[2]) { %1: f32[2] = reverse(%0) {axis = 1} return }`, `W3001: reverse has no attribute "axis"`},
		{`entry f(%0 "": f32[2]) { %1: f32[2] = reverse(%0) {axes = [0], axes = [0]} return }`, `W3005: attribute "axes" is given twice`},
		{`entry f(%0 "": f32[2]) { %1: i1[2] = compare(%0, %0) {direction = EQUAL} return }`, `W3001: unknown comparison "EQUAL"`},
		{`entry f() { %0: f32[2] = constant() {value = f32[2] [1]} return }`, `W3003: 1 elements for f32[2]`},
		{`entry f() { %0: i8[] = constant() {value = i8[] 128} return }`, `W3003: 128 is not a value of i8`},
		{`entry f() { %0: f32[2] = constant() {value = f32[2] hex "00"} return }`, `W3003: 1 bytes of data`},
		{`entry f() { %0: f32[2] = constant() {value = f32[2] hex "0x"} return }`, `W3000: encoding/hex: invalid byte`},
		{`entry f() { %0: i1[] = constant() {value = i1[] 1} return }`, `expected true or false`},
		{`dim n entry f() { %0: f32[n] = constant() {value = f32[n] splat 1} return }`, `W3003: a literal needs a tensor type of constant shape`},
		{`entry f() { %0: f32[] = constant() {value = f32[1000000, 1000000] splat 1} return }`, `W3004: literals take more than 16 MiB`},
		{`entry f() { %0: i8[] = constant() {value = i8[9223372036854775807, 9223372036854775807] splat 1} return }`, `W3004`},
		{`entry f() { %0: i8[] = constant() {value = i8[9223372036854775807, 0, 9] []} return }`, `declared is`},
		{"entry f(%0 \"\": " + deep("sequence<", ">", 1000) + ") { return }", `W3004: types nest deeper`},
		{"entry f(%0 \"\": f32[" + deep("(", ")", 1000) + "]) { return }", `W3004: dim expressions nest deeper`},
		{"entry f(%0 \"\": i1[]) { " + strings.Repeat("%1: i1[] = if(%0) do { ", 1000), `defined twice`},
		{"entry f(%0 \"\": f32[" + strings.Repeat("(a+b+c+d+e+f+g+h)*", 30) + "1]) { return }", `W3004`},
		{"entry f(%0 \"\": f32[a+b+c+d+e+f+g+h, a+b+c+d+e+f+g+h, a+b+c+d+e+f+g+h, a+b+c+d+e+f+g+h]) { return }", `W3004: the number of elements`},
	} {
		_, err := ParseProgram("t", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200s\n\tgives %v, not %s", c.text, err, c.want)
		}
	}
}

func TestDimText(t *testing.T) {
	for text, want := range map[string]string{
		"b + a - 3":                       "a + b - 3",
		"-a*2":                            "-2*a",
		"(a + 1)*(a - 1)":                 "a*a - 1",
		"floordiv(4*a + 6, 2)":            "2*a + 3",
		"floordiv(a + 1, 2)":              "floordiv(a + 1, 2)",
		`max("past.len", mod(a, 8))`:      `max("past.len", mod(a, 8))`,
		`"floordiv" + "x y" + "plain"`:    `"floordiv" + "x y" + plain`,
		"-9223372036854775808":            "-9223372036854775808",
		"9223372036854775807*2":           "9223372036854775807",
		"-(a - b)":                        "-a + b",
		"a - 9223372036854775807 - 1 - 1": "a - 9223372036854775808",
		"min(a, a + 1)":                   "a",
		"floordiv(a, 0) + mod(a, b)*a":    "a*mod(a, b)",
	} {
		p := mustParse(t, "entry f(%0 \"x\": f32["+text+"]) { return }")
		got := p.Entries[0].Types[0].Shape[0].String()
		if got != want {
			t.Errorf("%s prints as %s, not %s", text, got, want)
		}
		again := mustParse(t, "entry f(%0 \"x\": f32["+got+"]) { return }").Entries[0].Types[0].Shape[0]
		if again.String() != got {
			t.Errorf("%s prints again as %s", got, again)
		}
	}
}

func TestTensorText(t *testing.T) {
	big := NewTensor(F32, 65)
	big.SetFloat(3, 1)
	many := NewTensor(String, 65)
	many.Strings[2] = "\xff\x00\""
	padded := NewTensor(I4, 3)
	padded.Data[1] = 0xf0
	payload := NewTensor(F32, 1)
	copy(payload.Data, "\x01\x00\xc0\x7f")
	odd := NewTensor(Bool, 1)
	odd.Data[0] = 2
	for _, x := range []*Tensor{big, many, padded, payload, odd,
		ScalarTensor(F64, 0.1), ScalarTensor(F32, 0.1), ScalarTensor(F16, 1e-7), ScalarTensor(BF16, 3e38), ScalarTensor(F8E8M0FNU, 0),
		ScalarTensor(F8E4M3FN, 240), ScalarInt(U64, -1), ScalarInt(I2, -2), I64s([]int64{1, -1 << 63}), I64s([]int64{}), I64s(nil, 0, 3),
	} {
		text := "entry f() { %0: " + x.Type().String() + " = constant() {value = " + x.String() + "} return }"
		y := mustParse(t, text).Entries[0].Body.Ops[0].Attrs.(*ConstantAttrs).Value
		if diff := cmp.Diff(x, y, cmp.Transformer("empty", func(b []byte) string { return string(b) }), cmp.Transformer("shape", func(s []int64) string { return DimList(Consts(s...)) })); diff != "" {
			t.Errorf("%s reads back differently: %s", x, diff)
		}
	}
	if s := (&Tensor{DType: F32, Shape: []int64{2}}).String(); s != "f32[2] invalid" {
		t.Errorf("a damaged tensor prints as %s", s)
	}
}

// TestAttrsText prints and reads a filled attribute struct of every kind, so that a field of a
// new type cannot go without text.
func TestAttrsText(t *testing.T) {
	for k := OpConstant; k < NumKinds; k++ {
		a := k.newAttrs()
		if a == nil {
			continue
		}
		fillAttrs(reflect.ValueOf(a).Elem())
		pr := printer{}
		pr.attrs(a)
		back := k.newAttrs()
		err := Try(func() {
			ps := parser{lexer: lexer{text: pr.b.String()}, p: &Program{}}
			ps.next()
			ps.attrs(&Op{Kind: k, Attrs: back}, token{text: k.String()})
		})
		again := printer{}
		again.attrs(back)
		if err != nil || pr.b.String() != again.b.String() {
			t.Errorf("%s:%s reads back as%s: %v", k, pr.b.String(), again.b.String(), err)
		}
		if want, got := reflect.TypeOf(a).Elem().NumField(), strings.Count(pr.b.String(), " = ")-strings.Count(pr.b.String(), "{source")*2; k != OpKernel && got != want {
			t.Errorf("%s prints%s without one of its %d fields", k, pr.b.String(), want)
		}
	}
}

func fillAttrs(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case **Tensor:
		*x = ScalarTensor(F32, 1.5)
		return
	case *Dim:
		*x = Sym("n").AddConst(1)
		return
	case *DType:
		*x = BF16
		return
	case *Precision:
		*x = TF32
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(-0.1)
	case reflect.String:
		v.SetString("a \"b\"")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillAttrs(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			fillAttrs(v.Field(i))
		}
	}
}

func TestParseSharding(t *testing.T) {
	for _, text := range []string{"[]", "[4]", "[32@dp, 64]", "[n@(dp, tp), (3, 64@tp, 1)]", `[floordiv(n + 1, 2)@"a b", ()]`} {
		if s, err := ParseSharding(text); err != nil || s.String() != text {
			t.Errorf("%s: %s %v", text, s, err)
		}
	}
	for _, text := range []string{"", "[", "[4]]", "[4@]", "[4@2]", "4", "[4@(dp]", "[4] of", "[(n + 1" + strings.Repeat(", n + 1", 40) + ")]"} {
		if s, err := ParseSharding(text); err == nil {
			t.Errorf("%s: %s", text, s)
		}
	}
}

func FuzzParseProgram(f *testing.F) {
	for _, text := range textFiles(f) {
		f.Add(text)
	}
	for _, c := range violations {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProgram("fuzz", text)
		if err != nil {
			if len(diag.All(err)) != 1 || diag.All(err)[0].Code == diag.Bug {
				t.Fatalf("error without a code: %v", err)
			}
			return
		}
		_ = Verify(p)
		once := p.String()
		q, err := ParseProgram("fuzz", []byte(once))
		if err != nil {
			t.Fatalf("printed text does not parse: %v\n%s", err, once)
		}
		if twice := q.String(); twice != once {
			t.Fatalf("not a fixpoint: %s", cmp.Diff(once, twice))
		}
	})
}
