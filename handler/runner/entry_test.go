package runner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// queue is a store in which jobs lie that nobody runs but the test.
type queue struct {
	*house
	jobs map[string]job.ID // by name
}

func newQueue(t *testing.T, types ...string) *queue {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t), Shards: 1})
	q := &queue{house: &house{TB: t, store: store, client: client.New(store)}, jobs: map[string]job.ID{}}
	for n, typ := range types {
		enginetest.Check(q, handler.Expect(t.Context(), store, typ))
		q.jobs[fmt.Sprint("j", n+1)] = q.house.add(typ, "x").ID()
	}
	return q
}

// entry is a job as it is now, with the time of the store.
func (q *queue) entry(name string) (e handler.Entry, now time.Time) {
	q.Helper()
	now, err := q.store.Now(context.Background())
	enginetest.Check(q, err)
	info, err := q.store.Info(context.Background(), q.jobs[name])
	enginetest.Check(q, err)
	return handler.EntryOf(info), now
}

// phase wants a job to be in one.
func (q *queue) phase(name string, want handler.Phase) {
	q.Helper()
	if e, now := q.entry(name); e.Phase(now) != want {
		q.Errorf("%s is %s, want %s: %+v at %s", name, e.Phase(now), want, e, now)
	}
}

// begin has an engine take a job for a time.
func (q *queue) begin(name, engine string, lease time.Duration) *store.Snapshot {
	q.Helper()
	s, err := q.store.Begin(context.Background(), q.jobs[name], store.Begin{Token: job.RunToken(engine), Lease: lease, Batch: 1, Bytes: 1 << 20})
	enginetest.Check(q, err)
	return s
}

// commit ends a run.
func (q *queue) commit(s *store.Snapshot, outcome statemachine.Event, delay time.Duration) {
	q.Helper()
	results, err := q.store.Commit(context.Background(), []store.Tx{{Deltas: []store.Delta{{Job: s.Info.ID, Token: s.Token, Outcome: outcome, Delay: delay}}}})
	enginetest.Check(q, err)
	enginetest.Check(q, results[0].Refused)
}

// around wants two times to be nearly the same.
func (q *queue) around(what string, got, want time.Time) {
	q.Helper()
	if d := got.Sub(want).Abs(); d > 30*time.Second {
		q.Errorf("%s: dt %s, want about %s", what, got, want)
	}
}

func TestM02EachReadyJobIsTakenOnce(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "t", "t", "t")
	locks := map[string]int{}
	for n := range 4 {
		engine := "ENGINE-A"
		if n > 1 {
			engine = "ENGINE-B"
		}
		begun, err := q.store.Pop(t.Context(), job.DefaultQueue, 0, -1, store.Begin{Token: job.RunToken(engine), Lease: time.Hour, Batch: 1, Bytes: 1 << 20}, []string{"t"})
		enginetest.Check(q, err)
		if (len(begun) == 0) != (n == 3) {
			t.Fatalf("pop %d: %+v", n, begun)
		}
	}
	for name := range q.jobs {
		e, now := q.entry(name)
		locks[e.Lock]++
		q.around(name, e.DT, now.Add(time.Hour))
	}
	if locks["ENGINE-A"] != 2 || locks["ENGINE-B"] != 1 {
		t.Errorf("locks %v: want two of the first engine, one of the second", locks)
	}
}

func TestM03LocksExpire(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "t1", "t2", "t3", "t4")
	q.begin("j1", "ENGINE-A", time.Millisecond)
	q.begin("j2", "ENGINE-A", time.Hour)
	q.begin("j3", "ENGINE-B", time.Millisecond)
	before, _ := q.entry("j2")
	q.until("the leases of two are over", func() bool {
		one, now := q.entry("j1")
		three, _ := q.entry("j3")
		return one.Phase(now) == handler.Abandoned && three.Phase(now) == handler.Abandoned
	})
	_, err := q.store.Sweep(t.Context())
	enginetest.Check(q, err)
	for _, name := range []string{"j1", "j3", "j4"} {
		q.phase(name, handler.Ready)
	}
	if after, _ := q.entry("j2"); after != before || after.Lock != "ENGINE-A" {
		t.Errorf("j2 was %+v and is %+v", before, after)
	}
}

func TestM04TheOwnerRenewsItsLock(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "t")
	s := q.begin("j1", "ENGINE-A", time.Minute)
	enginetest.Check(q, q.store.Refresh(t.Context(), s.Info.ID, s.Token, time.Hour, nil))
	e, now := q.entry("j1")
	q.around("j1", e.DT, now.Add(time.Hour))
	if err := q.store.Refresh(t.Context(), s.Info.ID, job.RunToken("ENGINE-B"), 2*time.Hour, nil); err == nil {
		t.Error("another engine renewed the lock")
	}
	if again, _ := q.entry("j1"); again != e {
		t.Errorf("it was %+v and is %+v", e, again)
	}
}

func TestM05WhatARunEndsWith(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "retried", "returned", "done")
	q.commit(q.begin("j1", "ENGINE-A", time.Hour), statemachine.Backoff, 5*time.Minute)
	q.commit(q.begin("j2", "ENGINE-A", time.Hour), statemachine.Requeue, 0)
	q.commit(q.begin("j3", "ENGINE-A", time.Hour), statemachine.Complete, 0)
	for name, want := range map[string]handler.Phase{"j1": handler.Deferred, "j2": handler.Ready, "j3": handler.Archived} {
		q.phase(name, want)
	}
	for name, want := range map[string]time.Duration{"j1": 5 * time.Minute, "j2": 0} {
		e, now := q.entry(name)
		q.around(name, e.DT, now.Add(want))
		if e.Lock != "" {
			t.Errorf("%s has the lock %q", name, e.Lock)
		}
	}
	e, now := q.entry("j3")
	q.around("j3", e.DT, now.AddDate(1000, 0, 0))
	if e.Lock != handler.Done {
		t.Errorf("j3 has the lock %q", e.Lock)
	}
}

// TestPurge removes jobs that are done, before their retention is over, and no others.
func TestPurge(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "done", "failed", "running", "ready")
	q.commit(q.begin("j1", "ENGINE-A", time.Hour), statemachine.Complete, 0)
	q.commit(q.begin("j2", "ENGINE-A", time.Hour), statemachine.Fail, 0)
	q.begin("j3", "ENGINE-A", time.Hour)
	none, err := job.NewID()
	enginetest.Check(q, err)
	all := []job.ID{q.jobs["j1"], q.jobs["j2"], q.jobs["j3"], q.jobs["j4"], none}
	for range 2 { // a repeat changes nothing
		if n, err := q.store.Purge(t.Context(), all...); err != nil || n != 2 {
			t.Fatalf("%d purged, %v: want 2", n, err)
		}
	}
	q.until("two jobs are gone", func() bool {
		_, err := q.store.Sweep(t.Context())
		enginetest.Check(q, err)
		n, err := q.client.Count(t.Context(), job.Filter{})
		enginetest.Check(q, err)
		return n == 2
	})
	q.phase("j3", handler.Running)
	q.phase("j4", handler.Ready)
}
