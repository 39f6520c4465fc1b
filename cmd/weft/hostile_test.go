//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// What a hostile file may cost at most.
const (
	longestHostile = 60 * time.Second // far above what is needed, for machines that are busy
	mostHostileRSS = 2 << 30
)

// hostileCase is a command over files that are made to break it.
type hostileCase struct {
	name  string
	files map[string][]byte
	args  string // separated by spaces
	want  string // a regular expression for the diagnostic
}

// TestHostileFiles runs the whole command on hostile files: a diagnostic of the input with its
// code, in bounded time and memory, and nothing left behind.
func TestHostileFiles(t *testing.T) {
	const compile = "compile FILE --target sm_80 -o out.weft"
	on := func(file string) string { return strings.Replace(compile, "FILE", file, 1) }
	mlp := readFixture(t, "mlp/model.pt2")
	io := readFixture(t, "mlp/io.safetensors")
	cases := []hostileCase{
		// Sizes.
		{"zip bomb", files("a.pt2", bombIn(t, mlp, 1<<28)), on("a.pt2"), `W1\d\d\d`},
		{"zip bomb that is claimed smaller", files("a.pt2", claimLess(bombIn(t, mlp, 1<<26))), on("a.pt2"), `W1\d\d\d`},
		{"zip64 that claims 2^63 bytes", files("a.pt2", zip64Claim(1<<63)), on("a.pt2"), `W1\d\d\d`},
		{"zip64 that claims 2^62 members", files("a.pt2", zip64Members()), on("a.pt2"), `W1\d\d\d`},
		{"2^60 in text", files("a.weft", []byte(wideConstant("1152921504606846976"))), "run a.weft --device emu", `W70\d\d`},
		{"2^120 in text", files("a.weft", []byte(wideConstant("1152921504606846976, 1152921504606846976"))), "run a.weft --device emu", `W70\d\d`},
		{"2^120 in the evaluator", files("a.weft", []byte(wideConstant("1152921504606846976, 1152921504606846976"))), "run a.weft --device reference", `W70\d\d`},
		{"2^60 in a product of dims", files("a.weft", []byte(wideProduct)), "run a.weft --device emu --inputs io.safetensors", `W\d\d\d\d`},
		{"2^60 in ONNX", files("a.onnx", onnxRelu(1<<60)), on("a.onnx"), `W\d\d\d\d`},
		{"2^60 in an ONNX constant", files("a.onnx", onnxFill(1<<60)), on("a.onnx"), `W\d\d\d\d`},
		{"2^60 in pt2", files("a.pt2", edited(t, mlp, `"as_int": 128`, `"as_int": 1152921504606846976`)), on("a.pt2"), `W1\d\d\d`},
		{"2^60 in safetensors", files("a.safetensors", safetensors(`{"in.0":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,16]}}`, 16)),
			"run MLP --device reference --inputs a.safetensors", `W1\d\d\d`},
		{"2^60 in npy", files("a.npy", npy(`{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846976,), }`, 16)),
			"run MLP --device reference --inputs a.npy", `W1\d\d\d`},
		{"a header of 2^60", files("a.safetensors", binary.LittleEndian.AppendUint64(nil, 1<<60)), "run MLP --device reference --inputs a.safetensors", `W1\d\d\d`},

		// Nesting.
		{"deep text", files("a.weft", []byte("entry f(%x \"x\": f32[2]) {\n"+strings.Repeat("%y: f32[2] = kernel() {} do {\n", 100000))), on("a.weft"), `W3\d\d\d`},
		{"deep dim", files("a.weft", []byte(program("f32["+strings.Repeat("(", 200000)+"1"))), on("a.weft"), `W3\d\d\d`},
		{"deep value", files("a.weft", []byte("entry f() {\n%y: f32[] = constant() {value = f32[] "+strings.Repeat("[", 200000))), on("a.weft"), `W3\d\d\d`},
		{"deep JSON", files("a.pt2", edited(t, mlp, `"schema_version": {`, `"x": `+strings.Repeat("[", 500000)+strings.Repeat("]", 500000)+`, "schema_version": {`)), on("a.pt2"), `W1\d\d\d`},
		{"deep header", files("a.safetensors", safetensors(strings.Repeat(`{"a":`, 300000), 0)), "run MLP --device reference --inputs a.safetensors", `W1\d\d\d`},
		{"deep protobuf", files("a.onnx", onnxDeep(100000)), on("a.onnx"), `W12\d\d`},
		{"deep PTX", files("a.ptx", []byte(ptxHead+strings.Repeat("{", 300000))), "ptx check a.ptx", `W0008`},
		{"deep expression in pt2", files("a.pt2", edited(t, mlp, `Symbol('s31', positive=True, integer=True)`, strings.Repeat("Add(1,", 100000))), on("a.pt2"), `W1\d\d\d`},

		// Offsets, weights, names.
		{"offset past the end", files("a.safetensors", safetensors(`{"in.0":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, 8)), "run MLP --device reference --inputs a.safetensors", `W1\d\d\d`},
		{"overlapping tensors", files("a.safetensors", safetensors(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}`, 24)),
			"run MLP --device reference --inputs io.safetensors --weights a.safetensors", `W1\d\d\d`},
		{"duplicate tensors", files("a.safetensors", safetensors(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`, 16)),
			"run MLP --device reference --inputs io.safetensors --weights a.safetensors", `W1\d\d\d`},
		{"weights of a wrong size", files("a.pt2", shorter(t, mlp)), on("a.pt2"), `W1\d\d\d`},
		{"ONNX weights of a wrong size", files("a.onnx", onnxWeight(nil, 12)), on("a.onnx"), `W12\d\d`},
		{"duplicate members", files("a.pt2", twice(t, mlp)), on("a.pt2"), `W1\d\d\d`},
		{"duplicate names in text", files("a.weft", []byte("entry f(%x \"x\": f32[2], %x \"y\": f32[2]) {\n  return %x \"x\"\n}\n")), on("a.weft"), `W3\d\d\d`},
		{"recursive function", files("a.onnx", onnxRecursion()), on("a.onnx"), `W12\d\d`},

		// Paths.
		{"external data outside", files("models/a.onnx", onnxWeight([]byte("../secret"), 0), "secret", make([]byte, 16)), on("models/a.onnx"), `W12\d\d`},
		{"external data at a root", files("a.onnx", onnxWeight([]byte("/etc/passwd"), 0)), on("a.onnx"), `W12\d\d`},
		{"external data in a device", files("a.onnx", onnxWeight([]byte("/dev/zero"), 0)), on("a.onnx"), `W12\d\d`},
		{"member outside", files("a.pt2", renamed(t, mlp, "../../x")), on("a.pt2"), `W1\d\d\d`},

		// What is no file.
		{"directory", nil, on("."), `W0003`},
		{"loop of links", files("a.pt2", symlink("a.pt2")), on("a.pt2"), `W0003`},
		{"dangling link", files("a.pt2", symlink("nothing")), on("a.pt2"), `W0003`},
		{"pipe", files("a.pt2", fifo), on("a.pt2"), `W0003`},
		{"pipe of tensors", files("a.safetensors", fifo), "run MLP --device reference --inputs a.safetensors", `W0003`},
		{"pipe as an artifact", files("a.weft", fifo), "verify a.weft", `W\d\d\d\d`},
		{"external data in a pipe", files("a.onnx", onnxWeight([]byte("w"), 0), "w", fifo), on("a.onnx"), `W12\d\d`},
		{"device", nil, on("/dev/zero"), `W0003`},
		{"device of tensors", files("a.safetensors", symlink("/dev/zero")), "run MLP --device reference --inputs a.safetensors", `W0003`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.files == nil {
				c.files = map[string][]byte{}
			}
			c.files["io.safetensors"] = io
			c.run(t)
		})
	}
}

// Contents that stand for what is no regular file.
var fifo = []byte("\x00fifo")

func symlink(to string) []byte { return []byte("\x00link" + to) }

func files(list ...any) map[string][]byte {
	m := map[string][]byte{}
	for i := 0; i < len(list); i += 2 {
		m[list[i].(string)] = list[i+1].([]byte)
	}
	return m
}

func (c hostileCase) run(t *testing.T) {
	folder, temporary := t.TempDir(), t.TempDir()
	for name, data := range c.files {
		path := filepath.Join(folder, name)
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		if err == nil {
			if to, ok := strings.CutPrefix(string(data), "\x00link"); ok {
				err = os.Symlink(to, path)
			} else if bytes.Equal(data, fifo) {
				err = syscall.Mkfifo(path, 0o666)
			} else {
				err = os.WriteFile(path, data, 0o666)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	args := strings.Fields(strings.ReplaceAll(c.args, "MLP", filepath.Join(models(t), "mlp", "model.pt2")))
	cmd := exec.Command("weft", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	timer := time.AfterFunc(longestHostile, func() { cmd.Process.Kill() })
	err := cmd.Run()
	if !timer.Stop() {
		t.Fatalf("took more than %s", longestHostile)
	}
	status := cmd.ProcessState.ExitCode()
	text := stderr.String()
	if !slices.Contains([]int{3, 4, 6}, status) || !regexp.MustCompile(`error `+c.want).MatchString(text) || strings.Contains(text, "W0900") {
		t.Errorf("status %d (%v), expected a diagnostic %s:\n%.2000s", status, err, c.want, text)
	}
	if len(text) > 10000 {
		t.Errorf("a diagnostic of %d bytes", len(text))
	}
	if rss := maxRSS(cmd.ProcessState); rss > mostHostileRSS {
		t.Errorf("%d MiB of memory", rss>>20)
	}
	left, _ := filepath.Glob(filepath.Join(temporary, "*"))
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, made := c.files[e.Name()]; !made && !e.IsDir() {
			left = append(left, e.Name())
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func maxRSS(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(usage.Maxrss) << 10 // KiB on Linux
}

func readFixture(t *testing.T, name string) []byte {
	data, err := os.ReadFile(filepath.Join(models(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func program(typ string) string {
	return "entry f(%x \"x\": " + typ + ") {\n  %y: " + typ + " = negate(%x)\n  return %y \"y\"\n}\n"
}

// wideConstant needs no weights and no inputs, and more memory than there is.
func wideConstant(dims string) string {
	return "entry f() {\n  %s: f32[] = constant() {value = f32[] 1}\n" +
		"  %y: f32[" + dims + "] = broadcast_in_dim(%s) {dims = [" + dims + "]}\n  return %y \"y\"\n}\n"
}

// wideProduct asks for memory that depends on an input's size and is far too much.
const wideProduct = `dim n in 1..

entry f(%x "in.0": f32[n, 64]) {
  %s: f32[] = constant() {value = f32[] 1}
  %y: f32[n*1000000, n*1000000, n*1000000] = broadcast_in_dim(%s) {dims = [n*1000000, n*1000000, n*1000000]}
  return %y "y"
}
`

const ptxHead = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"

// unpacked and packed are a zip archive as its members.
func unpacked(t *testing.T, archive []byte) (names []string, members [][]byte) {
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		names, members = append(names, f.Name), append(members, data)
	}
	return names, members
}

func packed(t *testing.T, names []string, members [][]byte) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i, name := range names {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(members[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// edited is an archive with a text replaced in its members.
func edited(t *testing.T, archive []byte, old, new string) []byte {
	names, members := unpacked(t, archive)
	found := false
	for i, m := range members {
		found = found || bytes.Contains(m, []byte(old))
		members[i] = bytes.ReplaceAll(m, []byte(old), []byte(new))
	}
	if !found {
		t.Fatalf("no member has %s", old)
	}
	return packed(t, names, members)
}

func shorter(t *testing.T, archive []byte) []byte {
	names, members := unpacked(t, archive)
	for i, name := range names {
		if strings.Contains(name, "weight_0") {
			members[i] = members[i][:len(members[i])-4]
		}
	}
	return packed(t, names, members)
}

func twice(t *testing.T, archive []byte) []byte {
	names, members := unpacked(t, archive)
	return packed(t, append(names, names[0]), append(members, members[0]))
}

func renamed(t *testing.T, archive []byte, name string) []byte {
	names, members := unpacked(t, archive)
	names[len(names)-1] = name
	return packed(t, names, members)
}

// bombIn is an archive whose members, all of them, inflate to size zeros, and more in all than
// may be inflated.
func bombIn(t *testing.T, archive []byte, size int64) []byte {
	names, _ := unpacked(t, archive)
	var deflated bytes.Buffer
	w, err := flate.NewWriter(&deflated, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range names {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, CompressedSize64: uint64(deflated.Len()), UncompressedSize64: uint64(size)}
		member, err := z.CreateRaw(h)
		if err == nil {
			_, err = member.Write(deflated.Bytes())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// claimLess rewrites the sizes in the directory: members inflate to more than they say.
func claimLess(archive []byte) []byte {
	out := slices.Clone(archive)
	for at := bytes.Index(out, []byte("PK\x01\x02")); at >= 0 && at+46 < len(out); {
		binary.LittleEndian.PutUint32(out[at+24:], 100)
		next := bytes.Index(out[at+4:], []byte("PK\x01\x02"))
		if next < 0 {
			break
		}
		at += 4 + next
	}
	return out
}

// zip64Claim is an archive with one stored member that says to be so long.
func zip64Claim(size uint64) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "models/model.json", Method: zip.Store, CompressedSize64: size, UncompressedSize64: size})
	if err == nil {
		_, err = w.Write([]byte("{}"))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err)
	}
	return out.Bytes()
}

// zip64Members is an end of a directory that says to have 2^62 members.
func zip64Members() []byte {
	end := []byte("PK\x06\x06")
	end = binary.LittleEndian.AppendUint64(end, 44)
	end = append(end, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []uint64{1 << 62, 1 << 62, 46, 0} {
		end = binary.LittleEndian.AppendUint64(end, v)
	}
	end = append(end, "PK\x06\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00"...)
	return append(end, "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...)
}

func safetensors(header string, data int) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), make([]byte, data)...)
}

func npy(header string, data int) []byte {
	header += strings.Repeat(" ", 118-len(header)%64) + "\n"
	return append(append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8)), append([]byte(header), make([]byte, data)...)...)
}

// bytesField, numberField and message write ONNX by hand (the numbers of onnx.proto).
func bytesField(n protowire.Number, data ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), slices.Concat(data...))
}

func textField(n protowire.Number, text string) []byte { return bytesField(n, []byte(text)) }

func numberField(n protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), uint64(v))
}

func onnxModel(graph ...[]byte) []byte {
	return slices.Concat(numberField(1, 10), bytesField(8, numberField(2, 20)), bytesField(7, graph...))
}

func onnxValue(field protowire.Number, name string, dims ...int64) []byte {
	var shape []byte
	for _, d := range dims {
		shape = append(shape, bytesField(1, numberField(1, d))...)
	}
	return bytesField(field, textField(1, name), bytesField(2, bytesField(1, numberField(1, 1), bytesField(2, shape))))
}

func onnxNode(kind string, output string, inputs ...string) []byte {
	var node []byte
	for _, in := range inputs {
		node = append(node, textField(1, in)...)
	}
	return bytesField(1, node, textField(2, output), textField(4, kind))
}

func onnxRelu(size int64) []byte {
	return onnxModel(onnxValue(11, "x", size), onnxNode("Relu", "y", "x"), onnxValue(12, "y", size))
}

// onnxFill makes a constant of so many elements.
func onnxFill(size int64) []byte {
	shape := bytesField(5, numberField(1, 1), numberField(2, 7), textField(8, "s"), bytesField(9, binary.LittleEndian.AppendUint64(nil, uint64(size))))
	return onnxModel(shape, onnxNode("ConstantOfShape", "y", "s"), onnxValue(12, "y", size))
}

// onnxWeight adds a weight of four float32: external data in a file, or so many bytes.
func onnxWeight(location []byte, size int) []byte {
	weight := [][]byte{numberField(1, 4), numberField(2, 1), textField(8, "w")}
	if location != nil {
		weight = append(weight, numberField(14, 1), bytesField(13, textField(1, "location"), bytesField(2, location)))
	} else {
		weight = append(weight, bytesField(9, make([]byte, size)))
	}
	return onnxModel(onnxValue(11, "x", 4), bytesField(5, weight...), onnxNode("Add", "y", "x", "w"), onnxValue(12, "y", 4))
}

// onnxDeep is an If in an If, and so on.
func onnxDeep(depth int) []byte {
	var lengths []int // from the inside
	inner := 0
	for range depth {
		graph := 1 + protowire.SizeBytes(inner)
		attribute := 1 + protowire.SizeBytes(graph)
		node := 1 + protowire.SizeBytes(attribute)
		lengths = append(lengths, inner, graph, attribute)
		inner = node
	}
	var body []byte
	for i := len(lengths) - 3; i >= 0; i -= 3 {
		body = protowire.AppendVarint(protowire.AppendTag(body, 1, protowire.BytesType), uint64(lengths[i+2]))
		body = protowire.AppendVarint(protowire.AppendTag(body, 5, protowire.BytesType), uint64(lengths[i+1]))
		body = protowire.AppendVarint(protowire.AppendTag(body, 6, protowire.BytesType), uint64(lengths[i]))
	}
	return onnxModel(body)
}

// onnxRecursion is two functions that call each other.
func onnxRecursion() []byte {
	call := func(f string) []byte {
		return slices.Concat(textField(1, "x"), textField(2, "y"), textField(4, f), textField(7, "local"))
	}
	function := func(name, calls string) []byte {
		return bytesField(25, textField(1, name), textField(10, "local"), textField(4, "x"), textField(5, "y"), bytesField(7, call(calls)))
	}
	graph := bytesField(7, onnxValue(11, "x", 2), bytesField(1, call("f")), onnxValue(12, "y", 2))
	return slices.Concat(numberField(1, 10), bytesField(8, numberField(2, 20)), bytesField(8, textField(1, "local"), numberField(2, 1)),
		graph, function("f", "g"), function("g", "f"))
}

// TestFullDisk writes onto a file system that is too small for what comes out: a diagnostic, and
// nothing is left.
func TestFullDisk(t *testing.T) {
	needLLC(t)
	disk := t.TempDir()
	if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v %s", err, text)
	}
	defer exec.Command("umount", disk).Run()
	model := filepath.Join(models(t), "mlp", "model.pt2")
	inputs := filepath.Join(models(t), "mlp", "io_batch64.safetensors")
	for _, args := range [][]string{
		{"compile", model, "--target", "sm_80", "-o", filepath.Join(disk, "out.weft")},
		{"compile", model, "--target", "sm_80", "--emit", "llvm", "-o", filepath.Join(disk, "out.ll")},
		{"run", model, "--device", "reference", "--inputs", inputs, "--outputs", filepath.Join(disk, "out.safetensors")},
	} {
		if args[0] == "run" { // outputs are small: leave no room
			if err := os.WriteFile(filepath.Join(disk, "ballast"), make([]byte, 62<<10), 0o666); err != nil {
				t.Log(err)
			}
		}
		out, err := exec.Command("weft", args...).CombinedOutput()
		if err == nil {
			if args[2] == "--device" {
				continue // there was room
			}
			t.Errorf("%v: succeeded", args)
		}
		if !regexp.MustCompile(`error W0004: .*no space left`).Match(out) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		entries, err := os.ReadDir(disk)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() != "ballast" {
				t.Errorf("%v: left behind: %s", args, e.Name())
			}
		}
	}
}

// TestUnreadableFile wants a diagnostic where permissions forbid reading.
func TestUnreadableFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads every file")
	}
	path := filepath.Join(t.TempDir(), "a.pt2")
	if err := os.WriteFile(path, nil, 0o200); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("weft", "compile", path, "--target", "sm_80", "-o", filepath.Join(t.TempDir(), "out.weft")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "error W0003") {
		t.Errorf("%v\n%s", err, out)
	}
}
