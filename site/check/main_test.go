package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	for _, c := range []struct{ link, wrong string }{
		{"two/", ""},
		{"two/index.html#here", ""},
		{"/two/#here", ""},
		{"#top", ""},
		{"two/picture.png", ""},
		{"https://example.com/nobody#knows", ""},
		{source + "README.md", ""},
		{"three/", "leads nowhere"},
		{"two/#there", "there is no heading #there"},
		{"#bottom", "there is no heading #bottom"},
		{"two/none.png", "leads nowhere"},
		{source + "docs/none.md", "no such file"},
	} {
		root := t.TempDir()
		for name, text := range map[string]string{
			"index.html":      `<h1 id="top">One</h1><a class="x" href="` + c.link + `">two</a>`,
			"two/index.html":  `<h2 id="here">Two</h2><img src="picture.png">`,
			"two/picture.png": "",
		} {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		links, err := check(root)
		if c.wrong == "" && (err != nil || links != 2) {
			t.Errorf("%s: %d links, %v", c.link, links, err)
		} else if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", c.link, err, c.wrong)
		}
	}
}
