package artifact

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// Schema is the version of the manifest that this package writes. Readers accept every minor
// version of major version 1: fields may be added, and those not known are ignored.
const Schema = "1.0"

const schemaMajor = "1"

// Manifest is manifest.json: what the artifact holds and needs.
type Manifest struct {
	Schema  string          `json:"schema"`
	Weft    string          `json:"weft"` // version of the weft that wrote it
	Entries []Entry         `json:"entries"`
	State   []State         `json:"state"`
	Dims    []Dim           `json:"dims"`
	Mesh    Mesh            `json:"mesh"`
	Targets []Target        `json:"targets"`
	Config  json.RawMessage `json:"config"` // the full configuration of the compile, a JSON object
	// ChunkSize is the bytes after which the digest of a member begins anew.
	ChunkSize int64    `json:"chunk_size"`
	Members   []Member `json:"members"` // every member but manifest.json, in the order of the file
}

// Entry is a function that can be run.
type Entry struct {
	Name      string     `json:"name"`
	Inputs    []Value    `json:"inputs"`
	Outputs   []Value    `json:"outputs"`
	Donations []Donation `json:"donations"`
}

// Value is an input or output; Type is program text, "f32[batch, 64]". Where the ranks of a mesh
// divide it, that is the type of the global tensor, and Shard says how: "[batch@dp, 64]".
type Value struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shard string `json:"shard,omitempty"`
}

// Donation says that an output is the new value of a state.
type Donation struct {
	Output string `json:"output"`
	State  string `json:"state"`
}

// State is a parameter, buffer or other value that lives between runs. Type and Shard are as
// those of a Value; a prepared state has its type on one rank.
type State struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Shard string `json:"shard,omitempty"`
	Kind  string `json:"kind"`
	From  From   `json:"from"`
}

// From is where the first value of a state comes from; exactly one field is set.
type From struct {
	Embedded  *Embedded  `json:"embedded,omitempty"`
	Reference *Reference `json:"reference,omitempty"`
	Random    *Random    `json:"random,omitempty"`
	Prepared  *Prepared  `json:"prepared,omitempty"`
}

// Embedded is a value in the artifact. Write fills it in; callers give an empty one.
type Embedded struct {
	Member string `json:"member"`
	Tensor string `json:"tensor"` // in the safetensors file
	Offset int64  `json:"offset"` // bytes, in the member
	Size   int64  `json:"size"`
}

// Reference is a value that the user gives at run time.
type Reference struct {
	Name   string `json:"name"`             // in the user's weights
	SHA256 string `json:"sha256,omitempty"` // of the contents; empty when any checkpoint will do
}

// Random is a value that weights.Random makes.
type Random struct {
	Seed uint64 `json:"seed"`
	Name string `json:"name"` // keys the values; tied weights have the same
}

// Prepared is a value that an entry computes at load.
type Prepared struct {
	Entry string `json:"entry"`
}

// Dim is a named size with its bounds, absent where nothing is known.
type Dim struct {
	Name     string `json:"name"`
	Min      *int64 `json:"min,omitempty"`
	Max      *int64 `json:"max,omitempty"`
	Multiple int64  `json:"multiple,omitempty"` // divisibility
}

// Mesh is the device mesh, without axes for one device.
type Mesh struct {
	Axes []Axis `json:"axes"`
}

// Axis is a mesh axis.
type Axis struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Target is a GPU that the artifact has kernels for.
type Target struct {
	Name      string `json:"name"`            // sm_90a
	PTX       string `json:"ptx"`             // PTX version of the kernels
	MinDriver string `json:"min_driver"`      // oldest driver that reads it
	LLC       string `json:"llc"`             // version line of the code generator
	PTXAS     string `json:"ptxas,omitempty"` // version of the assembler, where there is a cubin
}

// Member is the digest of a part of the file. A member of at most one chunk has its plain
// SHA-256. A larger one has the SHA-256 of every chunk, so that any part can be verified
// alone, and as its own digest that of the chunks' digests one after the other.
type Member struct {
	Name   string   `json:"name"`
	Size   int64    `json:"size"`
	SHA256 string   `json:"sha256"`
	Chunks []string `json:"chunks,omitempty"`
}

// encode prints the manifest canonically: fixed field order, sorted configuration keys, no
// absent lists.
func (m *Manifest) encode() ([]byte, error) {
	c := *m
	config, err := canonicalObject(c.Config)
	if err != nil {
		return nil, fmt.Errorf("artifact configuration: %w", err)
	}
	c.Config = config
	c.Entries, c.State, c.Dims = list(c.Entries), list(c.State), list(c.Dims)
	c.Mesh.Axes, c.Targets, c.Members = list(c.Mesh.Axes), list(c.Targets), list(c.Members)
	for i := range c.Entries {
		e := &c.Entries[i]
		e.Inputs, e.Outputs, e.Donations = list(e.Inputs), list(e.Outputs), list(e.Donations)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(&c); err != nil {
		return nil, fmt.Errorf("artifact manifest: %w", err)
	}
	return b.Bytes(), nil
}

// list copies s, as an empty list when it is nil.
func list[T any](s []T) []T { return append([]T{}, s...) }

func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage("{}"), nil
	}
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Limits of a manifest: what decoding takes is bounded by a multiple of its values.
const (
	maxManifest       = 64 << 20
	maxManifestValues = 2 << 20
)

// decodeManifest reads and checks manifest.json.
func decodeManifest(data []byte) (*Manifest, error) {
	if len(data) > maxManifest || bytes.Count(data, []byte(",")) > maxManifestValues {
		return nil, badManifest("", "a manifest of %d bytes is too large", len(data))
	}
	var version struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, badManifest("", "not valid JSON: %v", err)
	}
	major, minor, ok := strings.Cut(version.Schema, ".")
	if _, err := strconv.ParseUint(minor, 10, 31); !ok || err != nil {
		return nil, badManifest("schema", "%.40q is no version", version.Schema)
	}
	if major != schemaMajor {
		return nil, diag.Errorf(diag.ArtifactVersion, "manifest.json", "the artifact has format version %.40q; this weft reads %s.x", version.Schema, schemaMajor).
			Suggest("use the weft that wrote it, or compile again with this one")
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, badManifest("", "not valid: %v", err)
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(m.Config, &config); err != nil || config == nil {
		return nil, badManifest("config", "the configuration is no JSON object")
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := m.checkMembers(); err != nil {
		return nil, err
	}
	return m, nil
}

func badManifest(place, format string, args ...any) error {
	if place = strings.TrimSuffix("manifest.json: "+place, ": "); len(place) > 300 {
		place = place[:300]
	}
	return diag.Errorf(diag.ArtifactManifest, place, format, args...)
}

// namePattern is that of targets, entries and stages, which become names of members.
var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,127}$`)

// check checks all but the members.
func (m *Manifest) check() error {
	seen := map[string]bool{}
	once := func(kind, name string) error {
		if seen[kind+"\x00"+name] || name == "" {
			return badManifest(kind, "the name %.100q is empty or given twice", name)
		}
		seen[kind+"\x00"+name] = true
		return nil
	}
	for _, t := range m.Targets {
		if err := once("targets", t.Name); err != nil {
			return err
		}
		if !namePattern.MatchString(t.Name) {
			return badManifest("targets", "%.100q is no name of a target", t.Name)
		}
	}
	for _, d := range m.Dims {
		if err := once("dims", d.Name); err != nil {
			return err
		}
		if d.Min != nil && *d.Min < 0 || d.Max != nil && *d.Max < 0 || d.Min != nil && d.Max != nil && *d.Min > *d.Max || d.Multiple < 0 {
			return badManifest("dims", "%.100q has impossible bounds", d.Name)
		}
	}
	if err := m.checkMesh(once); err != nil {
		return err
	}
	for _, s := range m.State {
		if err := once("state", s.Name); err != nil {
			return err
		}
		if err := s.check(); err != nil {
			return err
		}
		if err := m.checkSharding(fmt.Sprintf("state %.100q", s.Name), s.Shard, s.Type, true); err != nil {
			return err
		}
	}
	for _, e := range m.Entries {
		if err := once("entries", e.Name); err != nil {
			return err
		}
		if !namePattern.MatchString(e.Name) {
			return badManifest("entries", "%.100q is no name of an entry", e.Name)
		}
		if err := e.check(func(state string) bool { return seen["state\x00"+state] }); err != nil {
			return err
		}
		if err := m.checkValues(&e); err != nil {
			return err
		}
	}
	return m.checkReferences(seen)
}

// checkValues checks the shardings of inputs and outputs.
func (m *Manifest) checkValues(e *Entry) error {
	for _, values := range [][]Value{e.Inputs, e.Outputs} {
		for _, v := range values {
			if err := m.checkSharding(fmt.Sprintf("entry %s, %.100q", e.Name, v.Name), v.Shard, v.Type, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkReferences checks what states say about entries and each other.
func (m *Manifest) checkReferences(seen map[string]bool) error {
	for _, s := range m.State {
		if p := s.From.Prepared; p != nil && !seen["entries\x00"+p.Entry] {
			return badManifest("state", "%.100q is prepared by the entry %.100q, which does not exist", s.Name, p.Entry)
		}
	}
	return nil
}

func (e *Entry) check(isState func(string) bool) error {
	place := fmt.Sprintf("entry %s", e.Name)
	outputs := map[string]bool{}
	for _, values := range [][]Value{e.Inputs, e.Outputs} {
		clear(outputs)
		for _, v := range values {
			if v.Name == "" || v.Type == "" || outputs[v.Name] {
				return badManifest(place, "the input or output %.100q has no name or type, or is there twice", v.Name)
			}
			outputs[v.Name] = true
		}
	}
	donated := map[string]bool{}
	for _, d := range e.Donations {
		if !outputs[d.Output] || !isState(d.State) || donated[d.State] {
			return badManifest(place, "the donation of output %.100q to state %.100q is not possible", d.Output, d.State)
		}
		donated[d.State] = true
	}
	return nil
}

func (s *State) check() error {
	place := fmt.Sprintf("state %.100q", s.Name)
	set := 0
	for _, is := range []bool{s.From.Embedded != nil, s.From.Reference != nil, s.From.Random != nil, s.From.Prepared != nil} {
		if is {
			set++
		}
	}
	if set != 1 || s.Type == "" {
		return badManifest(place, "a type and exactly one origin are needed")
	}
	if s.From.Prepared != nil && s.Shard != "" {
		return badManifest(place, "a prepared state is of one rank")
	}
	if s.From.Prepared != nil {
		return nil // its type may have dims that are bound at load
	}
	info, err := s.info()
	if err != nil {
		return err
	}
	if e := s.From.Embedded; e != nil && e.Member != "" {
		if size, _ := weights.ByteSize(info.DType, info.Shape); size != e.Size || e.Offset < 0 {
			return badManifest(place, "%.100s takes %d bytes; %d at %d are given", s.Type, size, e.Size, e.Offset)
		}
	}
	if r := s.From.Reference; r != nil && (r.Name == "" || r.SHA256 != "" && !isDigest(r.SHA256)) {
		return badManifest(place, "the reference has no name or no valid digest")
	}
	if r := s.From.Random; r != nil && r.Name == "" {
		return badManifest(place, "random values need a name")
	}
	return nil
}

// info is name and type of a state whose shape is constant.
func (s *State) info() (weights.Info, error) {
	dtype, shape, ok := parseTensorType(s.Type)
	if !ok {
		return weights.Info{}, badManifest(fmt.Sprintf("state %.100q", s.Name), "%.100q is no tensor type of constant shape", s.Type)
	}
	if _, err := weights.ByteSize(dtype, shape); err != nil {
		return weights.Info{}, badManifest(fmt.Sprintf("state %.100q", s.Name), "%.100q is too large or has no size", s.Type)
	}
	return weights.Info{Name: s.Name, DType: dtype, Shape: shape}, nil
}

// parseTensorType reads a tensor type of constant shape as program text prints it: f32[2, 3].
func parseTensorType(text string) (ir.DType, []int64, bool) {
	name, dims, ok := strings.Cut(text, "[")
	dtype, known := ir.ParseDType(name)
	dims, closed := strings.CutSuffix(dims, "]")
	if !ok || !known || !closed {
		return ir.InvalidDType, nil, false
	}
	shape := []int64{}
	if dims == "" {
		return dtype, shape, true
	}
	for _, d := range strings.Split(dims, ", ") {
		v, err := strconv.ParseInt(d, 10, 64)
		if err != nil || v < 0 || strconv.FormatInt(v, 10) != d || len(shape) == 64 {
			return ir.InvalidDType, nil, false
		}
		shape = append(shape, v)
	}
	return dtype, shape, true
}

// checkMembers checks the table of digests and the places of embedded values in it.
func (m *Manifest) checkMembers() error {
	if m.ChunkSize < 1<<12 || m.ChunkSize > 1<<30 {
		return badManifest("chunk_size", "%d is out of range", m.ChunkSize)
	}
	sizes := map[string]int64{}
	for _, p := range m.Members {
		place := fmt.Sprintf("member %.100q", p.Name)
		if _, dup := sizes[p.Name]; dup || p.Name == manifestName || p.Size < 0 || !isDigest(p.SHA256) {
			return badManifest(place, "the member is there twice, or has no valid size and digest")
		}
		sizes[p.Name] = p.Size
		chunks := int64(0)
		if p.Size > m.ChunkSize {
			chunks = (p.Size-1)/m.ChunkSize + 1
		}
		if int64(len(p.Chunks)) != chunks {
			return badManifest(place, "%d chunks for %d bytes", len(p.Chunks), p.Size)
		}
		for _, c := range p.Chunks {
			if !isDigest(c) {
				return badManifest(place, "a chunk has no valid digest")
			}
		}
		if chunks > 0 && treeDigest(p.Chunks) != p.SHA256 {
			return badManifest(place, "the digest is not that of the chunks")
		}
	}
	for _, s := range m.State {
		e := s.From.Embedded
		if e == nil {
			continue
		}
		size, ok := sizes[e.Member]
		if !ok || !strings.HasPrefix(e.Member, weightsFolder) || e.Offset < 0 || e.Size < 0 || e.Offset > size || e.Size > size-e.Offset {
			return badManifest(fmt.Sprintf("state %.100q", s.Name), "%d bytes at %d are not in a member of weights/", e.Size, e.Offset)
		}
	}
	return nil
}

func isDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32 && strings.ToLower(s) == s
}
