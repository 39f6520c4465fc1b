//go:build unix

package main

import "golang.org/x/sys/unix"

func isatty(fd uintptr) bool {
	_, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
	return err == nil
}
