//go:build !linux

package comm

import "syscall"

// dieWithParent does nothing where the kernel has nothing for it.
func dieWithParent() *syscall.SysProcAttr { return nil }
