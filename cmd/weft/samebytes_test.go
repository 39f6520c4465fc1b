package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// compileModel compiles a file in this process and gives the artifact's bytes.
func compileModel(t *testing.T, path, out string, flags ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args := append([]string{"compile", path, "--target", "sm_80", "--target", "sm_90a", "-o", out}, flags...)
	if status := run(args, nil, &stdout, &stderr); status != 0 {
		t.Fatalf("weft %s: exit status %d\n%s", strings.Join(args, " "), status, &stderr)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func copyFile(t *testing.T, from, to string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		if err = os.MkdirAll(filepath.Dir(to), 0o777); err == nil {
			err = os.WriteFile(to, data, 0o666)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// The artifact depends on the model and the configuration: not on threads, folders, file names,
// locale, time zone or user.
func TestSameBytes(t *testing.T) {
	needLLC(t)
	for _, c := range []struct {
		model, name string
		flags       []string
	}{
		{"mlp", "model.pt2", nil},
		{"mlp", "model.onnx", nil},
		{"mlp_joint", "model.pt2", []string{"--mesh", "dp=2,tp=2", "--parallel", "dp:fsdp,tp:tp+sp", "--precision", "bf16"}},
		{"mixtral_tiny", "model.pt2", []string{"--mesh", "a=2,b=2", "--parallel", "auto"}},
	} {
		name := c.name
		model := filepath.Join(models(t), c.model, name)
		dir := t.TempDir()
		want := compileModel(t, model, filepath.Join(dir, "first.weft"), append(c.flags, "--jobs", "1")...)
		t.Run(c.model+" "+name, func(t *testing.T) {
			for key, value := range map[string]string{"TZ": "Pacific/Chatham", "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "HOME": dir, "USER": "somebody", "LOGNAME": "somebody", "TMPDIR": dir} {
				t.Setenv(key, value)
			}
			moved := copyFile(t, model, filepath.Join(dir, "another folder", "renamed"+filepath.Ext(name)))
			t.Chdir(filepath.Dir(moved))
			for _, jobs := range []string{"1", "2"} {
				got := compileModel(t, filepath.Base(moved), filepath.Join(dir, "second"), append(c.flags, "--jobs", jobs)...)
				if !bytes.Equal(got, want) {
					t.Errorf("--jobs %s: the artifact differs at byte %d of %d", jobs, firstDifference(got, want), len(want))
				}
			}
		})
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// Exporters write the paths of the model's source into stack traces: two checkouts of one model
// give the same bytes. The exporter of these has cut paths to package/file.py already; the test
// puts folders in front.
func TestSameBytesForSourcesElsewhere(t *testing.T) {
	needLLC(t)
	for _, name := range []string{"mlp", "mlp_torch215"} {
		model := filepath.Join(models(t), name, "model.pt2")
		for _, folders := range [][2]string{
			{"/home/a/site-packages/", "/srv/checkout-2/venv/lib/python3.12/site-packages/"}, // installed
			{"/home/a/", "/srv/checkout-2/a model/src/"},                                     // the model's own files
		} {
			var artifacts [2][]byte
			for i, folder := range folders {
				dir := t.TempDir()
				moved := filepath.Join(dir, "model.pt2")
				if n := moveSources(t, model, moved, folder); n == 0 {
					t.Fatalf("%s has no stack traces", model)
				}
				artifacts[i] = compileModel(t, moved, filepath.Join(dir, "out.weft"))
			}
			if !bytes.Equal(artifacts[0], artifacts[1]) {
				t.Errorf("%s in %s: the artifacts differ at byte %d", name, folders, firstDifference(artifacts[0], artifacts[1]))
			}
			if bytes.Contains(artifacts[1], []byte("checkout-2")) {
				t.Errorf("%s in %s: the artifact has a path of the machine", name, folders)
			}
		}
	}
}

// moveSources copies a .pt2 with a folder in front of every source path of its stack traces, and
// gives the number of paths.
func moveSources(t *testing.T, from, to, folder string) int {
	t.Helper()
	r, err := zip.OpenReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	count := 0
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		in.Close()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, ".json") {
			const mark = `File \"`
			count += bytes.Count(data, []byte(mark))
			data = bytes.ReplaceAll(data, []byte(mark), []byte(mark+folder))
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err == nil {
			_, err = to.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return count
}
