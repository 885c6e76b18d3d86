package runner

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/weirworks/weir/internal/lockfile"
)

// dirPattern is what directories of pools are named by, and lockName the file in one that its pool has locked.
const dirPattern, lockName = "weir-handlers-*", "lock"

// ownDirectory makes the directory of a pool below temp, and removes those of pools whose process died.
func ownDirectory(temp string) (dir string, lock io.Closer, err error) {
	removeDead(temp)
	if dir, err = os.MkdirTemp(temp, dirPattern); err != nil {
		return "", nil, err
	}
	if err = os.Chmod(dir, 0o711); err == nil { //nolint:gosec // users of their own go to their directories in it
		lock, err = lockfile.Take(filepath.Join(dir, lockName))
	}
	if errors.Is(err, lockfile.ErrUnsupported) {
		lock, err = os.Create(filepath.Join(dir, lockName)) //nolint:gosec // a name of its own
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, lock, nil
}

// removeDead removes the directories that nobody has locked any more. Others than those of this user are left, as their
// names may lead anywhere, and young ones, as their pool may be about to lock them.
func removeDead(temp string) {
	found, _ := filepath.Glob(filepath.Join(temp, dirPattern)) // the pattern is a good one
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || !ours(info) || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := lockfile.Take(filepath.Join(dir, lockName))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir) // what cannot be removed now is tried again by the next pool
		_ = lock.Close()
	}
}
