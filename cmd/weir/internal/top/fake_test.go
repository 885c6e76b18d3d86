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

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
)

// noon is when the tests happen.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const album = job.ID("019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11")

// fakeStore is a source with jobs that do not move. It notes what is done to them.
type fakeStore struct {
	jobs  []*job.Info // the first is the root of a tree
	list  []*job.Info
	err   error // of everything
	state map[string]json.RawMessage
	lost  error  // of the state alone
	took  func() // called by each read of a tree
	reads int
	acts  []string
	asked []job.Filter // of the list

	stats    *redisstore.Stats
	triggers []*trigger.Status
	refused  error // of everything that changes something
	locks    map[job.ID]job.LockInfo
}

func (s *fakeStore) List(_ context.Context, f job.Filter, n int) ([]*job.Info, error) {
	s.reads++
	s.asked = append(s.asked, f)
	var list []*job.Info
	for _, i := range s.list {
		if len(list) < n && f.Match(i) {
			list = append(list, i)
		}
	}
	return list, s.err
}

func (s *fakeStore) Find(_ context.Context, name string) (top.Job, error) {
	if s.err != nil {
		return nil, s.err
	}
	for _, i := range slices.Concat(s.jobs, s.list) {
		if string(i.ID) == name || i.ID == album && name == "album-2026" {
			return handle{s, i}, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", job.ErrNotFound, name)
}

func (s *fakeStore) Stats(context.Context) (*redisstore.Stats, error) { return s.stats, s.err }

func (s *fakeStore) Triggers(_ context.Context, n int) ([]*trigger.Status, error) {
	return s.triggers[:min(n, len(s.triggers))], s.err
}

func (s *fakeStore) note(format string, a ...any) error {
	if s.refused != nil {
		return s.refused
	}
	s.acts = append(s.acts, fmt.Sprintf(format, a...))
	return s.err
}

func (s *fakeStore) PauseQueue(_ context.Context, queue string) error {
	return s.note("pause %s", queue)
}

func (s *fakeStore) ResumeQueue(_ context.Context, queue string) error {
	return s.note("resume %s", queue)
}

func (s *fakeStore) SetQueueLimit(_ context.Context, queue string, n int) error {
	return s.note("limit %s %d", queue, n)
}

func (s *fakeStore) Trigger(_ context.Context, id job.ID, do top.TriggerAct, by string) error {
	return s.note("%s %s by %s", do, id[len(id)-1:], by)
}

type handle struct {
	s *fakeStore
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

func (h handle) Locked(context.Context) (job.LockInfo, bool, error) {
	lock, locked := h.s.locks[h.i.ID]
	return lock, locked, nil
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

func (h handle) ID() job.ID { return h.i.ID }

func (h handle) act(what string) error {
	return h.s.note("%s %s", what, string(h.i.ID[len(album):]))
}

func (h handle) Write(_ context.Context, in string, messages ...any) error {
	return h.act(fmt.Sprintf("write %s %s to", in, messages))
}

func (h handle) Run(context.Context) error { return h.act("run") }

func (h handle) Retry(context.Context, ...client.RetryOption) error {
	if h.i.Status != statemachine.Failed {
		return fmt.Errorf("%w: job %s is %s", job.ErrStatus, h.i.ID, h.i.Status)
	}
	return h.act("retry")
}
func (h handle) Terminate(context.Context) error    { return h.act("terminate") }
func (h handle) Delete(context.Context) error       { return h.act("delete") }
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

// through is a port of a graph, which passes messages on.
func through(name string, dir port.Dir, total int64, to ...job.PortRef) job.PortInfo {
	p := out(name, total, to...)
	p.Dir = dir
	return p
}

func to(n int, dir port.Dir, name string) job.PortRef {
	return job.PortRef{Job: album.Nth(n), Dir: dir, Port: name}
}

// newStore returns a store with the tree of an album and some more trees.
func newStore() *fakeStore {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	width := job.PortInfo{Spec: port.Spec{Name: "width", Dir: port.Input, Default: json.RawMessage("640")}, Closed: true}
	jobs := []*job.Info{
		{
			ID: album, Type: "album", Graph: true, Status: statemachine.Failed, Reason: "job inner/resize failed", Created: ago(2 * time.Minute),
			Ports: []job.PortInfo{through("files", port.Input, 12, to(1, port.Input, "dirs")), out("thumbs", 7)},
		},
		{ID: album.Nth(1), Name: "list", Type: "ListDir", Parent: album, Status: statemachine.Completed, Steps: 1, Created: ago(2 * time.Minute), Ports: []job.PortInfo{in("dirs", 0, 12, 0), out("files", 1234567, to(2, port.Input, "in"))}},
		{ID: album.Nth(2), Name: "inner", Type: "scale", Parent: album, Graph: true, Status: statemachine.Failed, Reason: "job resize failed", Created: ago(2 * time.Minute), Ports: []job.PortInfo{through("in", port.Input, 1234567, to(3, port.Input, "in")), through("thumbs", port.Output, 3308, to(0, port.Output, "thumbs"))}},
		{
			ID: album.Nth(3), Name: "resize", Type: "Resize", Parent: album.Nth(2), Status: statemachine.Failed, Steps: 1500, Tries: 3, Created: ago(2 * time.Minute), Ran: ago(20 * time.Second),
			Reason: "decoding b.png: unexpected \x1b[31mend of the file\nstack", Ports: []job.PortInfo{in("in", 92, 3400, 100), width, out("thumb", 3308, to(4, port.Input, "in"), to(2, port.Output, "thumbs"))},
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
	return &fakeStore{jobs: jobs, list: list, state: state, stats: newStats(), triggers: newTriggers()}
}

// newStats are counters, queues and engines.
func newStats() *redisstore.Stats {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	st := &redisstore.Stats{
		Namespace: "default", At: noon.Add(5 * time.Second), Shards: 4, Roots: 1204, Failed: 3, Dead: 2,
		Queues: []redisstore.QueueInfo{
			{Name: "default", Pending: 342, Active: 9, Latency: 42 * time.Second, Engines: 2, Slots: 12, Limit: 10, Types: []string{"Resize", "Save", "Page"}, Ready: []redisstore.ReadyType{
				{Type: "Page", Jobs: 40, Oldest: 900 * time.Millisecond}, {Type: "Resize", Jobs: 302, Oldest: 42 * time.Second},
			}},
			{Name: "mail", Paused: true, Pending: 17, Latency: 3 * time.Minute, Engines: 1, Slots: 10, Types: []string{"Mail"}, Ready: []redisstore.ReadyType{{Type: "Mail", Jobs: 17, Oldest: 3 * time.Minute}}},
			{Name: "slow", Types: []string{"Report"}},
		},
		Engines: []store.EngineInfo{
			{ID: "e2", Host: "web-2", PID: 77, Started: ago(time.Hour), Seen: ago(time.Second), Concurrency: 2, Queues: map[string]int{"default": 1}, Types: []string{"Page"}, Stopping: true},
			{
				ID: "e1", Host: "web-1", PID: 4242, Version: "v1.2.3", Started: ago(26 * time.Hour), Seen: noon, Concurrency: 10, Running: 9, Queues: map[string]int{"default": 6, "mail": 1}, Busy: map[string]int{"default": 9}, Types: []string{"Resize", "Save", "Mail"},
				Runs: []store.RunningJob{{Job: album.Nth(4), Type: "Save", Queue: "default", Since: ago(3 * time.Second)}, {Job: album.Nth(3), Type: "Resize", Queue: "default", Since: ago(time.Second)}},
			},
		},
	}
	for n := range store.ActivitySpans {
		a := store.Activity{At: noon.Add(-time.Duration(store.ActivitySpans-n-1) * store.ActivitySpan), Runs: int64(1000 + 40*(n%20)), Read: int64(500 * (n % 7)), Written: 900, Failed: int64(n % 30 / 29)}
		a.Waited[3], a.Took[5] = a.Runs, a.Runs
		st.Activity = append(st.Activity, a)
	}
	return st
}

// newTriggers are a schedule, a webhook that is paused and one that has ended.
func newTriggers() []*trigger.Status {
	id := func(n int) job.ID { return job.ID(fmt.Sprintf("019e1e0%d-0000-7000-8000-00000000000%d", n, n)) }
	last := noon.Add(-55 * time.Minute)
	return []*trigger.Status{
		{
			ID: id(1), Aliases: []string{"nightly"}, Kind: trigger.Scheduled, Status: statemachine.Suspended, Understood: "at 02:30 on every day", Definition: trigger.Definition{Schedule: "30 2 * * *", Zone: "Europe/Berlin", Launch: &trigger.Launch{Type: "report"}},
			Next: []time.Time{noon.Add(13 * time.Hour), noon.Add(37 * time.Hour)}, Last: &last, Firings: 412, Launches: 411, LastTree: album, Dropped: map[string]int64{"parallel": 1},
		},
		{ID: id(2), Aliases: []string{"github"}, Kind: trigger.Kind("webhook"), Status: statemachine.Suspended, Paused: true, Definition: trigger.Definition{Filter: "action == 'push'"}},
		{ID: id(3), Aliases: []string{"heartbeat"}, Kind: trigger.Scheduled, Status: statemachine.Completed, Definition: trigger.Definition{Schedule: "every:10s", Count: 3}, Last: &last, Firings: 3},
	}
}

// reporter is a *testing.T or *rapid.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// screen is a view that a test sits in front of.
type screen struct {
	t     reporter
	store *fakeStore
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
		if k == "shift+tab" {
			s.send(tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift})
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
