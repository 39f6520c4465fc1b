package weights

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// PendingFile is an output that appears whole or not at all: it is written under a temporary
// name, .NAME.tmp-RANDOM, in the folder of the final one, and renamed by Commit. The process
// holds a lock on it, so that the next write of the same output recognises and removes what a
// killed process left behind.
type PendingFile struct {
	*os.File
	temp, path string // temp is empty when path is a device or pipe, written directly
	done       bool
}

// CreateFile starts writing path. Finish with Commit or Abort; a deferred Abort after Commit
// does nothing.
func CreateFile(path string) (*PendingFile, error) {
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return nil, cannotWrite(path, errors.New("is a directory"))
		}
		if !info.Mode().IsRegular() {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return nil, cannotWrite(path, err)
			}
			return &PendingFile{File: f, path: path}, nil
		}
		if path, err = filepath.EvalSymlinks(path); err != nil { // replace the file, not the link
			return nil, cannotWrite(path, err)
		}
	}
	removeStale(path)
	for {
		f, err := createTemp(path)
		if err != nil {
			return nil, cannotWrite(path, err)
		}
		if ours, err := lockTemp(f); err != nil {
			f.Close()
			os.Remove(f.Name())
			return nil, cannotWrite(path, err)
		} else if !ours { // another process took it for stale before we had the lock
			f.Close()
			continue
		}
		return &PendingFile{File: f, temp: f.Name(), path: path}, nil
	}
}

func tempPrefix(path string) string { return "." + filepath.Base(path) + ".tmp-" }

func createTemp(path string) (*os.File, error) {
	var random [8]byte
	rand.Read(random[:]) // never fails
	name := filepath.Join(filepath.Dir(path), tempPrefix(path)+hex.EncodeToString(random[:]))
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

// removeStale removes temporary files for path whose process has ended. Errors do not matter:
// the write does not depend on it.
func removeStale(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		random, found := strings.CutPrefix(e.Name(), tempPrefix(path))
		if raw, err := hex.DecodeString(random); !found || err != nil || len(raw) != 8 || !e.Type().IsRegular() {
			continue
		}
		name := filepath.Join(filepath.Dir(path), e.Name())
		if f, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
			if tryLock(f) {
				os.Remove(name)
			}
			f.Close()
		}
	}
}

// Commit makes the file durable and gives it its final name. After an error nothing is left
// and the earlier contents of the final name stand.
func (p *PendingFile) Commit() error {
	if p.done {
		return cannotWrite(p.path, fs.ErrClosed)
	}
	if p.temp == "" {
		p.done = true
		if err := p.File.Close(); err != nil {
			return cannotWrite(p.path, err)
		}
		return nil
	}
	if err := p.File.Sync(); err != nil {
		p.Abort()
		return cannotWrite(p.path, err)
	}
	// Rename before close: closing gives up the lock, and an unlocked temporary name is stale.
	if err := os.Rename(p.temp, p.path); err != nil {
		p.Abort()
		return cannotWrite(p.path, err)
	}
	p.done = true
	if err := p.File.Close(); err != nil {
		return cannotWrite(p.path, err)
	}
	syncDir(filepath.Dir(p.path))
	return nil
}

// Abort removes the temporary file. After Commit or Abort it does nothing.
func (p *PendingFile) Abort() {
	if p.done {
		return
	}
	p.done = true
	if p.temp != "" {
		os.Remove(p.temp)
	}
	p.File.Close()
}

// syncDir makes a rename durable. Some file systems cannot sync a directory; the rename is
// then as durable as they make it.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// WriteFile writes path whole or not at all with what write produces.
func WriteFile(path string, write func(io.Writer) error) error {
	p, err := CreateFile(path)
	if err != nil {
		return err
	}
	defer p.Abort()
	if err := write(p); err != nil {
		return WriteError(path, err)
	}
	return p.Commit()
}

// Path is the final name of the file.
func (p *PendingFile) Path() string { return p.path }

// WriteError makes an error of writing the file path a diagnostic; errors that are not the
// file system's, such as of what was to be written, pass unchanged.
func WriteError(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return cannotWrite(path, err)
	}
	return err
}
