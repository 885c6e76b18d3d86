//go:build unix && !aix && !solaris

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Take locks a file, which it creates if it is missing. The lock ends when the file is closed, or with the process.
func Take(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the caller's own
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrHeld
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
