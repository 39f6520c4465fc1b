package weights

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A writer that is killed leaves nothing under the final name, and what it leaves beside it
// goes with the next write; while it lives, its temporary file is left alone.
func TestKilledWriter(t *testing.T) {
	const variable = "WEFT_TEST_WRITE_AND_WAIT"
	if path := os.Getenv(variable); path != "" { // the process to be killed
		p, err := CreateFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Abort()
		fmt.Fprint(p, "half of the contents")
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	if !locksFiles {
		t.Skip("no file locks on this system")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "out.safetensors")
	temporary := func() int {
		found, err := filepath.Glob(filepath.Join(dir, ".out.safetensors.tmp-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
	cmd.Env = append(os.Environ(), variable+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.Contains(line, "ready") {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := os.Stat(path); err == nil || temporary() != 1 {
		t.Errorf("while writing: %v, %d temporary files", err, temporary())
	}
	if err := WriteTensors(path, []Named{{"x", iota32(1, 1)}}); err != nil {
		t.Fatal(err)
	}
	if temporary() != 1 {
		t.Error("the file of a living writer was removed")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if temporary() != 1 {
		t.Errorf("%d temporary files after the kill", temporary())
	}
	if err := WriteTensors(path, []Named{{"x", iota32(2, 2)}}); err != nil {
		t.Fatal(err)
	}
	if temporary() != 0 {
		t.Error("the file of the killed writer is still there")
	}
}
