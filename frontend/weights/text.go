package weights

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"weft/ir/diag"
)

// quote prints a name from a file: at most 200 bytes, nothing that upsets a terminal.
func quote(name string) string {
	const limit = 200
	if len(name) > limit {
		return strconv.Quote(name[:limit]) + "…"
	}
	return strconv.Quote(name)
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	return strings.Join(quoted, ", ")
}

// inPlace sets the place of the diagnostic in err, or puts it before the one it has.
func inPlace(err error, place string) error {
	var d *diag.Diagnostic
	if !errors.As(err, &d) {
		return err
	}
	c := *d
	if c.Place != "" {
		place += ": " + c.Place
	}
	c.Place = place
	return &c
}

// inFile sets the file of the diagnostic in err unless it has one.
func inFile(err error, path string) error {
	var d *diag.Diagnostic
	if !errors.As(err, &d) || d.File != "" {
		return err
	}
	c := *d
	c.File = path
	return &c
}

func mulCheck(a, b int64) (int64, bool) {
	if a < 0 || b < 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(lo), hi == 0 && lo <= math.MaxInt64
}

func dimsKey(dims []int64) string {
	var b []byte
	for _, d := range dims {
		b = append(strconv.AppendInt(b, d, 10), ' ')
	}
	return string(b)
}
