package comm

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/ir/diag"
)

func lookupIn(text string) func(string) (string, bool) {
	values := map[string]string{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

func TestFind(t *testing.T) {
	const meet = " MASTER_ADDR=h0 MASTER_PORT=29500"
	for _, c := range []struct {
		name, env string
		flags     WorldFlags
		want      World
		wrong     string // part of the diagnostic
	}{
		{name: "alone", want: World{Size: 1}},
		{name: "empty variables", env: "RANK= WORLD_SIZE=", want: World{Size: 1}},
		{name: "torchrun", env: "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 WEFT_JOB_TOKEN=t" + meet,
			want: World{Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Address: "h0:29500", Token: "t", Launcher: "RANK and WORLD_SIZE"}},
		{name: "torchrun that listens at the port", env: "RANK=1 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RESTART_COUNT=0" + meet,
			want: World{Rank: 1, Size: 2, LocalRank: 1, Address: "h0:29023", Launcher: "torchrun"}},
		{name: "plain variables", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=[::1] MASTER_PORT=1", want: World{Rank: 1, Size: 2, LocalRank: 1, Address: "[::1]:1", Launcher: "RANK and WORLD_SIZE"}},
		{name: "one of one", env: "RANK=0 WORLD_SIZE=1", want: World{Size: 1, Launcher: "RANK and WORLD_SIZE"}},
		{name: "Open MPI on one host", env: "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=prterun-1",
			want: World{Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Address: "127.0.0.1:26319", Launcher: "Open MPI"}},
		{name: "Open MPI on several", env: "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2" + meet,
			want: World{Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, Address: "h0:29500", Launcher: "Open MPI"}},
		{name: "Open MPI, no address", env: "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2", wrong: "W7104: this is rank 3 of 4 (Open MPI), and MASTER_ADDR"},
		{name: "MPICH", env: "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1" + meet, want: World{Rank: 1, Size: 2, LocalSize: 1, Address: "h0:29500", Launcher: "MPICH"}},
		{name: "MPICH on one host", env: "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 PMI_FD=6", want: World{Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Address: "127.0.0.1:29500", Launcher: "MPICH"}},
		{name: "Slurm", env: "SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=77 SLURM_STEP_NODELIST=gpu[07-08]",
			want: World{Rank: 2, Size: 4, Address: "gpu07:24963", Launcher: "Slurm"}},
		{name: "a batch script of Slurm", env: "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_JOB_ID=77", want: World{Size: 1}},
		{name: "Open MPI inside Slurm", env: "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0" + meet,
			want: World{Rank: 1, Size: 2, LocalRank: 1, Address: "h0:29500", Launcher: "Open MPI"}},
		{name: "torchrun inside Open MPI", env: "TORCHELASTIC_RUN_ID=x RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2" + meet,
			want: World{Rank: 3, Size: 4, LocalRank: 1, Address: "h0:29500", Launcher: "torchrun"}},
		{name: "flags", flags: WorldFlags{Rank: 1, Size: 3, Address: "h9:7"}, env: "RANK=0 WORLD_SIZE=9", want: World{Rank: 1, Size: 3, LocalRank: 1, Address: "h9:7", Launcher: "flags"}},

		{name: "contradiction", env: "RANK=1 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2" + meet, wrong: "W7100: RANK=1 and WORLD_SIZE=2 make this rank 1 of 2, OMPI_COMM_WORLD_RANK=0"},
		{name: "half", env: "RANK=1", wrong: "W7100: RANK is set and WORLD_SIZE is not"},
		{name: "the other half", env: "PMI_SIZE=2", wrong: "W7100: PMI_SIZE is set and PMI_RANK is not"},
		{name: "no number", env: "RANK=x WORLD_SIZE=2", wrong: `W7100: RANK is "x"`},
		{name: "negative", env: "RANK=-1 WORLD_SIZE=2", wrong: `W7100: RANK is "-1"`},
		{name: "huge", env: "RANK=0 WORLD_SIZE=99999999999999999999", wrong: "W7100: WORLD_SIZE is"},
		{name: "rank beyond", env: "RANK=2 WORLD_SIZE=2" + meet, wrong: "W7100: RANK=2 and WORLD_SIZE=2: there is no rank 2 of 2"},
		{name: "local rank beyond", env: "RANK=3 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2" + meet, wrong: "W7100: LOCAL_RANK=2"},
		{name: "no address", env: "RANK=1 WORLD_SIZE=2", wrong: "W7104: this is rank 1 of 2 (RANK and WORLD_SIZE), and MASTER_ADDR"},
		{name: "no port", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h", wrong: "MASTER_PORT, where the ranks meet, is not set"},
		{name: "bad port", env: "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=99999", wrong: `W7104: MASTER_PORT is "99999"`},
		{name: "wrong flags", flags: WorldFlags{Rank: 3, Size: 3}, wrong: "W7100: there is no rank 3 of 3"},
		{name: "wrong address", flags: WorldFlags{Rank: 0, Size: 3, Address: "h"}, wrong: "W0001: --rendezvous"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Find(c.flags, lookupIn(c.env))
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("error %v, expected %s", err, c.wrong)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%+v, %v, expected %+v", got, err, c.want)
			}
		})
	}
}

func TestFindTimeout(t *testing.T) {
	for _, c := range []struct {
		env         string
		flag, want  time.Duration
		echo, wrong string
	}{
		{want: DefaultTimeout},
		{env: "WEFT_COMM_TIMEOUT=90s", want: 90 * time.Second},
		{env: "WEFT_COMM_TIMEOUT=90s", flag: time.Second, want: time.Second},
		{env: "NCCL_TIMEOUT_MS=1500", want: 1500 * time.Millisecond, echo: "NCCL_TIMEOUT_MS=1500: ranks wait 1.5s for each other"},
		{env: "NCCL_TIMEOUT_MS=1500 WEFT_COMM_TIMEOUT=2s", want: 2 * time.Second, echo: "WEFT_COMM_TIMEOUT=2s goes before it"},
		{env: "NCCL_TIMEOUT_MS=1500 WEFT_COMM_TIMEOUT=2s", flag: 3 * time.Second, want: 3 * time.Second, echo: "--comm-timeout 3s goes before it"},
		{env: "WEFT_COMM_TIMEOUT=90", wrong: "W0001"},
		{env: "WEFT_COMM_TIMEOUT=-1s", wrong: "W0001"},
		{env: "NCCL_TIMEOUT_MS=1s", wrong: "W0001"},
		{env: "NCCL_TIMEOUT_MS=0", wrong: "W0001"},
	} {
		got, echo, err := FindTimeout(c.flag, lookupIn(c.env))
		switch {
		case c.wrong != "":
			if err == nil || string(diag.All(err)[0].Code) != c.wrong {
				t.Errorf("%s: error %v, expected %s", c.env, err, c.wrong)
			}
		case err != nil || got != c.want || !strings.Contains(echo, c.echo) || (c.echo == "") != (echo == ""):
			t.Errorf("%s, flag %s: %s, %q, %v", c.env, c.flag, got, echo, err)
		}
	}
}

func TestWorldEnviron(t *testing.T) {
	w := World{Rank: 2, Size: 4, LocalRank: 2, LocalSize: 4, Address: "127.0.0.1:5", Token: "t"}
	env := w.Environ([]string{"A=b", "RANK=7", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=x"})
	if !slices.Contains(env, "A=b") {
		t.Errorf("other variables are lost: %v", env)
	}
	values := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		values[name] = value
	}
	got, err := Find(WorldFlags{}, func(name string) (string, bool) { v, ok := values[name]; return v, ok })
	w.Launcher = "RANK and WORLD_SIZE"
	if err != nil || got != w {
		t.Errorf("%+v, %v from %v", got, err, slices.Sorted(maps.Keys(values)))
	}
	if err := got.CheckSize("dp=4", 4); err != nil {
		t.Error(err)
	}
	for size, want := range map[int]string{4: "there are 4 (RANK and WORLD_SIZE)", 1: "there are 1 (RANK and WORLD_SIZE)"} {
		if err := (World{Size: size, Launcher: "RANK and WORLD_SIZE"}).CheckSize("dp=2", 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	if err := (World{Size: 1}).CheckSize("dp=2", 2); err == nil || !strings.Contains(err.Error(), "--nproc 2") {
		t.Error(err)
	}
}

func TestFirstNode(t *testing.T) {
	for list, want := range map[string]string{
		"gpu07": "gpu07", "a,b": "a", "gpu[07-09,12],login": "gpu07", "gpu[3]": "gpu3", "r[1-2]n[05,07]": "r1n05",
		"": "", "[": "", "gpu[": "", "gpu[x]": "", "gpu[]": "", "a]b": "", ",a": "", "a b": "",
	} {
		if got := firstNode(list); got != want {
			t.Errorf("%q: %q, expected %q", list, got, want)
		}
	}
}

func FuzzFirstNode(f *testing.F) {
	f.Add("gpu[07-09,12],login")
	f.Fuzz(func(t *testing.T, list string) {
		if host := firstNode(list); strings.ContainsAny(host, "[], /") || len(host) > len(list) {
			t.Errorf("%q: %q", list, host)
		}
	})
}
