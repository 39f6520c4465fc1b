package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	weftruntime "weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/comm"
)

// rankFlags say how the ranks of an artifact for a mesh run.
type rankFlags struct {
	virtual bool
	timeout time.Duration
	launch  launchFlags
}

func (f *rankFlags) add(cmd *cobra.Command) {
	f.launch.add(cmd)
	f.addLocal(cmd)
}

// addLocal adds the flags for ranks of one process.
func (f *rankFlags) addLocal(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.virtual, "virtual-ranks", false, "run all ranks of a mesh on one GPU")
	cmd.Flags().DurationVar(&f.timeout, "comm-timeout", 0, "`TIME` that ranks wait for each other (WEFT_COMM_TIMEOUT, or 10m0s)")
}

// ranksSession is the session of the ranks that this process drives. Its outputs and states are
// nil where ranks that should have the same differ; parts has what each has.
type ranksSession struct {
	*weftruntime.Ranks
	name       string
	peers      *comm.Peers // of a process that drives one rank; nil where it drives all
	closers    []io.Closer // beside the ranks; the last first
	rankInputs rankInputs
	outputs    []weftruntime.Global          // of the last run
	states     map[string]weftruntime.Global // that were asked for last
}

// rankInputs are inputs that differ between ranks, by rank and index.
type rankInputs map[int64]map[int]*ir.Tensor

// openRanks makes a session of the ranks of a mesh that this process drives: one where a launcher started
// a process for each, else all. It takes over the first device and what is
// to be closed with it.
func (m *model) openRanks(ctx context.Context, art *artifact.Artifact, first *deviceSession, want string, given weights.Source) (session, error) {
	s := &ranksSession{name: first.name, closers: first.closers}
	var members []weftruntime.Member
	var err error
	switch {
	case first.world.Size > 1:
		members = make([]weftruntime.Member, 1)
		members[0], err = m.meet(ctx, art, first.world, s, first.device)
	case s.name == "cuda" && !m.ranks.virtual:
		members, err = m.meetGPUs(ctx, art, s, first.device, want)
	default:
		members, err = m.members(art, s, first.device, want)
	}
	var leaveOut weftruntime.LeaveOut
	if err == nil {
		leaveOut, err = weftruntime.ParseLeaveOut(os.Getenv("WEFT_DEBUG_LEAVE_OUT"))
	}
	if err == nil {
		options := weftruntime.Options{Target: want, Weights: given, LeaveOut: leaveOut, Trace: m.traced,
			NoGraph: first.name == "cuda" && m.ranks.virtual} // they disturb each other's captures
		s.Ranks, err = weftruntime.OpenRanks(art, members, options)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// members opens a device for each rank and connects them.
func (m *model) members(art *artifact.Artifact, s *ranksSession, first weftruntime.Device, want string) ([]weftruntime.Member, error) {
	mesh := art.Manifest.Mesh.Program()
	timeout, err := m.timeout(true)
	if err != nil {
		return nil, err
	}
	if mesh.Size() > maxLocalRanks {
		return nil, diag.Errorf(diag.WrongRanks, "", "the artifact is for %d ranks (mesh %s); one process drives %d at most", mesh.Size(), mesh, maxLocalRanks)
	}
	local, device := comm.NewLocal(timeout), first
	members := make([]weftruntime.Member, 0, mesh.Size())
	for rank := range mesh.Size() {
		if rank > 0 {
			if device, err = openDevice(s.name, want, targetNames(art), 0); err != nil {
				return nil, err
			}
			s.closers = append(s.closers, device)
		}
		recorder := weftruntime.NewRecorder(rank)
		members = append(members, weftruntime.Member{Rank: rank, Device: device, Communicator: local.Rank(rank, device, recorder), Recorder: recorder})
	}
	return members, nil
}

// timeout is how long ranks wait for each other. echo says what NCCL_TIMEOUT_MS did.
func (m *model) timeout(echo bool) (time.Duration, error) {
	timeout, text, err := comm.FindTimeout(m.ranks.timeout, os.LookupEnv)
	if err == nil && text != "" && echo {
		d := diag.Errorf(diag.CollectiveStuck, "NCCL_TIMEOUT_MS", "%s", text)
		d.Severity = diag.Note
		m.warn(diag.List{d})
	}
	return timeout, err
}

// maxLocalRanks bounds what a process opens.
const maxLocalRanks = 1024

func targetNames(art *artifact.Artifact) []string {
	var names []string
	for _, t := range art.Manifest.Targets {
		names = append(names, t.Name)
	}
	return names
}

func (s *ranksSession) inputsOf(inputs []*ir.Tensor) func(rank int64) []*ir.Tensor {
	return func(rank int64) []*ir.Tensor {
		own := s.rankInputs[rank]
		if len(own) == 0 {
			return inputs
		}
		list := slices.Clone(inputs)
		for i, t := range own {
			list[i] = t
		}
		return list
	}
}

// wholes keeps the outputs of a run and gives those that are whole.
func (s *ranksSession) wholes(r *weftruntime.RanksResult) []*ir.Tensor {
	s.outputs = r.Outputs
	tensors := make([]*ir.Tensor, len(r.Outputs))
	for i, g := range r.Outputs {
		tensors[i] = g.Whole
	}
	return tensors
}

func (s *ranksSession) run(ctx context.Context, entry string, inputs []*ir.Tensor) ([]*ir.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := s.RunEach(ctx, entry, s.inputsOf(inputs))
	if err = s.ended(err); err != nil {
		return nil, err
	}
	return s.wholes(r), nil
}

func (s *ranksSession) repeat(ctx context.Context, entry string, inputs []*ir.Tensor, n int, each func()) ([]*ir.Tensor, error) {
	b, err := s.Ranks.Bind(entry, s.inputsOf(inputs))
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := replay(ctx, b, n, each); err != nil {
		return nil, err
	}
	r, err := b.Download()
	if err = s.ended(err); err != nil {
		return nil, err
	}
	return s.wholes(r), nil
}

func (s *ranksSession) state(name string) (*ir.Tensor, error) {
	g, err := s.Ranks.State(name)
	if s.states == nil {
		s.states = map[string]weftruntime.Global{}
	}
	s.states[name] = g
	return g.Whole, err
}

func (s *ranksSession) target() string {
	mesh := s.Mesh()
	return fmt.Sprintf("%s (%s, kernels of %s), %d ranks (%s)", s.name, s.Members()[0].Device.Properties().Name, s.Target(), mesh.Size(), mesh)
}

// Close closes the ranks, then their devices and what else was opened for them.
func (s *ranksSession) Close() error {
	var errs []error
	if s.Ranks != nil {
		errs = append(errs, s.Ranks.Close())
	}
	for _, c := range slices.Backward(s.closers) {
		if _, device := c.(weftruntime.Device); device && s.Ranks != nil && s.Lost() {
			continue // it is still in use
		}
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// apart replaces outputs and states that ranks hold differently by one of each rank, named with
// its number.
func (s *ranksSession) apart(outputs []output) ([]output, error) {
	var list []output
	for _, o := range outputs {
		if o.tensor != nil {
			list = append(list, o)
			continue
		}
		parts, err := s.parts(o.key)
		if err != nil {
			return nil, err
		}
		for i, part := range parts {
			rank := int64(i) // rank 0 of several processes has the parts of all
			if s.peers == nil {
				rank = s.Members()[i].Rank
			}
			prefix := rankPrefix(rank)
			of := output{prefix + o.key, "", part}
			if o.name != "" {
				of.name = prefix + o.name
			}
			list = append(list, of)
		}
	}
	return list, nil
}

// parts is what each rank has of an output or state.
func (s *ranksSession) parts(key string) ([]*ir.Tensor, error) {
	if name, ok := strings.CutPrefix(key, afterStatePrefix); ok {
		return s.states[name].Parts, nil
	}
	for i, g := range s.outputs {
		if key == fmt.Sprintf("out.%d", i) {
			return g.Parts, nil
		}
	}
	panic(fmt.Sprintf("BUG: no output has the key %q", key))
}

func rankPrefix(rank int64) string { return fmt.Sprintf("rank%d.", rank) }

// cutRank cuts the rank from a name: "rank3.in.0".
func cutRank(name string) (rank int64, rest string, ok bool) {
	digits, rest, found := strings.Cut(strings.TrimPrefix(name, "rank"), ".")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || n < 0 || rankPrefix(n)+rest != name {
		return 0, name, false
	}
	return n, rest, true
}

// giveRanks gives a session the inputs of a file that differ between ranks.
func giveRanks(s session, f *tensorFile) error {
	if f == nil || len(f.ranks) == 0 {
		return nil
	}
	r, ok := s.(*ranksSession)
	if !ok {
		return diag.Errorf(diag.RunInputUnknown, "", "the file has inputs of single ranks, and one rank runs on %s", s.target()).In(f.path)
	}
	given := map[int]int64{} // ranks by input
	for rank, inputs := range f.ranks {
		if rank >= r.Mesh().Size() {
			return diag.Errorf(diag.WrongRanks, "", "the file has an input of rank %d, the mesh %s has %d ranks", rank, r.Mesh(), r.Mesh().Size()).In(f.path)
		}
		for i := range inputs {
			given[i]++
		}
	}
	for i, n := range given {
		if f.ranksOnly[i] && n < r.Mesh().Size() {
			return diag.Errorf(diag.RunInputMissing, "", "the file has in.%d of %d ranks, and neither those of the others of %d nor one for all", i, n, r.Mesh().Size()).In(f.path)
		}
	}
	r.rankInputs = f.ranks
	return nil
}
