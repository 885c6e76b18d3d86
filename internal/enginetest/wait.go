package enginetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

const (
	// Patience is how long a test waits for what must happen.
	Patience = 60 * time.Second
	// PollInterval is how often it looks.
	PollInterval = 5 * time.Millisecond
)

// Until polls until ok returns true, and fails the test if that takes longer than Patience.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Within(t, Patience, what, ok)
}

// Within is Until with another limit.
func Within(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(PollInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("still not after %s: %s", limit, what)
		}
	}
}

// Until polls until ok returns true, and fails the test if that takes longer than Patience.
func (e *Env) Until(what string, ok func() bool) {
	e.Helper()
	Until(e, what, ok)
}

// Within is Until with another limit.
func (e *Env) Within(limit time.Duration, what string, ok func() bool) {
	e.Helper()
	Within(e, limit, what, ok)
}

// Start starts a tree.
func (e *Env) Start(p job.Planner, options ...job.Option) *client.Handle {
	e.Helper()
	h, err := e.Client.Start(e.Ctx, p, options...)
	e.Check(err)
	return h
}

// Info returns what is known of the job.
func (e *Env) Info(h *client.Handle) *job.Info {
	e.Helper()
	info, err := h.Info(e.Ctx)
	e.Check(err)
	return info
}

// Await waits until ok returns true for what is known of the job, and returns that.
func (e *Env) Await(h *client.Handle, what string, ok func(*job.Info) bool) *job.Info {
	e.Helper()
	for deadline := time.Now().Add(Patience); ; time.Sleep(PollInterval) {
		info := e.Info(h)
		if ok(info) {
			return info
		}
		if time.Now().After(deadline) {
			text, _ := json.MarshalIndent(info, "", " ")
			e.Fatalf("job is not %s after %s:\n%s", what, Patience, text)
		}
	}
}

// Reach waits until the job has one of the statuses and has run at least steps times. A job that
// fails, when that is not among them, ends the test.
func (e *Env) Reach(h *client.Handle, steps int64, want ...statemachine.Status) *job.Info {
	e.Helper()
	return e.Await(h, fmt.Sprint(want), func(info *job.Info) bool {
		e.Helper()
		wanted := slices.Contains(want, info.Status)
		if !wanted && info.Status == statemachine.Failed {
			e.Fatalf("job failed: %s", info.Reason)
		}
		return wanted && info.Steps >= steps
	})
}

// Completed waits until the job is completed after at least that many steps.
func (e *Env) Completed(h *client.Handle, steps int64) *job.Info {
	e.Helper()
	return e.Reach(h, steps, statemachine.Completed)
}

// Failure waits until the job has failed and returns its last failure.
func (e *Env) Failure(h *client.Handle) job.Failure {
	e.Helper()
	e.Reach(h, 0, statemachine.Failed)
	fs, err := h.Failures(e.Ctx)
	e.Check(err)
	if len(fs) == 0 {
		e.Fatal("the job failed without a recorded failure")
	}
	return fs[0]
}

// Outs returns the messages in an Out port of the job.
func Outs[T any](t testing.TB, h *client.Handle, name string) []T {
	t.Helper()
	raws, err := h.Peek(t.Context(), name, 1<<20)
	Check(t, err)
	out := []T{}
	for _, raw := range raws {
		var v T
		Check(t, port.Decode(raw, &v))
		out = append(out, v)
	}
	return out
}

// State returns the job's state as JSON strings.
func (e *Env) State(h *client.Handle) map[string]string {
	e.Helper()
	raws, err := h.State(e.Ctx)
	e.Check(err)
	out := map[string]string{}
	for k, v := range raws {
		out[k] = string(v)
	}
	return out
}

// Waiting returns how many messages wait in an In port of the job.
func (e *Env) Waiting(h *client.Handle, name string) int64 {
	e.Helper()
	p, ok := e.Info(h).Port(port.Input, name)
	if !ok {
		e.Fatalf("job has no In port %q", name)
	}
	return p.Waiting
}

// Tree returns the sorted names of all jobs of the job's tree but the root.
func (e *Env) Tree(h *client.Handle) []string {
	e.Helper()
	infos, err := h.Tree(e.Ctx)
	e.Check(err)
	names := []string{}
	for _, i := range infos[1:] {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	return names
}
