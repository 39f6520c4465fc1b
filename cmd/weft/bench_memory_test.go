//go:build linux

package main

import (
	"os"
	"syscall"
)

// peakMemory is the largest resident memory of a process that has ended, in bytes.
func peakMemory(p *os.ProcessState) int64 {
	if usage, ok := p.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
