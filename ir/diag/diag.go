// Package diag holds weft's diagnostics: values with a stable code, a place, a message and a
// suggestion. Every error that a user can cause is one. They print as text here; other
// formats (JSON, SARIF, GitHub annotations) are made from the same values.
package diag

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Severity orders diagnostics.
type Severity uint8

// The severities, the worst first.
const (
	Error Severity = iota
	Warning
	Note
)

// String is the word in messages: error, warning or note.
func (s Severity) String() string {
	return [...]string{"error", "warning", "note"}[s]
}

// Code is a stable identifier, "W1203". The table in codes.go documents each.
type Code string

// Diagnostic is one message to the user.
type Diagnostic struct {
	Code       Code
	Severity   Severity
	File       string // the input file as the user named it; may be empty
	Place      string // within the file: module path and source line, node name, byte offset
	Message    string // one sentence, what is wrong
	Notes      []string
	Suggestion string // what to do; may be empty
	Cause      error  // the underlying error, for errors.Is; may be nil
}

// Errorf makes an error diagnostic.
func Errorf(code Code, place, format string, args ...any) *Diagnostic {
	return &Diagnostic{Code: code, Severity: Error, Place: place, Message: fmt.Sprintf(format, args...)}
}

// Warnf makes a warning diagnostic.
func Warnf(code Code, place, format string, args ...any) *Diagnostic {
	d := Errorf(code, place, format, args...)
	d.Severity = Warning
	return d
}

// Suggest sets the suggestion and returns d.
func (d *Diagnostic) Suggest(format string, args ...any) *Diagnostic {
	d.Suggestion = fmt.Sprintf(format, args...)
	return d
}

// Note appends a note and returns d.
func (d *Diagnostic) Note(format string, args ...any) *Diagnostic {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
	return d
}

// In sets the file and returns d.
func (d *Diagnostic) In(file string) *Diagnostic {
	d.File = file
	return d
}

// Because records the underlying error and returns d.
func (d *Diagnostic) Because(err error) *Diagnostic {
	d.Cause = err
	return d
}

// Unwrap gives the underlying error.
func (d *Diagnostic) Unwrap() error { return d.Cause }

// Error prints the diagnostic as text: a line, then indented notes and the suggestion.
func (d *Diagnostic) Error() string {
	var b strings.Builder
	for _, part := range []string{d.File, d.Place} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	fmt.Fprintf(&b, "%s %s: %s", d.Severity, d.Code, d.Message)
	for _, n := range d.Notes {
		b.WriteString("\n  note: ")
		b.WriteString(strings.ReplaceAll(n, "\n", "\n    "))
	}
	if d.Suggestion != "" {
		b.WriteString("\n  help: ")
		b.WriteString(strings.ReplaceAll(d.Suggestion, "\n", "\n    "))
	}
	return b.String()
}

// List is several diagnostics as one error.
type List []*Diagnostic

// Error says what is wrong, and where.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As and errors.Is look into the list.
func (l List) Unwrap() []error {
	errs := make([]error, len(l))
	for i, d := range l {
		errs[i] = d
	}
	return errs
}

// Err returns the list as an error when it holds an error, else nil.
func (l List) Err() error {
	for _, d := range l {
		if d.Severity == Error {
			return l
		}
	}
	return nil
}

// Blame gives the bugs among the diagnostics of an error a place, the step that failed, where they have
// none. A run that was cancelled has no bugs.
func Blame(step string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	list := All(err)
	for _, d := range list {
		if d.Code == Bug && d.Place == "" {
			d.Place = step
		}
	}
	return list
}

// Sort orders by file, then errors before warnings, then place, code and message.
func (l List) Sort() {
	key := func(d *Diagnostic) string {
		return strings.Join([]string{d.File, string('0' + rune(d.Severity)), d.Place, string(d.Code), d.Message}, "\x00")
	}
	sort.SliceStable(l, func(i, j int) bool { return key(l[i]) < key(l[j]) })
}

// All collects the diagnostics that err is or wraps, in order. What a diagnostic was made of
// (its Cause) does not count. An error that holds none becomes an internal bug (W0900): no
// error reaches the user without a code.
func All(err error) List {
	if err == nil {
		return nil
	}
	if list := find(err); list != nil {
		return list
	}
	return List{Errorf(Bug, "", "%v", err).Because(err).
		Suggest("this is a bug in weft: please report it with the command and the input")}
}

// find gives the outermost diagnostics of err.
func find(err error) List {
	switch e := err.(type) {
	case List:
		return e
	case *Diagnostic:
		return List{e}
	case interface{ Unwrap() []error }:
		var list List
		for _, inner := range e.Unwrap() {
			list = append(list, find(inner)...)
		}
		return list
	case interface{ Unwrap() error }:
		return find(e.Unwrap())
	}
	return nil
}
