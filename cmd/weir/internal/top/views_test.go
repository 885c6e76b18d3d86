package top_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// TestViewActs: what is done to queues, triggers and listed jobs is asked first, and the screen says what came of it.
func TestViewActs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		keys  []string
		acts  []string
		shows string
	}{
		{"pause", []string{"3", "p", "y"}, []string{"pause default"}, "queue default is paused"},
		{"pause not", []string{"3", "p", "n"}, nil, "queue default is as before"},
		{"resume", []string{"3", "end", "up", "p", "y"}, []string{"resume mail"}, "queue mail goes on"},
		{"pause by command", []string{":pau", "tab", "def", "tab", "enter", "y"}, []string{"pause default"}, "queue default is paused"},
		{"pause unknown", []string{":pause defaultt", "enter"}, nil, `no queue "defaultt" is known: did you mean "default"?`},
		{"limit", []string{"3", "=", "backspace", "backspace", "7", "enter", "y"}, []string{"limit default 7"}, "runs at most 7 jobs at once"},
		{"limit none", []string{"3", "=", "ctrl+u", "none", "enter", "y"}, []string{"limit default 0"}, "queue default has no limit"},
		{"limit wrong", []string{"3", "=", "x", "enter"}, nil, "a limit is a number from 1 to 1,000,000, or none"},
		{"limit by command", []string{":limit slow 3", "enter", "y"}, []string{"limit slow 3"}, "queue slow runs at most 3 jobs at once"},
		{"fire", []string{"5", "end", "F", "y"}, []string{"fire 1 by tester"}, "trigger nightly fires"},
		{"fire not", []string{"5", "F", "enter"}, nil, "trigger github is as before"},
		{"pause a trigger", []string{"5", "end", "p", "y"}, []string{"pause 1 by tester"}, "trigger nightly pauses"},
		{"resume a trigger", []string{"5", "p", "y"}, []string{"resume 2 by tester"}, "trigger github goes on"},
		{"fire by command", []string{"5", ":fire nightly", "enter", "y"}, []string{"fire 1 by tester"}, "trigger nightly fires"},
		{"tree of a trigger", []string{"5", "end", "enter"}, nil, "album, 14 jobs"},
		{"job of a run", []string{"4", "down", "enter"}, nil, "▌● │ └─ save"},
		{"copy a queue", []string{"3", "y"}, nil, "copied default"},
		{"unknown command", []string{":queus", "enter"}, nil, `no command "queus": did you mean "queues"?`},
		{"unknown status", []string{":filter faild", "enter"}, nil, `no status faild: did you mean "failed"?`},
		{"unknown order", []string{":sort nwest", "enter"}, nil, `jobs are not sorted by nwest: did you mean "newest"?`},
		{"unknown order of queues", []string{"3", ":sort redy", "enter"}, nil, `queues are not sorted by redy: did you mean "ready"?`},
		{"open an alias", []string{":trees", "enter", ":open album-2026", "enter"}, nil, "album, 14 jobs"},
		{"open what is not there", []string{":open nobody", "enter"}, nil, "job not found: nobody"},
		{"retry by command", []string{"f", ":retry", "enter", "y"}, []string{"retry .3"}, "will run again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 120, 30)
			s.press(c.keys...)
			if !slices.Equal(s.store.acts, c.acts) {
				t.Errorf("done: %q, want %q", s.store.acts, c.acts)
			}
			s.shows(c.shows)
		})
	}
}

// TestQuitCommand: the ways out by command.
func TestQuitCommand(t *testing.T) {
	t.Parallel()
	for _, command := range []string{":q", ":quit", ":exit"} {
		s := newScreen(t, 80, 24)
		if s.press(command, "enter"); !s.quit {
			t.Errorf("%s does not quit", command)
		}
	}
}

// TestRefused: what a token does not permit is said in the words of the server.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 120, 30)
	s.store.refused = fmt.Errorf("%w: token viewer may read only; use one with the role operate", job.ErrForbidden)
	s.press("esc")
	for _, keys := range [][]string{{"3", "p", "y"}, {"5", "F", "y"}, {"1", "x", "y"}, {"space", "x", "y"}} {
		s.press("esc")
		s.press(keys...)
		s.shows("token viewer may read only; use one with the role operate")
	}
	if len(s.store.acts) > 0 {
		t.Errorf("done: %q", s.store.acts)
	}
}

// TestServerFilter: status, type, queue and order are left to the server, not looked for in what is loaded.
func TestServerFilter(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 120, 30, list)
	asked := func(want job.Filter) {
		t.Helper()
		if got := s.store.asked[len(s.store.asked)-1]; !slices.Equal(got.Status, want.Status) || got.Type != want.Type || got.Queue != want.Queue || got.All != want.All || got.Order != want.Order {
			t.Errorf("asked for %+v, want %+v\n%s", got, want, s.frame())
		}
	}
	s.press("F")
	asked(job.Filter{Status: []statemachine.Status{statemachine.Failed}})
	s.shows("1 job ", "✗ failed")
	s.press("o")
	asked(job.Filter{Status: []statemachine.Status{statemachine.Failed}, Order: job.Oldest})
	s.shows("oldest first")
	s.press(":filter running,suspended type=orders queue=default all", "enter")
	asked(job.Filter{Status: []statemachine.Status{statemachine.Running, statemachine.Suspended}, Type: "orders", Queue: "default", All: true, Order: job.Oldest})
	s.press(":sort status", "enter")
	s.press("esc")
	asked(job.Filter{Order: job.ByStatus})
	s.press("3", "enter")
	asked(job.Filter{Queue: "default", All: true, Order: job.ByStatus})
	s.shows("queue default")
}

// TestMouse: a click selects and opens rows, boxes, views and panes; the wheel scrolls what is below it.
func TestMouse(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 30, list)
	click := func(text string, more int) {
		t.Helper()
		for y, line := range strings.Split(s.frame(), "\n") {
			if at := strings.Index(line, text); at >= 0 {
				s.send(tea.MouseClickMsg{X: len([]rune(line[:at])) + more, Y: y, Button: tea.MouseLeft})
				return
			}
		}
		t.Errorf("%q is not on the screen:\n%s", text, s.frame())
	}
	click("nightly-report", 0)
	s.shows("▌✓ nightly-report")
	click("✗ album", 3)
	click("▌✗ album", 3)
	s.shows("album, 14 jobs")
	click("resize", 0)
	s.shows("▌✗ │ ├─ resize")
	click("ports", 1)
	s.shows("[ports]", "← in")
	click("3 queues", 2)
	s.shows("queues (3)", "▌default")
	click("mail", 0)
	s.shows("▌mail", "queue mail")
	click("2 graph", 2)
	s.shows("Resize")
	click("save", 0)
	s.shows("album/inner/save", "┏")
	s.press("1", "home")
	s.send(tea.MouseWheelMsg{X: 5, Y: 8, Button: tea.MouseWheelDown})
	s.shows("▌● │ └─ save")
	s.press("x")
	click("yes", 0)
	s.shows("terminate album/inner/save?")
	if len(s.store.acts) > 0 {
		t.Errorf("a click did %q", s.store.acts)
	}
}

// TestGraphKeys: arrows go from box to box, and Enter folds a subgraph.
func TestGraphKeys(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 200, 60)
	s.press("2", "left")
	s.shows("album/list")
	s.press("right")
	s.shows("album/inner")
	s.press(":tree", "enter", "home", "down", "2")
	s.shows("resize")
	s.press("enter")
	if strings.Contains(s.frame(), "Resize") {
		t.Errorf("the subgraph is not folded:\n%s", s.frame())
	}
	s.press("enter")
	s.shows("Resize")
}

// TestManyBoxes: a tree with very many jobs has its subgraphs folded, and one that is too big even then says so.
func TestManyBoxes(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 120, 40)
	s.store.jobs = bigTree(3000)
	s.press("2")
	s.wait(time.Second)
	s.shows("big, 3,000 jobs", "job1")
	flat := bigTree(1200)
	for _, i := range flat[1:] {
		i.Parent, i.Graph = album, false
	}
	s.store.jobs = flat
	s.wait(time.Second)
	s.shows("boxes are too many to draw")
}

// TestFullLog: the log fills the screen and follows, until it is scrolled.
func TestFullLog(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 12)
	s.press("f", "L")
	s.shows("following", "unexpected end of the file")
	s.press("up", "up", "up", "up")
	s.shows("11:58:30")
	s.press("G")
	s.shows("following")
	s.press("esc")
	s.shows("▌✗ │ ├─ resize")
}

// TestCopy: an ID goes into the clipboard of the terminal.
func TestCopy(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 24)
	_, cmd := s.model.Update(tea.KeyPressMsg{Code: 'y', Text: "y"})
	found := false
	var look func(msg tea.Msg)
	look = func(msg tea.Msg) {
		if all, ok := msg.(tea.BatchMsg); ok {
			for _, c := range all {
				look(c())
			}
			return
		}
		found = found || fmt.Sprint(msg) == string(album)
	}
	look(cmd())
	if !found {
		t.Errorf("the clipboard does not get %s (%s in an OSC 52)", album, base64.StdEncoding.EncodeToString([]byte(album)))
	}
}

// TestRatesNeedNoRows: totals and rates come from counters: they are there though no job is listed, and stay when the list is filtered.
func TestRatesNeedNoRows(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 160, 30, list, func(c *top.Config) { c.Source.(*fakeStore).list = nil })
	want := []string{"✗ 3 failed", "● 9 running", "○ 359 ready", "1,204 trees", "runs 179/s", "█"}
	s.shows(want...)
	s.press("F")
	s.shows(want...)
}
