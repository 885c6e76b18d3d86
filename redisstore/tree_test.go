package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// A job says when it goes on by itself: at the end of its delay, at a timer, or when it is
// under its rate again; and until when somebody's lock holds it up.
func TestWhenItGoesOn(t *testing.T) {
	each(t, func(e *env) {
		now := func() time.Time {
			at, err := e.Redis.Time(e.Context()).Result()
			e.Check(err)
			return at
		}
		within := func(what string, at time.Time, d time.Duration) {
			e.Helper()
			if left := at.Sub(now()); at.IsZero() || left <= 0 || left > d {
				e.Errorf("%s: %s, which is in %s; want within %s", what, at, left, d)
			}
		}
		failed := e.single()
		e.write(failed, "in", "1")
		d := delta(e.begin(failed), statemachine.Backoff)
		d.Delay, d.Failure = time.Hour, &job.Failure{Error: "x"}
		e.commit(d)
		within("next try", e.info(failed).Next, time.Hour)

		suspended := e.single()
		e.end(suspended, statemachine.Suspend)
		e.equal("without alarm", e.info(suspended).Next, time.Time{})
		e.Check(e.store.RunAt(e.Context(), suspended, time.Time{}, time.Minute))
		within("alarm", e.info(suspended).Next, time.Minute)

		often := e.single()
		e.equal("queued", e.info(often).Next, time.Time{})
		b, before := beginning(), now()
		b.Limits = map[string]int{"": 0}
		if _, err := e.store.Begin(e.Context(), often, b); !errors.Is(err, job.ErrRate) {
			e.Fatalf("begin: %v", err)
		}
		// It goes on with the next minute, which may have begun meanwhile.
		if next := e.info(often).Next; !next.After(before) || next.Sub(before) > time.Minute {
			e.Errorf("rate: %s, want within a minute from %s", next, before)
		}
	})
}

// Whatever a job says of itself is read as it was written.
func TestInfoOfOddTexts(t *testing.T) {
	each(t, func(e *env) {
		for _, text := range []string{"", "plain", "\x1f", "a\x1fstatus\x1fqueued\x1f", "\xff\x00\n"} {
			id := newID(e)
			_, err := e.store.Create(e.Context(), id, &job.Plan{Nodes: []job.Node{{Type: "T", Queue: "q", Ports: ports(in("in"))}}}, text)
			e.Check(err)
			d := delta(e.begin(id), statemachine.Fail)
			d.Failure, d.Reason = &job.Failure{Error: "x"}, text
			e.commit(d)
			i := e.info(id)
			e.equal("by", i.By, text)
			e.equal("reason", i.Reason, text)
			e.equal("status", i.Status, statemachine.Failed)
			e.equal("ports", len(i.Ports), 1)
		}
	})
}
