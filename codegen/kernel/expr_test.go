package kernel

import (
	"math/rand/v2"
	"testing"

	"weft/ir"
)

// evaluate computes an integer expression for values of its variables.
func evaluate(x *Expr, at map[*Expr]int64) int64 {
	if v, ok := at[x]; ok {
		return v
	}
	arg := func(i int) int64 { return evaluate(x.Args[i], at) }
	switch x.Op {
	case Const:
		return x.Imm
	case Add:
		return arg(0) + arg(1)
	case Sub:
		return arg(0) - arg(1)
	case Mul:
		return arg(0) * arg(1)
	case UDiv:
		return arg(0) / arg(1)
	case URem:
		return arg(0) % arg(1)
	case And:
		return arg(0) & arg(1)
	case Or:
		return arg(0) | arg(1)
	case Xor:
		return arg(0) ^ arg(1)
	case SMin:
		return min(arg(0), arg(1))
	case SMax:
		return max(arg(0), arg(1))
	case Select:
		if arg(0) != 0 {
			return arg(1)
		}
		return arg(2)
	case Compare:
		if arg(0) < arg(1) {
			return 1
		}
		return 0
	}
	panic("an operation that the test does not make")
}

// Index arithmetic is simplified as it is built: whatever is simplified must have the value of
// what was asked for, within the range that is known of it.
func TestIndexArithmetic(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := NewBuilder(&ir.Program{}, 128, ir.I64)
		at := map[*Expr]int64{}
		type pair struct {
			x    *Expr
			want int64
		}
		var pool []pair
		for i := range 3 {
			limit := []int64{1, 7, 128, 1 << 20}[r.IntN(4)]
			v := b.fresh(Var, ir.I64, int64(i)).ranged(0, limit-1)
			at[v] = r.Int64N(limit)
			pool = append(pool, pair{v, at[v]})
		}
		constants := []int64{0, 1, 2, 3, 4, 8, 12, 16, 128, -1, -5}
		for range 30 {
			if r.IntN(3) == 0 {
				c := constants[r.IntN(len(constants))]
				pool = append(pool, pair{b.Idx(c), c})
			}
			p, q := pool[r.IntN(len(pool))], pool[r.IntN(len(pool))]
			var n pair
			switch r.IntN(8) {
			case 0, 1:
				n = pair{b.Add(p.x, q.x), p.want + q.want}
			case 2:
				n = pair{b.Sub(p.x, q.x), p.want - q.want}
			case 3:
				n = pair{b.Mul(p.x, q.x), p.want * q.want}
			case 4:
				d := []int64{1, 2, 3, 4, 6, 8, 12, 128}[r.IntN(8)]
				if p.x.lo < 0 {
					continue
				}
				quotient, rest := b.DivMod(p.x, b.Idx(d))
				pool = append(pool, pair{quotient, p.want / d})
				n = pair{rest, p.want % d}
			case 5:
				n = pair{b.MinIndex(p.x, q.x), min(p.want, q.want)}
			case 6:
				n = pair{b.MaxIndex(p.x, q.x), max(p.want, q.want)}
			case 7:
				n = pair{b.Select(b.Less(p.x, q.x), p.x, q.x), min(p.want, q.want)}
			}
			if n.want > 1<<40 || n.want < -1<<40 {
				continue
			}
			pool = append(pool, n)
		}
		for _, p := range pool {
			if got := evaluate(p.x, at); got != p.want {
				t.Fatalf("seed %d: %s is %d, not %d", seed, p.x, got, p.want)
			}
			if p.want < p.x.lo || p.want > p.x.hi {
				t.Fatalf("seed %d: %d is outside of the range %d..%d of %s", seed, p.want, p.x.lo, p.x.hi, p.x)
			}
			for _, v := range []int64{2, 4, 8, 16} {
				if MultipleOf(p.x, v, func(*Expr) int64 { return 1 }) && p.want%v != 0 {
					t.Fatalf("seed %d: %d is no multiple of %d", seed, p.want, v)
				}
			}
		}
	}
}

// A grid ends at 65535 along y and z.
func TestBlocks(t *testing.T) {
	p := &ir.Program{Symbols: []ir.Symbol{{Name: "n", Max: ir.NoBound, Multiple: 1}, {Name: "m", Max: 4096, Multiple: 1}}}
	n, m := ir.Sym("n"), ir.Sym("m")
	for _, c := range []struct {
		x, y, z ir.Dim
		folded  bool
	}{
		{n, m, ir.Const(65535), false},
		{ir.Const(1), n, ir.Const(1), true},
		{ir.Const(1), ir.Const(1), n, true},
		{ir.Const(4), ir.Const(65536), ir.Const(3), true},
	} {
		b := NewBuilder(p, 32, ir.I64)
		b.Blocks(c.x, c.y, c.z)
		if folded := b.Kernel.Grid[1].Is(1) && b.Kernel.Grid[2].Is(1); folded != c.folded {
			t.Errorf("%s x %s x %s: grid %v", c.x, c.y, c.z, b.Kernel.Grid)
		}
		if all := ir.Product(b.Kernel.Grid[:]); !all.Equal(c.x.Mul(c.y).Mul(c.z)) {
			t.Errorf("%s x %s x %s: %s blocks", c.x, c.y, c.z, all)
		}
	}
}
