package comm

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"weft/ir"
	"weft/runtime"
)

// beat is how a rank is, as it tells the others from time to time.
type beat struct {
	At      string   `json:"at,omitempty"`   // the step that it issued last
	Last    string   `json:"last,omitempty"` // the collective that finished last
	Waiting *waiting `json:"waiting,omitempty"`
	Others  []told   `json:"others,omitempty"` // what rank 0 knows, for the rank that reports when rank 0 is lost
}

// told is how a rank is, as rank 0 knows it.
type told struct {
	Rank int64  `json:"rank"`
	Text string `json:"text"`
}

// waiting is a collective that a rank came to and that has not finished.
type waiting struct {
	Axes     []string      `json:"axes"`
	Sequence int64         `json:"sequence"`
	Text     string        `json:"text"` // for people
	Since    time.Duration `json:"since"`
}

func waitingIn(c runtime.Collective, since time.Time) *waiting {
	return &waiting{Axes: c.Axes, Sequence: c.Sequence, Text: c.String(), Since: time.Since(since)}
}

func (b beat) encode() []byte {
	text, err := json.Marshal(b)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return text
}

// String is the beat for people.
func (b beat) String() string {
	text := "finished no collective"
	if b.Last != "" {
		text = "last finished " + b.Last
	}
	if b.At != "" {
		text = "in " + b.At + "; " + text
	}
	if b.Waiting == nil {
		return text + ", none is pending"
	}
	return fmt.Sprintf("%s, pending %s for %s", text, b.Waiting.Text, b.Waiting.Since.Round(time.Millisecond))
}

// standing is what is known of a rank when a run has stalled.
type standing struct {
	rank     int64
	beat     beat          // its last
	answered bool          // it told just now
	silent   time.Duration // since it was last heard
	left     bool          // it issues no more collectives
}

// cause says why others wait for a rank, in a few words.
func (s standing) cause() string {
	switch {
	case s.left:
		return "it has ended"
	case !s.answered:
		return fmt.Sprintf("it was last heard %s ago: stopped, or its host is", s.silent.Round(time.Millisecond))
	case s.beat.Waiting != nil:
		return "it waits in another collective"
	}
	return "it is alive, and has not come to the collective: slow, or stuck in a step"
}

// summary says which ranks are missing in a run that stalled, and what the others wait for.
type summary struct {
	missing []int64
	text    string // one sentence
	notes   []string
}

// summarize finds the ranks that others wait for. states are in the order of the ranks.
func summarize(m ir.Mesh, states []standing) summary {
	waits := map[int64]*waiting{}
	for _, s := range states {
		if s.answered && !s.left && s.beat.Waiting != nil {
			waits[s.rank] = s.beat.Waiting
		}
	}
	type wait struct {
		text  string
		ranks []int64 // that are there
		lacks []int64
	}
	var list []*wait
	byKey := map[string]*wait{}
	lacking := map[int64]bool{}
	for _, s := range states {
		mine := waits[s.rank]
		if mine == nil {
			continue
		}
		group := m.Group(s.rank, mine.Axes)
		key := fmt.Sprint(group[0], mine.Axes, mine.Sequence)
		w := byKey[key]
		if w == nil {
			w = &wait{text: mine.Text}
			for _, r := range group {
				if other := waits[r]; other == nil || other.Sequence != mine.Sequence || !slices.Equal(other.Axes, mine.Axes) {
					w.lacks = append(w.lacks, r)
					lacking[r] = true
				}
			}
			byKey[key] = w
			list = append(list, w)
		}
		w.ranks = append(w.ranks, s.rank)
	}
	var out summary
	for _, s := range states {
		if lacking[s.rank] && waits[s.rank] == nil {
			out.missing = append(out.missing, s.rank)
		}
	}
	switch {
	case len(out.missing) > 0:
		first := states[slices.IndexFunc(states, func(s standing) bool { return s.rank == out.missing[0] })]
		out.text = fmt.Sprintf("%s missing: %s", isAre(out.missing), first.cause())
	case len(lacking) > 0:
		out.text = "the ranks wait for each other in different collectives"
	default:
		out.text = "all ranks came to their collectives, which do not end: the transport between them is stuck"
	}
	for _, w := range list[:min(len(list), shownRanks)] {
		if len(w.lacks) == 0 {
			out.notes = append(out.notes, fmt.Sprintf("%s in %s", waitFor(w.ranks, "waits", "wait"), w.text))
		} else {
			out.notes = append(out.notes, fmt.Sprintf("%s for %s in %s", waitFor(w.ranks, "waits", "wait"), rankList(w.lacks), w.text))
		}
	}
	for i, rank := range out.missing {
		if i == shownRanks {
			break
		}
		s := states[slices.IndexFunc(states, func(s standing) bool { return s.rank == rank })]
		out.notes = append(out.notes, fmt.Sprintf("rank %d: %s; %s", rank, s.cause(), s.beat))
	}
	return out
}

func waitFor(ranks []int64, one, many string) string {
	if len(ranks) == 1 {
		return rankList(ranks) + " " + one
	}
	return rankList(ranks) + " " + many
}

func isAre(ranks []int64) string { return waitFor(ranks, "is", "are") }
