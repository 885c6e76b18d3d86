//go:build unix

package component

import (
	"os/exec"
	"syscall"
)

// own gives a program a process group of its own, which is killed as a whole.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
