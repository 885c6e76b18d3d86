//go:build !linux

package redistest

import "syscall"

// dieWithParent has no equivalent outside Linux: a crashed test binary may
// leave its servers running.
func dieWithParent() *syscall.SysProcAttr { return nil }
