package top_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// TestActs: each key does what it says to the selected job, and the screen says so.
func TestActs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		keys  []string
		acts  []string
		shows string
	}{
		{"send to the only port", []string{"down", "down", "down", "s", `{"a": 1}`, "enter"}, []string{`write in [{"a": 1}] to .4`}, "sent to album/inner/save.in"},
		{"send to one of two", []string{"f", "s", "down", "enter", "5", "enter"}, []string{"write width [5] to .3"}, "sent to album/inner/resize.width"},
		{"send what is not valid JSON", []string{"down", "down", "down", "s", "hello", "enter"}, nil, "this is not valid JSON: invalid character"},
		{"send nothing", []string{"down", "down", "down", "s", "enter"}, nil, "type a message first"},
		{"correct and send", []string{"down", "down", "down", "s", `"héllo`, "enter", `"`, "enter"}, []string{`write in ["héllo"] to .4`}, "sent to"},
		{"leave it", []string{"down", "down", "down", "s", "1", "esc"}, nil, "nothing was sent"},
		{"send to a job without ports", []string{"end", "up", "s"}, nil, "album/report has no such port"},
		{"the same again", []string{"down", "down", "down", "s", "17", "enter", "s", "up", "enter"}, []string{"write in [17] to .4", "write in [17] to .4"}, "sent to"},
		{"retry", []string{"f", "r", "y"}, []string{"retry .3"}, "album/inner/resize will run again"},
		{"retry all of a graph", []string{"r", "y"}, []string{"retry .3"}, "1 job in album will run again"},
		{"retry what has not failed", []string{"down", "down", "down", "r", "y"}, nil, "not possible in the job's status: job 019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11.4 is"},
		{"run", []string{"down", "down", "down", "R", "y"}, []string{"run .4"}, "album/inner/save will run"},
		{"terminate", []string{"x", "y"}, []string{"terminate "}, "album will end"},
		{"terminate all", []string{"x", "r"}, []string{"terminate all of "}, "album and all below it will end"},
		{"terminate not", []string{"x", "n"}, nil, "album goes on as before"},
		{"terminate neither", []string{"x", "enter"}, nil, "album goes on as before"},
		{"retry not", []string{"f", "r", "n"}, nil, "album/inner/resize goes on as before"},
		{"run not", []string{"down", "R", "esc"}, nil, "goes on as before"},
		{"delete", []string{"d", "y"}, []string{"delete "}, "album is deleted"},
		{"copy", []string{"f", "y"}, nil, "copied 019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11.3"},
		{"terminate several", []string{"down", "down", "space", "space", "x", "y"}, []string{"terminate all of .3", "terminate all of .4"}, "2 jobs will end, with all below them"},
		{"retry several", []string{"a", "r", "y"}, []string{"retry .3"}, "1 job run again"},
		{"delete what has not ended", []string{"down", "space", "d"}, nil, "none of the 1 selected can be deleted: they are not terminated"},
		{"several not", []string{"down", "space", "x", "n"}, nil, "nothing was done"},
		{"act on a row of several", []string{"end", "x"}, nil, "this row stands for several jobs"},
		{"find nothing failed", []string{"esc", "end", "f", "esc"}, nil, "5 jobs"},
		{"help", []string{"?", "x"}, nil, "JOB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScreen(t, 100, 24)
			s.press(c.keys...)
			if !slices.Equal(s.store.acts, c.acts) {
				t.Errorf("done: %q, want %q", s.store.acts, c.acts)
			}
			s.shows(c.shows)
		})
	}
}

// TestRedisAway: the last picture stays, with a mark, actions say what is wrong, and all is
// well again when Redis is.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.store.err = errAway
	s.wait(5 * time.Second)
	golden.Check(t, filepath.Join("testdata", "stale.txt"), s.frame()+"\n")
	s.press("x", "y")
	s.shows("cannot reach Redis", "resize", "connection refused; check that it")
	s.store.err = nil
	s.wait(time.Second)
	s.shows("album, 14 jobs")
	s.store.jobs[3].Status = statemachine.Queued
	s.wait(time.Second)
	s.shows("✗ 2 ")

	never := newScreen(t, 80, 24, func(c *top.Config) { c.Source.(*fakeStore).err = errAway })
	never.wait(3 * time.Second)
	never.shows("no picture yet: cannot reach Redis")
	never.press("q")
	if !never.quit {
		t.Error("q does not quit while Redis is away")
	}
}

// TestOneRead: while a read is under way there is no other, the screen says when it is late,
// and keys work.
func TestOneRead(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.hold = true
	s.wait(2 * time.Second)
	if len(s.slow) != 1 {
		t.Fatalf("%d reads are under way, want 1", len(s.slow))
	}
	s.wait(3 * time.Second)
	s.press("down", "tab")
	s.shows("stale since 5s: no answer yet", "[ports]", "album/inner")
	if len(s.slow) != 1 {
		t.Errorf("%d reads are under way, want 1", len(s.slow))
	}
	s.hold = false
	s.do(s.slow[0])
	s.shows("album, 14 jobs")
}

// TestPause: a tree that takes long to read is read less often, and the screen says so. One
// slow read alone changes nothing.
func TestPause(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.store.took = func() { s.now = s.now.Add(2 * time.Second) }
	s.wait(time.Second)
	s.shows("album, 14 jobs")
	s.wait(time.Second)
	before := s.store.reads
	s.store.took = nil
	s.shows("read every 9s")
	s.wait(7 * time.Second)
	if s.store.reads != before {
		t.Errorf("%d reads while there should be a pause", s.store.reads-before)
	}
	s.wait(2 * time.Second)
	if s.store.reads == before {
		t.Error("no read after the pause")
	}
}

// TestDeleted: the view of a tree that somebody deletes goes back to the list.
func TestDeleted(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 24)
	s.store.jobs, s.store.list = s.store.list[1:2], s.store.list[1:]
	s.wait(time.Second)
	s.shows("is gone: somebody deleted it", "4 jobs", "orders")
}

// TestSelection: the selected job stays selected when others come and go, and is not folded
// away when it is completed; when it is gone the next one is selected.
func TestSelection(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.press("end", "up") // report
	s.shows("▌○ ├─ report")
	s.store.jobs = append(slices.Clone(s.store.jobs), &job.Info{ID: album.Nth(30), Name: "zusatz", Parent: album, Status: statemachine.Running, Created: noon})
	s.store.jobs[7].Status = statemachine.Completed
	s.wait(time.Second)
	s.shows("▌✓ ├─ report", "├─ zusatz")
	s.press("up")
	s.wait(time.Second)
	s.shows("8 finished")
	s.store.jobs = slices.DeleteFunc(s.store.jobs, func(i *job.Info) bool { return i.ID == album.Nth(6) })
	s.wait(time.Second)
	s.shows("▌● ├─ zusatz")
}

// TestPlaces: one goes into trees and out of them, down and up in them, and comes back to
// where one was.
func TestPlaces(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24, list)
	s.press("down")
	s.shows("▌● orders")
	s.press("right")
	s.shows("orders, 1 job")
	s.press("esc")
	s.shows("▌● orders", "5 jobs")
	s.press("up", "enter", "down", "down")
	s.shows("▌✗ │ ├─ resize")
	s.press("left")
	s.shows("▌✗ ├▾ inner")
	s.press("left")
	s.shows("▌✗ ├▸ inner")
	s.press("right", "right")
	s.shows("▌✗ │ ├─ resize")
	s.press("home", "left")
	s.shows("▌✗ ▸ album")
	s.press("f")
	s.shows("▌✗ │ ├─ resize")
	s.press("esc")
	s.shows("▌✗ album", "5 jobs")
	s.press("ctrl+c")
	if !s.quit {
		t.Error("Ctrl-C does not quit")
	}
}

// TestFind: only what matches is shown, below what it is below; Enter goes to it among all
// others, Esc shows all.
func TestFind(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.press("/RESIZ")
	s.shows("▌✗   └─ resize")
	if strings.Contains(s.frame(), "report") {
		t.Errorf("report is shown:\n%s", s.frame())
	}
	s.press("e", "enter")
	s.shows("only what has RESIZe")
	s.press("enter")
	s.shows("▌✗ │ ├─ resize", "report", "album, 14 jobs")
	s.press("/nothing")
	s.shows("nothing has nothing in it")
	s.press("backspace", "esc")
	s.shows("▌✗ │ ├─ resize", "report")
	s.send(tea.PasteMsg{Content: "ignored"})
	s.press("/")
	s.send(tea.PasteMsg{Content: "sus\npended"})
	s.press("home", "delete", "end", "ctrl+w", "ctrl+u")
	s.send(tea.PasteMsg{Content: "suspended"})
	s.shows("相册封面", "/suspended")
}

// TestMore: more trees are listed when the end of the list is reached.
func TestMore(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24, list, func(c *top.Config) {
		st := c.Source.(*fakeStore)
		st.list = nil
		for n := range 250 {
			st.list = append(st.list, &job.Info{ID: job.ID(fmt.Sprintf("%08d-0000-7000-8000-000000000000", n)), Type: fmt.Sprint("tree", n), Status: statemachine.Running, Created: noon})
		}
	})
	s.shows("the first 100 jobs")
	s.press("end")
	s.shows("the first 200 jobs", "▌● tree99")
	s.press("end", "end")
	s.shows("250 jobs", "▌● tree249")
}

// TestPeek: what waits in a port is shown, and read anew, until one goes on.
func TestPeek(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.press("down", "down", "down", "p")
	s.shows("[pee", "65 wait; the oldest 2", `· {"name":"d.png","size":[640,480]}`)
	s.press("esc")
	s.shows("[why]")
	s.press("p", "up")
	s.shows("[why]", "album/inner/resize")
}

// TestScroll: a pane that is too long is scrolled; the log from its end.
func TestScroll(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 16)
	s.store.state = map[string]json.RawMessage{}
	for n := range 20 {
		s.store.state[fmt.Sprintf("key%02d", n)] = json.RawMessage("1")
	}
	s.store.state["long"] = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	s.wait(time.Second)
	s.press("tab", "tab", "tab")
	s.shows("key00", "key04")
	s.press("J", "J")
	s.shows("key02", "key06")
	for range 50 {
		s.press("J")
	}
	s.shows(`long = "xxx`, "key16")
	s.press("K")
	s.shows("key15")
	s.press("tab")
	s.shows("unexpected end of the file")
	s.press("K", "K", "K", "K")
	s.shows("11:58:30")
	s.press("J", "J", "J", "J")
	s.shows("unexpected end of the file")
}

// TestUnreadable: what cannot be read of a job is said in its pane; the tree is as it was.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 80, 24)
	s.store.lost = errors.New("decoding the state: it is broken")
	s.wait(time.Second)
	s.press("tab", "tab", "tab")
	s.shows("decoding the state: it is broken", "album, 14 jobs", "resize")
	s.store.lost, s.store.state = nil, nil
	s.wait(time.Second)
	s.shows("no state")
}

// TestAnyPort: a job that takes messages on any port says how to send to one.
func TestAnyPort(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 160, 24)
	s.store.jobs[7].Ports = []job.PortInfo{{Spec: port.Spec{Name: port.Any, Dir: port.Input}}}
	s.wait(time.Second)
	s.press("end", "up", "s")
	s.shows("has no such port yet, but takes any: weir send album-2026/report PORT MESSAGE")
}

// TestNext: a job that waits for a time says when it runs.
func TestNext(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 100, 24)
	s.store.jobs[0].Reason, s.store.jobs[0].Status, s.store.jobs[0].Next = "", statemachine.Scheduled, s.now.Add(90*time.Minute)
	s.wait(time.Second)
	s.shows("next run in 1h")
}

// TestLocked: of a job that is locked it says that, and nothing that would be false, until it is unlocked.
func TestLocked(t *testing.T) {
	t.Parallel()
	s := newScreen(t, 160, 30)
	s.press("down", "down", "down")
	s.store.locks = map[job.ID]job.LockInfo{album + ".4": {By: "ann", Since: noon, Until: noon.Add(time.Hour)}}
	s.wait(time.Second)
	s.shows("is locked by ann")
	s.store.locks = nil
	s.wait(time.Second)
	if frame := s.frame(); strings.Contains(frame, "is locked") {
		t.Errorf("it is unlocked:\n%s", frame)
	}
}
