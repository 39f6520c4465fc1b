package onnx

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// place names a node in diagnostics and in the program: its name, else its operator and
// position.
func (n *nodeProto) place() string {
	if n.name != "" {
		return n.name
	}
	return fmt.Sprintf("%s#%d", n.opType, n.index)
}

// loc is place with what the exporter recorded of the source: the module path and the line.
func (n *nodeProto) loc() string {
	loc := n.place()
	if module := modulePath(n.scopes); module != "" {
		loc += " in " + module
	}
	if line := sourceLine(n.stack); line != "" {
		loc += " (" + line + ")"
	}
	return loc
}

// modulePath takes the module out of a Python list of scopes: "[”, 'm', 'm.h.0', 'view']" is
// m.h.0; the last one is the operator.
func modulePath(scopes string) string {
	parts := strings.Split(strings.Trim(scopes, "[]"), ",")
	if len(parts) < 2 {
		return ""
	}
	return strings.Trim(parts[len(parts)-2], " '\"")
}

var frame = regexp.MustCompile(`File "([^"]+)", line (\d+)`)

// sourceLine is the innermost frame of a stack trace outside of torch's own modules, else the
// innermost. Absolute paths are cut to the part that a package's installation has in common.
func sourceLine(stack string) string {
	line := ""
	for _, m := range frame.FindAllStringSubmatch(stack, -1) {
		if strings.HasPrefix(m[1], "<") {
			continue // generated code
		}
		file := relativeSource(m[1])
		if line == "" || !strings.HasPrefix(file, "torch/") {
			line = file + ":" + m[2]
		}
	}
	return line
}

// relativeSource cuts a path behind site-packages; other absolute paths, and those that lead
// out of their folder, keep the file's name.
func relativeSource(file string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	for _, root := range []string{"/site-packages/", "/dist-packages/"} {
		if i := strings.LastIndex(file, root); i >= 0 {
			return file[i+len(root):]
		}
	}
	if path.IsAbs(file) || strings.Contains(file, "..") || len(file) > 1 && file[1] == ':' {
		return path.Base(file)
	}
	return file
}
