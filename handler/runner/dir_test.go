package runner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// What a pool leaves whose process is killed goes when the next one starts, and nothing else does.
func TestOwnDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no locks here that end with a process, so nothing is removed")
	}
	temp := t.TempDir()
	make1 := func() (string, io.Closer) {
		dir, lock, err := ownDirectory(temp)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "process"), 0o700); err != nil {
			t.Fatal(err)
		}
		return dir, lock
	}
	age := func(path string) {
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	dead, deadLock := make1()
	alive, aliveLock := make1()
	young, youngLock := make1()
	defer aliveLock.Close()
	other := filepath.Join(temp, "others")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(temp, "weir-handlers-link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	_, _ = deadLock.Close(), youngLock.Close() // as the end of a process does
	age(dead)
	age(alive)
	age(other)
	// A process that another test is starting has the locks, too, until it is another program.
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, last := make1()
		defer last.Close()
		if _, err := os.Lstat(dead); err != nil || time.Now().After(until) {
			break
		}
	}
	for _, path := range []string{alive, young, other, link} {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s is gone: %v", path, err)
		}
	}
	if _, err := os.Lstat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a dead process left is there: %v", err)
	}
}
