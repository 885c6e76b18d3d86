//go:build unix

package ownredis

import "syscall"

// ownGroup keeps the terminal's signals from a process that is started.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
