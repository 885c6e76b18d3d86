package trigger_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/weirtest"
)

// declaring is an engine with a trigger that is declared under the alias daily.
func declaring(t *testing.T, d trigger.Definition) *script {
	t.Helper()
	t.Parallel()
	s := &script{T: t, e: weirtest.New(t, trigger.New(), &Task{}), seen: map[job.ID]bool{}}
	s.e.MaxRuns = 100_000
	s.e.RunUntilIdle()
	s.h = s.declare(d)
	return s
}

func (s *script) declare(d trigger.Definition) *client.Handle {
	s.Helper()
	h, err := trigger.Declare(s.Context(), s.e.Client(), "daily", d, job.Label("team", "a"))
	enginetest.Check(s, err)
	s.e.RunUntilIdle()
	return h
}

// A declared trigger that is so already is left; what changes of it changes what is there, and it goes on counting.
func TestDeclare(t *testing.T) {
	plan, err := job.Single(&Task{}, "").Plan()
	enginetest.Check(t, err)
	d := trigger.Definition{
		Schedule: "every:10s", Zone: "Europe/Berlin", Limits: trigger.Limits{Parallel: 5},
		Launch: &trigger.Launch{Plan: (*trigger.Plan)(plan), Retain: "1h"},
	}
	s := declaring(t, d)
	s.after(10*time.Second, tick(1, 10*time.Second))
	steps := func() int64 {
		info, err := s.h.Info(t.Context())
		enginetest.Check(s, err)
		return info.Steps
	}
	before := steps()
	if h := s.declare(d); h.ID() != s.h.ID() || steps() != before {
		t.Errorf("declared again: trigger %s in place of %s, %d runs more", h.ID(), s.h.ID(), steps()-before)
	}
	d.Schedule, d.Zone, d.Launch = "every:1m", "", &trigger.Launch{Type: "Task", Args: json.RawMessage(`{ "Long": false }`)}
	for range 2 {
		if h := s.declare(d); h.ID() != s.h.ID() {
			t.Errorf("changed: trigger %s in place of %s", h.ID(), s.h.ID())
		}
	}
	if st := s.status(); st.Definition.Schedule != "every:1m" || st.Definition.Zone != "" || st.Definition.Launch.Plan != nil || st.Firings != 1 {
		t.Errorf("changed: %+v", st)
	}
	s.after(time.Minute, tick(2, 70*time.Second))
	enginetest.Check(s, trigger.Change(t.Context(), s.e.Client(), s.h, "me", json.RawMessage(`{"schedule":"every:5s"}`)))
	enginetest.Check(s, trigger.Pause(t.Context(), s.h, "me"))
	s.e.RunUntilIdle()
	s.declare(d)
	if st := s.status(); st.Definition.Schedule != "every:1m" || !st.Paused {
		t.Errorf("after a change by hand: %+v", st)
	}
}

// One that has come to its end is left, though its time has passed, unless another one is declared, which is a new one.
func TestDeclareAfterTheEnd(t *testing.T) {
	at := func(after time.Duration) trigger.Definition {
		return trigger.Definition{Schedule: "at:" + time.Now().UTC().Add(after).Format(time.RFC3339), Launch: task()}
	}
	first := at(time.Minute)
	first.Count = 1
	s := declaring(t, first)
	enginetest.Check(s, s.h.TerminateAll(t.Context()))
	s.e.RunUntilIdle()
	if st := s.status(); st.Status != statemachine.Terminated {
		t.Fatalf("status %+v", st)
	}
	if h := s.declare(first); h.ID() != s.h.ID() {
		t.Errorf("the same again: trigger %s in place of %s", h.ID(), s.h.ID())
	}
	if _, err := trigger.Declare(t.Context(), s.e.Client(), "daily", at(-48*time.Hour)); !errors.Is(err, job.ErrConfig) {
		t.Errorf("a time that has passed: %v", err)
	}
	h := s.declare(at(time.Hour))
	if names, err := h.Aliases(t.Context()); err != nil || h.ID() == s.h.ID() || len(names) != 1 || names[0] != "daily" {
		t.Errorf("another one: trigger %s with the aliases %q, %v", h.ID(), names, err)
	}
}

// What cannot be is refused.
func TestDeclareWhatCannotBe(t *testing.T) {
	s := declaring(t, trigger.Definition{Launch: task()})
	for name, c := range map[string]struct {
		alias string
		d     trigger.Definition
		kind  error
		want  string
	}{
		"a webhook stays one": {"daily", trigger.Definition{Schedule: "every:1h", Launch: task()}, job.ErrConfig, "it is a webhook"},
		"a wrong schedule":    {"other", trigger.Definition{Schedule: "every:now", Launch: task()}, job.ErrConfig, "schedule"},
		"no alias":            {"", trigger.Definition{Launch: task()}, job.ErrName, "alias"},
		"no trigger":          {"job", trigger.Definition{Launch: task()}, job.ErrExists, "a Task, has this alias"},
	} {
		if name == "no trigger" {
			enginetest.Check(s, s.e.Start(job.Single(&Task{}, "")).AddAlias(t.Context(), "job"))
		}
		if _, err := trigger.Declare(t.Context(), s.e.Client(), c.alias, c.d); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	enginetest.Check(s, s.h.Fail(t.Context(), "books closed"))
	s.declare(trigger.Definition{Launch: task()})
	if _, err := trigger.Declare(t.Context(), s.e.Client(), "daily", trigger.Definition{Filter: "it > 1", Launch: task()}); !errors.Is(err, job.ErrStatus) || !strings.Contains(err.Error(), "weir retry") {
		t.Errorf("a failed one: %v", err)
	}
}

// Several processes that start at once and declare the same make one trigger.
func TestDeclareAtOnce(t *testing.T) {
	s := declaring(t, trigger.Definition{Schedule: "every:1h", Launch: task()})
	c, d := s.e.Client(), trigger.Definition{Schedule: "every:2h", Launch: task()}
	ids := make([]job.ID, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			h, err := trigger.Declare(t.Context(), c, "new", d)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = h.ID()
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("triggers %q", ids)
		}
	}
}
