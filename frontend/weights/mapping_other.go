//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package weights

import (
	"io"
	"os"
)

// mapFile reads the file: systems without mmap hold it in memory.
func mapFile(f *os.File, size int) (*Mapping, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, err
	}
	return &Mapping{Data: data}, nil
}
