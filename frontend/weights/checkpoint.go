package weights

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weft/ir/diag"
)

const (
	safetensorsSuffix = ".safetensors"
	indexSuffix       = ".safetensors.index.json"
)

// OpenSource opens the weights at path: a .safetensors, .npz or .npy file, the index file of a
// sharded checkpoint, or a directory that holds one of these. A single .npy is named after the
// file.
func OpenSource(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	switch {
	case info.IsDir():
		return openDirectory(path)
	case strings.HasSuffix(path, indexSuffix):
		return openIndex(path)
	case strings.HasSuffix(path, safetensorsSuffix):
		return OpenSafetensors(path)
	}
	names, tensors, closer, err := ReadTensors(path, strings.TrimSuffix(filepath.Base(path), ".npy"))
	if err != nil {
		return nil, err
	}
	list := make([]Region, len(names))
	for i, n := range names {
		list[i] = Region{Name: n, DType: tensors[n].DType, Shape: tensors[n].Shape, Data: tensors[n].Data}
	}
	s, err := FromRegions(list, closer)
	if err != nil {
		closer.Close()
		return nil, inFile(err, path)
	}
	return s, nil
}

// OpenSafetensors opens one safetensors file; its weights are views of the mapping.
func OpenSafetensors(path string) (Source, error) {
	m, err := Map(path)
	if err != nil {
		return nil, err
	}
	st, err := ParseSafetensors(m.Data)
	if err != nil {
		m.Close()
		return nil, inFile(err, path)
	}
	entries := make([]Entry, len(st.Tensors))
	for i, t := range st.Tensors {
		entries[i] = Entry{Info: t.Info, Open: func() (Reader, error) { return bytesReader(t.Data), nil }}
	}
	s, err := NewSource(entries, m)
	if err != nil {
		m.Close()
		return nil, inFile(err, path)
	}
	return s, nil
}

// openDirectory opens the one index of a directory, or all its .safetensors files.
func openDirectory(dir string) (Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cannotRead(dir, err)
	}
	var indexes, files []string
	for _, e := range entries { // sorted by name
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, indexSuffix):
			indexes = append(indexes, filepath.Join(dir, name))
		case strings.HasSuffix(name, safetensorsSuffix):
			files = append(files, filepath.Join(dir, name))
		}
	}
	switch {
	case len(indexes) == 1:
		return openIndex(indexes[0])
	case len(indexes) > 1:
		return nil, diag.Errorf(diag.BadShards, "", "the directory has %d index files", len(indexes)).In(dir).Suggest("name one of them")
	case len(files) == 0:
		return nil, diag.Errorf(diag.BadShards, "", "the directory has no .safetensors file").In(dir)
	}
	sources, err := openAll(files)
	if err != nil {
		return nil, err
	}
	s, err := Merge(sources...)
	return s, inFile(err, dir)
}

func openAll(files []string) ([]Source, error) {
	var sources []Source
	for _, f := range files {
		s, err := OpenSafetensors(f)
		if err != nil {
			for _, s := range sources {
				s.Close()
			}
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// openIndex opens a sharded checkpoint: the index names the shard of every tensor.
func openIndex(path string) (Source, error) {
	m, err := Map(path)
	if err != nil {
		return nil, err
	}
	shardOf, err := parseIndex(m.Data)
	m.Close()
	if err != nil {
		return nil, inFile(err, path)
	}
	var shards, files []string
	for _, p := range shardOf {
		shards = append(shards, p.shard)
	}
	slices.Sort(shards)
	shards = slices.Compact(shards)
	number := map[string]int{}
	for i, s := range shards {
		number[s] = i
		files = append(files, filepath.Join(filepath.Dir(path), s))
	}
	sources, err := openAll(files)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	var closers []io.Closer
	for _, s := range sources {
		closers = append(closers, s)
	}
	for _, p := range shardOf {
		shard := sources[number[p.shard]]
		info, ok := shard.Info(p.name)
		if !ok {
			closeAll(closers)
			return nil, diag.Errorf(diag.BadShards, quote(p.name), "the index says that the tensor is in %s, which does not have it", quote(p.shard)).In(path)
		}
		entries = append(entries, Entry{Info: info, Open: func() (Reader, error) { return shard.Open(p.name) }})
	}
	s, err := NewSource(entries, closers...)
	if err != nil {
		closeAll(closers)
		return nil, inFile(err, path)
	}
	return s, nil
}

type placement struct{ name, shard string }

// parseIndex reads {"metadata": ..., "weight_map": {tensor: file}}, in the order of the names.
func parseIndex(data []byte) ([]placement, error) {
	if len(data) == 0 {
		return nil, diag.Errorf(diag.FileTruncated, "", "the index is empty")
	}
	if len(data) > maxHeader {
		return nil, diag.Errorf(diag.FileTooLarge, "", "an index of %d bytes", len(data))
	}
	var index struct {
		WeightMap json.RawMessage `json:"weight_map"`
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, diag.Errorf(diag.BadShards, "", "the index is not valid JSON: %v", err)
	}
	h := headerParser{dec: json.NewDecoder(bytes.NewReader(index.WeightMap)), code: diag.BadShards}
	var list []placement
	err := h.object("weight_map", func(name string) error {
		shard, err := h.text(quote(name))
		if err != nil {
			return err
		}
		if shard != filepath.Base(shard) || strings.ContainsAny(shard, `/\`) || !strings.HasSuffix(shard, safetensorsSuffix) {
			return diag.Errorf(diag.BadShards, quote(name), "%s is not the name of a .safetensors file beside the index", quote(shard))
		}
		list = append(list, placement{name, shard})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b placement) int { return strings.Compare(a.name, b.name) })
	return list, nil
}
