//go:build !unix

package ownredis

import "syscall"

// ownGroup keeps the terminal's signals from a process that is started, where that is known.
func ownGroup() *syscall.SysProcAttr { return nil }
