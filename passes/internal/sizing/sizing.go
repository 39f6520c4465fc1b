// Package sizing has what passes assume of sizes and of a large GPU when they weigh costs.
package sizing

import "weft/ir"

const (
	// Multiprocessors is the number of a large GPU: as many blocks should run at a time at least.
	Multiprocessors = 132
	// guess is the size that an unbounded dim is taken for.
	guess = 1024
)

// Estimate is the largest size that a dim expression can have; a dim without a bound counts as a middling one.
func Estimate(p *ir.Program, d ir.Dim) int64 {
	return d.Bounds(func(name string) (ir.Range, bool) {
		if r, ok := p.Range(name); ok && r.Max < ir.NoBound {
			return r, true
		}
		return ir.Range{Min: guess, Max: guess}, true
	}).Max
}

// Ceil is a/b, rounded up, of a >= 0 and b > 0.
func Ceil(a, b int64) int64 { return (a + b - 1) / b }
