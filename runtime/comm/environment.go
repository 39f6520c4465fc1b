package comm

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"weft/ir/diag"
)

// World is where a process stands among the processes of a run. The zero value is not valid; a
// process alone is rank 0 of 1.
type World struct {
	Rank, Size           int
	LocalRank, LocalSize int    // on its host; LocalSize is 0 where the launcher does not tell
	Address              string // host:port where the ranks meet; empty for one rank
	Token                string // the job's secret; may be empty
	Launcher             string // who told: "torchrun", "Open MPI", ...; empty for a process alone
}

// WorldFlags are given on the command line, and go before the environment. The zero value has
// nothing given.
type WorldFlags struct {
	Rank, Size int    // given where Size is not 0
	Address    string // host:port; empty where it is not given
}

// Environment variables of weft's own, and those of torch.distributed, which it sets for the processes
// that it starts.
const (
	TokenVariable   = "WEFT_JOB_TOKEN"
	TimeoutVariable = "WEFT_COMM_TIMEOUT"

	rankVariable      = "RANK"
	sizeVariable      = "WORLD_SIZE"
	localRankVariable = "LOCAL_RANK"
	localSizeVariable = "LOCAL_WORLD_SIZE"
	hostVariable      = "MASTER_ADDR"
	portVariable      = "MASTER_PORT"
)

// launcher is a set of variables that tell a process its rank.
type launcher struct {
	name                             string
	rank, size, localRank, localSize string
	needs                            string // counts only where this variable is set as well
	job                              string // a variable that names the job, other for each
	hint                             string // how to give it MASTER_ADDR and MASTER_PORT
}

// launchers are ordered from the innermost to the outermost: what one starts may have inherited the
// variables of those after it.
var launchers = []launcher{
	{name: "torchrun", rank: rankVariable, size: sizeVariable, localRank: localRankVariable, localSize: localSizeVariable,
		hint: "set MASTER_ADDR and MASTER_PORT, as torchrun does"},
	{name: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE", localRank: "OMPI_COMM_WORLD_LOCAL_RANK",
		localSize: "OMPI_COMM_WORLD_LOCAL_SIZE", job: "PMIX_NAMESPACE", hint: "mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=29500 ..., where rank 0 runs on HOST"},
	{name: "MPICH", rank: "PMI_RANK", size: "PMI_SIZE", localRank: "MPI_LOCALRANKID", localSize: "MPI_LOCALNRANKS",
		job: "PMI_PORT", hint: "mpirun -genv MASTER_ADDR HOST -genv MASTER_PORT 29500 ..., where rank 0 runs on HOST"},
	{name: "Slurm", rank: "SLURM_PROCID", size: "SLURM_NTASKS", localRank: "SLURM_LOCALID", needs: "SLURM_STEP_ID",
		job: "SLURM_JOB_ID", hint: "srun --export=ALL,MASTER_ADDR=HOST,MASTER_PORT=29500 ..., where rank 0 runs on HOST"},
}

// MaxRanks is the largest number of processes.
const MaxRanks = 1 << 20

// Find finds out where this process stands. lookup is os.LookupEnv. Variables that are set by half,
// are no numbers or contradict each other are diagnostics.
func Find(flags WorldFlags, lookup func(string) (string, bool)) (World, error) {
	env := environment(lookup)
	w, l, err := env.ranks(flags)
	if err != nil {
		return World{}, err
	}
	w.Token, _ = env.get(TokenVariable)
	if w.Size > 1 {
		w.Address, err = env.address(flags, w, l)
	}
	return w, err
}

// environment looks variables up. Empty ones count as not set.
type environment func(string) (string, bool)

func (env environment) get(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	value, ok := env(name)
	value = strings.TrimSpace(value)
	return value, ok && value != ""
}

// number reads a variable. given is false where it is not set.
func (env environment) number(name string) (n int, given bool, err error) {
	text, given := env.get(name)
	if !given {
		return 0, false, nil
	}
	n, err = strconv.Atoi(text)
	if err != nil || n < 0 || n > MaxRanks {
		return 0, true, diag.Errorf(diag.WrongRanks, "environment", "%s is %.40q, not a number from 0 to %d", name, text, MaxRanks)
	}
	return n, true, nil
}

// ranks finds rank and size, from the flags or the innermost launcher.
func (env environment) ranks(flags WorldFlags) (World, launcher, error) {
	if flags.Size != 0 {
		return env.flagged(flags)
	}
	var found World
	var by launcher
	for _, l := range launchers {
		w, ok, err := env.of(l)
		if err != nil {
			return World{}, l, err
		}
		if !ok {
			continue
		}
		if found.Launcher == "" {
			found, by = w, l
			continue
		}
		if w.Rank != found.Rank || w.Size != found.Size {
			if _, inner := env.get("TORCHELASTIC_RUN_ID"); inner && by.rank == rankVariable || l.name == "Slurm" {
				continue // one process of the outer launcher started those of the inner one
			}
			return World{}, l, diag.Errorf(diag.WrongRanks, "environment", "%s=%d and %s=%d make this rank %d of %d, %s=%d and %s=%d make it rank %d of %d",
				by.rank, found.Rank, by.size, found.Size, found.Rank, found.Size, l.rank, w.Rank, l.size, w.Size, w.Rank, w.Size).
				Suggest("unset the variables of the launcher that did not start this process")
		}
	}
	if found.Launcher == "" {
		return World{Size: 1}, by, nil
	}
	return found, by, nil
}

func (env environment) flagged(flags WorldFlags) (World, launcher, error) {
	if flags.Rank < 0 || flags.Rank >= flags.Size || flags.Size > MaxRanks {
		return World{}, launcher{}, diag.Errorf(diag.WrongRanks, "", "there is no rank %d of %d", flags.Rank, flags.Size)
	}
	w := World{Rank: flags.Rank, Size: flags.Size, LocalRank: flags.Rank, Launcher: "flags"}
	n, given, err := env.number(localRankVariable)
	if given {
		w.LocalRank = n
	}
	return w, launchers[0], err
}

// of reads the variables of one launcher; ok is false where it did not start this process.
func (env environment) of(l launcher) (w World, ok bool, err error) {
	rank, hasRank, err := env.number(l.rank)
	if err != nil {
		return w, false, err
	}
	size, hasSize, err := env.number(l.size)
	if err != nil {
		return w, false, err
	}
	if _, set := env.get(l.needs); l.needs != "" && !set {
		return w, false, nil // a batch script, or a shell of an allocation
	}
	switch {
	case !hasRank && !hasSize:
		return w, false, nil
	case hasRank != hasSize:
		set, missing := l.rank, l.size
		if hasSize {
			set, missing = missing, set
		}
		return w, false, diag.Errorf(diag.WrongRanks, "environment", "%s is set and %s is not", set, missing).
			Suggest("set both, or neither for a process alone")
	case rank >= size:
		return w, false, diag.Errorf(diag.WrongRanks, "environment", "%s=%d and %s=%d: there is no rank %d of %d", l.rank, rank, l.size, size, rank, size)
	}
	w = World{Rank: rank, Size: size, LocalRank: rank, Launcher: l.name}
	if _, elastic := env.get("TORCHELASTIC_RUN_ID"); !elastic && l.rank == rankVariable {
		w.Launcher = "RANK and WORLD_SIZE"
	}
	local, hasLocal, err := env.number(l.localRank)
	if err != nil {
		return w, false, err
	}
	if hasLocal {
		w.LocalRank = local
	}
	if w.LocalSize, _, err = env.number(l.localSize); err != nil {
		return w, false, err
	}
	if hasLocal && (w.LocalSize > 0 && local >= w.LocalSize || local >= size) || w.LocalSize > size {
		return w, false, diag.Errorf(diag.WrongRanks, "environment", "%s=%d (of %d on this host) does not go with rank %d of %d", l.localRank, local, w.LocalSize, rank, size)
	}
	return w, true, nil
}

// address is where the ranks meet: MASTER_ADDR and MASTER_PORT, or what follows from what the launcher
// tells.
func (env environment) address(flags WorldFlags, w World, l launcher) (string, error) {
	if flags.Address != "" {
		host, port, err := net.SplitHostPort(flags.Address)
		if n, bad := strconv.Atoi(port); err != nil || bad != nil || host == "" || n < 1 || n > 65535 {
			return "", diag.Errorf(diag.CommandLine, "", "--rendezvous %.100q is not HOST:PORT", flags.Address)
		}
		return flags.Address, nil
	}
	host, hasHost := env.get(hostVariable)
	port, hasPort := env.get(portVariable)
	if hasPort {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", diag.Errorf(diag.Rendezvous, "environment", "%s is %.40q, not a port from 1 to 65535", portVariable, port)
		}
	}
	if store, _ := env.get("TORCHELASTIC_USE_AGENT_STORE"); hasPort && store == "True" && l.rank == rankVariable {
		// torchrun itself listens at MASTER_PORT.
		run, _ := env.get("TORCHELASTIC_RUN_ID")
		restart, _ := env.get("TORCHELASTIC_RESTART_COUNT")
		port = portOf(strings.Join([]string{run, port, restart}, " "))
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if !hasHost {
		host, hasHost = env.firstHost(w, l)
	}
	if !hasPort {
		port, hasPort = env.jobPort(w, l)
	}
	for _, missing := range []struct {
		name string
		has  bool
	}{{hostVariable, hasHost}, {portVariable, hasPort}} {
		if !missing.has {
			return "", diag.Errorf(diag.Rendezvous, "environment", "this is rank %d of %d (%s), and %s, where the ranks meet, is not set", w.Rank, w.Size, w.Launcher, missing.name).
				Suggest("%s", l.hint)
		}
	}
	return net.JoinHostPort(host, port), nil
}

// firstHost is the host of rank 0 where the launcher tells it: all ranks are on one host, or Slurm lists
// the hosts.
func (env environment) firstHost(w World, l launcher) (string, bool) {
	if w.LocalSize == w.Size {
		return "127.0.0.1", true
	}
	if l.name != "Slurm" {
		return "", false
	}
	for _, name := range []string{"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"} {
		if list, ok := env.get(name); ok {
			host := firstNode(list)
			return host, host != ""
		}
	}
	return "", false
}

// defaultPort is what torch.distributed takes where nothing is said.
const defaultPort = "29500"

// jobPort is a port that follows from the job's name, so that jobs of one host do not meet. MPICH gives none:
// there it is the default one where all ranks are on one host.
func (env environment) jobPort(w World, l launcher) (string, bool) {
	if job, ok := env.get(l.job); ok {
		return portOf(job), true
	}
	return defaultPort, l.name == "MPICH" && w.LocalSize == w.Size
}

// portOf is a port for a name, below those that systems give to connections.
func portOf(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	return strconv.Itoa(20000 + int(h.Sum32()%10000))
}

// firstNode is the first host of a node list of Slurm: "gpu[07-09,12],login" begins with gpu07. It is
// empty for a list that cannot be read.
func firstNode(list string) string {
	var host strings.Builder
	for list != "" {
		switch c := list[0]; c {
		case ',':
			return host.String()
		case '[':
			end := strings.IndexByte(list, ']')
			if end < 0 {
				return ""
			}
			number := list[1:end]
			if i := strings.IndexAny(number, ",-"); i >= 0 {
				number = number[:i]
			}
			if number == "" || strings.Trim(number, "0123456789") != "" {
				return ""
			}
			host.WriteString(number)
			list = list[end+1:]
		case ']', ' ', '/':
			return ""
		default:
			host.WriteByte(c)
			list = list[1:]
		}
	}
	return host.String()
}

// CheckSize compares the number of processes with that of the ranks of a mesh.
func (w World) CheckSize(mesh string, ranks int64) error {
	if int64(w.Size) == ranks {
		return nil
	}
	if w.Launcher == "" {
		return diag.Errorf(diag.WrongRanks, "", "the artifact is for %d ranks (mesh %s), and this is one process", ranks, mesh).
			Suggest("start all ranks on this host with --nproc %d, or on several with torchrun --no-python, mpirun or srun", ranks)
	}
	what := fmt.Sprintf("%d ranks (mesh %s)", ranks, mesh)
	if ranks == 1 {
		what = "one rank"
	}
	return diag.Errorf(diag.WrongRanks, "", "the artifact is for %s, and there are %d (%s)", what, w.Size, w.Launcher)
}

// Environ is env with the variables for a process of this world in place of what any launcher set.
func (w World) Environ(env []string) []string {
	host, port, _ := net.SplitHostPort(w.Address)
	set := []struct{ name, value string }{
		{rankVariable, strconv.Itoa(w.Rank)}, {sizeVariable, strconv.Itoa(w.Size)},
		{localRankVariable, strconv.Itoa(w.LocalRank)}, {localSizeVariable, strconv.Itoa(w.LocalSize)},
		{hostVariable, host}, {portVariable, port}, {TokenVariable, w.Token},
	}
	drop := map[string]bool{"TORCHELASTIC_RUN_ID": true, "TORCHELASTIC_USE_AGENT_STORE": true, listenerVariable: true}
	for _, l := range launchers {
		drop[l.rank], drop[l.size], drop[l.localRank], drop[l.localSize] = true, true, true, true
	}
	for _, s := range set {
		drop[s.name] = true
	}
	var out []string
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); !drop[name] {
			out = append(out, e)
		}
	}
	for _, s := range set {
		if s.value != "" {
			out = append(out, s.name+"="+s.value)
		}
	}
	return out
}

// FindTimeout gives how long ranks wait for each other: the flag (0 is not given), WEFT_COMM_TIMEOUT, or
// NCCL_TIMEOUT_MS. echo says for people what NCCL_TIMEOUT_MS, where set, did; else it is empty.
func FindTimeout(flag time.Duration, lookup func(string) (string, bool)) (timeout time.Duration, echo string, err error) {
	env := environment(lookup)
	timeout = DefaultTimeout
	from := ""
	if text, ok := env.get(TimeoutVariable); ok {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, "", diag.Errorf(diag.CommandLine, "environment", "%s is %.40q, not a time above 0", TimeoutVariable, text).Suggest("write it as 90s or 10m")
		}
		timeout, from = d, fmt.Sprintf("%s=%s", TimeoutVariable, text)
	}
	if flag > 0 {
		timeout, from = flag, fmt.Sprintf("--comm-timeout %s", flag)
	}
	text, ok := env.get("NCCL_TIMEOUT_MS")
	if !ok {
		return timeout, "", nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 || ms > int64(1<<62/time.Millisecond) {
		return 0, "", diag.Errorf(diag.CommandLine, "environment", "NCCL_TIMEOUT_MS is %.40q, not a number of milliseconds above 0", text)
	}
	if from != "" {
		return timeout, fmt.Sprintf("NCCL_TIMEOUT_MS=%s is set, and %s goes before it: ranks wait %s for each other", text, from, timeout), nil
	}
	timeout = time.Duration(ms) * time.Millisecond
	return timeout, fmt.Sprintf("NCCL_TIMEOUT_MS=%s: ranks wait %s for each other", text, timeout), nil
}

// FindHere is Find in the environment of this process.
func FindHere(flags WorldFlags) (World, error) { return Find(flags, os.LookupEnv) }
