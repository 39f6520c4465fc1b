//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package weights

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) (*Mapping, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &Mapping{Data: data, unmap: unix.Munmap}, nil
}
