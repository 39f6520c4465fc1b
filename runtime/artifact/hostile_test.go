package artifact

import (
	"archive/zip"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir/diag"
)

type part struct{ name, text string }

// partsOf lists the members of an artifact.
func partsOf(t testing.TB, file []byte) []part {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var parts []part
	for _, f := range r.File {
		rc, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part{f.Name, string(data)})
	}
	return parts
}

// pack writes parts as an aligned archive.
func pack(t testing.TB, parts []part) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := weights.NewZipWriter(f)
	for _, p := range parts {
		align := int64(memberAlign)
		if strings.HasPrefix(p.name, weightsFolder) {
			align = weightsAlign
		}
		if err := w.Create(p.name, int64(len(p.text)), align); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, p.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Each case changes one thing of a good artifact and packs it well again.
func TestHostileManifests(t *testing.T) {
	_, good := writeSample(t)
	parts := partsOf(t, good)
	manifest := parts[len(parts)-1].text
	if _, err := Parse(pack(t, parts)); err != nil {
		t.Fatal(err)
	}
	one := strings.Index(manifest, `"sha256": "`) + len(`"sha256": "`)
	otherDigest := manifest[:one] + strings.Repeat("0", 64) + manifest[one+64:]
	cases := []struct {
		name, old, new string // in the manifest's text, first occurrence
		code           diag.Code
	}{
		{"later minor version, new field", `"schema": "1.0"`, `"schema": "1.7", "new": {"x": [1]}`, ""},
		{"later major version", `"schema": "1.0"`, `"schema": "2.0"`, diag.ArtifactVersion},
		{"version 0", `"schema": "1.0"`, `"schema": "0.9"`, diag.ArtifactVersion},
		{"no version", `"schema": "1.0",`, ``, diag.ArtifactManifest},
		{"version that is none", `"schema": "1.0"`, `"schema": "1"`, diag.ArtifactManifest},
		{"version that is a number", `"schema": "1.0"`, `"schema": 1.0`, diag.ArtifactManifest},
		{"no JSON", manifest, `hello`, diag.ArtifactManifest},
		{"empty", manifest, ``, diag.ArtifactManifest},
		{"cut off", manifest[len(manifest)/2:], ``, diag.ArtifactManifest},
		{"deep nesting", `"weft": "test"`, `"weft": ` + strings.Repeat("[", 1<<16), diag.ArtifactManifest},
		{"many values", `"weft": "test"`, `"weft": "test", "x": [0` + strings.Repeat(",0", maxManifestValues) + `]`, diag.ArtifactManifest},
		{"wrong type of a field", `"weft": "test"`, `"weft": 3`, diag.ArtifactManifest},
		{"size of 2^70", `"size": 64`, `"size": 1180591620717411303424`, diag.ArtifactManifest},
		{"chunk size 0", `"chunk_size": 16777216`, `"chunk_size": 0`, diag.ArtifactManifest},
		{"chunk size negative", `"chunk_size": 16777216`, `"chunk_size": -16777216`, diag.ArtifactManifest},
		{"chunk size 2^62", `"chunk_size": 16777216`, `"chunk_size": 4611686018427387904`, diag.ArtifactManifest},
		{"other digest", manifest, otherDigest, diag.ArtifactDigest},
		{"digest that is none", manifest[one : one+64], "x", diag.ArtifactManifest},
		{"digest in capitals", manifest[one : one+64], strings.Repeat("A", 64), diag.ArtifactManifest},
		{"chunks for a small member", `"size": 13,`, `"size": 13, "chunks": ["` + manifest[one:one+64] + `"],`, diag.ArtifactManifest},
		{"member of another size", `"size": 13,`, `"size": 14,`, diag.ArtifactManifest},
		{"member of negative size", `"size": 13,`, `"size": -13,`, diag.ArtifactManifest},
		{"member of 2^62 bytes", `"size": 13,`, `"size": 4611686018427387904,`, diag.ArtifactManifest},
		{"member that is not there", `"name": "program.weft"`, `"name": "other.weft"`, diag.ArtifactManifest},
		{"member twice", `"name": "report.json"`, `"name": "program.weft"`, diag.ArtifactManifest},
		{"member that is the manifest", `"name": "program.weft"`, `"name": "manifest.json"`, diag.ArtifactManifest},
		{"member outside", `"name": "program.weft"`, `"name": "../../etc/passwd"`, diag.ArtifactManifest},
		{"weight past its member", `"offset": 4096`, `"offset": 4160`, diag.ArtifactManifest},
		{"weight at 2^63-1", `"offset": 4096`, `"offset": 9223372036854775807`, diag.ArtifactManifest},
		{"weight at a negative offset", `"offset": 4096`, `"offset": -4096`, diag.ArtifactManifest},
		{"weight of another size", `"size": 64`, `"size": 65`, diag.ArtifactManifest},
		{"weight in another folder", `"member": "weights/model.safetensors"`, `"member": "program.weft"`, diag.ArtifactManifest},
		{"weight in no member", `"member": "weights/model.safetensors"`, `"member": "weights/other.safetensors"`, diag.ArtifactManifest},
		{"weight in the empty member", `"member": "weights/model.safetensors"`, `"member": ""`, diag.ArtifactManifest},
		{"state of 2^60 elements", `"type": "f32[4, 4]"`, `"type": "f32[1152921504606846976, 16]"`, diag.ArtifactManifest},
		{"state of no type", `"type": "f32[4, 4]"`, `"type": "f33[4, 4]"`, diag.ArtifactManifest},
		{"state of strings", `"type": "f32[4, 4]"`, `"type": "string[4]"`, diag.ArtifactManifest},
		{"embedded state with a named dim", `"type": "f32[4, 4]"`, `"type": "f32[batch, 4]"`, diag.ArtifactManifest},
		{"state twice", `"name": "tied"`, `"name": "w"`, diag.ArtifactManifest},
		{"state of two origins", `"embedded": {`, `"random": {"seed": 1, "name": "x"}, "embedded": {`, diag.ArtifactManifest},
		{"state of no origin", `"random": {`, `"unknown": {`, diag.ArtifactManifest},
		{"seed negative", `"seed": 3`, `"seed": -3`, diag.ArtifactManifest},
		{"prepared by no entry", `"entry": "init"`, `"entry": "none"`, diag.ArtifactManifest},
		{"entry twice", `"name": "init"`, `"name": "forward"`, diag.ArtifactManifest},
		{"entry outside", `"name": "forward"`, `"name": "../forward"`, diag.ArtifactManifest},
		{"donation to no state", `"state": "packed"`, `"state": "none"`, diag.ArtifactManifest},
		{"donation of no output", `"output": "p"`, `"output": "q"`, diag.ArtifactManifest},
		{"bounds the wrong way", `"min": 1`, `"min": 65`, diag.ArtifactManifest},
		{"target twice", `"name": "sm_80"`, `"name": "sm_90a"`, diag.ArtifactManifest},
		{"configuration that is no object", `"config": {`, `"config": [{}], "x": {`, diag.ArtifactManifest},
		{"no configuration", `"config": {`, `"x": {`, diag.ArtifactManifest},
		{"mesh of too many ranks", `"axes": []`, `"axes": [{"name": "a", "size": 4294967296}, {"name": "b", "size": 4294967296}]`, diag.ArtifactManifest},
		{"axis twice", `"axes": []`, `"axes": [{"name": "a", "size": 2}, {"name": "a", "size": 2}]`, diag.ArtifactManifest},
		{"state on an axis that is not there", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[4@tp, 4]"`, diag.ArtifactManifest},
		{"sharding that is none", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[4@"`, diag.ArtifactManifest},
		{"sharding of another shape", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[4, 8]"`, diag.ArtifactManifest},
		{"sharding of another rank", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[16]"`, diag.ArtifactManifest},
		{"sharding of 2^40 parts", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[4, (4` + strings.Repeat(", 1", 1000) + `)]"`, diag.ArtifactManifest},
		{"sharding with a named dim", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[batch, 4]"`, diag.ArtifactManifest},
		{"sharding of negative size", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[4, (-2, -2)]"`, diag.ArtifactManifest},
		{"whole sharding", `"type": "f32[4, 4]"`, `"type": "f32[4, 4]", "shard": "[4, (2, 2)]"`, ""},
		{"input on an axis that is not there", `"type": "f32[batch, 4]"`, `"type": "f32[batch, 4]", "shard": "[batch@tp, 4]"`, diag.ArtifactManifest},
		{"prepared and divided", `"type": "f32[4]",
   "kind": "prepared"`, `"type": "f32[4]",
   "shard": "[4]", "kind": "prepared"`, diag.ArtifactManifest},
		{"axis of size 0", `"axes": []`, `"axes": [{"name": "dp", "size": 0}]`, diag.ArtifactManifest},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.Replace(manifest, c.old, c.new, 1)
			if changed == manifest {
				t.Fatal("the case changes nothing")
			}
			a, err := Parse(pack(t, append(parts[:len(parts)-1:len(parts)-1], part{manifestName, changed})))
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				a.Close()
				return
			}
			wantCode(t, err, c.code)
		})
	}
}

func TestHostileContainers(t *testing.T) {
	_, good := writeSample(t)
	parts := partsOf(t, good)
	repacked := func(method uint16) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for _, p := range parts {
			f, err := w.CreateHeader(&zip.FileHeader{Name: p.name, Method: method})
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(f, p.text)
		}
		w.Close()
		return b.Bytes()
	}
	without := func(name string) []byte {
		var rest []part
		for _, p := range parts {
			if p.name != name {
				rest = append(rest, p)
			}
		}
		return pack(t, rest)
	}
	damage := func(old, new string) []byte { return []byte(strings.Replace(string(good), old, new, 1)) }
	cases := []struct {
		name string
		file []byte
		code diag.Code
	}{
		{"empty", nil, diag.NotArtifact},
		{"text", []byte("program text"), diag.NotArtifact},
		{"cut off", good[:len(good)-100], diag.ArtifactDamaged},
		{"half", good[:len(good)/2], diag.ArtifactDamaged},
		{"another archive", pack(t, []part{{"model.json", "{}"}}), diag.NotArtifact},
		{"manifest missing", without(manifestName), diag.NotArtifact},
		{"program missing", without(programName), diag.ArtifactManifest},
		{"weights missing", without(weightsName), diag.ArtifactManifest},
		{"one more member", pack(t, append([]part{{"extra", "x"}}, parts...)), diag.ArtifactManifest},
		{"compressed", repacked(zip.Deflate), diag.ArtifactDamaged},
		{"not aligned", repacked(zip.Store), diag.ArtifactDamaged},
		{"plan changed", damage("stage", "Stage"), diag.ArtifactDigest},
		{"PTX changed", damage("ptx 80", "ptx 81"), diag.ArtifactDigest},
		{"member outside", damage("kernels/sm_80.ptx", "../../../sm_80ptx"), diag.ArtifactDamaged},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.file)
			wantCode(t, err, c.code)
			path := filepath.Join(t.TempDir(), "m.weft")
			if err := os.WriteFile(path, c.file, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err = Open(path)
			wantCode(t, err, c.code)
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the message does not name the file: %v", err)
			}
		})
	}
	_, err := Open(filepath.Join(t.TempDir(), "none.weft"))
	wantCode(t, err, "W0003")
}

// Damaged weights are found when they are read, not before.
func TestDamagedWeights(t *testing.T) {
	_, good := writeSample(t)
	at := bytes.Index(good, []byte{8, 9, 10, 11, 12, 13, 14, 15})
	bad := bytes.Clone(good)
	bad[at]++
	a, err := Parse(bad)
	if err != nil {
		t.Fatal(err)
	}
	wantCode(t, a.Verify(), diag.ArtifactDigest)
	s, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	_, err = weights.Load(s, "w")
	wantCode(t, err, diag.ArtifactDigest)
	_, err = s.Digest("t")
	wantCode(t, err, diag.ArtifactDigest)
}

// mustBeWhole reads all of an artifact that was accepted.
func mustBeWhole(t *testing.T, a *Artifact) {
	t.Helper()
	for _, target := range a.Manifest.Targets {
		a.Kernels(target.Name)
		for _, e := range a.Manifest.Entries {
			a.Plan(target.Name, e.Name, "")
		}
	}
	s, err := a.Weights()
	if err != nil {
		return
	}
	for _, name := range s.Names() {
		r, err := s.Open(name)
		if err != nil {
			continue
		}
		if n := min(r.Size(), 1<<16); n > 0 {
			r.View(r.Size()-n, n)
		}
	}
}

// A changed byte is found or is one that nothing depends on; never is there a panic, an error
// without a code, or memory beyond the file's size.
func TestFlippedBytes(t *testing.T) {
	_, good := writeSample(t)
	random := rand.New(rand.NewPCG(1, 2))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 2000 {
		bad := bytes.Clone(good)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(bad))
			if random.IntN(2) == 0 { // most of the structure is at the end
				at = len(bad) - 1 - random.IntN(4500)
			}
			bad[at] ^= 1 << random.IntN(8)
		}
		if random.IntN(8) == 0 {
			bad = bad[:random.IntN(len(bad))]
		}
		a, err := Parse(bad)
		if err == nil {
			mustBeWhole(t, a)
		} else if diag.All(err)[0].Code == diag.Bug {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<30 {
		t.Errorf("%d bytes were allocated", used)
	}
}

func FuzzArtifact(f *testing.F) {
	_, good := writeSample(f)
	f.Add(good)
	f.Fuzz(func(t *testing.T, file []byte) {
		a, err := Parse(file)
		if err == nil {
			mustBeWhole(t, a)
		} else if diag.All(err)[0].Code == diag.Bug {
			t.Error(err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	_, good := writeSample(f)
	parts := partsOf(f, good)
	f.Add([]byte(parts[len(parts)-1].text))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeManifest(text)
		if err != nil {
			if diag.All(err)[0].Code == diag.Bug {
				t.Error(err)
			}
			return
		}
		first, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeManifest(first)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := again.encode(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("encoding is not canonical: %v", err)
		}
	})
}
