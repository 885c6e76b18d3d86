package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
)

// pageCommand is a command in a text of the page: its words, and its flags.
var pageCommand = regexp.MustCompile(`\bweir((?: (?:[a-z][a-z_-]*|--[a-z-]+(?:[ =][a-z]+)?|-[a-z]))+)`)

// TestPageCommands: each command that a text of the page names is there, with its flags, and so is each example.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir(filepath.Join("..", "..", "web", "ui", "src"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range pageCommand.FindAllStringSubmatch(string(text), -1) {
			found++
			checkPageCommand(t, file, strings.Fields(m[1]))
		}
		for _, example := range regexp.MustCompile(`\bexamples/[\w./-]+\w`).FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join("..", "..", example)); err != nil {
				t.Errorf("%s names an example that is not there: %v", file, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("%d commands found in the page: are its texts elsewhere?", found)
	}
}

func checkPageCommand(t *testing.T, file string, words []string) {
	t.Helper()
	line := "weir " + strings.Join(words, " ")
	c := newRoot(&term.Wish{})
	for len(words) > 0 && c.HasSubCommands() && !strings.HasPrefix(words[0], "-") {
		var next *cobra.Command
		for _, sub := range c.Commands() {
			if sub.Name() == words[0] || sub.HasAlias(words[0]) {
				next = sub
			}
		}
		if next == nil {
			t.Errorf("%s: %s: %s has no command %q", file, line, c.CommandPath(), words[0])
			return
		}
		c, words = next, words[1:]
	}
	if !c.Runnable() {
		t.Errorf("%s: %s: which of its commands?", file, line)
	}
	for _, word := range words {
		if name, ok := strings.CutPrefix(word, "--"); ok && c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil {
			t.Errorf("%s: %s: %s has no flag --%s", file, line, c.CommandPath(), name)
		}
	}
}
