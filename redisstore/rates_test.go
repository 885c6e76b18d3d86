package redisstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// rated is how a run begins where at most two of type T begin within a time.
func rated(per time.Duration) store.Begin {
	b := beginning()
	b.Token = rand.Text()
	b.Running = []store.RunLimit{{Type: "T", Max: 2, Per: per}}
	return b
}

// begins begins a run of a job under such a rate.
func (e *env) begins(id job.ID, per time.Duration) (*store.Snapshot, error) {
	e.Helper()
	return e.store.Begin(e.Context(), id, rated(per))
}

// waitsForRate wants a job to wait for its turn.
func (e *env) waitsForRate(id job.ID, per time.Duration) {
	e.Helper()
	_, err := e.begins(id, per)
	e.fails(err, job.ErrLimit)
	e.equal("reason", e.info(id).Reason, "limit: rate:T has had its runs")
}

// A run takes a place of a rate from when it begins until so long after, whenever it ends; who waits first goes on then, those of
// a higher priority before; and nothing is left when all of it is over.
func TestRateOfRuns(t *testing.T) {
	each(t, func(e *env) {
		const per = 700 * time.Millisecond
		a, b, c, d := e.single(), e.single(), e.single(), e.single()
		urgent := e.create(job.Node{Type: "T", Priority: new(900)})
		began := time.Now()
		first, err := e.begins(a, per)
		e.Check(err)
		e.commit(delta(first, statemachine.Complete)) // its place is taken all the same
		_, err = e.begins(b, per)                     // … and a long run's no longer
		e.Check(err)
		for _, id := range []job.ID{c, d, urgent} {
			e.waitsForRate(id, per)
		}
		e.settled()
		if got := e.limit(); time.Since(began) < per {
			e.equal("limit", fmt.Sprint(got.Name, got.Max, got.Per, got.Running, got.Waiting, got.Next[0]), fmt.Sprint("rate:T", 2, per, 2, 3, urgent))
		}
		var next *store.Snapshot
		e.Until("the first that waits may begin", func() bool {
			e.settled()
			next, err = e.begins(urgent, per)
			return err == nil
		})
		if took := time.Since(began); took < per-time.Millisecond { // Redis counts in whole ones
			e.Errorf("a third run began after %s, want %s", took, per)
		}
		e.Until("the second one", func() bool {
			e.settled()
			_, err = e.begins(c, per)
			return err == nil
		})
		e.waitsForRate(d, per)
		e.Check(e.store.Terminate(e.Context(), d)) // who waits goes
		e.commit(delta(next, statemachine.Complete))
		e.Until("nothing is left of it", func() bool {
			e.settled()
			for k := range e.dump() {
				if strings.Contains(k, "held:") || strings.Contains(k, "waits:") || strings.Contains(k, "ran:") || strings.HasSuffix(k, ":limits") {
					return false
				}
			}
			return e.limit().Name == ""
		})
	})
}

// A rate that is changed, or removed, counts at once, for those that wait, too.
func TestRateThatIsChanged(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		register := func(max int, per time.Duration) {
			e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue, MaxRuns: max, MaxRunsPer: per}}))
		}
		register(2, time.Hour)
		e.equal("idle", e.limit(), redisstore.LimitInfo{Name: "rate:T", Max: 2, Per: time.Hour})
		ids := make([]job.ID, 9)
		for i := range ids {
			ids[i] = e.single()
		}
		begin := func(n int) error { _, err := e.begins(ids[n], time.Hour); return err }
		e.Check(begin(0))
		e.Check(begin(1))
		for n := 2; n < len(ids); n++ {
			e.waitsForRate(ids[n], time.Hour)
		}
		register(4, time.Hour)
		e.settled()
		e.Check(begin(2))
		e.Check(begin(3))
		e.waitsForRate(ids[4], time.Hour)
		register(4, time.Minute)
		e.settled()
		e.equal("limit", fmt.Sprint(e.limit().Max, e.limit().Per, e.limit().Running), fmt.Sprint(4, time.Minute, 4))
		if free := e.limit().Free; free <= 30*time.Second || free > time.Minute {
			e.Errorf("the next place is free in %s", free)
		}
		e.waitsForRate(ids[4], time.Hour)
		register(4, time.Millisecond) // those that began count for as long as is said now
		e.Until("one that waited goes on", func() bool { e.settled(); return begin(4) == nil })
		ids = append(ids[:4], ids[5:]...)
		register(0, 0)
		e.settled()
		for n := 4; n < len(ids); n++ {
			e.Until("all go on", func() bool { e.settled(); return begin(n) == nil })
		}
		e.settled()
		e.equal("limit", e.limit(), redisstore.LimitInfo{})
	})
}

// A run that is begun twice, as an answer was lost, counts once; one whose process dies counts, and its next one, too.
func TestRateCountsEachRunOnce(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		a, b, c := e.single(), e.single(), e.single()
		one := rated(time.Hour)
		_, err := e.store.Begin(ctx, a, one)
		e.Check(err)
		_, err = e.store.Begin(ctx, a, one)
		e.Check(err)
		e.settled()
		e.equal("running", e.limit().Running, int64(1))
		e.Check(e.store.Refresh(ctx, a, one.Token, time.Millisecond, nil))
		e.Until("the lease is over", func() bool { e.settled(); return e.info(a).Status == statemachine.Queued })
		_, err = e.begins(a, time.Hour)
		e.Check(err)
		e.settled()
		e.equal("running", e.limit().Running, int64(2))
		e.waitsForRate(b, time.Hour)
		e.waitsForRate(c, time.Hour)
	})
}

// What is left in due of a rate that is removed is nothing.
func TestRateThatIsRemovedLeavesNothing(t *testing.T) {
	each(t, func(e *env) {
		register := func(max int, per time.Duration) {
			e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue, MaxRuns: max, MaxRunsPer: per}}))
		}
		register(2, time.Hour)
		s, err := e.begins(e.single(), time.Hour)
		e.Check(err)
		e.commit(delta(s, statemachine.Complete))
		e.settled()
		register(0, 0)
		e.settled()
		for k, v := range e.dump() {
			if strings.Contains(k, "ran:") || strings.Contains(fmt.Sprint(v), "!rate") {
				e.Errorf("%s = %v is left", k, v)
			}
		}
	})
}

// A job that is let go on and does not begin, as it is locked, or nobody serves its queue, holds up others for a while only.
func TestRateOfJobsThatDoNotBegin(t *testing.T) {
	each(t, func(e *env) {
		b := rated(500 * time.Millisecond)
		b.Running[0].Max = 1
		begin := func(id job.ID) error {
			b.Token = rand.Text()
			_, err := e.store.Begin(e.Context(), id, b)
			return err
		}
		first, idle, locked, last := e.single(), e.single(), e.single(), e.single()
		e.Check(begin(first))
		for _, id := range []job.ID{locked, idle, last} {
			e.fails(begin(id), job.ErrLimit)
		}
		_, err := e.store.Lock(e.Context(), locked, "ann", time.Hour, 0)
		e.Check(err)
		e.Until("the locked one is let go on, and would begin", func() bool { e.settled(); return errors.Is(begin(locked), job.ErrLocked) })
		began := time.Now()
		e.Until("the last one begins, though the one before it does not", func() bool { e.settled(); return begin(last) == nil })
		if took := time.Since(began); took > 25*time.Second {
			e.Errorf("it took %s", took)
		}
	})
}

// A job that waits for its turn takes on another priority.
func TestPriorityOfJobsThatWaitForARate(t *testing.T) {
	each(t, func(e *env) {
		ids := []job.ID{e.single(), e.single(), e.single(), e.single(), e.single()}
		for _, id := range ids[:2] {
			_, err := e.begins(id, time.Hour)
			e.Check(err)
		}
		for _, id := range ids[2:] {
			e.waitsForRate(id, time.Hour)
		}
		e.settled()
		e.Check(e.store.(*redisstore.Store).SetPriority(e.Context(), ids[4:5], 900))
		e.settled()
		e.equal("next", e.limit().Next, []job.ID{ids[4], ids[2], ids[3]})
		e.Check(e.store.(*redisstore.Store).SetPriority(e.Context(), ids[4:5], 100))
		e.settled()
		e.equal("next", e.limit().Next, []job.ID{ids[2], ids[3], ids[4]})
	})
}

// A type whose name begins as that of another one with a value has places of its own.
func TestRateOfAlikeNames(t *testing.T) {
	each(t, func(e *env) {
		begin := func(typ string, max int, by string, args string) error {
			b := rated(time.Hour)
			b.Running = []store.RunLimit{{Type: typ, Max: max, Per: time.Hour, By: by}}
			_, err := e.store.Begin(e.Context(), e.create(job.Node{Type: typ, Args: raws(args)[0]}), b)
			return err
		}
		e.Check(begin("call", 1, "who", `{"who":"a"}`))
		e.Check(begin("call:a", 1, "", `{}`))
		e.fails(begin("call", 1, "who", `{"who":"a"}`), job.ErrLimit)
		e.fails(begin("call:a", 1, "", `{}`), job.ErrLimit)
	})
}

// A job that waits for a place of its queue holds up others of its type for a while only, and keeps its turn in the queue.
func TestRateOfJobsThatWaitForAnotherLimit(t *testing.T) {
	each(t, func(e *env) {
		begun := func(id job.ID) (*store.Snapshot, error) {
			b := rated(10 * time.Millisecond)
			b.Running[0].Max = 1
			b.Running = append(b.Running, store.RunLimit{Queue: "slow", Max: 1})
			return e.store.Begin(e.Context(), id, b)
		}
		begin := func(id job.ID) error { _, err := begun(id); return err }
		in := func(typ, queue string) job.ID { return e.create(job.Node{Type: typ, Queue: queue}) }
		long, waits, free := in("U", "slow"), in("T", "slow"), in("T", job.DefaultQueue)
		first, err := begun(long)
		e.Check(err)
		e.fails(begin(waits), job.ErrLimit)
		e.settled()
		e.equal("reason", e.info(waits).Reason, "limit: queue:slow has no free place")
		e.Until("the other one begins", func() bool { e.settled(); return begin(free) == nil })
		e.commit(delta(first, statemachine.Complete))
		e.Until("the first one begins", func() bool { e.settled(); return begin(waits) == nil })
	})
}
