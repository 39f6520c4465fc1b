package fx

import (
	"path"
	"strings"
)

// location makes an operation's Loc of what the exporter recorded for a node: the path of its
// module and the innermost line of the stack trace, "m.h.0.attn (package/file.py:12)"; the
// node's name when there is neither. Absolute parts of source paths are cut off, so that two
// checkouts of a model give the same bytes.
func location(n *node) string {
	module, classFiles := innermostModule(n.moduleStack)
	file := innermostLine(n.stackTrace, classFiles)
	switch {
	case module != "" && file != "":
		return module + " (" + file + ")"
	case module != "":
		return module
	case file != "":
		return file
	}
	return n.name
}

// innermostModule reads "key,path,class;key,path,class": the last path, and for every class
// the file that it is defined in.
func innermostModule(stack string) (module string, classFiles []string) {
	if stack == "" || strings.HasPrefix(stack, "_empty_nn_module_stack") {
		return "", nil
	}
	for entry := range strings.SplitSeq(stack, ";") {
		parts := strings.SplitN(entry, ",", 3)
		if len(parts) < 3 {
			continue
		}
		module = parts[1]
		if dot := strings.LastIndexByte(parts[2], '.'); dot > 0 {
			classFiles = append(classFiles, strings.ReplaceAll(parts[2][:dot], ".", "/")+".py")
		}
	}
	return module, classFiles
}

// innermostLine finds the last `File "path", line N` of a stack trace.
func innermostLine(trace string, classFiles []string) string {
	const open = `File "`
	var file, rest string
	for {
		at := strings.LastIndex(trace, open)
		if at < 0 {
			return ""
		}
		var ok bool
		if file, rest, ok = strings.Cut(trace[at+len(open):], `", line `); ok && !strings.HasPrefix(file, "<") {
			break // <eval_with_key> and the like are generated code
		}
		trace = trace[:at]
	}
	line := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		line = rest[:end]
	}
	return shortPath(file, classFiles) + ":" + line
}

// shortPath cuts a source path to the part below site-packages, to the file of a module's
// class, or to its base name.
func shortPath(file string, classFiles []string) string {
	file = strings.ReplaceAll(file, `\`, "/")
	for _, root := range []string{"/site-packages/", "/dist-packages/"} {
		if i := strings.LastIndex(file, root); i >= 0 {
			return file[i+len(root):]
		}
	}
	for _, c := range classFiles {
		if file == c || strings.HasSuffix(file, "/"+c) {
			return c
		}
	}
	if i := strings.LastIndex("/"+file, "/torch/"); i >= 0 {
		return file[i:] // torch itself, built from source
	}
	return path.Base(file)
}
