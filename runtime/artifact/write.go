// Package artifact reads and writes .weft files: what a compile makes and a run needs, in one
// deterministic zip archive whose members are stored, aligned for mapping, and covered by
// digests. It imports frontend/weights, which is beside the house's one-way rule, for the same
// tensor files and sources on both ends: weights stream from the model into the artifact, and
// from the artifact to the devices, as views of mapped files.
package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"weft/frontend/weights"
	"weft/ir/diag"
)

// Names of members. Plans are plans/TARGET/ENTRY[.STAGE].json, kernels kernels/TARGET.ptx and
// kernels/TARGET.cubin.
const (
	manifestName  = "manifest.json"
	programName   = "program.weft"
	reportName    = "report.json"
	plansFolder   = "plans/"
	kernelsFolder = "kernels/"
	weightsFolder = "weights/"
	weightsName   = weightsFolder + "model.safetensors"
)

const (
	memberAlign  = 64   // a cache line
	weightsAlign = 4096 // a page
	chunkSize    = 16 << 20
)

// memberOrder is the order of the file: what a reader looks at together lies together, and the
// manifest, known last, is beside the archive's directory.
var memberOrder = []string{programName, plansFolder, kernelsFolder, reportName, weightsFolder, manifestName}

// Contents is what Write puts into an artifact.
type Contents struct {
	// Manifest without schema, chunk size and members. The origin of a state that Weights
	// gives the value of is an empty Embedded; Write fills in its place.
	Manifest Manifest
	Program  []byte // text of the program
	Report   []byte // JSON
	Plans    []Plan
	Kernels  []Kernels
	Weights  weights.Source // of the embedded states; may hold others too. Write does not close it.
}

// Plan is the launch plan of one entry, and where there are stages, of one pipeline stage.
type Plan struct {
	Target, Entry, Stage string
	JSON                 []byte
}

// Kernels is the code for one target.
type Kernels struct {
	Target string
	PTX    []byte // nil when the artifact has machine code alone
	Cubin  []byte // nil when it is left to the driver
}

// Write writes the artifact to path, whole or not at all. The same contents give the same
// bytes.
func Write(path string, c Contents) error {
	m := c.Manifest
	m.State = slices.Clone(m.State)
	if err := m.check(); err != nil {
		return fmt.Errorf("write artifact: %v", err) // the compiler is at fault, not its input: no code
	}
	layout, embedded, err := embed(&m, c.Weights)
	if err != nil {
		return err
	}
	members, err := c.members()
	if err != nil {
		return err
	}
	w, err := Create(path)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, p := range members {
		if err := w.Add(p.name, p.data); err != nil {
			return err
		}
	}
	if layout != nil {
		err := w.AddStream(weightsName, layout.Size, func(out io.Writer) error { return layout.WriteTo(out, embedded) })
		if err != nil {
			return err
		}
	}
	return w.Commit(m)
}

type namedBytes struct {
	name string
	data []byte
}

// members lists all but weights and manifest, in the order of the file.
func (c *Contents) members() ([]namedBytes, error) {
	list := []namedBytes{{programName, c.Program}, {reportName, c.Report}}
	for _, p := range c.Plans {
		name := planName(p.Target, p.Entry, p.Stage)
		for _, part := range []string{p.Target, p.Entry, "_" + p.Stage} {
			if !namePattern.MatchString(part) {
				return nil, fmt.Errorf("write artifact: no plan can have the name %.200q", name)
			}
		}
		list = append(list, namedBytes{name, p.JSON})
	}
	for _, k := range c.Kernels {
		if !namePattern.MatchString(k.Target) {
			return nil, fmt.Errorf("write artifact: no target can have the name %.200q", k.Target)
		}
		if k.PTX != nil {
			list = append(list, namedBytes{kernelsName(k.Target, "ptx"), k.PTX})
		}
		if k.Cubin != nil {
			list = append(list, namedBytes{kernelsName(k.Target, "cubin"), k.Cubin})
		}
	}
	slices.SortFunc(list, func(a, b namedBytes) int { return compareMembers(a.name, b.name) })
	return list, nil
}

func planName(target, entry, stage string) string {
	if stage != "" {
		entry += "." + stage
	}
	return plansFolder + target + "/" + entry + ".json"
}

func kernelsName(target, suffix string) string { return kernelsFolder + target + "." + suffix }

func compareMembers(a, b string) int {
	rank := func(name string) int {
		return slices.IndexFunc(memberOrder, func(p string) bool { return name == p || strings.HasSuffix(p, "/") && strings.HasPrefix(name, p) })
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// embed plans the file of weights for all embedded states and writes their places into m. The
// source it returns has these states alone.
func embed(m *Manifest, all weights.Source) (*weights.SafetensorsLayout, weights.Source, error) {
	var names []string
	for i := range m.State {
		s := &m.State[i]
		if s.From.Embedded == nil {
			continue
		}
		info, err := s.info()
		if err != nil {
			return nil, nil, err
		}
		if all == nil {
			return nil, nil, diag.Errorf(diag.WeightMissing, fmt.Sprintf("state %q", s.Name), "there are no weights to embed")
		}
		if err := weights.Expect(all, s.Name, info.DType, info.Shape); err != nil {
			return nil, nil, err
		}
		names = append(names, s.Name)
	}
	if names == nil {
		return nil, nil, nil
	}
	chosen, err := weights.Rename(all, names, names)
	if err != nil {
		return nil, nil, err
	}
	layout, err := weights.LayoutSafetensors(chosen, true, weights.SafetensorsOptions{Align: weightsAlign})
	if err != nil {
		return nil, nil, err
	}
	for i := range m.State {
		s := &m.State[i]
		if s.From.Embedded == nil {
			continue
		}
		info, _ := chosen.Info(s.Name)
		size, err := weights.ByteSize(info.DType, info.Shape)
		if err != nil {
			return nil, nil, err
		}
		tensor := s.Name
		if info.SameAs != "" {
			tensor = info.SameAs
		}
		s.From.Embedded = &Embedded{Member: weightsName, Tensor: tensor, Offset: layout.Offset[s.Name], Size: size}
	}
	return layout, chosen, nil
}

// Writer writes an artifact member by member, in the order of the file. The file appears under
// its name at Commit. Most callers use Write.
type Writer struct {
	file    *weights.PendingFile
	zip     *weights.ZipWriter
	members []Member
}

// Create starts an artifact. Finish with Commit or Abort; a deferred Abort after Commit does
// nothing.
func Create(path string) (*Writer, error) {
	f, err := weights.CreateFile(path)
	if err != nil {
		return nil, err
	}
	return &Writer{file: f, zip: weights.NewZipWriter(f)}, nil
}

// Abort removes what was written.
func (w *Writer) Abort() { w.file.Abort() }

// Add writes a member.
func (w *Writer) Add(name string, data []byte) error {
	return w.AddStream(name, int64(len(data)), func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// AddStream writes a member of the given size, whose contents write produces.
func (w *Writer) AddStream(name string, size int64, write func(io.Writer) error) error {
	if n := len(w.members); n > 0 && compareMembers(w.members[n-1].Name, name) >= 0 {
		return fmt.Errorf("write artifact: member %.200q comes after %q", name, w.members[n-1].Name)
	}
	align := int64(memberAlign)
	if strings.HasPrefix(name, weightsFolder) {
		align = weightsAlign
	}
	if err := w.zip.Create(name, size, align); err != nil {
		return w.failed(err)
	}
	h := newMemberHash(chunkSize)
	if err := write(io.MultiWriter(w.zip, h)); err != nil {
		return w.failed(err)
	}
	w.members = append(w.members, h.member(name))
	return nil
}

// failed gives an error of the file system its code; others pass.
func (w *Writer) failed(err error) error { return weights.WriteError(w.file.Path(), err) }

// Commit adds the manifest, with schema and members set, and gives the file its name.
func (w *Writer) Commit(m Manifest) error {
	m.Schema, m.ChunkSize, m.Members = Schema, chunkSize, w.members
	data, err := m.encode()
	if err != nil {
		return err
	}
	if _, err := decodeManifest(data); err != nil {
		return fmt.Errorf("write artifact: %v", err) // the compiler is at fault, not its input: no code
	}
	if err := w.zip.Create(manifestName, int64(len(data)), memberAlign); err != nil {
		return w.failed(err)
	}
	if _, err := w.zip.Write(data); err != nil {
		return w.failed(err)
	}
	if err := w.zip.Close(); err != nil {
		return w.failed(err)
	}
	return w.file.Commit()
}

// memberHash computes the digests of a member while it is written.
type memberHash struct {
	chunk, size int64
	current     hash.Hash
	inChunk     int64
	chunks      []string
}

func newMemberHash(chunk int64) *memberHash { return &memberHash{chunk: chunk, current: sha256.New()} }

func (h *memberHash) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if h.inChunk == h.chunk {
			h.chunks = append(h.chunks, hex.EncodeToString(h.current.Sum(nil)))
			h.current.Reset()
			h.inChunk = 0
		}
		n := min(int64(len(rest)), h.chunk-h.inChunk)
		h.current.Write(rest[:n])
		h.inChunk += n
		h.size += n
		rest = rest[n:]
	}
	return len(p), nil
}

func (h *memberHash) member(name string) Member {
	last := hex.EncodeToString(h.current.Sum(nil))
	if h.size <= h.chunk {
		return Member{Name: name, Size: h.size, SHA256: last}
	}
	chunks := append(h.chunks, last)
	return Member{Name: name, Size: h.size, SHA256: treeDigest(chunks), Chunks: chunks}
}

// treeDigest is the digest of chunk digests, which are valid hex.
func treeDigest(chunks []string) string {
	h := sha256.New()
	for _, c := range chunks {
		raw, err := hex.DecodeString(c)
		if err != nil {
			panic("BUG: chunk digest is not hex")
		}
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil))
}
