//go:build !unix || aix || solaris

package lockfile

import "os"

// Take says that there are no locks here.
func Take(string) (*os.File, error) { return nil, ErrUnsupported }
