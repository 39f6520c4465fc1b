package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"weft"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/passes"
)

// emit writes a stage of a compile to the output, or to stdout for -.
func (a *app) emit(c *weft.Compiled, f *compileFlags) error {
	var text strings.Builder
	switch f.emit {
	case "program":
		text.WriteString(c.Imported.String())
	case "scheduled":
		text.WriteString(c.Scheduled.String())
	case "llvm":
		text.WriteString(c.LLVM())
	case "plan":
		for i, target := range f.targets {
			for j, p := range c.Plans(target) {
				if i+j > 0 {
					text.WriteByte('\n')
				}
				text.WriteString(p.String())
			}
		}
	case "ptx":
		if len(f.targets) > 1 {
			return diag.Errorf(diag.CommandLine, "", "--emit ptx writes the kernels of one target, and %d are named", len(f.targets))
		}
		text.Write(c.PTX[f.targets[0]])
	}
	if f.output == "-" {
		a.printf("%s", text.String())
		return nil
	}
	return weights.WriteFile(f.output, func(w io.Writer) error {
		_, err := io.WriteString(w, text.String())
		return err
	})
}

// side is where what is printed beside the output goes: stderr while stdout has the output.
func (a *app) side(output string) io.Writer {
	if output == "-" {
		return a.stderr
	}
	return a.stdout
}

// dump prints the program after the chosen pass, or after every pass that changed it.
func (a *app) dump(f *compileFlags) func(string, bool, *ir.Program) error {
	return func(pass string, changed bool, p *ir.Program) error {
		if pass != f.dumpAfter && !(f.dumpAfter == "changed" && changed) {
			return nil
		}
		_, err := fmt.Fprintf(a.side(f.output), "// after %s\n%s\n", pass, p.String())
		return err
	}
}

func (a *app) printTimes(times []passes.Timing, output string) {
	rows := [][]string{{"PASS", "TIME", "CHANGED"}}
	for _, t := range times {
		changed := "no"
		if t.Changed {
			changed = "yes"
		}
		rows = append(rows, []string{t.Pass, t.Elapsed.Round(time.Microsecond).String(), changed})
	}
	table(a.side(output), rows)
}
