//go:build mutation

package mutation

import (
	"os"
	"path/filepath"
	"testing"
)

// Each mutation of scripts finds what it replaces.
func TestEditsApply(t *testing.T) {
	t.Parallel()
	for name, list := range edits {
		for _, e := range list {
			text, err := os.ReadFile(filepath.Join("..", "..", "redisstore", "scripts", e.file+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			if edited(name, e.file, string(text)) == string(text) {
				t.Errorf("%s changes nothing in %s.lua", name, e.file)
			}
		}
	}
}

// What is not done by replacing scripts is done in Go.
func TestEveryNameDoesSomething(t *testing.T) {
	t.Parallel()
	inGo := map[Name]bool{ClientClock: true, EarlyAck: true}
	for _, n := range All {
		if inGo[n] == (len(edits[n]) > 0) {
			t.Errorf("%s has %d edits", n, len(edits[n]))
		}
	}
}
