package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/eval"
	"weft/runtime/comm"
	"weft/runtime/trace"
)

// traced is a session that tells what its ranks did in the last run. Where other processes drive ranks too, rank 0 gets
// those of all, and the others nothing.
type traced interface {
	trace(ctx context.Context) ([]trace.Rank, error)
}

// traceReport is what a run prints of its trace.
type traceReport struct {
	File  string          `json:"file"`
	Clock string          `json:"clock"`
	Ranks []trace.Summary `json:"ranks"`
}

// createTrace begins the file of --trace, before anything runs; nil where this process writes none.
func (f *runFlags) createTrace() (*weights.PendingFile, error) {
	if f.trace == "" {
		return nil, nil
	}
	if world, err := comm.FindHere(f.ranks.launch.world); err == nil && world.Size > 1 && world.Rank > 0 {
		return nil, nil // rank 0 writes for all
	}
	return weights.CreateFile(f.trace)
}

// writeTrace writes what the ranks did in the last run.
func (f *runFlags) writeTrace(ctx context.Context, s session, file *weights.PendingFile) (*traceReport, error) {
	if f.trace == "" {
		return nil, nil
	}
	t, ok := s.(traced)
	if !ok {
		panic("BUG: a session that gives no trace")
	}
	ranks, err := t.trace(ctx)
	if err != nil || file == nil || ranks == nil {
		return nil, err
	}
	if err := trace.Write(file, s.target(), ranks); err != nil {
		return nil, weights.WriteError(f.trace, err)
	}
	report := &traceReport{File: f.trace, Clock: ranks[0].Clock}
	for _, r := range ranks {
		report.Ranks = append(report.Ranks, trace.Summarize(r))
	}
	return report, file.Commit()
}

func (s *deviceSession) trace(context.Context) ([]trace.Rank, error) {
	r, err := s.Session.Trace()
	return []trace.Rank{r}, err
}

func (s *ranksSession) trace(ctx context.Context) ([]trace.Rank, error) {
	ranks, err := s.Ranks.Traces()
	if err != nil || s.peers == nil {
		return ranks, err
	}
	return s.gatherTraces(ctx, ranks)
}

func (r *reference) trace(context.Context) ([]trace.Rank, error) { return r.last, nil }

// observer takes the wall time of the operations of a run; nil where it is not traced.
func (r *reference) observer(entry string) eval.Observer {
	if !r.traced {
		return nil
	}
	start := time.Now()
	ranks := make([]trace.Rank, r.program.Mesh.Size())
	for i := range ranks {
		ranks[i] = trace.Rank{Rank: int64(i), Entry: entry, Clock: trace.ClockHost, Start: start.UnixNano()}
	}
	r.last = ranks
	return func(rank int64, index int, op *ir.Op) func([]*ir.Tensor) {
		s := trace.Span{Step: index, Kind: trace.Operation, Name: op.Kind.String(), Label: op.Loc, Start: time.Since(start).Nanoseconds()}
		if c, ok := op.Attrs.(*ir.CollectiveAttrs); ok {
			s.Kind, s.Axes = trace.Collective, c.Axes
		}
		return func(results []*ir.Tensor) {
			s.End = time.Since(start).Nanoseconds()
			for _, t := range results {
				s.Bytes += int64(len(t.Data))
			}
			ranks[rank].Spans = append(ranks[rank].Spans, s)
		}
	}
}

// maxTrace is the most bytes that a rank's trace may have where rank 0 gathers them.
const maxTrace = 1 << 30

// gatherTraces brings the traces of all processes to rank 0.
func (s *ranksSession) gatherTraces(ctx context.Context, own []trace.Rank) ([]trace.Rank, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	parts, err := s.peers.GatherAny(ctx, text, maxTrace, "trace")
	if err != nil {
		return nil, err
	}
	var all []trace.Rank
	for i, part := range parts {
		var ranks []trace.Rank
		if err := json.Unmarshal(part, &ranks); err != nil {
			return nil, fmt.Errorf("the trace of rank %d: %w", i, err)
		}
		all = append(all, ranks...)
	}
	return all, nil
}

// printTrace prints where the time of each rank went.
func (a *app) printTrace(r *traceReport) {
	rows := [][]string{{"RANK", "STEP MS", "COMPUTING", "COMMUNICATING", "HIDDEN", "EXPOSED", "SHARE HIDDEN"}}
	ms := func(us float64) string { return fmt.Sprintf("%.3f", us/1000) }
	for _, s := range r.Ranks {
		share := "-"
		if s.Communicating > 0 {
			share = fmt.Sprintf("%.1f %%", 100*s.Share)
		}
		rows = append(rows, []string{fmt.Sprint(s.Rank), ms(s.Step), ms(s.Computing), ms(s.Communicating), ms(s.Hidden), ms(s.Exposed), share})
	}
	fmt.Fprintf(a.stderr, "trace of the last step in %s (%s)\n", r.File, r.Clock)
	table(a.stderr, rows)
}

// checkTrace checks for a launcher that the file of --trace can be written.
func checkTrace(path string) error {
	if path == "" {
		return nil
	}
	file, err := weights.CreateFile(path)
	if err == nil {
		file.Abort()
	}
	return err
}
