package comm

import "syscall"

// dieWithParent has the kernel kill a process when its parent is gone.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
