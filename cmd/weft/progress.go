package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"weft/ir/diag/render"
)

// progress is a line on the terminal that says what is being done. Elsewhere it prints nothing.
type progress struct {
	w     io.Writer // nil: print nothing
	mu    sync.Mutex
	stage string
	last  time.Time
	shown bool
}

func newProgress(stderr io.Writer, format render.Format) *progress {
	if f, ok := stderr.(*os.File); ok && format == render.Text && isTerminal(f) {
		return &progress{w: f}
	}
	return &progress{}
}

// isTerminal tells terminals from files, pipes and /dev/null.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull && os.Getenv("TERM") != "dumb" && isatty(f.Fd())
}

// update shows a stage when it begins, and how far it is ten times a second at most.
func (p *progress) update(stage string, done, total int) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); stage != p.stage || now.Sub(p.last) >= 100*time.Millisecond {
		p.stage, p.last, p.shown = stage, now, true
		count := ""
		if total > 0 {
			count = fmt.Sprintf(" %d/%d", done, total)
		}
		fmt.Fprintf(p.w, "\r\x1b[K%s%s", stage, count)
	}
}

// done clears the line.
func (p *progress) done() {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
