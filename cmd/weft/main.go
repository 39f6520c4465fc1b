// Command weft compiles exported models for GPUs ahead of time, and runs and inspects what it
// compiled. It parses flags and prints; what it does is in the packages that it calls.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"weft/ir/diag"
	"weft/ir/diag/render"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// app is what the commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	output         *checkedWriter // behind stdout
	format         render.Format  // of diagnostics
	warnings       diag.List      // printed at the end, with the errors
	spooled        string         // the temporary copy of stdin, where an argument is -
	args           []string       // the command line
	status         int            // the exit status of processes that were started; 0 where all went well
}

// run is the whole command. It gives the exit status (see diag.Status).
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	output := &checkedWriter{w: stdout}
	a := &app{args: args, stdin: stdin, stdout: output, stderr: stderr, output: output, format: formatOf(args)}
	defer func() {
		if value := recover(); value != nil {
			status = a.report(diag.Panicked("", value))
		}
		if a.spooled != "" {
			os.Remove(a.spooled)
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := a.execute(ctx, args)
	if err != nil && ctx.Err() != nil {
		err = diag.Errorf(diag.Interrupted, "", "stopped by a signal").Because(err)
	}
	if err == nil && output.err != nil {
		err = diag.Errorf(diag.FileUnwritable, "", "standard output cannot be written: %v", output.err).Because(output.err)
	}
	if status = a.report(err); status == 0 {
		return a.status
	}
	return status
}

// report prints the diagnostics of err and the warnings, and gives the exit status.
func (a *app) report(err error) int {
	list := append(diag.List{}, a.warnings...)
	list = append(list, diag.All(err)...)
	for i, d := range list {
		if a.spooled != "" && d.File == a.spooled {
			c := *d
			list[i] = c.In("stdin")
		}
	}
	list.Sort()
	render.Write(a.stderr, a.format, list, version().Version)
	return int(diag.ExitStatus(err))
}

// formatOf finds --format before the flags are parsed, so that their own errors keep to it.
func formatOf(args []string) render.Format {
	format := render.Text
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, "--format=")
		if arg == "--format" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		for _, f := range render.Formats() {
			if ok && f == value {
				format = render.Format(f)
			}
		}
	}
	return format
}

// checkedWriter keeps the first error.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(p)
	c.err = err
	return n, err
}

// input gives the path of a FILE argument: for -, that of a temporary copy of stdin.
func (a *app) input(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	if a.spooled != "" {
		return "", diag.Errorf(diag.CommandLine, "", "- (standard input) can be given once")
	}
	f, err := os.CreateTemp("", "weft-stdin-*")
	if err != nil {
		return "", diag.Errorf(diag.FileUnwritable, "", "a temporary file cannot be made: %v", err).Because(err)
	}
	a.spooled = f.Name()
	_, err = io.Copy(f, a.stdin)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", diag.Errorf(diag.FileUnreadable, "", "standard input cannot be copied: %v", err).Because(err)
	}
	return a.spooled, nil
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }
