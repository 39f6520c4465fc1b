package weights

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

// wantCode fails unless err is a diagnostic of the code.
func wantCode(t *testing.T, err error, code diag.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	if got := diag.All(err)[0].Code; got != code {
		t.Fatalf("code %s, want %s: %v", got, code, err)
	}
}

func iota32(n int64, shape ...int64) *ir.Tensor {
	t := ir.NewTensor(ir.F32, shape...)
	for i := range n {
		t.SetFloat(i, float64(i))
	}
	return t
}

// The files in testdata were written by numpy and the safetensors library.
func TestReadForeignFiles(t *testing.T) {
	cases := []struct {
		file, typ, first string // first: elements as floats, or the strings
		code             diag.Code
	}{
		{"f32_c.npy", "f32[2, 3]", "0 1 2 3 4 5", ""},
		{"f32_f.npy", "f32[2, 3]", "0 1 2 3 4 5", ""},
		{"f32_be.npy", "f32[2, 3]", "0 1 2 3 4 5", ""},
		{"v2.npy", "ui64[2, 3]", "0 1 2 3 4 5", ""},
		{"v3.npy", "ui16[2, 3]", "0 1 2 3 4 5", ""},
		{"bf16.npy", "bf16[2, 3]", "0 1 2 3 4 5", ""},
		{"scalar.npy", "i1[]", "1", ""},
		{"empty.npy", "i16[0, 3]", "", ""},
		{"c128_be_f.npy", "c128[2, 3]", "", ""},
		{"str.npy", "string[3]", "a héé ", ""},
		{"bytes.npy", "string[2]", "a bcd", ""},
		{"f8.npy", "", "", diag.FileElementType},
		{"object.npy", "", "", diag.FileElementType},
		{"struct.npy", "", "", diag.FileElementType},
	}
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			names, tensors, closer, err := ReadTensors("testdata/"+c.file, "in.0")
			if c.code != "" {
				wantCode(t, err, c.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer closer.Close()
			x := tensors["in.0"]
			if len(names) != 1 || x.Type().String() != c.typ || x.Check() != nil {
				t.Fatalf("%v %v %v", names, x.Type(), x.Check())
			}
			if got := valuesText(x); got != c.first && x.DType != ir.C128 {
				t.Errorf("values %q, want %q", got, c.first)
			}
		})
	}
	x, err := ParseNpy(readFile(t, "testdata/c128_be_f.npy"))
	if err != nil {
		t.Fatal(err)
	}
	want := ir.NewTensor(ir.F64, 12)
	for i := range int64(12) {
		want.SetFloat(i, float64(i/2)) // (i + i*1j), parts side by side
	}
	if !bytes.Equal(x.Data, want.Data) {
		t.Errorf("complex values %v", x.Data)
	}
}

func valuesText(x *ir.Tensor) string {
	var parts []string
	for i := range x.Numel() {
		switch x.DType {
		case ir.String:
			parts = append(parts, x.Strings[i])
		case ir.C64, ir.C128:
		default:
			parts = append(parts, itoa(int64(x.Float(i))))
		}
	}
	return strings.Join(parts, " ")
}

func itoa(v int64) string { return strings.TrimSpace(dimsKey([]int64{v})) }

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadSafetensorsTypes(t *testing.T) {
	st, err := ParseSafetensors(readFile(t, "testdata/types.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range st.Tensors {
		got = append(got, x.Name+":"+x.Type().String())
	}
	want := "i:i64[] c:c64[1] f:f32[2, 3] z:f32[0, 3] bf:bf16[3] u16:ui16[2] e8:f8E8M0FNU[2] e4:f8E4M3FN[4] e5:f8E5M2[4] b:i1[3]"
	if strings.Join(got, " ") != want {
		t.Errorf("tensors %v", got)
	}
	if st.Metadata["format"] != "pt" {
		t.Errorf("metadata %v", st.Metadata)
	}
}

func TestReadNpz(t *testing.T) {
	for _, file := range []string{"stored.npz", "deflated.npz"} {
		names, tensors, closer, err := ReadTensors("testdata/"+file, "")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(names, []string{"x", "y"}) || valuesText(tensors["y"]) != "0 1 2 3" {
			t.Errorf("%s: %v %v", file, names, tensors["y"])
		}
		closer.Close()
	}
}

// Every element type goes through every format that has it, and the bytes do not depend on the
// order of the tensors where the format has its own.
func TestWriteRoundTrip(t *testing.T) {
	types := []ir.DType{ir.Bool, ir.I8, ir.I16, ir.I32, ir.I64, ir.U8, ir.U16, ir.U32, ir.U64, ir.F4E2M1FN, ir.F8E4M3FN, ir.F8E4M3FNUZ,
		ir.F8E5M2, ir.F8E5M2FNUZ, ir.F8E8M0FNU, ir.F16, ir.BF16, ir.F32, ir.F64, ir.C64, ir.C128, ir.String}
	dir := t.TempDir()
	for _, suffix := range []string{".safetensors", ".npz"} {
		var list []Named
		for _, typ := range types {
			x := ir.NewTensor(typ, 2, 2, 2)
			for i := range x.Data {
				x.Data[i] = byte(i * 7 & 1)
			}
			for i := range x.Strings {
				x.Strings[i] = strings.Repeat("é", i)
			}
			one := []Named{{"x/" + typ.String(), x}}
			err := WriteTensors(filepath.Join(dir, "one"+suffix), one)
			if err == nil {
				list = append(list, one...)
			} else {
				wantCode(t, err, diag.FileElementType)
			}
		}
		if want := map[string]int{".safetensors": 20, ".npz": 16}[suffix]; len(list) != want {
			t.Errorf("%s holds %d types, want %d", suffix, len(list), want)
		}
		a, b := filepath.Join(dir, "a"+suffix), filepath.Join(dir, "b"+suffix)
		if err := WriteTensors(a, list); err != nil {
			t.Fatal(err)
		}
		names, tensors, closer, err := ReadTensors(a, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			got := tensors[n.Name]
			if got == nil || got.Type().String() != n.Tensor.Type().String() || !bytes.Equal(got.Data, n.Tensor.Data) || !slices.Equal(got.Strings, n.Tensor.Strings) {
				t.Errorf("%s: %s came back as %v", suffix, n.Name, got)
			}
		}
		if len(names) != len(list) {
			t.Errorf("%s: %d names", suffix, len(names))
		}
		closer.Close()
		if suffix == ".safetensors" {
			slices.Reverse(list)
		}
		if err := WriteTensors(b, list); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(readFile(t, a), readFile(t, b)) {
			t.Errorf("%s: the bytes differ", suffix)
		}
	}
}

func TestSafetensorsLayout(t *testing.T) {
	s, err := FromTensors([]Named{{"b", ir.NewTensor(ir.I8, 3)}, {"z", iota32(1)}, {"a", iota32(2, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := LayoutSafetensors(s, false, SafetensorsOptions{Align: 4096, Metadata: map[string]string{"format": "pt"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Header) != 4096 || !slices.Equal(l.Order, []string{"a", "z", "b"}) || l.Offset["z"] != 4104 || l.Size != 4111 {
		t.Errorf("layout %d %v %v %d", len(l.Header), l.Order, l.Offset, l.Size)
	}
	header := strings.TrimRight(string(l.Header[8:]), " ")
	want := `{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"I8","shape":[3],"data_offsets":[12,15]},"z":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}`
	if header != want {
		t.Errorf("header %s", header)
	}
}

func TestRegionsReadStridedViews(t *testing.T) {
	storage := iota32(24, 24)
	cases := []struct {
		shape, strides []int64
		offset         int64
		want           string
	}{
		{[]int64{2, 3}, nil, 2, "2 3 4 5 6 7"},
		{[]int64{2, 3}, []int64{3, 1}, 0, "0 1 2 3 4 5"},
		{[]int64{3, 2}, []int64{1, 3}, 0, "0 3 1 4 2 5"},
		{[]int64{2, 2, 2}, []int64{8, 1, 4}, 1, "1 5 2 6 9 13 10 14"},
		{[]int64{2, 3}, []int64{0, 1}, 4, "4 5 6 4 5 6"},
		{[]int64{2, 1, 2}, []int64{4, 99, 1}, 0, "0 1 4 5"},
		{[]int64{2, 2, 3}, []int64{12, 6, 2}, 0, "0 2 4 6 8 10 12 14 16 18 20 22"},
		{[]int64{}, []int64{}, 23, "23"},
		{[]int64{0, 5}, []int64{100, 100}, 0, ""},
	}
	for _, c := range cases {
		s, err := FromRegions([]Region{{Name: "x", DType: ir.F32, Shape: c.shape, Data: storage.Data, Strides: c.strides, Offset: c.offset}})
		if err != nil {
			t.Fatal(err)
		}
		x, err := Load(s, "x")
		if err != nil {
			t.Fatal(err)
		}
		if got := valuesText(x); got != c.want {
			t.Errorf("%v %v %d: %s, want %s", c.shape, c.strides, c.offset, got, c.want)
		}
		r, _ := s.Open("x")
		for off := range r.Size() { // every part alone
			part := make([]byte, min(5, r.Size()-off))
			if n, err := r.ReadAt(part, off); n != len(part) || err != nil || !bytes.Equal(part, x.Data[off:off+int64(n)]) {
				t.Fatalf("%v %v: part at %d: %v %v", c.shape, c.strides, off, part, err)
			}
		}
	}
}

func TestRegionsRefuseWhatLeavesTheStorage(t *testing.T) {
	data := make([]byte, 96)
	cases := []Region{
		{Shape: []int64{25}},
		{Shape: []int64{24}, Offset: 1},
		{Shape: []int64{2}, Offset: -1},
		{Shape: []int64{2, 2}, Strides: []int64{1 << 62, 1}},
		{Shape: []int64{1 << 31, 1 << 31}},
		{Shape: []int64{1 << 62, 1 << 62}},
		{Shape: []int64{-1}},
		{Shape: []int64{2, 2}, Strides: []int64{-1, 1}},
		{Shape: []int64{2, 2}, Strides: []int64{23, 1}, Offset: 1},
		{Shape: []int64{2, 2}, Strides: []int64{1}},
		{Shape: []int64{1 << 40, 2}, Strides: []int64{0, 2}},
		{Shape: []int64{2, 2}, Offset: 1 << 62},
		{Shape: []int64{2, 2}, DType: ir.F4E2M1FN, Strides: []int64{1, 2}},
		{Shape: []int64{2}, DType: ir.String},
	}
	for _, r := range cases {
		r.Data, r.Name = data, "x"
		if r.DType == ir.InvalidDType {
			r.DType = ir.F32
		}
		_, err := FromRegions([]Region{r})
		if err == nil {
			t.Errorf("%+v is accepted", r)
		} else if diag.All(err)[0].Code == diag.Bug {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestTiedRegions(t *testing.T) {
	x, y := iota32(4, 4), iota32(4, 4)
	s, err := FromRegions([]Region{
		{Name: "a", DType: ir.F32, Shape: []int64{2, 2}, Data: x.Data},
		{Name: "b", DType: ir.F32, Shape: []int64{2, 2}, Data: x.Data, Strides: []int64{2, 1}},
		{Name: "c", DType: ir.F32, Shape: []int64{2, 2}, Data: x.Data, Strides: []int64{1, 2}},
		{Name: "d", DType: ir.F32, Shape: []int64{2, 2}, Data: y.Data},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "", "b": "a", "c": "", "d": ""} {
		if info, _ := s.Info(name); info.SameAs != want {
			t.Errorf("%s is the same as %q, want %q", name, info.SameAs, want)
		}
	}
	r, err := Rename(s, []string{"q", "p", "r"}, []string{"b", "a", "c"})
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := r.Info("p"); info.SameAs != "q" {
		t.Errorf("renamed tie %+v", info)
	}
	l, err := LayoutSafetensors(r, true, SafetensorsOptions{})
	if err != nil || len(l.Order) != 2 || l.Offset["p"] != l.Offset["q"] {
		t.Errorf("layout %+v %v", l, err)
	}
}

func TestRandomIsFixedAndReadsInParts(t *testing.T) {
	infos := []Info{
		{Name: "w", DType: ir.F32, Shape: []int64{1000}}, {Name: "h", DType: ir.BF16, Shape: []int64{1001}},
		{Name: "c", DType: ir.C64, Shape: []int64{3}}, {Name: "f4", DType: ir.F4E2M1FN, Shape: []int64{7}},
		{Name: "bn.running_var", DType: ir.F32, Shape: []int64{100}}, {Name: "i", DType: ir.I64, Shape: []int64{4}},
		{Name: "tied", DType: ir.F32, Shape: []int64{1000}, SameAs: "w"},
	}
	s, err := Random(7, infos)
	if err != nil {
		t.Fatal(err)
	}
	all := sha256.New()
	for _, name := range s.Names() {
		x, err := Load(s, name)
		if err != nil || x.Check() != nil {
			t.Fatal(err, x.Check())
		}
		all.Write(x.Data)
		r, _ := s.Open(name)
		for off := int64(0); off < min(r.Size(), 50); off++ {
			part, err := r.View(off, min(3, r.Size()-off))
			if err != nil || !bytes.Equal(part, x.Data[off:off+int64(len(part))]) {
				t.Fatalf("%s: part at %d differs", name, off)
			}
		}
	}
	if got := hex.EncodeToString(all.Sum(nil)); got != "896e3e655f55cda00e57cb9013e87e0fbbd324b223f2532f22b0260db3c86f0f" {
		t.Errorf("the values changed: digest %s", got)
	}
	w, _ := Load(s, "w")
	sum, squares := 0.0, 0.0
	for i := range int64(1000) {
		sum += w.Float(i)
		squares += w.Float(i) * w.Float(i)
	}
	if sum/1000 > 0.002 || sum/1000 < -0.002 || squares/1000 < 0.00035 || squares/1000 > 0.00045 {
		t.Errorf("mean %g, mean square %g", sum/1000, squares/1000)
	}
	v, _ := Load(s, "bn.running_var")
	if i, _ := Load(s, "i"); v.Float(3) < 1 || i.Int(2) != 0 {
		t.Errorf("variance %g, integer %d", v.Float(3), i.Int(2))
	}
}

func TestParseRandom(t *testing.T) {
	if seed, ok, err := ParseRandom("random:42"); seed != 42 || !ok || err != nil {
		t.Error(seed, ok, err)
	}
	if _, ok, err := ParseRandom("model.safetensors"); ok || err != nil {
		t.Error(ok, err)
	}
	for _, text := range []string{"random:", "random:-1", "random:x", "random:18446744073709551616"} {
		_, ok, err := ParseRandom(text)
		if !ok {
			t.Error(text)
		}
		wantCode(t, err, diag.WeightsOption)
	}
}

func TestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, tensors ...Named) {
		t.Helper()
		if err := WriteTensors(filepath.Join(dir, name), tensors); err != nil {
			t.Fatal(err)
		}
	}
	write("a.safetensors", Named{"x", iota32(2, 2)}, Named{"unused", iota32(1, 1)})
	write("b.safetensors", Named{"y", iota32(3, 3)})
	s, err := OpenSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Names(), []string{"unused", "x", "y"}) {
		t.Errorf("directory: %v", s.Names())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	index := filepath.Join(dir, "model.safetensors.index.json")
	cases := []struct {
		text string
		code diag.Code
	}{
		{`{"metadata":{"total_size":20},"weight_map":{"y":"b.safetensors","x":"a.safetensors"}}`, ""},
		{`{"weight_map":{"y":"a.safetensors"}}`, diag.BadShards},
		{`{"weight_map":{"y":"c.safetensors"}}`, "W0003"},
		{`{"weight_map":{"y":"../b.safetensors"}}`, diag.BadShards},
		{`{"weight_map":{"y":"/b.safetensors"}}`, diag.BadShards},
		{`{"weight_map":{"y":"b.safetensors","y":"b.safetensors"}}`, diag.FileDuplicate},
		{`{"weight_map":{"y":3}}`, diag.BadShards},
		{`{"weight_map":[]}`, diag.BadShards},
		{`{`, diag.BadShards},
		{``, diag.FileTruncated},
	}
	for _, c := range cases {
		if err := os.WriteFile(index, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{index, dir} {
			s, err := OpenSource(path)
			if c.code != "" {
				wantCode(t, err, c.code)
				continue
			}
			if err != nil || !slices.Equal(s.Names(), []string{"x", "y"}) {
				t.Fatalf("%s: %v", path, err)
			}
			s.Close()
		}
	}
	os.Remove(index)
	write("c.safetensors", Named{"y", iota32(3, 3)})
	_, err = OpenSource(dir)
	wantCode(t, err, diag.FileDuplicate)
}

func TestSourceErrors(t *testing.T) {
	s, err := FromTensors([]Named{{"layer.weight", iota32(2, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Load(s, "layer.wieght")
	wantCode(t, err, diag.WeightMissing)
	if !strings.Contains(err.Error(), `nearest names: "layer.weight"`) {
		t.Error(err)
	}
	wantCode(t, Expect(s, "layer.weight", ir.F32, []int64{3}), diag.WeightType)
	if err := Expect(s, "layer.weight", ir.F32, []int64{2}); err != nil {
		t.Error(err)
	}
	_, err = Merge(s, s)
	wantCode(t, err, diag.FileDuplicate)
	sum := sha256.Sum256(iota32(2, 2).Data)
	if got, err := s.Digest("layer.weight"); got != hex.EncodeToString(sum[:]) || err != nil {
		t.Error(got, err)
	}
	for path, code := range map[string]diag.Code{"missing.npz": "W0003", t.TempDir(): diag.BadShards, "x.bin": "W0003", "testdata/../weights_test.go": diag.FileSuffix} {
		_, err := OpenSource(path)
		wantCode(t, err, code)
	}
}

func TestOutputsAppearWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.bin")
	listing := func() string {
		entries, _ := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	failure := errors.New("failure")
	if err := WriteFile(path, func(w io.Writer) error { io.WriteString(w, "part"); return failure }); err != failure || listing() != "" {
		t.Errorf("%v; left %q", err, listing())
	}
	func() {
		defer func() { recover() }()
		WriteFile(path, func(io.Writer) error { panic("in the middle") })
	}()
	if listing() != "" {
		t.Errorf("a panic left %q", listing())
	}
	stale := filepath.Join(dir, ".out.bin.tmp-0123456789abcdef")
	for _, name := range []string{stale, filepath.Join(dir, ".out.bin.tmp-keep")} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	other, err := CreateFile(path) // a live writer of the same file
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, func(w io.Writer) error { _, err := io.WriteString(w, "whole"); return err }); err != nil {
		t.Fatal(err)
	}
	if got := listing(); strings.Contains(got, "0123456789abcdef") || !strings.Contains(got, filepath.Base(other.Name())) || !strings.Contains(got, "tmp-keep") {
		t.Errorf("after a write: %q", got)
	}
	other.Abort()
	other.Abort()
	if string(readFile(t, path)) != "whole" {
		t.Error("the aborted writer changed the file")
	}
	wantCode(t, WriteFile(dir, nil), "W0004")
	wantCode(t, WriteFile(filepath.Join(dir, "none", "x"), nil), "W0004")
	if err := os.Symlink(path, filepath.Join(dir, "link")); err == nil {
		if err := WriteFile(filepath.Join(dir, "link"), func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil || string(readFile(t, path)) != "new" {
			t.Errorf("through a link: %v", err)
		}
	}
	if err := WriteFile(os.DevNull, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }); err != nil {
		t.Error(err)
	}
}
