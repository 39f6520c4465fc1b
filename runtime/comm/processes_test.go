package comm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/ir/diag"
	"weft/runtime"
	"weft/runtime/emu"
)

// The test binary is a rank where rankVariableOfTest is set: see rankOfTest.
const faultOfTest, victimOfTest = "WEFT_TEST_FAULT", "WEFT_TEST_VICTIM"

func TestMain(m *testing.M) {
	if fault, ok := os.LookupEnv(faultOfTest); ok {
		if err := rankOfTest(fault, os.Getenv(victimOfTest)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(int(diag.ExitStatus(err)))
		}
		return
	}
	os.Exit(m.Run())
}

// rankOfTest meets the other ranks and sums with them on emulated devices, as often as a run of some
// steps would. In the middle, one rank has a fault.
func rankOfTest(fault, victim string) error {
	world, err := FindHere(WorldFlags{})
	if err != nil {
		return err
	}
	timeout, echo, err := FindTimeout(0, os.LookupEnv)
	if err != nil {
		return err
	}
	if echo != "" && world.Rank == 0 {
		fmt.Fprintln(os.Stderr, "note:", echo)
	}
	listener, err := Inherited(os.LookupEnv)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	m := axis(world.Size)
	peers, err := Meet(ctx, Options{World: world, Mesh: m, Digest: "d", Timeout: timeout, Listener: listener, Fatal: func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(int(diag.ExitStatus(err)))
	}})
	if err != nil {
		return err
	}
	defer peers.Close()
	device := emu.New(emu.Options{Memory: 1 << 20})
	from, err := device.Alloc(8)
	if err != nil {
		return err
	}
	to, err := device.Alloc(8)
	if err != nil {
		return err
	}
	c := carried(m, world.Rank, "all_reduce", []string{"x"}, 8, 8)
	c.From, c.To = from, to
	communicator := peers.Communicator(device)
	for step := range 10 {
		if step == 5 && strconv.Itoa(world.Rank) == victim {
			if err := befall(fault); err != nil {
				peers.Abort(err)
				return err
			}
			switch fault {
			case "ended":
				return peers.Close()
			case "disagrees":
				c.Kind = "collective_permute"
			}
		}
		value := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(world.Rank+step)))
		if err := device.Upload(from, append(value, value...)); err != nil {
			return err
		}
		c.Sequence, c.Step = int64(step+1), step
		if err := communicator.Collective(ctx, 0, c); err != nil {
			return err
		}
		sum := make([]byte, 8)
		if err := device.Download(sum, to); err != nil {
			return err
		}
		want := float32(world.Size*(world.Size-1)/2 + step*world.Size)
		if got := math.Float32frombits(binary.LittleEndian.Uint32(sum[4:])); got != want {
			return fmt.Errorf("the sum is %g, expected %g", got, want)
		}
	}
	fmt.Printf("rank %d of %d is done\n", world.Rank, world.Size)
	return peers.Close()
}

func befall(fault string) error {
	self := os.Getpid()
	time.Sleep(100 * time.Millisecond) // the others have their results by then
	switch fault {
	case "killed":
		return errors.Join(syscall.Kill(self, syscall.SIGKILL), sleep())
	case "paused":
		wake := exec.Command("sh", "-c", fmt.Sprintf("sleep 0.4; kill -CONT %d", self))
		return errors.Join(wake.Start(), syscall.Kill(self, syscall.SIGSTOP), wake.Wait())
	case "stopped":
		return errors.Join(syscall.Kill(self, syscall.SIGSTOP), sleep()) // it takes a moment
	case "slow":
		return sleep()
	case "failed":
		return diag.Errorf(diag.RunDevice, "", "the device is on fire")
	}
	return nil
}

func sleep() error {
	time.Sleep(time.Minute)
	return nil
}

func launchTest(t *testing.T, ranks int, env ...string) (status int, stdout, stderr string, took time.Duration) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	start := time.Now()
	l := Launch{Path: self, Ranks: ranks, Env: append(os.Environ(), env...), Stdout: &out, Stderr: &errors, Grace: 3 * time.Second}
	status, err = l.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return status, out.String(), errors.String(), time.Since(start)
}

func TestLaunch(t *testing.T) {
	status, stdout, stderr, _ := launchTest(t, 3, faultOfTest+"=", "NCCL_TIMEOUT_MS=20000")
	if status != 0 || stdout != "rank 0 of 3 is done\n" || !strings.Contains(stderr, "[rank 2] rank 2 of 3 is done\n") ||
		!strings.Contains(stderr, "[rank 0] note: NCCL_TIMEOUT_MS=20000: ranks wait 20s for each other\n") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
}

// Whatever befalls a rank, the others end in time and say which rank it was and what they were doing.
func TestFaults(t *testing.T) {
	const timeout = time.Second
	for _, fault := range []string{"killed", "stopped", "slow", "failed", "ended", "disagrees"} {
		for _, victim := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s %d", fault, victim), func(t *testing.T) {
				t.Parallel()
				status, _, stderr, took := launchTest(t, 3, faultOfTest+"="+fault, fmt.Sprintf("%s=%d", victimOfTest, victim), TimeoutVariable+"="+timeout.String())
				what := map[string]string{
					"killed":    fmt.Sprintf("error W7105: rank %d went away", victim),
					"stopped":   fmt.Sprintf("rank %d is missing: it was last heard ", victim),
					"slow":      fmt.Sprintf("rank %d is missing: it is alive, and has not come to the collective", victim),
					"failed":    fmt.Sprintf("rank %d failed: the device is on fire", victim),
					"ended":     fmt.Sprintf("rank %d has ended, and others wait for it in all_reduce", victim),
					"disagrees": "ranks issue different collectives",
				}[fault]
				if status != 6 {
					t.Errorf("exit status %d", status)
				}
				for rank := range 3 {
					dead := rank == victim && fault != "slow" && fault != "disagrees"
					mine := fmt.Sprintf("this rank, %d: last finished all_reduce over x (number 5, step 4 of forward)", rank)
					if !dead && (!reports(stderr, rank, "error W710") || !strings.Contains(stderr, mine)) {
						t.Errorf("rank %d has no report", rank)
					}
					if said := fault == "failed" || fault == "ended" || fault == "disagrees"; said && !dead && !reports(stderr, rank, "error W7105: "+what) {
						t.Errorf("rank %d does not say %q", rank, what)
					}
				}
				if fault == "stopped" && victim == 0 && !strings.Contains(stderr, "note: rank 2, as rank 0 told last: ") {
					t.Error("rank 1 does not tell how rank 2 was")
				}
				if !strings.Contains(stderr, what) {
					t.Errorf("nobody says %q", what)
				}
				limit := timeout + 15*time.Second // of a busy machine
				if fault != "stopped" && fault != "slow" {
					limit = 15 * time.Second
				}
				if took > limit {
					t.Errorf("it took %s", took)
				}
				if t.Failed() {
					t.Log(stderr)
				}
			})
		}
	}
}

// reports tells whether a rank prints a line with a text.
func reports(stderr string, rank int, text string) bool {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, fmt.Sprintf("[rank %d] ", rank)) && strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// A rank that is late, but in time, disturbs nobody.
func TestPaused(t *testing.T) {
	for victim := range 2 {
		status, stdout, stderr, _ := launchTest(t, 2, faultOfTest+"=paused", fmt.Sprintf("%s=%d", victimOfTest, victim), TimeoutVariable+"=3s")
		if status != 0 || stdout != "rank 0 of 2 is done\n" || !strings.Contains(stderr, "[rank 1] rank 1 of 2 is done\n") {
			t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
		}
	}
}

// A process that is killed takes those that it started with it.
func TestLauncherKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(self, "-test.run=^TestLauncherOfSleepers$")
	cmd.Env = append(os.Environ(), "WEFT_TEST_SLEEPERS="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for deadline := time.Now().Add(20 * time.Second); len(pids) < 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		pids, _ = filepath.Glob(filepath.Join(dir, "*"))
	}
	cmd.Process.Kill()
	cmd.Wait()
	if len(pids) < 2 {
		t.Fatal("the processes do not start")
	}
	for _, p := range pids {
		pid, _ := strconv.Atoi(filepath.Base(p))
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || bytes.Contains(stat, []byte(") Z")) {
				break
			}
			if time.Now().After(deadline) {
				syscall.Kill(pid, syscall.SIGKILL)
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

func TestLauncherOfSleepers(t *testing.T) {
	dir := os.Getenv("WEFT_TEST_SLEEPERS")
	if dir == "" {
		return // TestLauncherKilled starts it
	}
	l := Launch{Path: "/bin/sh", Args: []string{"-c", ": >" + dir + "/$$; exec sleep 60"}, Ranks: 2, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard}
	l.Run(context.Background())
}

// Processes that mpirun starts find each other.
func TestMPI(t *testing.T) {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("no mpirun (Debian package openmpi-bin)")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(env ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, mpirun, "-n", "3", self)
		cmd.Env = append(os.Environ(), append(env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
			"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", "OMPI_MCA_plm=isolated")...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(faultOfTest + "=")
	for rank := range 3 {
		if !strings.Contains(out, fmt.Sprintf("rank %d of 3 is done", rank)) {
			t.Errorf("rank %d: %v\n%s", rank, err, out)
		}
	}
	out, err = run(faultOfTest+"=slow", victimOfTest+"=1", TimeoutVariable+"=1s")
	if err == nil || !strings.Contains(out, "rank 1 is missing: it is alive") {
		t.Errorf("with a slow rank: %v\n%s", err, out)
	}
}

// HostMemory is not needed: other devices are read and written by copies.
func TestRemoteByCopies(t *testing.T) {
	peers, errs := meetAll(t, 1, time.Second, nil)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	device := struct{ runtime.Device }{emu.New(emu.Options{Memory: 1 << 20})}
	from, err := device.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	to, err := device.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	c := carried(axis(1), 0, "all_gather", []string{"x"}, 8, 8)
	c.From, c.To = from, to
	got := make([]byte, 8)
	err = errors.Join(device.Upload(from, []byte("12345678")), peers[0].Communicator(device).Collective(context.Background(), 0, c), device.Download(got, to))
	if err != nil || string(got) != "12345678" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPrefixed(t *testing.T) {
	var out bytes.Buffer
	p := &prefixed{to: &out, prefix: "> "}
	for _, part := range []string{"a\nb", "c\n\n", strings.Repeat("x", longLine), "y"} {
		p.Write([]byte(part))
	}
	p.flush()
	want := "> a\n> bc\n> \n> " + strings.Repeat("x", longLine) + "\n> y\n"
	if out.String() != want {
		t.Errorf("%.100q", out.String())
	}
}
