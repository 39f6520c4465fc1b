package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// table prints rows of cells in columns, two spaces apart. The first row is the heading.
func table(w io.Writer, rows [][]string) {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
	for line := range strings.Lines(b.String()) {
		io.WriteString(w, strings.TrimRight(line, " \n")+"\n")
	}
}

// printJSON prints v as indented JSON.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// bytesText prints a number of bytes: 812 B, 1.5 KiB, 20.0 MiB.
func bytesText(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if v /= 1024; v < 1024 {
			return fmt.Sprintf("%.1f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", v/1024)
}

// number is a float that JSON can hold: infinities and NaN print as strings.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsInf(v, 0) || math.IsNaN(v) {
		return json.Marshal(fmt.Sprint(v))
	}
	return json.Marshal(float64(n))
}

// plural counts things: 1 kernel, 2 kernels, 3 entries.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printReports prints reports one after the other with an empty line between, or as one JSON array.
func printReports[T any](a *app, reports []T, asJSON bool, print func(T)) error {
	if asJSON {
		return a.printJSON(reports)
	}
	for i, r := range reports {
		if i > 0 {
			a.printf("\n")
		}
		print(r)
	}
	return nil
}
