package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/manpage"
	"github.com/weirworks/weir/internal/term"
)

// TestManual: each command has a page with all that its help says, and no page says anything
// of the machine or the time.
func TestManual(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := weir(t, "", "man", filepath.Join(dir, "man")); !strings.HasSuffix(got, "man\n") {
		t.Errorf("it says %q", got)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	date := regexp.MustCompile(`20\d\d-\d\d-\d\d|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* 20\d\d`)
	pages := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if !manpage.Shown(c) {
			return
		}
		pages++
		if c.Example == "" && !c.HasSubCommands() {
			t.Errorf("%s has no Example: an empty field of its cobra.Command", c.CommandPath())
		}
		for line := range strings.Lines(c.Long + "\n" + strings.ReplaceAll(c.UsageString(), c.Example, "")) {
			if term.Width(strings.TrimSuffix(line, "\n")) > 100 { // examples are to be copied
				t.Errorf("the help of %s has a line of more than 100 columns: %s", c.CommandPath(), line)
			}
		}
		raw, err := os.ReadFile(filepath.Join(dir, "man", manpage.Name(c)+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		page := string(raw)
		for _, bad := range []string{dir, home + "/", host, os.TempDir()} {
			if strings.Contains(page, bad) {
				t.Errorf("the page of %s has %q", c.CommandPath(), bad)
			}
		}
		if found := date.FindString(page); found != "" {
			t.Errorf("the page of %s has the date %s", c.CommandPath(), found)
		}
		text := strings.NewReplacer(`\-`, "-", `\e`, `\`, `\(aq`, "'", "\\`", "`", `\&`, "").Replace(page)
		for _, want := range append(strings.Split(c.Long, "\n"), c.Short) {
			if !strings.Contains(text, want) {
				t.Errorf("the page of %s lacks %q", c.CommandPath(), want)
			}
		}
		for _, example := range strings.Split(c.Example, "\n") {
			if !strings.Contains(text, strings.TrimSpace(example)) {
				t.Errorf("the page of %s lacks %q", c.CommandPath(), example)
			}
		}
	}
	visit(newRoot(&term.Wish{}))
	if pages < 30 {
		t.Errorf("%d commands have a page", pages)
	}
	page, err := os.ReadFile(filepath.Join(dir, "man", "weir.1"))
	for _, name := range []string{"WEIR_REDIS_URL", "WEIR_NAMESPACE", "WEIR_CONTEXT", "WEIR_CONFIG"} {
		if want := `\fB` + name + `\fR`; err != nil || !strings.Contains(string(page), want) {
			t.Errorf("weir.1 lacks %q: %v", want, err)
		}
	}
	for path, want := range map[string]string{"weir.1": ".SH ENVIRONMENT", "weir-state-get.1": `\fBweir\-state\fR(1), \fBweir\fR(1)`, "weir-tree.1": `\fB\-w\fR, \fB\-\-watch\fR`} {
		page, err := os.ReadFile(filepath.Join(dir, "man", path))
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%s lacks %q: %v", path, want, err)
		}
	}
}
