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

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/diag/render"
	"weft/ir/plan"
	weftruntime "weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/comm"
	"weft/runtime/cuda"
)

// launchFlags say how the processes of a run find each other.
type launchFlags struct {
	processes int
	world     comm.WorldFlags
}

func (f *launchFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.processes, "nproc", 0, "start `N` processes on this host, one for each rank of the mesh")
	flags.Var(&rankOf{&f.world}, "rank", "this process is rank `R/N`, as 0/4; without it, what the launcher tells (docs/launching.md)")
	flags.StringVar(&f.world.Address, "rendezvous", "", "where the ranks meet, `HOST:PORT` of rank 0 (MASTER_ADDR and MASTER_PORT)")
}

// rankOf is the value of --rank.
type rankOf struct{ to *comm.WorldFlags }

func (r *rankOf) Type() string { return "rank" }

func (r *rankOf) String() string {
	if r.to == nil || r.to.Size == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.to.Rank, r.to.Size)
}

// Set takes R/N.
func (r *rankOf) Set(text string) error {
	rank, size, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(rank)
	k, wrong := strconv.Atoi(size)
	if err != nil || wrong != nil || n < 0 || n >= k || k > comm.MaxRanks {
		return errors.New("it is not a rank and the number of ranks, such as 0/4")
	}
	r.to.Rank, r.to.Size = n, k
	return nil
}

// launch starts this command once for each rank and waits. The exit status is that of the first
// process that failed.
func (a *app) launch(ctx context.Context, path, device string, f rankFlags) error {
	n := f.launch.processes
	switch {
	case n < 1 || n > maxLocalRanks:
		return diag.Errorf(diag.CommandLine, "", "--nproc takes 1 to %d", maxLocalRanks)
	case device == "reference":
		return diag.Errorf(diag.CommandLine, "", "--nproc does not go with --device reference, which evaluates all ranks together")
	case path == "-":
		return diag.Errorf(diag.CommandLine, "", "--nproc does not go with - (standard input), which one process could read")
	case isArtifact(path): // what cannot work is said once, and not by every rank
		art, err := artifact.Open(path)
		if err != nil {
			return err
		}
		mesh := art.Manifest.Mesh.Program()
		if err := errors.Join(comm.World{Size: n, Launcher: "--nproc"}.CheckSize(mesh.String(), mesh.Size()), art.Close()); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return diag.Errorf(diag.RankFailed, "", "the file of this program is not known: %v", err).Because(err)
	}
	timeout, _, err := comm.FindTimeout(f.timeout, os.LookupEnv)
	if err != nil {
		return err
	}
	l := comm.Launch{Path: self, Name: os.Args[0], Args: withoutFlag(a.args, "nproc"), Ranks: n, Env: os.Environ(), Stdout: a.stdout, Stderr: a.stderr,
		Grace: min(comm.DefaultGrace, timeout)}
	a.status, err = l.Run(ctx)
	return err
}

// withoutFlag takes a flag with a value off a command line.
func withoutFlag(args []string, name string) []string {
	var list []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(list, args[i:]...)
		case args[i] == "--"+name:
			i++
		case !strings.HasPrefix(args[i], "--"+name+"="):
			list = append(list, args[i])
		}
	}
	return list
}

// findWorld finds this process's place. Where an artifact for one rank runs, variables that make no
// sense are left alone.
func (m *model) findWorld(mesh ir.Mesh) (comm.World, error) {
	w, err := comm.FindHere(m.ranks.launch.world)
	switch {
	case err != nil && mesh.Size() > 1:
		return w, err
	case err != nil:
		return comm.World{Size: 1}, nil
	case w.Size > 1:
		return w, w.CheckSize(mesh.String(), mesh.Size())
	}
	return w, nil
}

// ordinal is the number of the device for this process: its rank among those of its host, unless
// the launcher shows each process one GPU alone.
func (m *model) ordinal(device string) int {
	w, err := comm.FindHere(m.ranks.launch.world)
	if err != nil || w.Size == 1 || device != "cuda" {
		return 0
	}
	if n, err := cuda.Count(); err == nil && n == 1 {
		return 0
	}
	return w.LocalRank
}

// meet connects this process with those of the other ranks and gives its member.
func (m *model) meet(ctx context.Context, art *artifact.Artifact, world comm.World, s *ranksSession, device weftruntime.Device) (member weftruntime.Member, err error) {
	o := comm.Options{World: world, Mesh: art.Manifest.Mesh.Program(), Digest: art.Digest(), Recorder: weftruntime.NewRecorder(int64(world.Rank))}
	if o.Timeout, err = m.timeout(world.Rank == 0); err != nil {
		return member, err
	}
	if o.Listener, err = comm.Inherited(os.LookupEnv); err != nil {
		return member, err
	}
	o.Warn, o.Fatal = m.sayNow, m.fatal
	if s.peers, err = comm.Meet(ctx, o); err != nil {
		return member, err
	}
	s.closers = append(s.closers, s.peers)
	member = weftruntime.Member{Rank: int64(world.Rank), Device: device, Recorder: o.Recorder}
	if s.name != "cuda" {
		member.Communicator = s.peers.Communicator(device)
		return member, nil
	}
	gpu, ok := device.(comm.GPU)
	if !ok {
		panic("BUG: a CUDA device that NCCL cannot use")
	}
	over, err := collectivesOf(art)
	if err != nil {
		s.peers.Abort(err)
		return member, err
	}
	nccl, err := s.peers.NCCL(ctx, gpu, over)
	if err != nil {
		return member, err
	}
	s.closers = append(s.closers, nccl)
	member.Communicator = nccl
	return member, nil
}

// sayNow prints a warning that cannot wait for the end.
func (m *model) sayNow(d *diag.Diagnostic) {
	render.Write(m.errors(), render.Text, diag.List{d}, version().Version)
}

// fatal ends the process for what happened on another rank, while this one is in a step.
func (m *model) fatal(err error) {
	fmt.Fprintln(m.errors(), err)
	os.Exit(int(diag.ExitStatus(err)))
}

func (m *model) errors() io.Writer {
	if m.stderr == nil {
		return os.Stderr
	}
	return m.stderr
}

// meetGPUs connects the GPUs of this process, one for each rank.
func (m *model) meetGPUs(ctx context.Context, art *artifact.Artifact, s *ranksSession, first weftruntime.Device, want string) ([]weftruntime.Member, error) {
	mesh := art.Manifest.Mesh.Program()
	if n, err := cuda.Count(); err != nil || int64(n) < mesh.Size() {
		return nil, diag.Errorf(diag.WrongRanks, "", "the artifact is for %d ranks (mesh %s), and this process has %s", mesh.Size(), mesh, plural(n, "GPU")).
			Suggest("run one process for each rank, or all ranks on one GPU with --virtual-ranks")
	}
	timeout, err := m.timeout(true)
	if err != nil {
		return nil, err
	}
	over, err := collectivesOf(art)
	if err != nil {
		return nil, err
	}
	members := make([]weftruntime.Member, mesh.Size())
	for i := range members {
		device := first
		if i > 0 {
			if device, err = openDevice(s.name, want, nil, i); err != nil {
				return nil, err
			}
			s.closers = append(s.closers, device)
		}
		members[i] = weftruntime.Member{Rank: int64(i), Device: device, Recorder: weftruntime.NewRecorder(int64(i))}
	}
	list, err := comm.MeetHere(ctx, comm.Options{Mesh: mesh, Digest: art.Digest(), Timeout: timeout, Fatal: m.fatal},
		func(i int) *weftruntime.Recorder { return members[i].Recorder })
	if err != nil {
		return nil, err
	}
	for _, p := range list { // rank 0, which waits for the others, is closed last
		s.closers = append(s.closers, p)
	}
	var group errgroup.Group
	for i, p := range list {
		group.Go(func() error {
			gpu, ok := members[i].Device.(comm.GPU)
			if !ok {
				panic("BUG: a CUDA device that NCCL cannot use")
			}
			nccl, err := p.NCCL(ctx, gpu, over)
			if err == nil {
				members[i].Communicator = nccl
			}
			return err
		})
	}
	err = group.Wait()
	for _, member := range members {
		if member.Communicator != nil {
			s.closers = append(s.closers, member.Communicator)
		}
	}
	return members, err
}

// collectivesOf lists the axes of the plans' collectives, each list once, in the same order on all ranks.
func collectivesOf(art *artifact.Artifact) ([]comm.Over, error) {
	var list []comm.Over
	for _, t := range art.Manifest.Targets {
		for _, e := range art.Manifest.Entries {
			data, err := art.Plan(t.Name, e.Name, "")
			if err != nil {
				return nil, err
			}
			p, err := plan.Decode(data)
			if err != nil {
				return nil, err
			}
			for _, step := range p.Flat() {
				c := step.Collective
				if c == nil || c.Ranks == 1 {
					continue
				}
				i := slices.IndexFunc(list, func(o comm.Over) bool { return slices.Equal(o.Axes, c.Axes) })
				if i < 0 {
					i, list = len(list), append(list, comm.Over{Axes: c.Axes})
				}
				list[i].Beside = list[i].Beside || c.Async
			}
		}
	}
	return list, nil
}

// others tells whether this process is a rank other than 0: rank 0 prints and writes for all.
func (s *ranksSession) others() bool { return s.peers != nil && s.peers.Rank() > 0 }

// ended is the error of a run that was given up while this rank's device still worked.
func (s *ranksSession) ended(err error) error {
	if err == nil && s.peers != nil {
		return s.peers.Err()
	}
	return err
}
