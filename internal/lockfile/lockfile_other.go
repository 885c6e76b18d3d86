//go:build !unix || aix || solaris

package lockfile

// Take says that there are no locks here.
func Take(string) (*Lock, error) { return nil, ErrUnsupported }

// Close ends the lock.
func (l *Lock) Close() error { return nil }
