package term_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// environment is what StyleOf looks at.
var environment = []string{"NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM", "LC_ALL", "LC_CTYPE", "LANG"}

func TestNoTerminal(t *testing.T) {
	for _, name := range environment {
		t.Setenv(name, "")
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{f, &bytes.Buffer{}, term.NewScreen(f, &term.Wish{})} {
		if term.IsTerminal(w) {
			t.Errorf("a %T passes for a terminal", w)
		}
		if s := term.StyleOf(w); s != (term.Style{}) {
			t.Errorf("a %T gets the style %+v", w, s)
		}
	}
}

// A wish goes before the environment.
func TestStyleOf(t *testing.T) {
	for _, c := range []struct {
		env  string
		wish term.Wish
		want term.Style
	}{
		{"CLICOLOR_FORCE=1", term.Wish{}, term.Style{Color: true}},
		{"CLICOLOR_FORCE=0", term.Wish{}, term.Style{}},
		{"CLICOLOR_FORCE=1 NO_COLOR=1", term.Wish{}, term.Style{}},
		{"CLICOLOR_FORCE=1 NO_COLOR=1", term.Wish{Color: term.ColorAlways}, term.Style{Color: true}},
		{"CLICOLOR_FORCE=1", term.Wish{Color: term.ColorNever}, term.Style{}},
		{"CLICOLOR_FORCE=1", term.Wish{Color: term.ColorAuto}, term.Style{Color: true}},
		{"COLUMNS=80", term.Wish{}, term.Style{Width: 80}},
		{"COLUMNS=0", term.Wish{}, term.Style{}},
		{"COLUMNS=wide", term.Wish{}, term.Style{}},
		{"TERM=dumb", term.Wish{}, term.Style{ASCII: true}},
		{"LANG=C", term.Wish{}, term.Style{ASCII: true}},
		{"LANG=de_DE.UTF-8 LC_ALL=POSIX", term.Wish{}, term.Style{ASCII: true}},
		{"LANG=de_DE.ISO-8859-15@euro", term.Wish{}, term.Style{ASCII: true}},
		{"LANG=C LC_CTYPE=C.utf8", term.Wish{}, term.Style{}},
		{"LANG=de_DE.UTF-8", term.Wish{ASCII: true}, term.Style{ASCII: true}},
		{"LANG=de_DE", term.Wish{ISO: true}, term.Style{ISO: true}},
	} {
		for _, name := range environment {
			t.Setenv(name, "")
		}
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			t.Setenv(name, value)
		}
		if got := term.StyleOf(term.NewScreen(io.Discard, &c.wish)); got != c.want {
			t.Errorf("%s, %+v: got %+v, want %+v", c.env, c.wish, got, c.want)
		}
	}
}

// What is written for people is ASCII where there is no Unicode, and stays a text of JSON.
func TestPlain(t *testing.T) {
	for _, name := range environment {
		t.Setenv(name, "")
	}
	var b bytes.Buffer
	wish := &term.Wish{Color: term.ColorAlways}
	screen := term.NewScreen(&b, wish)
	if w := term.Plain(screen); w != io.Writer(screen) {
		t.Error("with Unicode the writer is another one")
	}
	wish.ASCII = true
	w := term.Plain(screen)
	if s := term.StyleOf(w); !s.Color || !s.ASCII {
		t.Errorf("it has the style %+v", s)
	}
	if n, err := io.WriteString(w, "\x1b[2m└─ … é 🎉\x1b[m \xff"); n != 27 || err != nil {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
	if got, want := b.String(), "\x1b[2m`- ... \\u00e9 \\ud83c\\udf89\x1b[m \\xff"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The end of those who read is told from other failures.
func TestClosed(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	screen := term.NewScreen(w, &term.Wish{})
	if _, err := io.WriteString(screen, "x"); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	if _, err := io.WriteString(screen, "x"); !errors.Is(err, term.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := term.Style{Now: now}
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59*time.Second + 900*time.Millisecond: "59s", time.Minute: "1m", 47 * time.Hour: "47h", 49 * time.Hour: "2d",
	} {
		if got := s.Age(now.Add(-d)); got != want {
			t.Errorf("Age of %s: got %s, want %s", d, got, want)
		}
	}
	if got := s.Age(time.Time{}); got != "-" {
		t.Errorf("no time: got %s", got)
	}
	local := now.Add(-time.Minute).In(time.FixedZone("", 3600))
	if got := s.Ago(local); got != "1m ago" {
		t.Errorf("got %s", got)
	}
	s.ISO = true
	if got := s.Ago(local); got != "at 2026-11-21T11:59:00Z" {
		t.Errorf("got %s", got)
	}
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1ms", 90 * time.Second: "1m30s", 59*time.Second + 999*time.Millisecond: "59s", 26 * time.Hour: "1d2h", time.Hour: "1h0m",
	} {
		if got := term.Duration(d); got != want {
			t.Errorf("Duration(%s): got %s, want %s", d, got, want)
		}
	}
}

const anID = "019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11.12"

// Columns are cut at the width, the widest first, and IDs never.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"ID", "NAME", "WHY", "N"},
		{anID, "日本語" + strings.Repeat("長", 30), strings.Repeat("because ", 20), "1"},
		{"-", "e\u0301", "", "1,000"},
	}
	var all bytes.Buffer
	for _, style := range []term.Style{{}, {Width: 80}, {Width: 80, ASCII: true}, {Width: 80, Color: true}, {Width: 20}} {
		var b bytes.Buffer
		if err := term.Table(&b, rows, style); err != nil {
			t.Fatal(err)
		}
		all.WriteString(b.String() + "\n")
		if !strings.Contains(b.String(), anID) {
			t.Errorf("%+v: the ID is cut", style)
		}
		for line := range strings.Lines(b.String()) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); style.Width == 80 && n > 80 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	rows = [][]string{{"NAME", "TYPE", ""}, {"none", "x", ""}, {"some", "xy", strings.Repeat("says 日本語, ", 7)}, {"more", "", "short"}}
	if err := term.Table(&all, rows, term.Style{Width: 40}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "table.txt"), all.String())
}

func TestRecord(t *testing.T) {
	t.Parallel()
	rows := [][2]string{{"id", anID}, {"reason", strings.Repeat("it is so, ", 12) + strings.Repeat("x", 70)}, {"none", ""}}
	var all bytes.Buffer
	for _, style := range []term.Style{{}, {Width: 50}} {
		if err := term.Record(&all, rows, style); err != nil {
			t.Fatal(err)
		}
		all.WriteByte('\n')
	}
	golden.Check(t, filepath.Join("testdata", "record.txt"), all.String())
}

// crowd is a tree with many jobs alike.
func crowd() []*job.Info {
	created := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	tree := []*job.Info{{ID: "t", Type: "crowd", Graph: true, Status: statemachine.Running, Created: created, Ran: created.Add(50 * time.Minute)}}
	add := func(parent job.ID, name string, n int, status statemachine.Status) {
		for range n {
			id := job.ID("t." + string(rune('a'+len(tree)/26)) + string(rune('a'+len(tree)%26)))
			i := &job.Info{ID: id, Name: name, Parent: parent, Status: status, Created: created}
			if status == statemachine.Failed {
				i.Reason = "broken"
			}
			tree = append(tree, i)
		}
	}
	add("t", "done", 12, statemachine.Completed)
	add("t", "broken", 2, statemachine.Failed)
	add("t", "ready", 5, statemachine.Queued)
	add("t", "parent", 1, statemachine.Completed)
	parent := tree[len(tree)-1].ID
	add(parent, "done", 2, statemachine.Completed)
	add(parent, "at work", 1, statemachine.Running)
	add(tree[1].ID, "below done", 3, statemachine.Terminated)
	return tree
}

// What is folded is counted: what is shown and the counts are all of the tree.
func TestFold(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var all bytes.Buffer
	for _, o := range []term.TreeOptions{{}, {Same: 4, Times: true}, {Depth: 1}, {Same: 1, Depth: 2}} {
		var b bytes.Buffer
		if err := term.DrawTree(&b, crowd(), term.Style{Now: now}, o); err != nil {
			t.Fatal(err)
		}
		all.WriteString(b.String() + "\n")
	}
	golden.Check(t, filepath.Join("testdata", "fold.txt"), all.String())
}

// TestASCII: nothing that is drawn without Unicode has a character beyond ASCII.
func TestASCII(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tree := append(crowd(), album()...)
	tree[3].Name = "日本語"
	tree[4].Reason = "größer …"
	s := term.Style{ASCII: true, Color: true, Width: 60}
	err := errors.Join(term.DrawTree(&b, tree, s, term.TreeOptions{Same: 3, Times: true}), term.Table(&b, [][]string{{"→"}, {"…×✓"}}, s),
		term.Record(&b, [][2]string{{"é", "ü"}}, s), term.Bars(&b, []term.Bar{{"ß", 9}, {"t", 1}}, s))
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range statemachine.Statuses() {
		b.WriteString(s.Status(status))
	}
	if i := slices.IndexFunc([]rune(b.String()), func(r rune) bool { return r > unicode.MaxASCII }); i >= 0 {
		t.Errorf("%q is not ASCII", string([]rune(b.String())[max(0, i-20):]))
	}
}

// A tree that has settled says when it is removed, or why not.
func TestTreeRetention(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	i := &job.Info{ID: "a", Type: "map", Status: statemachine.Completed, Expires: now.Add(7 * 24 * time.Hour)}
	for _, c := range []struct {
		style  term.Style
		times  bool
		unread bool
		want   string
	}{
		{term.Style{Now: now}, true, false, "removed in 7d"},
		{term.Style{Now: now, ISO: true}, true, false, "removed at 2026-11-28T12:00:00Z"},
		{term.Style{Now: now}, true, true, "past its retention, kept until the messages of its Out ports are read"},
		{term.Style{Now: now}, false, false, ""},
		{term.Style{Now: now}, true, false, "removed in 7d0h, unless 3 in out stay unread"},
	} {
		i.Unread, i.Ports = c.unread, nil
		if strings.Contains(c.want, "unless") {
			i.Ports = []job.PortInfo{{Spec: port.Spec{Name: "out", Dir: port.Output}, Waiting: 3}}
		}
		var b bytes.Buffer
		if err := term.DrawTree(&b, []*job.Info{i}, c.style, term.TreeOptions{Times: c.times}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "removed"); !strings.Contains(b.String(), c.want) || c.want == "" && got {
			t.Errorf("tree %q, want %q in it", b.String(), c.want)
		}
	}
}
