package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goFence = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// All Go in these documents is from programs that are compiled and tested.
func TestSnippets(t *testing.T) {
	files, err := filepath.Glob("../examples/orders/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for name, least := range map[string]int{"tutorial.md": 13, "testing.md": 2} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := goFence.FindAllSubmatch(text, -1)
		if len(found) < least {
			t.Errorf("%s has %d pieces of Go, want %d", name, len(found), least)
		}
		for _, m := range found {
			if !strings.Contains(all.String(), string(m[1])) {
				t.Errorf("%s: this is in no file of examples/orders:\n%s", name, m[1])
			}
		}
	}
}
