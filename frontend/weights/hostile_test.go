package weights

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

// safetensorsFile puts the length before a header and data after it.
func safetensorsFile(header string, data int) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), make([]byte, data)...)
}

func TestHostileSafetensors(t *testing.T) {
	const one = `{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	cases := []struct {
		name string
		file []byte
		code diag.Code // empty: accepted
	}{
		{"good", safetensorsFile(one, 8), ""},
		{"no tensors", safetensorsFile(`{}`, 0), ""},
		{"padded", safetensorsFile(one+"   ", 8), ""},
		{"empty tensors", safetensorsFile(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"I8","shape":[],"data_offsets":[0,1]}}`, 1), ""},
		{"zero dim beside a huge one", safetensorsFile(`{"a":{"dtype":"F32","shape":[0,4611686018427387904],"data_offsets":[0,0]}}`, 0), ""},
		{"packed", safetensorsFile(`{"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}}`, 3), ""},
		{"empty file", nil, diag.FileTruncated},
		{"seven bytes", make([]byte, 7), diag.FileTruncated},
		{"header longer than the file", safetensorsFile(one, 8)[:20], diag.FileTruncated},
		{"header of 2^63 bytes", append([]byte{0, 0, 0, 0, 0, 0, 0, 128}, one...), diag.BadSafetensors},
		{"header of 100 MB and one", binary.LittleEndian.AppendUint64(nil, maxHeader+1), diag.BadSafetensors},
		{"data cut off", safetensorsFile(one, 7), diag.FileTruncated},
		{"data too long", safetensorsFile(one, 9), diag.BadSafetensors},
		{"no JSON", safetensorsFile(`hello`, 0), diag.BadSafetensors},
		{"empty header", safetensorsFile(``, 0), diag.BadSafetensors},
		{"a list", safetensorsFile(`[]`, 0), diag.BadSafetensors},
		{"a tensor that is a number", safetensorsFile(`{"x":1}`, 0), diag.BadSafetensors},
		{"text after the header", safetensorsFile(one+`{}`, 8), diag.BadSafetensors},
		{"deep nesting", safetensorsFile(`{"x":`+strings.Repeat("[", 1<<16), 0), diag.BadSafetensors},
		{"deep nesting in metadata", safetensorsFile(`{"__metadata__":{"x":`+strings.Repeat("[", 1<<16), 0), diag.BadSafetensors},
		{"metadata that is no string", safetensorsFile(`{"__metadata__":{"x":1}}`, 0), diag.BadSafetensors},
		{"name twice", safetensorsFile(`{"x":{"dtype":"I8","shape":[],"data_offsets":[0,1]},"x":{"dtype":"I8","shape":[],"data_offsets":[1,2]}}`, 2), diag.FileDuplicate},
		{"name twice by escape", safetensorsFile(`{"x":{"dtype":"I8","shape":[],"data_offsets":[0,1]},"\u0078":{"dtype":"I8","shape":[],"data_offsets":[1,2]}}`, 2), diag.FileDuplicate},
		{"field twice", safetensorsFile(`{"x":{"dtype":"I8","dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1), diag.FileDuplicate},
		{"unknown field", safetensorsFile(`{"x":{"dtype":"I8","shape":[],"data_offsets":[0,1],"y":0}}`, 1), diag.BadSafetensors},
		{"no dtype", safetensorsFile(`{"x":{"shape":[],"data_offsets":[0,1]}}`, 1), diag.BadSafetensors},
		{"no shape", safetensorsFile(`{"x":{"dtype":"I8","data_offsets":[0,1]}}`, 1), diag.BadSafetensors},
		{"no offsets", safetensorsFile(`{"x":{"dtype":"I8","shape":[]}}`, 1), diag.BadSafetensors},
		{"one offset", safetensorsFile(`{"x":{"dtype":"I8","shape":[],"data_offsets":[0]}}`, 1), diag.BadSafetensors},
		{"three offsets", safetensorsFile(`{"x":{"dtype":"I8","shape":[],"data_offsets":[0,1,2]}}`, 1), diag.BadSafetensors},
		{"unknown type", safetensorsFile(`{"x":{"dtype":"Q9","shape":[],"data_offsets":[0,1]}}`, 1), diag.FileElementType},
		{"wrong byte count", safetensorsFile(`{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), diag.BadSafetensors},
		{"offsets backward", safetensorsFile(`{"x":{"dtype":"I8","shape":[1],"data_offsets":[1,0]}}`, 1), diag.BadSafetensors},
		{"negative offset", safetensorsFile(`{"x":{"dtype":"I8","shape":[1],"data_offsets":[-1,0]}}`, 1), diag.BadSafetensors},
		{"offset of 2^63", safetensorsFile(`{"x":{"dtype":"I8","shape":[1],"data_offsets":[9223372036854775808,9223372036854775809]}}`, 1), diag.BadSafetensors},
		{"offset with fraction", safetensorsFile(`{"x":{"dtype":"I8","shape":[1],"data_offsets":[0.0,1.0]}}`, 1), diag.BadSafetensors},
		{"negative dim", safetensorsFile(`{"x":{"dtype":"I8","shape":[-1],"data_offsets":[0,1]}}`, 1), diag.BadSafetensors},
		{"2^60 dims", safetensorsFile(`{"x":{"dtype":"F32","shape":[1152921504606846976,16],"data_offsets":[0,0]}}`, 0), diag.FileTooLarge},
		{"product wraps to 0", safetensorsFile(`{"x":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), diag.FileTooLarge},
		{"65 dims", safetensorsFile(`{"x":{"dtype":"I8","shape":[1`+strings.Repeat(",1", 64)+`],"data_offsets":[0,1]}}`, 1), diag.BadSafetensors},
		{"half a byte", safetensorsFile(`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 2), diag.BadSafetensors},
		{"overlap", safetensorsFile(`{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[1,3]}}`, 3), diag.BadSafetensors},
		{"same bytes twice", safetensorsFile(`{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}`, 2), diag.BadSafetensors},
		{"hole", safetensorsFile(`{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[3,5]}}`, 5), diag.BadSafetensors},
		{"past the end", safetensorsFile(`{"a":{"dtype":"I8","shape":[1000000000000],"data_offsets":[0,1000000000000]}}`, 5), diag.FileTruncated},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseSafetensors(c.file)
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func npyFile(version byte, header string, data int) []byte {
	file := append([]byte(npyMagic), version, 0)
	if version == 1 {
		file = binary.LittleEndian.AppendUint16(file, uint16(len(header)))
	} else {
		file = binary.LittleEndian.AppendUint32(file, uint32(len(header)))
	}
	return append(append(file, header...), make([]byte, data)...)
}

func TestHostileNpy(t *testing.T) {
	header := func(descr, shape string) string {
		return fmt.Sprintf("{'descr': %s, 'fortran_order': False, 'shape': %s, }", descr, shape)
	}
	cases := []struct {
		name string
		file []byte
		code diag.Code
	}{
		{"good", npyFile(1, header("'<f4'", "(2,)"), 8), ""},
		{"no trailing comma", npyFile(3, "{'descr':'<f4','fortran_order':True,'shape':(2,1)}", 8), ""},
		{"double quotes, long", npyFile(1, `{"descr": "<i8", "fortran_order": False, "shape": (1L,)}`, 8), ""},
		{"empty", nil, diag.FileTruncated},
		{"magic alone", []byte(npyMagic), diag.FileTruncated},
		{"another file", []byte("PK\x03\x04 something"), diag.BadNumpy},
		{"version 9", npyFile(9, header("'<f4'", "(2,)"), 8), diag.BadNumpy},
		{"version 2, cut", npyFile(2, "", 0)[:11], diag.FileTruncated},
		{"header longer than the file", npyFile(1, header("'<f4'", "(2,)"), 0)[:30], diag.FileTruncated},
		{"header of 4 GB", append([]byte(npyMagic+"\x02\x00"), 0xff, 0xff, 0xff, 0xff), diag.FileTruncated},
		{"huge header", npyFile(2, header("'<f4'", "(2,)")+strings.Repeat(" ", 1<<17), 8), diag.FileTooLarge},
		{"data cut off", npyFile(1, header("'<f4'", "(2,)"), 7), diag.FileTruncated},
		{"data too long", npyFile(1, header("'<f4'", "(2,)"), 9), diag.BadNumpy},
		{"2^60 elements", npyFile(1, header("'<f8'", "(1152921504606846976, 16)"), 8), diag.FileTooLarge},
		{"2^64", npyFile(1, header("'<f8'", "(18446744073709551616,)"), 8), diag.BadNumpy},
		{"negative dim", npyFile(1, header("'<f4'", "(-2,)"), 8), diag.BadNumpy},
		{"65 dims", npyFile(1, header("'|i1'", "("+strings.Repeat("1,", 65)+")"), 1), diag.BadNumpy},
		{"open tuple", npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2", 8), diag.BadNumpy},
		{"no dict", npyFile(1, "[]", 0), diag.BadNumpy},
		{"an expression", npyFile(1, header("'<f4'", "(1+1,)"), 8), diag.BadNumpy},
		{"key twice", npyFile(1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8), diag.BadNumpy},
		{"key missing", npyFile(1, "{'descr': '<f4', 'shape': (2,)}", 8), diag.BadNumpy},
		{"unknown key", npyFile(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", 8), diag.BadNumpy},
		{"text after", npyFile(1, header("'<f4'", "(2,)")+"x", 8), diag.BadNumpy},
		{"escape in a string", npyFile(1, header(`'\x3cf4'`, "(2,)"), 8), diag.BadNumpy},
		{"long double", npyFile(1, header("'<f16'", "(1,)"), 16), diag.FileElementType},
		{"datetime", npyFile(1, header("'<M8[ns]'", "(1,)"), 8), diag.FileElementType},
		{"pickle", npyFile(1, header("'|O'", "(1,)"), 8), diag.FileElementType},
		{"no type", npyFile(1, header("''", "(1,)"), 8), diag.FileElementType},
		{"2^40 empty strings", npyFile(1, header("'<U0'", "(1099511627776,)"), 0), diag.FileTooLarge},
		{"strings of 2^31", npyFile(1, header("'<U536870911'", "(1073741824,)"), 0), diag.FileTooLarge},
		{"no character", append(npyFile(1, header("'<U1'", "(1,)"), 0), 0xff, 0xff, 0xff, 0xff), diag.BadNumpy},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseNpy(c.file)
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// archiveOf writes an archive with the standard library.
func archiveOf(t testing.TB, method uint16, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, strings.Repeat("contents of "+name, 50))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// claiming writes an archive whose one deflated member claims a size.
func claiming(t testing.TB, size uint64, packed []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateRaw(&zip.FileHeader{Name: "x", Method: zip.Deflate, UncompressedSize64: size, CompressedSize64: uint64(len(packed))})
	if err != nil {
		t.Fatal(err)
	}
	f.Write(packed)
	w.Close()
	return b.Bytes()
}

func TestHostileZip(t *testing.T) {
	good := archiveOf(t, zip.Store, "a", "b")
	deflated := archiveOf(t, zip.Deflate, "a")
	change := func(file []byte, old, new string, n int) []byte {
		return []byte(strings.Replace(string(file), old, new, n))
	}
	directory := bytes.Index(good, []byte("PK\x01\x02"))
	second := directory + bytes.Index(good[directory+1:], []byte("PK\x01\x02")) + 1
	patch := func(file []byte, at int, b ...byte) []byte {
		out := bytes.Clone(file)
		copy(out[at:], b)
		return out
	}
	cases := []struct {
		name string
		file []byte
		code diag.Code
	}{
		{"good", good, ""},
		{"deflated", deflated, ""},
		{"empty", nil, diag.FileTruncated},
		{"no zip", []byte("\x08\x00 model"), diag.BadZip},
		{"cut off", good[:len(good)-30], diag.FileTruncated},
		{"directory alone", append([]byte("PK"), good[directory:]...), diag.BadZip},
		{"traversal", archiveOf(t, zip.Store, "../a"), diag.BadZip},
		{"traversal inside", archiveOf(t, zip.Store, "a/../../b"), diag.BadZip},
		{"absolute", archiveOf(t, zip.Store, "/etc/x"), diag.BadZip},
		{"backslash", archiveOf(t, zip.Store, `..\x`), diag.BadZip},
		{"drive", archiveOf(t, zip.Store, "C:x"), diag.BadZip},
		{"dot", archiveOf(t, zip.Store, "."), diag.BadZip},
		{"not clean", archiveOf(t, zip.Store, "a//b"), diag.BadZip},
		{"NUL in name", archiveOf(t, zip.Store, "a\x00b"), diag.BadZip},
		{"duplicate", archiveOf(t, zip.Store, "a", "a"), diag.FileDuplicate},
		{"encrypted", patch(good, directory+8, 1), diag.BadZip},
		{"bzip2", patch(good, directory+10, 12), diag.BadZip},
		{"stored with two sizes", patch(good, directory+24, 1), diag.BadZip},
		{"member past the end", patch(patch(good, directory+20, 0, 0, 0, 0x10), directory+24, 0, 0, 0, 0x10), diag.FileTruncated},
		{"header offset past the end", patch(good, directory+42, 0, 0, 0, 0x10), diag.BadZip},
		{"header offset elsewhere", patch(good, directory+42, 7), diag.BadZip},
		{"two members at one place", patch(good, second+42, 0, 0, 0, 0), diag.BadZip},
		{"member over its neighbour", patch(patch(good, directory+20, 0x20, 4), directory+24, 0x20, 4), diag.BadZip},
		{"local name differs", patch(good, 30, 'z'), diag.BadZip},
		{"bomb by claim", claiming(t, 1<<40, []byte{3, 0}), diag.FileTooLarge},
		{"claim of 2^63", claiming(t, 1<<63, []byte{3, 0}), diag.FileTooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			z, err := ParseZip(c.file)
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err != nil {
				t.Error(err)
			} else if data, err := z.Verified("a"); err != nil || !strings.HasPrefix(string(data), "contents of a") {
				t.Errorf("%q %v", data, err)
			}
		})
	}
	for name, file := range map[string][]byte{
		"inflates to less":      claiming(t, 50, []byte{3, 0}),
		"inflates to more":      patch(deflated, bytes.Index(deflated, []byte("PK\x01\x02"))+24, 5, 0),
		"no deflate stream":     claiming(t, 3, []byte{0xff, 0xff, 0xff}),
		"wrong checksum":        patch(deflated, bytes.Index(deflated, []byte("PK\x01\x02"))+16, 0, 0, 0, 0),
		"stored, wrong content": change(good, "contents of a", "Contents of a", 1),
	} {
		z, err := ParseZip(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = z.Verified(z.Names()[0])
		wantCode(t, err, diag.BadZip)
	}
	z, _ := ParseZip(good)
	_, err := z.Bytes("c")
	wantCode(t, err, diag.BadZip)
}

// Several members that each stay under the limit must not exceed it together.
func TestInflatedSizesAddUp(t *testing.T) {
	z := &Zip{}
	a, b := &Member{Size: maxInflated / 2}, &Member{Size: maxInflated/2 + 1}
	for range 3 {
		if err := z.spend(a); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, z.spend(b), diag.FileTooLarge)
}

// No input of a few bytes may make the readers allocate much.
func TestHostileSizesTakeNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	TestHostileSafetensors(t)
	TestHostileNpy(t)
	TestHostileZip(t)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// sparseTarget holds what is not zero: an archive of many GB in little memory.
type sparseTarget struct {
	size  int64
	parts map[int64][]byte
}

func (s *sparseTarget) Write(p []byte) (int, error) {
	if len(bytes.TrimLeft(p[:min(len(p), 64)], "\x00")) > 0 {
		s.parts[s.size] = bytes.Clone(p)
	}
	s.size += int64(len(p))
	return len(p), nil
}

func (s *sparseTarget) WriteAt(p []byte, off int64) (int, error) {
	for at, part := range s.parts {
		if off >= at && off+int64(len(p)) <= at+int64(len(part)) {
			copy(part[off-at:], p)
			return len(p), nil
		}
	}
	return 0, fmt.Errorf("nothing written at %d", off)
}

func (s *sparseTarget) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	for at, part := range s.parts {
		from, to := max(off, at), min(off+int64(len(p)), at+int64(len(part)))
		if from < to {
			copy(p[from-off:to-off], part[from-at:to-at])
		}
	}
	if off+int64(len(p)) > s.size {
		return int(max(0, s.size-off)), io.EOF
	}
	return len(p), nil
}

func TestZipWriterBeyondFourGigabytes(t *testing.T) {
	if testing.Short() {
		t.Skip("checksums 4 GB")
	}
	target := &sparseTarget{parts: map[int64][]byte{}}
	w := NewZipWriter(target)
	const big = 1<<32 + 5
	if err := w.Create("weights/big", big, 4096); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<24)
	for left := int64(big); left > 0; left -= int64(len(zeros)) {
		if _, err := w.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Create("after", 5, 64); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "after")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(target, target.size)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.File) != 2 || r.File[0].UncompressedSize64 != big {
		t.Fatalf("%d members", len(r.File))
	}
	if at, err := r.File[0].DataOffset(); err != nil || at%4096 != 0 {
		t.Errorf("data at %d: %v", at, err)
	}
	f, err := r.File[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(f); string(data) != "after" || err != nil {
		t.Errorf("%q %v", data, err)
	}
}

func TestZipWriterMisuse(t *testing.T) {
	newWriter := func() *ZipWriter { return NewZipWriter(&sparseTarget{parts: map[int64][]byte{}}) }
	w := newWriter()
	if err := w.Create("../x", 1, 64); err == nil {
		t.Error("an unsafe name is accepted")
	}
	if err := w.Create("x", 1, 64); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("too long")); err == nil {
		t.Error("too much is accepted")
	}
	if err := w.Close(); err == nil {
		t.Error("too little is accepted")
	}
	w = newWriter()
	w.Create("x", 0, 64)
	if err := w.Create("x", 0, 64); err == nil {
		t.Error("a name is accepted twice")
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(readFile(f, "testdata/types.safetensors"))
	f.Add(safetensorsFile(`{"a":{"dtype":"F4","shape":[3,2],"data_offsets":[0,3]}}`, 3))
	f.Fuzz(func(t *testing.T, file []byte) {
		st, err := ParseSafetensors(file)
		if err != nil {
			noBug(t, err)
			return
		}
		for _, x := range st.Tensors {
			if err := (&ir.Tensor{DType: x.DType, Shape: x.Shape, Data: x.Data}).Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

func noBug(t *testing.T, err error) {
	t.Helper()
	if diag.All(err)[0].Code == diag.Bug {
		t.Errorf("an error without a code: %v", err)
	}
}

func FuzzNpy(f *testing.F) {
	for _, name := range []string{"f32_f", "f32_be", "bf16", "str", "bytes", "c128_be_f", "v2", "v3", "object", "struct"} {
		f.Add(readFile(f, "testdata/"+name+".npy"))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		x, err := ParseNpy(file)
		if err != nil {
			noBug(t, err)
			return
		}
		if err := x.Check(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteNpy(&b, x); err != nil {
			t.Fatal(err)
		}
		y, err := ParseNpy(b.Bytes())
		if err != nil || !bytes.Equal(x.Data, y.Data) || x.Type().String() != y.Type().String() {
			t.Errorf("%v came back as %v: %v", x, y, err)
		}
	})
}

func FuzzNpz(f *testing.F) {
	f.Add(readFile(f, "testdata/stored.npz"))
	f.Add(readFile(f, "testdata/deflated.npz"))
	f.Fuzz(func(t *testing.T, file []byte) {
		list, err := readNpz(file, "")
		if err != nil {
			noBug(t, err)
		}
		for _, n := range list {
			if err := n.Tensor.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzZip(f *testing.F) {
	f.Add(archiveOf(f, zip.Store, "a", "b/c"))
	f.Add(archiveOf(f, zip.Deflate, "a"))
	f.Fuzz(func(t *testing.T, file []byte) {
		z, err := ParseZip(file)
		if err != nil {
			noBug(t, err)
			return
		}
		for _, m := range z.Members {
			data, err := z.Verified(m.Name)
			if err != nil {
				noBug(t, err)
			} else if int64(len(data)) != m.Size || crc32.ChecksumIEEE(data) != m.crc {
				t.Errorf("%q has %d bytes of %d", m.Name, len(data), m.Size)
			}
		}
	})
}
