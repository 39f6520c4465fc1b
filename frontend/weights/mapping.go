package weights

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"weft/ir/diag"
)

// Mapping is a file mapped read-only into memory. Data and every view of it must not be used
// after Close. Writing to Data faults.
type Mapping struct {
	Data  []byte
	unmap func([]byte) error
	once  sync.Once
	err   error
}

// Map maps a regular file. An empty file gives empty Data. The file must not be truncated
// while it is mapped: as with every mapping, reading the lost part then faults.
func Map(path string) (*Mapping, error) {
	// Opening a pipe would wait for its writer, so what the path names is looked at before.
	info, err := os.Stat(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	if err := mustBeRegular(info, path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, cannotRead(path, err)
	}
	if err := mustBeRegular(info, path); err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return &Mapping{}, nil
	}
	if int64(int(info.Size())) != info.Size() {
		return nil, diag.Errorf(diag.FileTooLarge, "", "%d bytes do not fit the address space", info.Size()).In(path)
	}
	m, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, cannotRead(path, err)
	}
	return m, nil
}

// Close unmaps the file. Further calls do nothing.
func (m *Mapping) Close() error {
	m.once.Do(func() {
		if m.unmap != nil {
			m.err = m.unmap(m.Data)
		}
		m.Data = nil
	})
	return m.err
}

func mustBeRegular(info fs.FileInfo, path string) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return diag.Errorf("W0003", "", "is %s, not a regular file", kindOfFile(info.Mode())).In(path)
}

func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// cannotRead makes the diagnostic for an error of the operating system.
func cannotRead(path string, err error) error {
	return diag.Errorf("W0003", "", "cannot be read: %v", plainCause(err)).In(path).Because(err).Suggest("check the path and its permissions")
}

func cannotWrite(path string, err error) error {
	return diag.Errorf("W0004", "", "cannot be written: %v", plainCause(err)).In(path).Because(err).Suggest("check the path and its permissions")
}

// plainCause drops operation and path, which the diagnostic already names.
func plainCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}
