package docs_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noLink  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Each link from one document to a file, and to a heading in one, leads somewhere.
func TestLinks(t *testing.T) {
	links := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipped(name, entry)
		case !strings.HasSuffix(name, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			links++
			target := path
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(u.Path))
			}
			if problem := leadsTo(target, u.Fragment); problem != "" {
				t.Errorf("%s: link to %s: %s", name, m[1], problem)
			}
		}
		return nil
	})
	if err != nil || links < 100 {
		t.Fatalf("looked at %d links: %v", links, err)
	}
}

// leadsTo says what is wrong about a link to a place in a file, or nothing.
func leadsTo(target, fragment string) string {
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return "there is no such file"
	case fragment == "":
		return ""
	case info.IsDir():
		return "a folder has no headings"
	}
	text, err := os.ReadFile(target)
	if err != nil {
		return err.Error()
	}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		name := strings.ReplaceAll(noLink.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		if name == fragment {
			return ""
		}
	}
	return "there is no such heading"
}
