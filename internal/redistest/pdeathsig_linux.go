package redistest

import "syscall"

// dieWithParent makes the kernel kill the child when the thread that started
// it ends, so that a crashed or timed-out test binary leaves no server behind.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
