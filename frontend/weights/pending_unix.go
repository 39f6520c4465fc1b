//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package weights

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockTemp locks a new temporary file for the life of the process and tells whether it still
// has its name. File systems without locks are fine: stale files then stay.
func lockTemp(f *os.File) (ours bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(f.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}

// locksFiles tells whether stale temporary files can be recognised.
const locksFiles = true

func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
