package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"weft/ir/diag"
)

// watch looks for a collective of this rank that does not end.
func (p *Peers) watch() {
	ticker := time.NewTicker(min(max(p.options.Timeout/50, 2*time.Millisecond), 250*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-p.ended:
			return
		case <-p.stopped:
			return
		}
		p.mu.Lock()
		p.look()
		stuck := p.wait != nil && time.Since(p.waitFrom) > p.options.Timeout
		p.mu.Unlock()
		if stuck {
			p.stalled()
			return
		}
	}
}

// stalled reports that this rank waited too long. Rank 0 then ends the run; where it does not answer, it
// is what is missing.
func (p *Peers) stalled() {
	if p.hub != nil {
		p.stall()
		return
	}
	l := p.links[0]
	l.send(appendFrame(nil, frameStalled, p.present().encode()), p.grace()) // that it fails shows below
	timer := time.NewTimer(3 * p.grace())
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-p.stopped:
	case <-timer.C:
		p.mu.Lock()
		root := standing{rank: 0, beat: l.beat, silent: time.Since(l.heard)}
		p.mu.Unlock()
		d := diag.Errorf(diag.CollectiveStuck, "", "rank 0 is missing: %s", root.cause())
		if p.me.Rank == deputy {
			d.Note("rank 0, as last heard: %s", root.beat)
			p.retold(d, root.beat)
		}
		p.end(d, true)
	}
}

// stall asks all ranks how they are and ends the run with the summary. Rank 0 does it, once.
func (p *Peers) stall() {
	p.mu.Lock()
	again := p.stalling || p.cause != nil
	p.stalling = true
	for _, l := range p.links {
		if l != nil {
			l.answered = false
		}
	}
	p.mu.Unlock()
	if again {
		return
	}
	p.others(func(l *link) { go l.send(appendFrame(nil, frameAsk, nil), p.grace()) })
	for deadline := time.Now().Add(p.grace()); time.Now().Before(deadline) && !p.allAnswered(); {
		time.Sleep(2 * time.Millisecond)
	}
	states := []standing{{rank: 0, beat: p.present(), answered: true}}
	p.mu.Lock()
	for _, l := range p.links {
		if l != nil {
			states = append(states, standing{rank: int64(l.rank), beat: l.beat, answered: l.answered, silent: time.Since(l.heard), left: l.left})
		}
	}
	p.mu.Unlock()
	s := summarize(p.options.Mesh, states)
	d := diag.Errorf(diag.CollectiveStuck, "", "a collective did not end within %s: %s", p.options.Timeout, s.text)
	for _, note := range s.notes {
		d.Note("%s", note)
	}
	p.end(d, true)
}

func (p *Peers) allAnswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		if l != nil && !l.answered && !l.left {
			return false
		}
	}
	return true
}

// abortion is the end of a run as it travels.
type abortion struct {
	Code    diag.Code `json:"code"`
	Message string    `json:"message"`
	Rank    int       `json:"rank"` // that it comes from
}

// maxMessage bounds what a peer's message may say.
const maxMessage = 4 << 10

// ours tells whether a diagnostic is about the ranks, and so of all of them.
func ours(code diag.Code) bool {
	return code == diag.CollectiveStuck || code == diag.RankFailed || code == diag.Rendezvous || code == diag.PeerDiffers
}

// abortedBy ends the run for what a peer said.
func (p *Peers) abortedBy(l *link, payload []byte) error {
	var a abortion
	if err := json.Unmarshal(payload, &a); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	if len(a.Message) > maxMessage {
		a.Message = a.Message[:maxMessage]
	}
	if p.hub != nil {
		if !isClosed(p.met) {
			return io.EOF // it came and went
		}
		p.end(diag.Errorf(diag.RankFailed, "", "rank %d failed: %s", l.rank, a.Message), true)
		return nil
	}
	if !ours(a.Code) {
		a.Code = diag.RankFailed
	}
	p.end(diag.Errorf(a.Code, "", "%s", a.Message), false)
	return nil
}

// Abort ends the run of all ranks with a cause.
func (p *Peers) Abort(cause error) {
	p.mu.Lock()
	p.noticed = true
	p.mu.Unlock()
	p.end(cause, true)
}

// OnEnd has f called, once, when the run is given up; at once where it has been. f must not wait.
func (p *Peers) OnEnd(f func(error)) {
	p.mu.Lock()
	cause := p.cause
	if cause == nil {
		p.hooks = append(p.hooks, f)
	}
	p.mu.Unlock()
	if cause != nil {
		f(cause)
	}
}

// end gives the run up. The first cause counts; its report has what this rank was doing. tell says
// whether the others have to hear of it.
func (p *Peers) end(cause error, tell bool) {
	present := p.present()
	p.mu.Lock()
	if p.cause != nil || p.closed {
		p.mu.Unlock()
		return
	}
	var d *diag.Diagnostic
	code, message := diag.Bug, firstLine(cause)
	if errors.As(cause, &d) {
		code, message = d.Code, d.Message
		if ours(d.Code) && isClosed(p.met) {
			d.Note("this rank, %d: %s", p.me.Rank, present)
		}
	}
	if p.hub != nil && !ours(code) {
		code, message = diag.RankFailed, "rank 0 failed: "+message
	}
	p.cause = cause
	if tell {
		p.word = lastWord(code, message, p.me.Rank)
	}
	hooks := p.hooks
	noticed := p.noticed
	close(p.ended)
	p.mu.Unlock()
	p.tell()
	close(p.informed)
	for _, f := range hooks {
		f(cause)
	}
	if !noticed && p.options.Fatal != nil {
		time.AfterFunc(p.grace(), p.unnoticed)
	}
}

// unnoticed ends a process whose rank does not look up from what it does.
func (p *Peers) unnoticed() {
	p.mu.Lock()
	noticed := p.noticed
	p.mu.Unlock()
	if !noticed {
		p.options.Fatal(p.cause)
	}
}

// lastWord is the frame that tells why the run ends.
func lastWord(code diag.Code, message string, rank int) []byte {
	text, err := json.Marshal(abortion{Code: code, Message: message[:min(len(message), maxMessage)], Rank: rank})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return appendFrame(nil, frameAbort, text)
}

// tell sends the peers the reason of the end, where they have to hear of it. A peer that is admitted later gets it
// from admit.
func (p *Peers) tell() {
	if p.word == nil { // it is set before p.ended is closed, once
		return
	}
	var group sync.WaitGroup
	p.others(func(l *link) { group.Go(func() { l.sendLast(p.word, p.grace()) }) })
	group.Wait()
}

// failure is the error of a rank whose run was given up.
func (p *Peers) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noticed = true
	if errors.Is(p.cause, context.Canceled) || errors.Is(p.cause, context.DeadlineExceeded) {
		return p.cause
	}
	var d *diag.Diagnostic
	if errors.As(p.cause, &d) {
		return p.cause
	}
	return diag.Errorf(diag.RankFailed, "", "%s", firstLine(p.cause)).Because(p.cause)
}

// Err is why the run was given up; nil while it was not.
func (p *Peers) Err() error {
	if !isClosed(p.ended) {
		return nil
	}
	return p.failure()
}
