package lockfile_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/weirworks/weir/internal/lockfile"
)

func TestTake(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockfile.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockfile.Take(path); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("a second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lockfile.Take(path)
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	_ = again.Close()
	if _, err := lockfile.Take(filepath.Join(path, "no", "such")); err == nil || errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("where no file can be: %v", err)
	}
}
