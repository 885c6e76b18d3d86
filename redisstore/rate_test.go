package redisstore_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// wholeMinute waits until the minute by Redis's clock, within which runs are counted, has time left.
func (e *env) wholeMinute() {
	e.Helper()
	for {
		now, err := e.Redis.Time(e.Context()).Result()
		e.Check(err)
		left := now.Truncate(time.Minute).Add(time.Minute).Sub(now)
		if left > 5*time.Second {
			return
		}
		time.Sleep(left)
	}
}

// Runs without progress are counted in a row: one with progress, and a message that comes meanwhile,
// start the count anew.
func TestRunsWithoutProgressAreCounted(t *testing.T) {
	each(t, func(e *env) {
		e.wholeMinute()
		id := e.single()
		b := beginning()
		b.Limits = map[string]int{"": -2}
		run := func(idle bool, meanwhile func(s *store.Snapshot)) {
			e.Helper()
			b.Token = rand.Text()
			s, err := e.store.Begin(e.Context(), id, b)
			e.Check(err)
			meanwhile(s)
			d := delta(s, statemachine.Requeue)
			d.Idle = idle
			e.commit(d)
		}
		rate := func() string {
			e.Helper()
			minute, n, _ := strings.Cut(e.Redis.HGet(e.Context(), e.key(id), "rate").Val(), ":")
			return strings.TrimRight(minute, "0123456789") + n
		}
		nothing := func(*store.Snapshot) {}
		run(false, nothing)
		e.equal("after progress", rate(), "")
		run(true, nothing)
		e.equal("after a run without", rate(), "idle 1")
		run(true, func(*store.Snapshot) { e.write(id, "in", "1") })
		e.equal("written to", rate(), "")
		run(true, nothing)
		run(true, nothing)
		e.equal("after two", rate(), "idle 2")
		b.Token = rand.Text()
		_, err := e.store.Begin(e.Context(), id, b)
		e.fails(err, job.ErrHotLoop)
		if !errors.Is(err, job.ErrRate) || !strings.Contains(err.Error(), "type T ran 2 times in a row") {
			e.Errorf("refused by %v", err)
		}
		if i := e.info(id); i.Status != statemachine.Queued || i.Next.IsZero() || !strings.HasPrefix(i.Reason, "rate: it ran 2 times this minute in a row") {
			e.Errorf("throttled job: %+v", i)
		}
		b.Limits = map[string]int{"": 100} // its type has a limit of its own now
		run(false, nothing)
		e.equal("all runs counted", rate(), "1")
	})
}

// A type with a limit below zero writes no counts for runs with progress.
func TestRunsWithProgressAreNotCounted(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.write(id, "in", "1", "2")
		b := beginning()
		b.Limits = map[string]int{"": 1, "T": -1}
		for range 3 {
			b.Token = rand.Text()
			s, err := e.store.Begin(e.Context(), id, b)
			e.Check(err)
			e.commit(delta(s, statemachine.Requeue))
		}
		if n := e.Redis.HExists(e.Context(), e.key(id), "rate").Val(); n {
			e.Error("they were counted")
		}
	})
}
