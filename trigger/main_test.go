package trigger_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		processMain()
		return
	}
	os.Exit(redistest.Main(m))
}

// Task is what triggers of tests launch. With Long it ends when it is told to.
type Task struct {
	Long bool
	Fail bool
	In   port.In[json.RawMessage]
	Stop port.In[string]
	Got  port.Out[json.RawMessage]
}

// Run implements worker.Worker.
func (k *Task) Run(context.Context, *worker.Run) error {
	if k.Fail {
		return worker.Permanent(errors.New("told to fail"))
	}
	for raw, err := range k.In.All() {
		if err = errors.Join(err, k.Got.Write(raw)); err != nil {
			return err
		}
	}
	if _, stopped, err := k.Stop.Read(); k.Long && !stopped && err == nil {
		return worker.ErrSuspend
	}
	return nil
}

// Parent has a Task as its child.
type Parent struct{}

// Run implements worker.Worker.
func (*Parent) Run(_ context.Context, run *worker.Run) error {
	_, err := run.Spawn("task", job.Single(&Task{}, ""))
	return err
}

// script is a trigger on a clock that the test moves.
type script struct {
	*testing.T
	e    *weirtest.Engine
	h    *client.Handle
	seen map[job.ID]bool
}

func newScript(t *testing.T, d trigger.Definition) *script {
	t.Helper()
	t.Parallel()
	e := weirtest.New(t, trigger.New(), &Task{}, &Parent{})
	e.MaxRuns = 100_000
	s := &script{T: t, e: e, seen: map[job.ID]bool{}}
	enginetest.Check(s, d.Validate(e.Now()))
	s.h = e.Start(job.Single(&trigger.Trigger{Definition: d}, ""))
	e.RunUntilIdle()
	return s
}

// fresh returns what the trees say that were launched since, the oldest first, one string each.
func (s *script) fresh() (got []string) {
	s.Helper()
	for info, err := range s.e.Client().Jobs(s.Context(), job.Filter{Type: "Task", Order: job.Oldest}) {
		enginetest.Check(s, err)
		if s.seen[info.ID] {
			continue
		}
		s.seen[info.ID] = true
		all, err := s.e.Client().At(info.ID).Peek(s.Context(), "got", 10)
		enginetest.Check(s, err)
		text := ""
		for _, raw := range all {
			text += string(raw)
		}
		got = append(got, text)
	}
	return got
}

// after lets time pass and wants these trees.
func (s *script) after(d time.Duration, want ...string) {
	s.Helper()
	s.e.Advance(d)
	if got := s.fresh(); !slices.Equal(got, want) {
		s.Fatalf("at %s: launched %q, want %q", s.e.Now().Format(time.TimeOnly), got, want)
	}
}

// send writes messages to the trigger.
func (s *script) send(messages ...any) {
	s.Helper()
	s.e.Feed(s.h, "in", messages...)
	s.e.RunUntilIdle()
}

func (s *script) status() *trigger.Status {
	s.Helper()
	st, err := trigger.Get(s.Context(), s.e.Client(), s.h, 3)
	enginetest.Check(s, err)
	return st
}

// dropped wants just this many to have been dropped, for this reason.
func (s *script) dropped(reason string, n int64) {
	s.Helper()
	if got := s.status().Dropped; got[reason] != n || len(got) > 1 {
		s.Errorf("dropped %v, want %d for %s", got, n, reason)
	}
}

// ended ends the oldest launched tree that goes on.
func (s *script) ended() {
	s.Helper()
	for info, err := range s.e.Client().Jobs(s.Context(), job.Filter{Type: "Task", Order: job.Oldest}) {
		enginetest.Check(s, err)
		if !info.Status.Settled() {
			s.e.Feed(s.e.Client().At(info.ID), "stop", "now")
			s.e.RunUntilIdle()
			return
		}
	}
	s.Fatal("no tree goes on")
}
