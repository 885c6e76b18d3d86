package graphfile_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/internal/golden"
)

// TestWrong: whoever writes a wrong graph of components is told all that is wrong with it at
// once, a line for each problem with its place in the file, its path and what to do.
func TestWrong(t *testing.T) {
	t.Parallel()
	var known []any
	for _, w := range component.All(component.Policy{}) {
		known = append(known, w)
	}
	line := regexp.MustCompile(`^\w+\.yaml:\d+:\d+: (\S.*: .*|duplicate key .*|a second document.*)$`)
	for name, problems := range map[string]int{
		"mismatch":   3, // types of messages
		"ports":      5, // unknown ports
		"cycle":      2,
		"unfed":      4, // ports that must be fed
		"names":      2, // a node twice
		"numbered":   1, // a name that instances have
		"exports":    2, // an output twice
		"limit":      3, // of zero
		"params":     4, // of the graph
		"args":       11,
		"all":        23, // of each kind, at once
		"components": 4,  // that are missing
		"roots":      1,  // two graphs in a file
		"graphs":     1,  // of one name
		"retain":     10,
		"empty":      5, // keys
		"priority":   6,
		"tab":        1, // in place of blanks
		"list":       1, // in place of nodes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "wrong", name+".yaml")
			f, err := graphfile.ParseDraft(name+".yaml", read(t, path))
			if f != nil {
				_, err = f.Build(known, nil)
			}
			if err == nil {
				t.Fatal("nothing is wrong with it")
			}
			golden.Check(t, path+".golden", err.Error()+"\n")
			got := strings.Split(err.Error(), "\n")
			if len(got) != problems {
				t.Errorf("%d problems, want %d:\n%v", len(got), problems, err)
			}
			for _, one := range got {
				if !line.MatchString(one) {
					t.Errorf("no place, path and fix: %s", one)
				}
			}
		})
	}
}
