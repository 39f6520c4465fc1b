package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"weft/frontend/weights"
	"weft/ir/diag"
)

// Artifact is an open .weft file. Its slices are views of the mapped file: they must not be
// used after Close.
type Artifact struct {
	Manifest Manifest

	zip     *weights.Zip
	digest  string
	members map[string]*member
}

// member is a part of the file with the chunks that were verified.
type member struct {
	Member
	data     []byte
	chunk    int64
	verified []atomic.Bool
}

func newMember(p Member, data []byte, chunk int64) *member {
	return &member{Member: p, data: data, chunk: chunk, verified: make([]atomic.Bool, max(1, len(p.Chunks)))}
}

// Open maps an artifact, checks the container and verifies every member but weights, which are
// verified chunk by chunk when they are read.
func Open(path string) (*Artifact, error) {
	z, err := weights.OpenZip(path)
	if err != nil {
		return nil, notZip(err, path)
	}
	a, err := open(z)
	if err != nil {
		z.Close()
		return nil, inFile(err, path)
	}
	return a, nil
}

// Parse is Open for an artifact in memory.
func Parse(file []byte) (*Artifact, error) {
	z, err := weights.ParseZip(file)
	if err != nil {
		return nil, notZip(err, "")
	}
	return open(z)
}

// notZip gives errors of the archive the code of artifacts; those of the file system stay.
func notZip(err error, path string) error {
	d := diag.All(err)[0]
	if d.Code == "W0003" {
		return err
	}
	code := diag.ArtifactDamaged
	if strings.Contains(d.Message, "no zip archive") || strings.Contains(d.Message, "is empty") {
		code = diag.NotArtifact
	}
	return diag.Errorf(code, d.Place, "%s", d.Message).In(path).Because(err)
}

func inFile(err error, path string) error {
	for _, d := range diag.All(err) {
		d.In(path)
	}
	return err
}

// Close unmaps the file.
func (a *Artifact) Close() error { return a.zip.Close() }

// Digest identifies the artifact: the SHA-256 of the manifest, which has the digests of all
// the rest.
func (a *Artifact) Digest() string { return a.digest }

func open(z *weights.Zip) (*Artifact, error) {
	if !z.Has(manifestName) {
		return nil, diag.Errorf(diag.NotArtifact, "", "the archive has no %s", manifestName)
	}
	for _, m := range z.Members {
		align := int64(memberAlign)
		if strings.HasPrefix(m.Name, weightsFolder) {
			align = weightsAlign
		}
		if !m.Stored || m.Offset%align != 0 {
			return nil, diag.Errorf(diag.ArtifactDamaged, fmt.Sprintf("%.200q", m.Name), "the member is compressed or not aligned: the archive was packed again by another program")
		}
	}
	text, err := z.Bytes(manifestName)
	if err != nil {
		return nil, err
	}
	manifest, err := decodeManifest(text)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	a := &Artifact{Manifest: *manifest, zip: z, digest: hex.EncodeToString(sum[:]), members: map[string]*member{}}
	if len(manifest.Members)+1 != len(z.Members) {
		return nil, badManifest("members", "the manifest lists %d members, the archive has %d beside it", len(manifest.Members), len(z.Members)-1)
	}
	for _, p := range manifest.Members {
		data, err := z.Bytes(p.Name)
		if err != nil || int64(len(data)) != p.Size {
			return nil, badManifest(fmt.Sprintf("member %.100q", p.Name), "the archive has no such member of %d bytes", p.Size)
		}
		m := newMember(p, data, manifest.ChunkSize)
		a.members[p.Name] = m
		if !strings.HasPrefix(p.Name, weightsFolder) {
			if err := m.verify(0, p.Size); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range []string{programName, reportName} {
		if a.members[name] == nil {
			return nil, diag.Errorf(diag.ArtifactDamaged, name, "the artifact does not have this member")
		}
	}
	return a, nil
}

// verify compares the digests of the chunks that hold n bytes from off, once each.
func (m *member) verify(off, n int64) error {
	if n == 0 && m.Size > 0 {
		return nil
	}
	for i := off / m.chunk; i < int64(len(m.verified)) && (i*m.chunk < off+n || i == 0); i++ {
		if m.verified[i].Load() {
			continue
		}
		want := m.SHA256
		if len(m.Chunks) > 0 {
			want = m.Chunks[i]
		}
		sum := sha256.Sum256(m.data[i*m.chunk : min((i+1)*m.chunk, m.Size)])
		if hex.EncodeToString(sum[:]) != want {
			return diag.Errorf(diag.ArtifactDigest, fmt.Sprintf("%.200q", m.Name), "the contents at byte %d differ from the manifest's digest", i*m.chunk)
		}
		m.verified[i].Store(true)
	}
	return nil
}

// Verify verifies all of the artifact, weights too, on all cores.
func (a *Artifact) Verify() error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range a.Manifest.Members {
		m := a.members[p.Name]
		for i := range m.verified {
			group.Go(func() error { return m.verify(int64(i)*m.chunk, 1) })
		}
	}
	return group.Wait()
}

// Program is the text of the program.
func (a *Artifact) Program() []byte { return a.members[programName].data }

// Report is the compile's report, JSON.
func (a *Artifact) Report() []byte { return a.members[reportName].data }

// Plan is the launch plan, JSON, of an entry for a target; stage is empty where the entry has
// no pipeline stages.
func (a *Artifact) Plan(target, entry, stage string) ([]byte, error) {
	if m := a.members[planName(target, entry, stage)]; m != nil {
		return m.data, nil
	}
	var have []string
	for _, p := range a.Manifest.Members {
		if name, ok := strings.CutPrefix(p.Name, plansFolder); ok {
			have = append(have, strings.TrimSuffix(name, ".json"))
		}
	}
	return nil, noPart("plan", strings.TrimSuffix(planName(target, entry, stage)[len(plansFolder):], ".json"), have)
}

// Kernels is the PTX for a target.
func (a *Artifact) Kernels(target string) ([]byte, error) { return a.kernels(target, "ptx") }

// Cubin is the machine code for a target, where the artifact has it.
func (a *Artifact) Cubin(target string) ([]byte, error) { return a.kernels(target, "cubin") }

func (a *Artifact) kernels(target, suffix string) ([]byte, error) {
	if m := a.members[kernelsName(target, suffix)]; m != nil {
		return m.data, nil
	}
	var have []string
	for _, p := range a.Manifest.Members {
		if name, ok := strings.CutPrefix(p.Name, kernelsFolder); ok && strings.HasSuffix(name, "."+suffix) {
			have = append(have, strings.TrimSuffix(name, "."+suffix))
		}
	}
	return nil, noPart(suffix, target, have)
}

func noPart(what, name string, have []string) error {
	d := diag.Errorf(diag.ArtifactNoPart, "", "the artifact has no %s for %.200q", what, name)
	slices.Sort(have)
	if len(have) > 0 {
		return d.Suggest("it has: %s", strings.Join(have[:min(20, len(have))], ", "))
	}
	return d
}
