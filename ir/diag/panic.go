package diag

import (
	"fmt"
	"runtime"
	"strings"
)

// shownFrames is how many calls of a panic's stack a diagnostic shows.
const shownFrames = 8

// Panicked makes a diagnostic of a panic's value, with the innermost calls of its stack. It is
// to be called by the deferred function that recovered it. place names the step that failed.
func Panicked(place string, value any) *Diagnostic {
	d := Errorf(Bug, place, "%v", value).Suggest("this is a bug in weft: please report it with the command and the input")
	if err, ok := value.(error); ok {
		d.Because(err)
	}
	var stack []string
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for more, inside := true, false; more && len(stack) < shownFrames; {
		var f runtime.Frame
		f, more = frames.Next()
		if inside && !strings.HasPrefix(f.Function, "runtime.") {
			stack = append(stack, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		}
		inside = inside || f.Function == "runtime.gopanic"
	}
	return d.Note("%s", strings.Join(stack, "\n"))
}
