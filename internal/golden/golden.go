// Package golden compares what tests got with files. With the flag -update the files are
// written anew instead.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the files in testdata anew")

// Check fails the test unless the file at path, below the test's folder, holds got.
func Check[T string | []byte](t *testing.T, path string, got T) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", path, got, want)
	}
}

// Updating says whether the flag -update is given: for tests that compare by rules of
// their own.
func Updating() bool { return *update }
