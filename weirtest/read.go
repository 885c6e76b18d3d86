package weirtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Drain takes all messages out of an Out port of a job, the oldest first. Messages of a
// port that is wired to other jobs go there: there are none to take.
func Drain[T any](e *Engine, h *client.Handle, out string) []T {
	e.tb.Helper()
	got := []T{}
	for {
		var v T
		ok, err := h.Read(e.ctx, out, &v)
		if e.failed(err) || !ok {
			return got
		}
		got = append(got, v)
	}
}

// Empty fails the test if messages wait in an Out port of a job, and shows the oldest five. After
// [Engine.RunUntilIdle] it tells that nothing has come there since the port was drained. Messages of a port that is wired to other jobs do not stay
// in it: to ask for such a port fails the test, too. Ask for the Out ports of the jobs that it leads to, or export it.
func (e *Engine) Empty(h *client.Handle, out string) {
	e.tb.Helper()
	const shown = 5
	items, err := h.Peek(e.ctx, out, shown)
	if e.failed(err) {
		return
	}
	p, _ := e.Info(h).Port(port.Output, out)
	switch {
	case p.Wired:
		e.tb.Fatalf("weirtest: port %s of job %s is wired, so its messages go on, and it is always empty; look at where they end", out, e.path(h.ID()))
	case p.Waiting > 0:
		texts := make([]string, len(items), shown+1)
		for i, raw := range items {
			texts[i] = string(raw)
		}
		if more := p.Waiting - int64(len(items)); more > 0 {
			texts = append(texts, fmt.Sprintf("and %d more", more))
		}
		e.tb.Fatalf("weirtest: port %s of job %s holds %s, want nothing", out, e.path(h.ID()), strings.Join(texts, ", "))
	}
}

// State returns the value of one key of a job's state. The test fails if there is none.
func State[T any](e *Engine, h *client.Handle, key string) T {
	e.tb.Helper()
	var v T
	all, err := h.State(e.ctx)
	if e.failed(err) {
		return v
	}
	raw, ok := all[key]
	if !ok {
		e.tb.Fatalf("weirtest: the state of job %s has no key %q; %s", e.path(h.ID()), key, list("it has", slices.Sorted(maps.Keys(all))))
		return v
	}
	if err := port.Decode(raw, &v); err != nil {
		e.tb.Fatalf("weirtest: state %q of job %s: %v", key, e.path(h.ID()), err)
	}
	return v
}

// list names what there is.
func list(intro string, names []string) string {
	if len(names) == 0 {
		return intro + " none"
	}
	return fmt.Sprintf("%s %s", intro, strings.Join(names, ", "))
}

// Status returns the job's status.
func (e *Engine) Status(h *client.Handle) statemachine.Status {
	e.tb.Helper()
	return e.Info(h).Status
}

// Info returns what is known of the job.
func (e *Engine) Info(h *client.Handle) *job.Info {
	e.tb.Helper()
	i, err := h.Info(e.ctx)
	if e.failed(err) {
		return &job.Info{}
	}
	return i
}

// Failures returns the recorded errors of the job, newest first, at most 20.
func (e *Engine) Failures(h *client.Handle) []job.Failure {
	e.tb.Helper()
	fs, err := h.Failures(e.ctx)
	e.failed(err)
	return fs
}

// Child returns the job that is reached from h by the names given: a child, or a child
// of a child, and so on.
func (e *Engine) Child(h *client.Handle, names ...string) *client.Handle {
	e.tb.Helper()
	for _, name := range names {
		children, err := e.store.Children(e.ctx, h.ID())
		if e.failed(err) {
			return h
		}
		id, ok := children[name]
		if !ok {
			e.tb.Fatalf("weirtest: job %s has no child %q; %s", e.path(h.ID()), name, list("it has", slices.Sorted(maps.Keys(children))))
			return h
		}
		if h, err = e.client.Find(e.ctx, string(id)); e.failed(err) {
			return h
		}
	}
	return h
}
