// Command gotest runs "go test -json" with its arguments and prints what "go test" prints, followed by every test that
// was skipped, by reason, and one line that counts. It exits as go test does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(2)
	}
	s := newSummary(os.Stdout)
	readErr := s.read(out)
	err = cmd.Wait()
	s.close()
	if readErr != nil {
		fmt.Fprintln(os.Stderr, "gotest:", readErr)
		os.Exit(2)
	}
	if err != nil || s.failed > 0 {
		os.Exit(1)
	}
}

// event is one line of go test -json, as "go doc test2json" describes it.
type event struct {
	Action, Package, Test, Output string
}

// key names one test of one package; a package itself has an empty test.
type key struct{ pkg, test string }

// summary prints the progress of a test run and counts its tests, subtests included.
type summary struct {
	w                       io.Writer
	output                  map[key][]string // of what still runs
	skips                   map[string][]string
	passed, failed, skipped int
}

func newSummary(w io.Writer) *summary {
	return &summary{w: w, output: map[key][]string{}, skips: map[string][]string{}}
}

// read consumes a whole test run. Lines that are not events, such as those of a failed build, are printed as they are.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(s.w, line)
			} else {
				s.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading test events: %w", err)
		}
	}
}

func (s *summary) add(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.w, e.Output)
	case "output":
		switch {
		case e.Test != "":
			s.output[k] = append(s.output[k], e.Output)
		case e.Output != "PASS\n": // go test itself prints that only with -v
			fmt.Fprint(s.w, e.Output)
		}
	case "pass", "fail", "skip":
		s.end(k, e.Action)
	}
}

// end closes a test, or a package with the tests that a crash left open.
func (s *summary) end(k key, action string) {
	if k.test == "" {
		s.endPackage(k.pkg, action)
		return
	}
	switch action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
		s.print(k)
	case "skip":
		s.skipped++
		reason := skipReason(s.output[k])
		s.skips[reason] = append(s.skips[reason], k.pkg+" "+k.test)
	}
	delete(s.output, k)
}

func (s *summary) endPackage(pkg, action string) {
	var open []key
	for k := range s.output {
		if k.pkg == pkg {
			open = append(open, k)
		}
	}
	slices.SortFunc(open, func(a, b key) int { return strings.Compare(a.test, b.test) })
	for _, k := range open {
		if action == "fail" {
			s.failed++
			s.print(k)
		}
		delete(s.output, k)
	}
}

func (s *summary) print(k key) {
	for _, line := range s.output[k] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(s.w, line)
		}
	}
}

// skipReason is the text of t.Skip, without the file and line in front of it.
func skipReason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if place, text, ok := strings.Cut(line, ": "); ok && strings.Contains(place, ".go:") {
			return text
		}
		return line
	}
	return "no reason given"
}

// close prints the skipped tests and the counts.
func (s *summary) close() {
	reasons := make([]string, 0, len(s.skips))
	for reason := range s.skips {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons {
		tests := s.skips[reason]
		fmt.Fprintf(s.w, "skipped %d: %s\n", len(tests), reason)
		for _, test := range tests {
			fmt.Fprintf(s.w, "    %s\n", test)
		}
	}
	fmt.Fprintf(s.w, "tests: %d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
}
