package weights

import (
	"io"
)

// Merge joins sources; the order is theirs, one after the other. A name in two of them is an
// error. Closing it closes them, also when Merge fails.
func Merge(sources ...Source) (Source, error) {
	var entries []Entry
	closers := make([]io.Closer, len(sources))
	for i, s := range sources {
		closers[i] = s
		for _, name := range s.Names() {
			info, _ := s.Info(name)
			entries = append(entries, Entry{Info: info, Open: func() (Reader, error) { return s.Open(name) }})
		}
	}
	merged, err := NewSource(entries, closers...)
	if err != nil {
		closeAll(closers)
		return nil, err
	}
	return merged, nil
}

// Rename gives the weights of s other names: for each new name in order, the name in s. Closing
// it closes s.
func Rename(s Source, names, from []string) (Source, error) {
	entries := make([]Entry, len(names))
	renamed := map[string]string{}
	for i, name := range names {
		info, ok := s.Info(from[i])
		if !ok {
			return nil, Missing(s, from[i])
		}
		old := from[i]
		root := old
		if info.SameAs != "" {
			root = info.SameAs
		}
		info.Name, info.SameAs = name, renamed[root]
		if info.SameAs == "" {
			renamed[root] = name
		}
		entries[i] = Entry{Info: info, Open: func() (Reader, error) { return s.Open(old) }}
	}
	return NewSource(entries, s)
}
