package artifact

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"weft/frontend/weights"
	"weft/ir/diag"
)

// Weights has the states whose values the artifact holds or makes: embedded and random ones,
// in the order of the manifest. Reading verifies the chunks that are read.
func (a *Artifact) Weights() (weights.Source, error) {
	var entries []weights.Entry
	for i := range a.Manifest.State {
		e, ok, err := a.own(&a.Manifest.State[i])
		if err != nil {
			return nil, err
		}
		if ok {
			entries = append(entries, e)
		}
	}
	return weights.NewSource(a.markTies(entries))
}

// markTies marks states that are the same bytes of the file.
func (a *Artifact) markTies(entries []weights.Entry) []weights.Entry {
	place := map[string]Embedded{}
	for _, s := range a.Manifest.State {
		if s.From.Embedded != nil {
			place[s.Name] = *s.From.Embedded
		}
	}
	type key struct {
		at  Embedded
		typ string
	}
	first := map[key]string{}
	for i := range entries {
		at, ok := place[entries[i].Name]
		if !ok || at.Size == 0 {
			continue
		}
		k := key{at, entries[i].Type().String()}
		if name, seen := first[k]; seen {
			entries[i].SameAs = name
		} else {
			first[k] = entries[i].Name
		}
	}
	return entries
}

// own is the source entry of a state whose value needs nothing from outside.
func (a *Artifact) own(s *State) (weights.Entry, bool, error) {
	switch {
	case s.From.Embedded != nil:
		info, err := s.info()
		if err != nil {
			return weights.Entry{}, false, err
		}
		r := &verifiedReader{member: a.members[s.From.Embedded.Member], start: s.From.Embedded.Offset, size: s.From.Embedded.Size}
		return weights.Entry{Info: info, Open: func() (weights.Reader, error) { return r, nil }}, true, nil
	case s.From.Random != nil:
		info, err := s.info()
		if err != nil {
			return weights.Entry{}, false, err
		}
		keyed := info
		keyed.Name = s.From.Random.Name
		one, err := weights.Random(s.From.Random.Seed, []weights.Info{keyed})
		if err != nil {
			return weights.Entry{}, false, err
		}
		return weights.Entry{Info: info, Open: func() (weights.Reader, error) { return one.Open(keyed.Name) }}, true, nil
	}
	return weights.Entry{}, false, nil
}

// WeightsWith is Weights with values from given, which may be nil: given has the states that
// the artifact refers to, and its values replace embedded and random ones of the same name. A
// state that only given could have and does not, or has with another type, is an error; all
// of them are listed. Closing the result closes given; after an error given is still open.
func (a *Artifact) WeightsWith(given weights.Source) (weights.Source, error) {
	var entries []weights.Entry
	var faults diag.List
	var missing []string
	for i := range a.Manifest.State {
		s := &a.Manifest.State[i]
		if s.From.Prepared != nil {
			continue
		}
		info, err := s.info()
		if err != nil {
			return nil, err
		}
		name, digest := s.Name, ""
		if s.From.Reference != nil {
			name, digest = s.From.Reference.Name, s.From.Reference.SHA256
		}
		if given != nil {
			if _, ok := given.Info(name); ok {
				if err := weights.Expect(given, name, info.DType, info.Shape); err != nil {
					faults = append(faults, diag.All(err)...)
					continue
				}
				entries = append(entries, weights.Entry{Info: info, Open: openGiven(given, name, digest)})
				continue
			}
		}
		e, ok, err := a.own(s)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			missing = append(missing, name)
		default:
			entries = append(entries, e)
		}
	}
	if err := lacking(missing, given); err != nil {
		faults = append(faults, err)
	}
	if faults != nil {
		return nil, faults
	}
	var closers []io.Closer
	if given != nil {
		closers = append(closers, given)
	}
	return weights.NewSource(a.tiesWithin(entries, given), closers...)
}

// tiesWithin marks ties only where no value came from outside.
func (a *Artifact) tiesWithin(entries []weights.Entry, given weights.Source) []weights.Entry {
	if given != nil {
		return entries
	}
	return a.markTies(entries)
}

// openGiven opens a weight of the user's after comparing its digest, once, with the recorded one.
func openGiven(given weights.Source, name, digest string) func() (weights.Reader, error) {
	verify := sync.OnceValue(func() error {
		if digest == "" {
			return nil
		}
		got, err := given.Digest(name)
		if err == nil && got != digest {
			err = diag.Errorf(diag.ArtifactDigest, fmt.Sprintf("%.200q", name), "the weight that was given has not the contents that the artifact refers to").
				Suggest("give the checkpoint that the artifact was compiled with, or compile with --weights none to serve any")
		}
		return err
	})
	return func() (weights.Reader, error) {
		if err := verify(); err != nil {
			return nil, err
		}
		return given.Open(name)
	}
}

func lacking(missing []string, given weights.Source) *diag.Diagnostic {
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	shown := missing[:min(10, len(missing))]
	quoted := make([]string, len(shown))
	for i, n := range shown {
		quoted[i] = fmt.Sprintf("%.100q", n)
	}
	text := strings.Join(quoted, ", ")
	if n := len(missing) - len(shown); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if given == nil {
		return diag.Errorf(diag.ArtifactNoWeights, "", "the artifact does not hold the weights %s", text).
			Suggest("give them with --weights FILE, DIR or random:SEED")
	}
	return diag.Errorf(diag.WeightMissing, "", "the weights that were given lack %s", text)
}

// verifiedReader reads a tensor in a member, verifying the chunks that it touches.
type verifiedReader struct {
	member      *member
	start, size int64
}

func (r *verifiedReader) Size() int64 { return r.size }

func (r *verifiedReader) View(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > r.size || n > r.size-off {
		return nil, fmt.Errorf("%d bytes at %d of a weight of %d bytes", n, off, r.size)
	}
	if err := r.member.verify(r.start+off, n); err != nil {
		return nil, err
	}
	at := r.start + off
	return r.member.data[at : at+n : at+n], nil
}

func (r *verifiedReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > r.size {
		return 0, fmt.Errorf("read at %d of a weight of %d bytes", off, r.size)
	}
	n := min(int64(len(p)), r.size-off)
	view, err := r.View(off, n)
	if err != nil {
		return 0, err
	}
	copy(p, view)
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// Needs describes every state that has a value before the program runs, under the name by
// which WeightsWith looks for it: what weights.Random needs to make them all.
func (a *Artifact) Needs() ([]weights.Info, error) {
	var infos []weights.Info
	for i := range a.Manifest.State {
		s := &a.Manifest.State[i]
		if s.From.Prepared != nil {
			continue
		}
		info, err := s.info()
		if err != nil {
			return nil, err
		}
		if s.From.Reference != nil {
			info.Name = s.From.Reference.Name
		}
		infos = append(infos, info)
	}
	return infos, nil
}
