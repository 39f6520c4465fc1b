package mesh

import (
	"slices"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ text, want, fault string }{
		{text: "dp=8", want: "dp=8"},
		{text: " dp = 8 , tp=4", want: "dp=8,tp=4"},
		{text: "_a1=1", want: "_a1=1"},
		{text: "dp=1024,tp=1024", want: "dp=1024,tp=1024"},
		{text: "", fault: `"" is not an axis and its size`},
		{text: "dp", fault: `"dp" is not an axis`},
		{text: "dp=0", fault: `"dp=0" is not an axis`},
		{text: "dp=-2", fault: `"dp=-2" is not an axis`},
		{text: "dp=2.5", fault: `is not an axis`},
		{text: "=2", fault: `"=2" is not an axis`},
		{text: "1dp=2", fault: `is not an axis`},
		{text: "d-p=2", fault: `is not an axis`},
		{text: "dp=2,", fault: `"" is not an axis`},
		{text: "dp=2,dp=4", fault: `axis "dp" is named twice`},
		{text: "dp=1024,tp=1025", fault: "more than 1048576 ranks"},
		{text: "dp=9223372036854775807,tp=9223372036854775807", fault: "more than 1048576 ranks"},
		{text: "dp=92233720368547758070", fault: "is not an axis"},
	} {
		m, err := Parse(test.text)
		switch {
		case test.fault == "" && (err != nil || m.String() != test.want):
			t.Errorf("%q: %v, %v", test.text, m, err)
		case test.fault != "":
			if list := diag.All(err); err == nil || list[0].Code != diag.BadMesh || !strings.Contains(err.Error(), test.fault) || len(m.Axes) != 0 {
				t.Errorf("%q: %v, %v; no %q", test.text, m, err, test.fault)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("dp=8,tp=4")
	f.Add(" a = 1")
	f.Add("dp=2,dp=2")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(m.String()); err != nil || again.String() != m.String() || m.Size() < 1 || m.Size() > MaxRanks {
			t.Errorf("%q: %v, %v", m, again, err)
		}
	})
}

func TestCoordinates(t *testing.T) {
	m := parse(t, "dp=2,tp=3")
	seen := map[[2]int64]bool{}
	for rank := range m.Size() {
		c := Coordinates(m, rank)
		if len(c) != 2 || c["rank.dp"] != rank/3 || c["rank.tp"] != rank%3 { // the last axis varies fastest
			t.Errorf("rank %d: %v", rank, c)
		}
		seen[[2]int64{c["rank.dp"], c["rank.tp"]}] = true
	}
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}

func parse(t *testing.T, text string) ir.Mesh {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLayout slices the numbers 1, 2, 3 ... for each rank (0 is padding) and puts them together again.
func TestLayout(t *testing.T) {
	for _, test := range []struct {
		name, mesh, sharding string
		dims                 map[string]int64
		global, local        []int64
		want                 [][]int64 // by rank
		runs                 int       // of rank 0
	}{
		{name: "whole", mesh: "dp=2", sharding: "[2, 2]", global: []int64{2, 2}, local: []int64{2, 2},
			want: [][]int64{{1, 2, 3, 4}, {1, 2, 3, 4}}, runs: 1},
		{name: "scalar", mesh: "dp=2", sharding: "[]", global: []int64{}, local: []int64{}, want: [][]int64{{1}, {1}}, runs: 1},
		{name: "rows are one run", mesh: "dp=2", sharding: "[4@dp, 2]", global: []int64{4, 2}, local: []int64{2, 2},
			want: [][]int64{{1, 2, 3, 4}, {5, 6, 7, 8}}, runs: 1},
		{name: "columns are a run a row", mesh: "dp=2", sharding: "[2, 4@dp]", global: []int64{2, 4}, local: []int64{2, 2},
			want: [][]int64{{1, 2, 5, 6}, {3, 4, 7, 8}}, runs: 2},
		{name: "padding", mesh: "dp=3", sharding: "[4@dp]", global: []int64{4}, local: []int64{2},
			want: [][]int64{{1, 2}, {3, 4}, {0, 0}}, runs: 1},
		{name: "padding of columns", mesh: "dp=2", sharding: "[2, 3@dp]", global: []int64{2, 3}, local: []int64{2, 2},
			want: [][]int64{{1, 2, 4, 5}, {3, 0, 6, 0}}, runs: 2},
		{name: "more ranks than elements", mesh: "dp=4", sharding: "[2@dp, 1]", global: []int64{2, 1}, local: []int64{1, 1},
			want: [][]int64{{1}, {2}, {0}, {0}}, runs: 1},
		{name: "one dim over two axes", mesh: "dp=2,tp=2", sharding: "[4@(dp, tp)]", global: []int64{4}, local: []int64{1},
			want: [][]int64{{1}, {2}, {3}, {4}}, runs: 1},
		{name: "one dim over two axes, the last first", mesh: "dp=2,tp=2", sharding: "[4@(tp, dp)]", global: []int64{4}, local: []int64{1},
			want: [][]int64{{1}, {3}, {2}, {4}}, runs: 1},
		{name: "two dims over two axes", mesh: "dp=2,tp=2", sharding: "[2@dp, 2@tp]", global: []int64{2, 2}, local: []int64{1, 1},
			want: [][]int64{{1}, {2}, {3}, {4}}, runs: 1},
		{name: "parts of a dim", mesh: "tp=2", sharding: "[(3, 2@tp)]", global: []int64{6}, local: []int64{3},
			want: [][]int64{{1, 3, 5}, {2, 4, 6}}, runs: 3},
		{name: "parts of a dim, both divided", mesh: "dp=2,tp=2", sharding: "[(2@dp, 3@tp)]", global: []int64{6}, local: []int64{2},
			want: [][]int64{{1, 2}, {3, 0}, {4, 5}, {6, 0}}, runs: 1},
		{name: "bound when run", mesh: "dp=2", sharding: "[n@dp]", dims: map[string]int64{"n": 3}, global: []int64{3}, local: []int64{2},
			want: [][]int64{{1, 2}, {3, 0}}, runs: 1},
		{name: "nothing", mesh: "dp=2", sharding: "[0@dp, 2]", global: []int64{0, 2}, local: []int64{0, 2},
			want: [][]int64{{}, {}}, runs: 0},
		{name: "nothing inside", mesh: "dp=2", sharding: "[2@dp, 0]", global: []int64{2, 0}, local: []int64{1, 0},
			want: [][]int64{{}, {}}, runs: 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := parse(t, test.mesh)
			s, err := ir.ParseSharding(test.sharding)
			if err != nil {
				t.Fatal(err)
			}
			var joined *ir.Tensor
			for rank := range m.Size() {
				l, err := Bind(s, m, rank, test.dims)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(l.Global, test.global) || !slices.Equal(l.Local, test.local) {
					t.Fatalf("%v of %v", l.Local, l.Global)
				}
				whole := counted(l.Global)
				part := l.Slice(whole)
				if !slices.Equal(part.Data, bytesOf(test.want[rank])) {
					t.Errorf("rank %d: %v, not %v", rank, part.Data, test.want[rank])
				}
				runs := 0
				l.Runs(func(_, _, count int64) {
					if runs++; count < 1 {
						t.Errorf("rank %d: a run of %d elements", rank, count)
					}
				})
				if rank == 0 && runs != test.runs {
					t.Errorf("%d runs, not %d", runs, test.runs)
				}
				if joined == nil {
					joined = ir.NewTensor(ir.U8, l.Global...)
				}
				l.Place(joined, part)
			}
			if whole := counted(test.global); !slices.Equal(joined.Data, whole.Data) {
				t.Errorf("joined: %v", joined.Data)
			}
		})
	}
}

// counted is a tensor of the bytes 1, 2, 3 ...
func counted(shape []int64) *ir.Tensor {
	t := ir.NewTensor(ir.U8, shape...)
	for i := range t.Data {
		t.Data[i] = byte(i + 1)
	}
	return t
}

func bytesOf(values []int64) []byte {
	b := make([]byte, len(values))
	for i, v := range values {
		b[i] = byte(v)
	}
	return b
}

func TestBindUnknownDim(t *testing.T) {
	s, err := ir.ParseSharding("[n@dp]")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Bind(s, parse(t, "dp=2"), 0, nil); err == nil || !strings.Contains(err.Error(), "n") {
		t.Errorf("%v", err)
	}
}
