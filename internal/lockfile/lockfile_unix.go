//go:build unix && !aix && !solaris

package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// Take locks a file, which it creates if it is missing.
func Take(path string) (*Lock, error) {
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
	return &Lock{f}, nil
}

// Close ends the lock. Closing the file would not be enough: a process that is just being started has its descriptor for a moment.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
