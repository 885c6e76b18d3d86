package term_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

func in(name string, waiting, total int64) job.PortInfo {
	return job.PortInfo{Spec: port.Spec{Name: name, Dir: port.Input}, Waiting: waiting, Total: total}
}

func out(name string, total int64, wired bool) job.PortInfo {
	return job.PortInfo{Spec: port.Spec{Name: name, Dir: port.Output}, Total: total, Wired: wired}
}

// album is a tree with one job of each status.
func album() []*job.Info {
	tree := []*job.Info{
		{ID: "t", Type: "album", Graph: true, Status: statemachine.Failed, Reason: "job pages failed", Ports: []job.PortInfo{out("thumbs", 2, false)}},
		{ID: "t.1", Name: "list", Parent: "t", Status: statemachine.Completed, Steps: 1, Progress: &job.Progress{Done: 1, Total: 1}, Ports: []job.PortInfo{out("files", 1234567, true)}},
		{ID: "t.2", Name: "inner", Parent: "t", Graph: true, Status: statemachine.Failed, Reason: "a child failed"},
		{ID: "t.3", Name: "pages", Parent: "t.2", Status: statemachine.Failed, Steps: 1500, Reason: "bad \x1b[31mpage\nstack", Ports: []job.PortInfo{in("in", 12, 3400), in("width", 0, 0)}},
		{ID: "t.4", Name: "sleepy", Parent: "t.2", Status: statemachine.Suspended, Steps: 3, Progress: &job.Progress{Done: 3, Total: 5, Text: "pages"}},
	}
	for _, s := range []statemachine.Status{statemachine.Queued, statemachine.Scheduled, statemachine.Waiting, statemachine.Running, statemachine.Terminating, statemachine.Terminated} {
		tree = append(tree, &job.Info{ID: job.ID("t.x" + string(s)), Name: string(s), Parent: "t", Status: s})
	}
	return append(tree, &job.Info{ID: "other", Name: "other", Parent: "elsewhere", Status: statemachine.Completed})
}

func TestTree(t *testing.T) {
	t.Parallel()
	for name, style := range map[string]term.Style{
		"tree.txt": {}, "tree_color.txt": {Color: true}, "tree_ascii.txt": {ASCII: true}, "tree_narrow.txt": {Width: 60},
	} {
		var b bytes.Buffer
		if err := term.Tree(&b, album(), style); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name), b.String())
	}
	var b bytes.Buffer
	if err := term.Tree(&b, nil, term.Style{}); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("no jobs: got %q, %v", b.String(), err)
	}
}

func TestBars(t *testing.T) {
	t.Parallel()
	bars := []term.Bar{
		{"the", 123456},
		{"日本語", 61728},
		{"e\u0301", 30000},
		{"none", 0},
		{"one", 1},
		{strings.Repeat("long", 20), 99},
		{"tab\there", 7},
	}
	var b bytes.Buffer
	for _, style := range []term.Style{{}, {Width: 60}, {Width: 10}, {Width: 60, ASCII: true}} {
		if err := term.Bars(&b, bars, style); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	if err := term.Bars(&b, bars[3:4], term.Style{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "bars.txt"), b.String())
}

func TestMeter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, all int64
		want       string
	}{
		{0, 10, ""},
		{-1, 10, ""},
		{5, 0, ""},
		{1, 1 << 60, "▏"},
		{1, 32, "▎"},
		{1, 2, "████"},
		{9, 16, "████▌"},
		{10, 10, "████████"},
		{11, 10, "████████"},
	} {
		if got := term.Meter(c.value, c.all, 8); got != c.want {
			t.Errorf("Meter(%d, %d): got %q, want %q", c.value, c.all, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 123456: "123,456"} {
		if got := term.Number(n); got != want {
			t.Errorf("Number(%d): got %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 157_400_000: "157.4 MB", 1 << 62: "4.6 EB",
	} {
		if got := term.Bytes(n); got != want {
			t.Errorf("Bytes(%d): got %s, want %s", n, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"plain", "two\nlines", "\x1b[31mred", "\xff", "日本語", "\u2028\u202e", "\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := term.Clean(s)
		if strings.Contains(got, "\n") || strings.ContainsAny(got, "\x1b\r\u202e") || term.Clean(got) != got {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func TestASCIIOfSameWidth(t *testing.T) {
	t.Parallel()
	const text = "\x1b[1m▌✗\x1b[m │ ├─ résumé … 相册 →"
	got := term.ASCII(text)
	if want := "\x1b[1m>x\x1b[m | |- r?sum? ~ ???? >"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if ansi.StringWidth(got) != ansi.StringWidth(text) {
		t.Errorf("it takes %d columns instead of %d", ansi.StringWidth(got), ansi.StringWidth(text))
	}
}

// TestSymbols: each status has a symbol of one column, with a stand-in of its own in ASCII.
func TestSymbols(t *testing.T) {
	t.Parallel()
	for _, s := range statemachine.Statuses() {
		if symbol := term.Symbol(s); ansi.StringWidth(symbol) != 1 || term.ASCII(symbol) == "?" {
			t.Errorf("%s has the symbol %q, in ASCII %q", s, symbol, term.ASCII(symbol))
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add("日本語日本語", 5)
	f.Add("short", 5)
	f.Add("longer", 5)
	f.Add(strings.Repeat("e\u0301", 50)+strings.Repeat("日本", 50), 7)
	f.Fuzz(func(t *testing.T, s string, columns int) {
		columns = max(0, columns%100)
		for _, style := range []term.Style{{}, {ASCII: true}} {
			if got := style.Fit(term.Clean(s), columns); ansi.StringWidth(got) > columns {
				t.Errorf("%q in %d columns became %q", s, columns, got)
			}
		}
		lines := (term.Style{Width: columns}).Wrap(term.Clean(s), 0)
		if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(term.Clean(s), " ", ""); got != want {
			t.Errorf("%q in %d columns became %q", s, columns, lines)
		}
		for _, line := range lines {
			if columns > 1 && ansi.StringWidth(line) > columns {
				t.Errorf("%q in %d columns has the line %q", s, columns, line)
			}
		}
	})
}

func TestLive(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	live := term.NewLive(&b)
	live.Draw(term.Style{Width: 5}, "one", "two and more")
	live.Draw(term.Style{Width: 5}, "three")
	live.Clear()
	want := "\rone\x1b[K\ntwo a\x1b[K\n\x1b[J" + "\r\x1b[2Athree\x1b[K\n\x1b[J" + "\r\x1b[1A\x1b[J"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Lines for which a terminal is not high enough are left out.
func TestLiveHeight(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	live := term.NewLive(&b)
	live.Draw(term.Style{Height: 3}, "one", "two", "three", "four")
	if want := "\rone\x1b[K\n… 3 more lines\x1b[K\n\x1b[J"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// The environment says whether what is no terminal gets colours.
func TestForcedColor(t *testing.T) {
	for _, c := range []struct {
		force, forbid string
		want          bool
	}{{"", "", false}, {"1", "", true}, {"0", "", false}, {"1", "1", false}} {
		t.Setenv("CLICOLOR_FORCE", c.force)
		t.Setenv("NO_COLOR", c.forbid)
		if s := term.StyleOf(&bytes.Buffer{}); s.Color != c.want {
			t.Errorf("CLICOLOR_FORCE=%q NO_COLOR=%q: %+v", c.force, c.forbid, s)
		}
	}
}
