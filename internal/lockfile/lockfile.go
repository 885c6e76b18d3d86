// Package lockfile lets one process at a time have a file, for as long as it lives.
package lockfile

import (
	"errors"
	"os"
)

var (
	// ErrHeld is returned by Take if another process, or this one, has the lock.
	ErrHeld = errors.New("another process has its lock")
	// ErrUnsupported is returned by Take on systems whose files have no locks that end with a process.
	ErrUnsupported = errors.New("this system has no locks of files that end with their process")
)

// Lock is a file that is locked, until it is closed or the process ends.
type Lock struct{ file *os.File }
