package fx

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nlpodyssey/gopickle/types"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// torchZip is a file of torch.save with a pickle and one storage of 16 bytes, "0".
func torchZip(t testing.TB, pickle string, more ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	members := append([]string{"archive/data.pkl", pickle, "archive/byteorder", "little", "archive/data/0", "0123456789abcdef"}, more...)
	for i := 0; i < len(members); i += 2 {
		m, err := w.CreateHeader(&zip.FileHeader{Name: members[i], Method: zip.Store})
		if err == nil {
			_, err = m.Write([]byte(members[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// text is a pickled string.
func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// pickledStorage is the persistent id of storage key, loaded.
func pickledStorage(class, key string, n byte) string {
	return "(" + text("storage") + "c" + class + "\n" + text(key) + text("cpu") + "K" + string([]byte{n}) + "tQ"
}

// pickledTensor is a float32 tensor [2, 2] with strides over storage 0.
func pickledTensor(offset, stride0, stride1 byte) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n(" + pickledStorage("torch\nFloatStorage", "0", 4) +
		"K" + string([]byte{offset}) + "K\x02K\x02\x86K" + string([]byte{stride0}) + "K" + string([]byte{stride1}) + "\x86\x89ccollections\nOrderedDict\n)RtR"
}

// TestTorchFile reads what pickles hold.
func TestTorchFile(t *testing.T) {
	untyped := "ctorch._utils\n_rebuild_tensor_v3\n(" + pickledStorage("torch.storage\nUntypedStorage", "0", 16) + "K\x01K\x03\x85K\x02\x85\x89Nctorch\nuint16\ntR"
	parameter := "ctorch._utils\n_rebuild_parameter\n" + pickledTensor(0, 2, 1) + "\x88N\x87R"
	attributes := "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\ncmodel\nTensor\n(" +
		pickledStorage("torch\nLongStorage", "0", 2) + "K\x00K\x02\x85K\x01\x85\x89NtNtR"
	for name, c := range map[string]struct {
		pickle, dtype, data string
	}{
		"row-major":    {pickledTensor(0, 2, 1), "f32[2, 2]", "0123456789abcdef"},
		"transposed":   {pickledTensor(0, 1, 2), "f32[2, 2]", "012389ab4567cdef"},
		"expanded":     {pickledTensor(3, 0, 0), "f32[2, 2]", "cdefcdefcdefcdef"},
		"parameter":    {parameter, "f32[2, 2]", "0123456789abcdef"},
		"untyped":      {untyped, "ui16[3]", "2367ab"},
		"a class more": {attributes, "i64[2]", "0123456789abcdef"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := readTorchFile(torchZip(t, "\x80\x02}("+text("w")+c.pickle+text("note")+text("x")+"u."), "file.pt")
			if err != nil {
				t.Fatal(err)
			}
			tensors, err := tensorsOf(v, "file.pt")
			if err != nil || len(tensors) != 1 || tensors["w"] == nil {
				t.Fatalf("%v, %v", tensors, err)
			}
			source, err := weights.FromRegions([]weights.Region{*tensors["w"]})
			if err != nil {
				t.Fatal(err)
			}
			got, err := weights.Load(source, "")
			if err != nil || got.Type().String() != c.dtype || string(got.Data) != c.data {
				t.Errorf("%v %q, %v", got.Type(), got.Data, err)
			}
		})
	}
}

// TestHostilePickles wants diagnostics, and that nothing runs.
func TestHostilePickles(t *testing.T) {
	rebuild := "ctorch._utils\n_rebuild_tensor_v2\n("
	for name, c := range map[string]struct {
		pickle string
		code   diag.Code
		says   string
	}{
		"runs a command":       {"\x80\x02cos\nsystem\n" + text("touch /") + "\x85R.", diag.FXPickle, `an object of class "os.system"`},
		"builds an object":     {"\x80\x02cbuiltins\nobject\n)\x81}(" + text("a") + "K\x01ub.", diag.FXPickle, `an object of class "builtins.object"`},
		"empty":                {"", diag.FXPickle, "cut off"},
		"no end":               {"\x80\x02}", diag.FXPickle, "cut off"},
		"string past the end":  {"\x80\x02X\xff\xff\xff\x7fabc.", diag.FXPickle, "cut off"},
		"long past the end":    {"\x80\x02\x8a\xffabc.", diag.FXPickle, "cut off"},
		"global without lines": {"\x80\x02cos.", diag.FXPickle, "cut off"},
		"frame":                {"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.", diag.FXPickle, "opcode 0x95"},
		"bytes of 2^63":        {"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", diag.FXPickle, "opcode 0x8e"},
		"opcode 255":           {"\xff.", diag.FXPickle, "opcode 0xff"},
		"marks":                {strings.Repeat("(", 1000) + ".", diag.FXPickle, "nested tuples"},
		"too many opcodes":     {strings.Repeat("N0", maxOpcodes/2) + ".", diag.FXPickle, "more than 4194304 opcodes"},
		"stack underflow":      {"R.", diag.FXPickle, "does not hold together"},
		"calls a number":       {"K\x01)R.", diag.FXPickle, "does not hold together"},
		"half an item":         {"}(K\x01u.", diag.FXPickle, "does not hold together"},
		"a list as key":        {"ccollections\nOrderedDict\n)R]K\x01s.", "", ""},
		"itself":               {"]q\x00h\x00a.", diag.FXPickle, "a sequence"},
		"other persistent id":  {"(" + text("module") + "tQ.", diag.FXPickle, "no storage"},
		"class of a storage":   {pickledStorage("os\nsystem", "0", 4) + ".", diag.FXPickle, "class, key or size"},
		"no such storage":      {pickledStorage("torch\nFloatStorage", "../0", 4) + ".", diag.FXPickle, `storage "../0"`},
		"short storage":        {pickledStorage("torch\nFloatStorage", "0", 5) + ".", diag.FXPickle, "16 bytes, which are not 5 elements"},
		"tensor of nothing":    {rebuild + "tR.", diag.FXPickle, "0 arguments"},
		"tensor of a string":   {rebuild + text("0") + "K\x00))tR.", diag.FXPickle, "no view of a storage"},
		"size of strings":      {rebuild + pickledStorage("torch\nFloatStorage", "0", 4) + "K\x00" + text("2") + "\x85)tR.", diag.FXPickle, "offset, size, strides"},
		"one tensor":           {pickledTensor(0, 2, 1) + ".", diag.FXPickle, "holds a tensor, not a dict"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := readTorchFile(torchZip(t, c.pickle), "w.pt")
			if err == nil {
				_, err = tensorsOf(v, "w.pt")
			}
			if c.code == "" && err == nil {
				return
			}
			wantCode(t, err, c.code, c.says)
		})
	}
	for name, data := range map[string][]byte{
		"tar":        []byte("archive.tar"),
		"no pickle":  bytes.ReplaceAll(torchZip(t, "N."), []byte("data.pkl"), []byte("data.txt")),
		"big endian": torchZipOrder(t, "big"),
	} {
		_, err := readTorchFile(data, "w.pt")
		if err == nil || diag.All(err)[0].Code != diag.FXPickle {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func torchZipOrder(t *testing.T, order string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range [][2]string{{"archive/data.pkl", "N."}, {"archive/byteorder", order}} {
		f, err := w.Create(m[0])
		if err == nil {
			_, err = f.Write([]byte(m[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTensorOutsideStorage wants views that leave their storage to be refused when weights are
// made of them.
func TestTensorOutsideStorage(t *testing.T) {
	for name, pickle := range map[string]string{"stride": pickledTensor(0, 3, 1), "offset": pickledTensor(1, 2, 1)} {
		v, err := readTorchFile(torchZip(t, pickle+"."), "w.pt")
		if err != nil {
			t.Fatal(err)
		}
		_, err = weights.FromRegions([]weights.Region{*v.(*weights.Region)})
		if err == nil || diag.All(err)[0].Code != diag.WeightStorage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPickledPayloads reads an archive of the newer layout whose weights are pickled: the same
// program and weights as from the plain archive.
func TestPickledPayloads(t *testing.T) {
	file := filepath.Join(modelsDir, "mlp", "model.pt2")
	plain, err := Import(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	pickled := map[string]string{} // by the end of the member's name
	same := editArchive(t, file, func(s string) string { return s })
	rezip(t, same, func(name string, data []byte) (string, []byte) {
		if strings.HasSuffix(name, "model_weights_config.json") {
			list, bad := decodePayloads(data)
			if bad != nil {
				t.Fatal(bad)
			}
			for _, p := range list {
				pickled[p.path] = pickledPayload(t, p)
			}
		}
		return name, data
	})
	archive := rezip(t, same, func(name string, data []byte) (string, []byte) {
		if p, ok := pickled[name[strings.LastIndex(name, "/")+1:]]; ok {
			return name, torchZip(t, p, "archive/data/weight", string(data))
		}
		if strings.HasSuffix(name, "model_weights_config.json") {
			data = bytes.ReplaceAll(data, []byte(`"use_pickle": false`), []byte(`"use_pickle": true`))
		}
		return name, data
	})
	m, err := ImportBytes(archive, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Program.String() != plain.Program.String() || len(pickled) == 0 {
		t.Error("another program")
	}
	for _, name := range plain.Weights.Names() {
		want, err1 := plain.Weights.Digest(name)
		got, err2 := m.Weights.Digest(name)
		if err1 != nil || err2 != nil || got != want {
			t.Errorf("%s: %v, %v", name, err1, err2)
		}
	}
}

// pickledPayload is the pickle of a float32 parameter over the storage "weight".
func pickledPayload(t *testing.T, p payload) string {
	sizes, ok1 := constants(p.meta.sizes)
	strides, ok2 := constants(p.meta.strides)
	if !ok1 || !ok2 || scalarTypes[p.meta.dtype] != ir.F32 {
		t.Fatalf("payload %v", p)
	}
	n := int64(1)
	integer := func(v int64) string { return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(v))) }
	tuple := func(list []int64) string {
		all := "("
		for _, v := range list {
			all += integer(v)
		}
		return all + "t"
	}
	for _, s := range sizes {
		n *= s
	}
	storage := "(" + text("storage") + "ctorch\nFloatStorage\n" + text("weight") + text("cpu") + integer(n) + "tQ"
	return "\x80\x02ctorch._utils\n_rebuild_parameter\nctorch._utils\n_rebuild_tensor_v2\n(" + storage + integer(0) + tuple(sizes) + tuple(strides) +
		"\x89ccollections\nOrderedDict\n)RtR\x88ccollections\nOrderedDict\n)R\x87R."
}

// TestExampleInputs reads the example inputs of an archive, which torch.save writes.
func TestExampleInputs(t *testing.T) {
	for _, file := range []string{"mlp_torch215", "old_torch25_mlp", "old_torch26_mlp", "old_torch27_mlp"} {
		z, err := weights.OpenZip(filepath.Join(modelsDir, file, "model.pt2"))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		found := false
		for _, name := range z.Names() {
			if !strings.HasSuffix(name, "sample_inputs/model.pt") && name != "serialized_example_inputs.pt" {
				continue
			}
			found = true
			v, err := (&archive{zip: z}).torchFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all, ok := v.(*types.Tuple) // (args, kwargs)
			if !ok || all.Len() != 2 {
				t.Fatalf("%s: %T", file, v)
			}
			args, ok := all.Get(0).(*types.Tuple)
			if !ok || args.Len() != 1 {
				t.Fatalf("%s: %v", file, all.Get(0))
			}
			if r, ok := args.Get(0).(*weights.Region); !ok || r.DType != ir.F32 || len(r.Shape) != 2 {
				t.Errorf("%s: %v", file, args.Get(0))
			}
		}
		if !found {
			t.Errorf("%s has no example inputs", file)
		}
	}
}

// FuzzTorchFile wants a diagnostic or values, whatever the pickle.
func FuzzTorchFile(f *testing.F) {
	f.Add([]byte("\x80\x02}(" + text("w") + pickledTensor(0, 2, 1) + "u."))
	f.Add([]byte("\x80\x02cos\nsystem\n" + text("x") + "\x85R."))
	f.Fuzz(func(t *testing.T, pickle []byte) {
		v, err := readTorchFile(torchZip(t, string(pickle)), "w.pt")
		if err != nil {
			return
		}
		tensors, err := tensorsOf(v, "w.pt")
		if err != nil {
			return
		}
		for _, r := range tensors {
			if source, err := weights.FromRegions([]weights.Region{*r}); err == nil {
				if _, err := weights.Load(source, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
