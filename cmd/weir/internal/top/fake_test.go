package top_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// noon is when the tests happen.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const album = job.ID("019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11")

// store is a source with jobs that do not move. It notes what is done to them.
type store struct {
	jobs  []*job.Info // the first is the root of a tree
	list  []*job.Info
	err   error // of everything
	state map[string]json.RawMessage
	lost  error  // of the state alone
	took  func() // called by each read of a tree
	reads int
	acts  []string
}

func (s *store) Newest(_ context.Context, n int) ([]*job.Info, error) {
	s.reads++
	return s.list[:min(n, len(s.list))], s.err
}

func (s *store) Find(_ context.Context, id job.ID) (top.Job, error) {
	if s.err != nil {
		return nil, s.err
	}
	for _, i := range slices.Concat(s.jobs, s.list) {
		if i.ID == id {
			return handle{s, i}, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", job.ErrNotFound, id)
}

type handle struct {
	s *store
	i *job.Info
}

func (h handle) Tree(context.Context) ([]*job.Info, error) {
	h.s.reads++
	if h.s.took != nil {
		h.s.took()
	}
	if h.i.ID.Tree() == h.s.jobs[0].ID {
		return h.s.jobs, h.s.err
	}
	return []*job.Info{h.i}, h.s.err
}

func (h handle) Aliases(context.Context) ([]string, error) {
	if h.i.ID == album {
		return []string{"album-2026"}, h.s.err
	}
	return nil, h.s.err
}

func (h handle) State(context.Context, ...string) (map[string]json.RawMessage, error) {
	return h.s.state, errors.Join(h.s.err, h.s.lost)
}

func (h handle) Runs(context.Context, int) ([]job.RunEntry, error) {
	read := job.Movement{Dir: port.Input, Port: "in", N: 1, Data: []json.RawMessage{json.RawMessage(`"b.png"`)}}
	return []job.RunEntry{
		{At: noon.Add(-90 * time.Second), Job: h.i.ID, Read: []job.Movement{read}, Write: []job.Movement{{Dir: port.Output, Port: "thumb", N: 1}}},
		{At: noon.Add(-20 * time.Second), Job: h.i.ID, Read: []job.Movement{read}, Error: "decoding b.png: unexpected end of the file\nstack"},
	}, h.s.err
}

func (h handle) Logs(context.Context, int) ([]job.LogEntry, error) {
	return []job.LogEntry{{At: noon.Add(-time.Minute), Job: h.i.ID, Entry: json.RawMessage(`"a note of the worker, which is long enough to need a second line"`)}}, h.s.err
}

func (h handle) Messages(context.Context, port.Dir, string, int) ([]job.Message, error) {
	return []job.Message{{Data: json.RawMessage(`"c.png"`)}, {Data: json.RawMessage(`{"name":"d.png","size":[640,480]}`)}}, h.s.err
}

func (h handle) act(what string) error {
	h.s.acts = append(h.s.acts, what+" "+string(h.i.ID[len(album):]))
	return h.s.err
}

func (h handle) Write(_ context.Context, in string, messages ...any) error {
	return h.act(fmt.Sprintf("write %s %s to", in, messages))
}

func (h handle) Run(context.Context) error { return h.act("run") }

func (h handle) Retry(context.Context, ...job.RetryOption) error {
	if h.i.Status != statemachine.Failed {
		return fmt.Errorf("%w: job %s is %s", job.ErrStatus, h.i.ID, h.i.Status)
	}
	return h.act("retry")
}
func (h handle) Terminate(context.Context) error    { return h.act("terminate") }
func (h handle) TerminateAll(context.Context) error { return h.act("terminate all of") }

func in(name string, waits, total int64, limit int) job.PortInfo {
	return job.PortInfo{Spec: port.Spec{Name: name, Dir: port.Input, Limit: limit}, Waiting: waits, Total: total, Sources: 1, Fed: true}
}

func out(name string, total int64, to ...job.PortRef) job.PortInfo {
	p := job.PortInfo{Spec: port.Spec{Name: name, Dir: port.Output}, Total: total, Wired: len(to) > 0}
	for _, end := range to {
		p.Edges = append(p.Edges, []job.PortRef{end})
	}
	return p
}

func to(n int, dir port.Dir, name string) job.PortRef {
	return job.PortRef{Job: album.Nth(n), Dir: dir, Port: name}
}

// newStore returns a store with the tree of an album and some more trees.
func newStore() *store {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	width := job.PortInfo{Spec: port.Spec{Name: "width", Dir: port.Input, Default: json.RawMessage("640")}, Closed: true}
	jobs := []*job.Info{
		{
			ID: album, Type: "album", Graph: true, Status: statemachine.Failed, Reason: "job inner/resize failed", Created: ago(2 * time.Minute),
			Ports: []job.PortInfo{out("files", 12, to(1, port.Input, "dirs")), out("thumbs", 7)},
		},
		{ID: album.Nth(1), Name: "list", Type: "ListDir", Parent: album, Status: statemachine.Completed, Steps: 1, Created: ago(2 * time.Minute), Ports: []job.PortInfo{in("dirs", 0, 12, 0), out("files", 1234567, to(2, port.Input, "in"))}},
		{ID: album.Nth(2), Name: "inner", Type: "scale", Parent: album, Graph: true, Status: statemachine.Failed, Reason: "job resize failed", Created: ago(2 * time.Minute), Ports: []job.PortInfo{out("in", 1234567, to(3, port.Input, "in"))}},
		{
			ID: album.Nth(3), Name: "resize", Type: "Resize", Parent: album.Nth(2), Status: statemachine.Failed, Steps: 1500, Tries: 3, Created: ago(2 * time.Minute), Ran: ago(20 * time.Second),
			Reason: "decoding b.png: unexpected \x1b[31mend of the file\nstack", Ports: []job.PortInfo{in("in", 92, 3400, 100), width, out("thumb", 3308, to(4, port.Input, "in"), to(0, port.Output, "thumbs"))},
		},
		{ID: album.Nth(4), Name: "save", Type: "Save", Parent: album.Nth(2), Status: statemachine.Running, Steps: 3300, Created: ago(2 * time.Minute), Ran: ago(3 * time.Second), Ports: []job.PortInfo{in("in", 65, 3308, 100)}},
		{ID: album.Nth(5), Name: "相册封面生成器与归档", Type: "Cover", Parent: album, Status: statemachine.Suspended, Created: ago(time.Minute), Ports: []job.PortInfo{in("picture", 0, 0, 0)}},
		{ID: album.Nth(6), Name: "evil\x1b]0;x\a\u202e❤️👍🏽", Type: "Bad\nType", Parent: album, Status: statemachine.Scheduled, Next: noon.Add(time.Hour), Created: ago(time.Minute)},
		{ID: album.Nth(7), Name: "report", Type: "Report", Queue: "slow", Parent: album, Status: statemachine.Queued, Queued: ago(10 * time.Second), Created: ago(10 * time.Second)},
	}
	for n := range 6 {
		jobs = append(jobs, &job.Info{ID: album.Nth(10 + n), Name: fmt.Sprintf("page%d", n), Type: "Page", Parent: album, Status: statemachine.Completed, Steps: 2, Created: ago(50 * time.Second)})
	}
	jobs[10].Status = statemachine.Terminated
	list := []*job.Info{jobs[0]}
	for n, s := range []statemachine.Status{statemachine.Running, statemachine.Completed, statemachine.Suspended, statemachine.Terminated} {
		list = append(list, &job.Info{ID: job.ID(fmt.Sprintf("019e1e0%d-0000-7000-8000-000000000000", 9-n)), Type: []string{"orders", "nightly-report", "inbox", "import"}[n], Status: s, Graph: n%2 == 0, Created: ago(time.Duration(n*n+1) * time.Hour)})
	}
	state := map[string]json.RawMessage{"cursor": json.RawMessage("17"), "seen": json.RawMessage(`{"a.png":true,"evil":"\u001b[31m"}`)}
	return &store{jobs: jobs, list: list, state: state}
}

// reporter is a *testing.T or *rapid.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// screen is a view that a test sits in front of.
type screen struct {
	t     reporter
	store *store
	now   time.Time
	model *top.Model
	quit  bool
	tick  func(time.Time) tea.Msg
	slow  []tea.Cmd // what is not carried out yet, if hold
	hold  bool
}

func newScreen(t reporter, width, height int, change ...func(*top.Config)) *screen {
	s := &screen{t: t, store: newStore(), now: noon}
	cfg := top.Config{
		Source: s.store, By: "tester", Where: "redis.example:6379/0", Job: album, Now: func() time.Time { return s.now },
		Tick: func(_ time.Duration, fn func(time.Time) tea.Msg) tea.Cmd { s.tick = fn; return nil },
	}
	for _, f := range change {
		f(&cfg)
	}
	s.model = top.New(cfg)
	s.do(s.model.Init())
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

func list(c *top.Config)   { c.Job = "" }
func colors(c *top.Config) { c.Style = term.Style{Color: true} }
func ascii(c *top.Config)  { c.ASCII = true }

// do carries a command out, and what follows from it.
func (s *screen) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	if s.hold {
		s.slow = append(s.slow, cmd)
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			s.do(c)
		}
	case tea.QuitMsg:
		s.quit = true
	default:
		s.send(msg)
	}
}

func (s *screen) send(msg tea.Msg) {
	_, cmd := s.model.Update(msg)
	s.do(cmd)
}

// wait lets time pass, second by second.
func (s *screen) wait(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(time.Second)
		s.send(s.tick(s.now))
	}
}

var special = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
	"space": tea.KeySpace, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
}

// press presses keys: special ones by their names, others letter by letter.
func (s *screen) press(keys ...string) {
	for _, k := range keys {
		if code, ok := special[k]; ok {
			s.send(tea.KeyPressMsg{Code: code})
			continue
		}
		if letter, ok := strings.CutPrefix(k, "ctrl+"); ok {
			s.send(tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl})
			continue
		}
		for _, r := range k {
			s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// frame is what is on the screen.
func (s *screen) frame() string { return s.model.View().Content }

// shows fails the test unless each text is on the screen.
func (s *screen) shows(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.frame(), text) {
			s.t.Errorf("%q is not on the screen:\n%s", text, s.frame())
		}
	}
}

var errAway = errors.New("cannot reach Redis at redis://127.0.0.1:1/0: connection refused; check that it runs")
