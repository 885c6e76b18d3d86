package redisstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// A run, or somebody outside, that asks for runs at more times than a job may is refused, and nothing of it happens.
func TestTimersAreBounded(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(job.Node{Type: "T"})
		snap := e.begin(id)
		d := store.Delta{Job: id, Token: snap.Token, Outcome: statemachine.Suspend, Reason: "waits"}
		for i := range job.MaxTimers + 1 {
			d.Wakes = append(d.Wakes, time.Hour+time.Duration(i)*time.Second)
		}
		results, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
		e.Check(err)
		if results[0].Applied != 0 || !errors.Is(results[0].Refused, job.ErrTooLarge) {
			t.Errorf("one too many: %+v", results[0])
		}
		d.Wakes[0] = -time.Minute // what an engine asks for does not count: the run can do nothing about it
		e.equal("applied", e.commit(d).Applied, 1)
		if err := e.store.RunAt(e.Context(), id, time.Time{}, time.Minute); !errors.Is(err, job.ErrTooLarge) {
			t.Errorf("one more from outside: %v", err)
		}
		e.equal("timers", e.Redis.ZCard(e.Context(), e.key(id)+":t").Val(), int64(job.MaxTimers)+1)
		e.Check(e.store.RunAt(e.Context(), e.create(job.Node{Type: "T"}), time.Time{}, time.Minute))
	})
}

func TestAliasesAreBounded(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(job.Node{Type: "T"})
		for i := range job.MaxAliases {
			_, err := e.store.Claim(e.Context(), fmt.Sprint("a", i), id)
			e.Check(err)
		}
		if _, err := e.store.Claim(e.Context(), "more", id); !errors.Is(err, job.ErrTooLarge) {
			t.Errorf("one more: %v", err)
		}
		e.Check(e.store.Unclaim(e.Context(), "a7", id))
		_, err := e.store.Claim(e.Context(), "more", id)
		e.Check(err)
		holder, err := e.store.Claim(e.Context(), "more", e.create(job.Node{Type: "T"}))
		e.Check(err)
		e.equal("the holder", holder, id)
	})
}
