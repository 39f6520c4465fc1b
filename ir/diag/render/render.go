// Package render prints diagnostics for people (text), programs (JSON), code scanners (SARIF
// 2.1.0) and GitHub's workflow logs (annotations).
package render

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"weft/ir/diag"
)

// Format names an output format.
type Format string

// The formats.
const (
	Text   Format = "text"
	JSON   Format = "json"
	SARIF  Format = "sarif"
	GitHub Format = "github"
)

// Formats lists the names of all formats.
func Formats() []string {
	return []string{string(Text), string(JSON), string(SARIF), string(GitHub)}
}

// Write prints the diagnostics in order. JSON and SARIF give a whole document also for none.
// version is weft's, which SARIF names.
func Write(w io.Writer, f Format, list diag.List, version string) error {
	switch f {
	case JSON:
		return writeJSON(w, jsonOf(list))
	case SARIF:
		return writeJSON(w, sarifOf(list, version))
	case GitHub:
		return writeGitHub(w, list)
	}
	return writeText(w, list)
}

func writeText(w io.Writer, list diag.List) error {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(d.Error())
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type jsonDocument struct {
	Diagnostics []jsonDiagnostic `json:"diagnostics"`
}

type jsonDiagnostic struct {
	Code       diag.Code `json:"code"`
	Title      string    `json:"title,omitempty"` // of the code
	Severity   string    `json:"severity"`
	File       string    `json:"file,omitempty"`
	Place      string    `json:"place,omitempty"`
	Line       int       `json:"line,omitempty"`
	Column     int       `json:"column,omitempty"`
	Message    string    `json:"message"`
	Notes      []string  `json:"notes,omitempty"`
	Suggestion string    `json:"suggestion,omitempty"`
}

func jsonOf(list diag.List) jsonDocument {
	doc := jsonDocument{Diagnostics: []jsonDiagnostic{}}
	for _, d := range list {
		info, _ := diag.Lookup(d.Code)
		line, column := position(d.Place)
		doc.Diagnostics = append(doc.Diagnostics, jsonDiagnostic{d.Code, info.Title, d.Severity.String(), d.File, d.Place, line, column, d.Message, d.Notes, d.Suggestion})
	}
	return doc
}

var positionPattern = regexp.MustCompile(`^([0-9]{1,9}):([0-9]{1,9})(?:$|: )`)

// position reads the line and column that the places of text files begin with; 0 for others.
func position(place string) (line, column int) {
	if m := positionPattern.FindStringSubmatch(place); m != nil {
		line, _ = strconv.Atoi(m[1])
		column, _ = strconv.Atoi(m[2])
	}
	return line, column
}

// body is the diagnostic without its file, code and severity: place, message, notes, suggestion.
func body(d *diag.Diagnostic) string {
	var b strings.Builder
	if line, _ := position(d.Place); d.Place != "" && line == 0 {
		b.WriteString(d.Place + ": ")
	}
	b.WriteString(d.Message)
	for _, n := range d.Notes {
		b.WriteString("\nnote: " + n)
	}
	if d.Suggestion != "" {
		b.WriteString("\nhelp: " + d.Suggestion)
	}
	return b.String()
}

// writeGitHub prints workflow commands: ::error file=F,line=L,col=C,title=T::message.
func writeGitHub(w io.Writer, list diag.List) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	command := map[diag.Severity]string{diag.Error: "error", diag.Warning: "warning", diag.Note: "notice"}
	var b strings.Builder
	for _, d := range list {
		var properties []string
		if d.File != "" {
			properties = append(properties, "file="+property.Replace(d.File))
			if line, column := position(d.Place); line > 0 {
				properties = append(properties, fmt.Sprintf("line=%d,col=%d", line, column))
			}
		}
		title := string(d.Code)
		if info, ok := diag.Lookup(d.Code); ok {
			title += " " + info.Title
		}
		properties = append(properties, "title="+property.Replace(title))
		fmt.Fprintf(&b, "::%s %s::%s\n", command[d.Severity], strings.Join(properties, ","), data.Replace(body(d)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
