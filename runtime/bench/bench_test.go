package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
)

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		times []time.Duration
		want  Times
	}{
		{[]time.Duration{3e6}, Times{1, 3, 3, 3}},
		{[]time.Duration{4e6, 1e6}, Times{2, 2.5, 1, 4}},
		{[]time.Duration{9e6, 1e6, 2e6}, Times{3, 2, 1, 9}},
	} {
		if got := Summarize(c.times); got != c.want {
			t.Errorf("%v: %v, want %v", c.times, got, c.want)
		}
	}
}

const program = `dim n in 1..
state @"table": f32[10, 4] parameter
entry f(%0 "ids": i64[n], %1 "mask": i64[n], %2 "x": bf16[n, 4], %3 "b": i1[n], %4 @"table": f32[10, 4]) {
  %5: i64[n, 1] = reshape(%0) {dims = [n, 1]}
  %6: f32[n, 4] = gather(%4, %5) {offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1, 4]}
  return %6 "y"
}
`

func parse(t *testing.T) (*ir.Program, *ir.Entry) {
	p, err := ir.ParseProgram("test", []byte(program))
	if err != nil {
		t.Fatal(err)
	}
	return p, p.Entries[0]
}

func TestInputs(t *testing.T) {
	p, e := parse(t)
	inputs, err := Inputs(p, e, map[string]int64{"n": 1000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen, sum := map[int64]bool{}, 0.0
	for i := range int64(1000) {
		seen[inputs[0].Int(i)] = true
		if inputs[1].Int(i) != 1 || inputs[3].Int(i) != 1 {
			t.Fatal("a mask that is not 1")
		}
		sum += inputs[2].Float(i)
	}
	if len(seen) != 10 || seen[-1] || seen[10] {
		t.Errorf("ids take %d values, want the 10 rows of the table", len(seen))
	}
	if sum < -150 || sum > 150 {
		t.Errorf("1000 normal numbers sum up to %v", sum)
	}
	again, err := Inputs(p, e, map[string]int64{"n": 1000}, nil)
	if err != nil || !reflect.DeepEqual(inputs, again) {
		t.Error("other inputs the second time: ", err)
	}
	ranged, err := Inputs(p, e, map[string]int64{"n": 50}, &IntRange{-2, -1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(50) {
		if v := ranged[0].Int(i); v != -1 && v != -2 {
			t.Fatalf("%d is not in -2..-1", v)
		}
	}
}

func TestInputsRefused(t *testing.T) {
	p, e := parse(t)
	for _, c := range []struct {
		dims map[string]int64
		want string
	}{
		{nil, "--dim n=N"},
		{map[string]int64{"m": 1}, `no dim "m"`},
		{map[string]int64{"n": -1}, "no size"},
		{map[string]int64{"n": 1 << 40}, "no size"},
	} {
		if _, err := Inputs(p, e, c.dims, nil); err == nil || !strings.Contains(fullText(err), c.want) {
			t.Errorf("%v: %v, want %q", c.dims, err, c.want)
		}
	}
}

// fullText is a diagnostic with its suggestion.
func fullText(err error) string {
	text := ""
	for _, d := range diag.All(err) {
		text += fmt.Sprintf("%+v\n", *d)
	}
	return text
}

// python makes an executable that plays Python.
func python(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func torch(program string) *Torch {
	return &Torch{Python: program, Model: "m.pt2", Device: "cuda", Modes: TorchModes, Inputs: []*ir.Tensor{ir.I64s([]int64{1}, 1)},
		Outputs: []*ir.Tensor{ir.I64s([]int64{2}, 1)}, Options: Options{Steps: 5}, Budget: time.Minute}
}

func TestTorch(t *testing.T) {
	r, err := torch(python(t, `test -s $2/inputs.safetensors && test -s $2/outputs.safetensors && test "$3" = m.pt2 || exit 3
echo '{"torch": "2.11", "device": "GPU", "cuda": "13"}'
echo 'what a library says'
echo '{"check": "weft", "agrees": true, "max": 1e-3, "rms": 1e-4, "relative": 1, "outside": 0, "elements": 4}'
echo '{"check": "default", "agrees": false, "max": "inf", "rms": "inf", "relative": "nan", "outside": 4, "elements": 4}'
echo '{"mode": "eager", "median_ms": 2, "min_ms": 1, "max_ms": 3, "count": 5, "first_call_s": 0.5, "peak_bytes": 10}'
echo '{"mode": "default", "median_ms": 1, "min_ms": 1, "max_ms": 1, "count": 5, "first_call_s": 9, "peak_bytes": 10}'
echo '{"mode": "max-autotune", "error": "left out"}'
sleep 60 & # as a compiler's worker does, this one holds the pipes
`)).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "2.11" || len(r.Modes) != 3 || r.Notes != nil {
		t.Errorf("%+v", r)
	}
	if best := r.Best(); best == nil || best.Mode != "eager" {
		t.Errorf("best is %+v: default is wrong, max-autotune has no times", best)
	}
	if c := r.Check("weft"); c == nil || !c.Agrees || c.Max != 1e-3 {
		t.Errorf("%+v", c)
	}
}

func TestTorchFails(t *testing.T) {
	if _, err := torch("/nonexistent/python").Run(context.Background()); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Error(err)
	}
	if _, err := torch(python(t, "echo no torch here >&2; exit 1")).Run(context.Background()); err == nil || !strings.Contains(err.Error(), "cannot run the model") {
		t.Error(err)
	}
	r, err := torch(python(t, `echo '{"mode": "eager", "median_ms": 2}'; echo crashed >&2; exit 139`)).Run(context.Background())
	if err != nil || len(r.Modes) != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "crashed") {
		t.Errorf("%+v, %v", r, err)
	}
}

// kernel is a kernel without a device.
type kernel string

func (k kernel) Name() string { return string(k) }

func TestLaunchesWithTensorMaps(t *testing.T) {
	launch := func(at uint64, rows uint64) runtime.Launch {
		tensor := func(from uint64, size int64) runtime.Arg {
			return runtime.Arg{Kind: runtime.ArgTensorMap, Bits: at + from, Size: size, Access: runtime.Read,
				Map: &runtime.TensorMap{Type: runtime.TensorU8, Dims: []uint64{16, rows}, Strides: []uint64{16}, Box: []uint32{16, 1}}}
		}
		return runtime.Launch{Kernel: kernel("k"), Args: []runtime.Arg{
			{Kind: runtime.ArgPointer, Bits: at, Size: 1000, Access: runtime.Read}, {Kind: runtime.ArgI32, Bits: 7},
			tensor(16, 984), tensor(2048, 512), tensor(2048+64, 448)}}
	}
	if got := bytesOf(launch(1<<20, 8)); got != 1000+512 {
		t.Errorf("%d bytes, want those of two tensors, each once", got)
	}
	key := launchKey(launch(1<<20, 8))
	if again := launchKey(launch(1<<30, 8)); again != key {
		t.Errorf("elsewhere the key is %s, not %s", again, key)
	}
	if other := launchKey(launch(1<<20, 4)); other == key {
		t.Errorf("the key of half of the rows is %s too", key)
	}
}
