package ir

import "testing"

func TestWithin(t *testing.T) {
	s, n := Sym("s"), Sym("n")
	ranges := func(name string) (Range, bool) { return Range{2, 32}, name == "s" }
	for _, c := range []struct {
		dim  Dim
		want string
	}{
		{Const(1).Sub(s).Max(Const(0)), "0"},
		{Const(2048).Sub(s).Max(Const(0)), "-s + 2048"},
		{Const(2048).Sub(Const(2048).Sub(s).Max(Const(0))), "s"},
		{s.Min(Const(32)), "s"},
		{s.Min(Const(31)), s.Min(Const(31)).String()},
		{s.Max(Const(3)).Mul(n), s.Max(Const(3)).Mul(n).String()},
		{n.Max(Const(0)), "n"},
		{n.Max(Const(1)), n.Max(Const(1)).String()},
		{s.Min(Const(64)).FloorDiv(Const(3)).Add(n.Mod(s.Max(Const(2)))), s.FloorDiv(Const(3)).Add(n.Mod(s)).String()},
	} {
		if got := c.dim.Within(ranges).String(); got != c.want {
			t.Errorf("%s within its ranges is %s, want %s", c.dim, got, c.want)
		}
	}
}
