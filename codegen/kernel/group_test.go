package kernel

import (
	"testing"

	"weft/ir"
)

// Indices have 64 bits where a tensor may have so many elements that 32 do not reach.
func TestIndexType(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want ir.DType
	}{
		"fixed":   {`%y: f32[7] = kernel(%x) {group = map, schedule = {threads = 32}} do (%a: f32[7]) { %b: f32[7] = negate(%a) yield %b }`, ir.I32},
		"large":   {`%y: f32[60000, 40000] = kernel(%x) {group = map, schedule = {threads = 32}} do (%a: f32[7]) { %b: f32[] = constant() {value = f32[] 1} %c: f32[60000, 40000] = broadcast_in_dim(%b) {dims = [60000, 40000]} yield %c }`, ir.I64},
		"inner":   {`%y: f32[60000] = kernel(%x) {group = map, schedule = {threads = 32}} do (%a: f32[7]) { %i: f32[60000, 40000] = iota() {type = f32, dims = [60000, 40000]} %c: f32[60000] = reduce(%i) {combine = add, axes = [1]} yield %c }`, ir.I64},
		"bounded": {`%y: f32[1000*m] = kernel(%x) {group = map, schedule = {threads = 32}} do (%a: f32[7]) { %i: f32[1000*m] = iota() {type = f32, dims = [1000*m]} yield %i }`, ir.I32},
		"open":    {`%y: f32[n] = kernel(%x) {group = map, schedule = {threads = 32}} do (%a: f32[7]) { %i: f32[n] = iota() {type = f32, dims = [n]} yield %i }`, ir.I64},
		"dim":     {`%y: i64[] = kernel(%x) {group = map, schedule = {threads = 32}} do (%a: f32[7]) { %i: i64[] = dim() {value = m*m*1000000} yield %i }`, ir.I64},
	} {
		p, err := ir.ParseProgram(name, []byte("dim n\ndim m in 1..4096\nentry e(%x \"x\": f32[7]) {\n"+c.text+"\nreturn %y \"y\"\n}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(p); err != nil {
			t.Fatal(err)
		}
		k, err := Build(p, p.Entries[0], p.Entries[0].Body.Ops[0], false)
		if err != nil {
			t.Fatal(err)
		}
		if k.Index != c.want {
			t.Errorf("%s: indices are %s, not %s", name, k.Index, c.want)
		}
	}
}
