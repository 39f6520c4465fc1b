package diag

import (
	"slices"
	"strings"
)

// Nearest lists at most n of the names that are most like name, the nearest first: what the
// user may have meant. Case does not matter.
func Nearest(name string, names []string, n int) []string {
	type scored struct {
		name     string
		distance int
	}
	limit := max(2, len(name)/3)
	var near []scored
	for _, c := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(c), limit); d <= limit {
			near = append(near, scored{c, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.distance - b.distance })
	var out []string
	for _, s := range near[:min(n, len(near))] {
		out = append(out, s.name)
	}
	return out
}

// distance is the number of bytes to insert, delete or replace to make b of a, or limit+1
// where it is certain to be more than limit. A name that begins with the other is near.
func distance(a, b string, limit int) int {
	if len(a) >= 3 && strings.HasPrefix(b, a) {
		return min(limit, len(b)-len(a))
	}
	if len(a) > 400 || len(b) > 400 || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
