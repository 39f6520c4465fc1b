package ptx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Entry is one kernel cut out of a module, with everything that it needs.
type Entry struct {
	Name      string
	Header    string   // version, target and address size, with llc's banner
	Variables []string // the module-level lines that it uses, in source order
	Body      string   // from ".visible .entry" to the closing brace
}

// Text is the module that compiling the entry alone gives.
func (e *Entry) Text() string { return e.Header + e.section(e.Variables) }

// commentColumn is where llc's assembly printer puts comments.
const commentColumn = 40

// section prints the entry with some of its variables, as llc does for the first function of
// a module.
func (e *Entry) section(variables []string) string {
	var s strings.Builder
	s.WriteString("\t// .globl\t" + e.Name)
	// llc counts 16 columns in front of the name.
	s.WriteString(padding(16+len(e.Name)) + "// -- Begin function " + e.Name + "\n")
	for _, v := range variables {
		s.WriteString(v + "\n")
	}
	s.WriteString(padding(0) + "// @" + e.Name + "\n" + e.Body)
	return s.String()
}

// padding is the space between column and a comment.
func padding(column int) string { return strings.Repeat(" ", max(1, commentColumn-column)) }

var (
	functionStart = regexp.MustCompile(`^\t// \.globl\t(\S+)`)
	variableLine  = regexp.MustCompile(`^(?:\.(?:extern|visible|weak|common) )*\.(?:global|const|shared) .*?([\w$.]+)(?:\[\d*\])*(?: = .*)?;$`)
	demotedLine   = regexp.MustCompile(`^// (\S+) has been demoted$`)
	nameComment   = regexp.MustCompile(`^(.*?) *// @\S+$`)
	blockNumber   = regexp.MustCompile(`\bBB\d+_|(\$L__BB)\d+_`)
	labelLine     = regexp.MustCompile(`^(\$L__BB\d+_\d+:) +(//.*)$`)
)

// Split cuts llc's output into entries. The text of each equals what llc prints for a module
// with that entry alone: unused variables are dropped and labels renumbered from $L__BB<n>_<m>
// to $L__BB0_<m>.
func Split(text string) ([]Entry, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	start := slices.IndexFunc(lines, functionStart.MatchString)
	if start < 0 {
		return nil, &Error{Position{len(lines), 1}, "no function as llc prints them"}
	}
	header := strings.Join(lines[:start], "\n") + "\n"
	var entries []Entry
	var variables []string
	var current *Entry
	var body []string
	for i := start; i < len(lines); i++ {
		line := lines[i]
		match := functionStart.FindStringSubmatch(line)
		switch {
		case current == nil && match != nil:
			entries = append(entries, Entry{Name: match[1], Header: header})
			current, body = &entries[len(entries)-1], nil
		case current == nil:
			return nil, &Error{Position{i + 1, 1}, "text between functions"}
		case body == nil && (variableLine.MatchString(line) || demotedLine.MatchString(line)):
			variables = append(variables, line)
		case body == nil && strings.TrimSpace(line) == "// @"+current.Name:
		case body == nil && !strings.HasPrefix(line, ".visible .entry "):
			return nil, &Error{Position{i + 1, 1}, fmt.Sprintf("expected the entry %s", current.Name)}
		case line == "}":
			current.Body = strings.Join(append(body, line), "\n") + "\n"
			current = nil
		default:
			body = append(body, renumber(line))
		}
	}
	if current != nil {
		return nil, &Error{Position{len(lines), 1}, fmt.Sprintf("entry %s has no end", current.Name)}
	}
	for i := range entries {
		entries[i].Variables = usedVariables(entries[i].Body, variables)
	}
	return entries, nil
}

// renumber gives a line of a body the form that it has in the first function of a module.
func renumber(line string) string {
	if strings.Contains(line, "// @") && !strings.HasPrefix(line, "\t") {
		if match := nameComment.FindStringSubmatch(line); match != nil {
			line = match[1]
		}
	}
	if !strings.Contains(line, "BB") {
		return line
	}
	line = blockNumber.ReplaceAllStringFunc(line, func(s string) string {
		if strings.HasPrefix(s, "$") {
			return "$L__BB0_"
		}
		return "BB0_"
	})
	if match := labelLine.FindStringSubmatch(line); match != nil {
		line = match[1] + padding(len(match[1])) + match[2]
	}
	return line
}

// usedVariables keeps the lines of variables that the body mentions, and of those that their
// initial values mention.
func usedVariables(body string, lines []string) []string {
	names := make([]string, len(lines))
	for i, line := range lines {
		match := demotedLine.FindStringSubmatch(line)
		if match == nil {
			match = variableLine.FindStringSubmatch(line)
		}
		names[i] = match[1]
	}
	keep := make([]bool, len(lines))
	for texts := []string{body}; len(texts) > 0; texts = texts[1:] {
		for i, line := range lines {
			if keep[i] || !mentions(texts[0], names[i]) {
				continue
			}
			keep[i] = true
			if _, value, ok := strings.Cut(line, " = "); ok {
				texts = append(texts, value)
			}
		}
	}
	var used []string
	for i, line := range lines {
		if keep[i] {
			used = append(used, line)
		}
	}
	return used
}

// mentions reports whether the name occurs as a word.
func mentions(text, name string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		start, end := from+i, from+i+len(name)
		if (start == 0 || !isWordByte(text[start-1])) && (end == len(text) || !isWordByte(text[end])) {
			return true
		}
		from = end
	}
}

// Join prints one module with all entries, sorted by name, under the header. Declarations of
// external variables that entries share appear once; anything else that is defined twice is an
// error.
func Join(header string, entries []Entry) (string, error) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	var s strings.Builder
	s.WriteString(header)
	owner := map[string]string{} // entry by the first variable line or entry of a name
	line := map[string]string{}
	for _, e := range sorted {
		var variables []string
		for _, v := range e.Variables {
			match := variableLine.FindStringSubmatch(v)
			if match == nil { // a remark on a variable inside of the entry
				variables = append(variables, v)
				continue
			}
			name := match[1]
			if old, ok := line[name]; ok {
				if old == v && strings.HasPrefix(v, ".extern ") {
					continue
				}
				return "", fmt.Errorf("ptx: entries %s and %s both define the variable %s", owner[name], e.Name, name)
			}
			line[name], owner[name] = v, e.Name
			variables = append(variables, v)
		}
		if old, ok := owner[e.Name]; ok {
			return "", fmt.Errorf("ptx: %s is defined twice (entry %s)", e.Name, old)
		}
		owner[e.Name], line[e.Name] = e.Name, e.Body
		s.WriteString(e.section(variables))
	}
	return s.String(), nil
}
