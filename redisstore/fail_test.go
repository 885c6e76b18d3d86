package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// A job is failed by hand from every status that accepts it, and from no other.
func TestFailByHandFromEveryStatus(t *testing.T) {
	each(t, func(e *env) {
		ctx := job.WithContext(e.Context(), port.Context{port.ContextBy: "anna"})
		for _, status := range statemachine.Statuses() {
			id := e.reach(status)
			h := e.typed(id)
			if _, refused := statemachine.Next(status, statemachine.GiveUp); refused != nil {
				e.unchanged("failing a job that is "+string(status), func() { e.fails(h.Fail(ctx, "x"), job.ErrStatus) })
				continue
			}
			e.Check(h.Fail(ctx, "no longer needed\nat all"))
			i := e.info(id)
			e.equal(string(status), []any{i.Status, i.Reason}, []any{statemachine.Failed, "by hand (anna): no longer needed …"})
			fs, err := h.Failures(ctx)
			e.Check(err)
			e.equal("failures", []any{len(fs), fs[0].Error}, []any{1, "by hand (anna): no longer needed\nat all"})
			e.near("when", fs[0].At, time.Now(), -time.Second)
			log, err := h.Runs(ctx, 10)
			e.Check(err)
			last := log[len(log)-1]
			e.equal("log", []string{last.By, last.Error}, []string{"anna", "by hand: no longer needed\nat all"})
			e.unchanged("failing it again", func() { e.fails(h.Fail(ctx, "y"), job.ErrStatus) })
			e.sweep()
			e.is(statemachine.Failed, id)
			_, err = e.store.Begin(e.Context(), id, beginning())
			e.fails(err, job.ErrStatus)
			e.Check(h.Retry(ctx))
			e.begin(id)
		}
		e.fails(e.store.Fail(e.Context(), newID(t), store.ByHand{}), job.ErrNotFound)
		g, _, _ := e.pair()
		e.unchanged("failing a graph", func() { e.fails(e.typed(g).Fail(ctx, ""), job.ErrStatus) })
	})
}

// Nothing that the run of a job stores is kept that was failed meanwhile, and the place that it held of a limit is free.
func TestFailByHandFencesTheRun(t *testing.T) {
	each(t, func(e *env) {
		id, snap, d := e.full()
		e.Check(e.typed(id).Fail(e.Context(), ""))
		e.unchanged("the commit of the run", func() { e.fails(e.try(d).Refused, job.ErrFenced) })
		e.fails(e.store.Refresh(e.Context(), id, snap.Token, time.Hour, nil), job.ErrFenced)
		e.equal("reason", e.info(id).Reason, "by hand")

		a, b, c := e.single(), e.single(), e.single()
		e.enters(a)
		e.enters(b)
		e.refused(c)
		e.Check(e.typed(a).Fail(e.Context(), ""))
		e.settled()
		e.enters(c)
		e.refused(e.single())
	})
}

// What follows from a failure follows: the graph's policy, its parents, the next of a sequential key.
func TestFailByHandIsAFailure(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		g, a, b := e.pair()
		e.Check(e.typed(a).Fail(ctx, "x"))
		e.is(statemachine.Failed, g)
		e.equal("reason of the graph", e.info(g).Reason, "a: by hand: x")
		e.Check(e.typed(a).Retry(ctx))
		e.is(statemachine.Suspended, g)
		e.end(b, statemachine.Complete)

		ignoring := e.create(
			job.Node{Type: "g", Graph: true},
			job.Node{Name: "a", Type: "T", OnFailure: job.Ignore, Ports: ports(out("out", to(2)))},
			job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1))})
		e.Check(e.typed(ignoring.Nth(1)).Fail(ctx, ""))
		e.equal("closed", e.port(ignoring.Nth(2), port.Input, "in").Closed, true)
		e.end(ignoring.Nth(2), statemachine.Complete)
		e.is(statemachine.Completed, ignoring)

		top := e.create(job.Node{Type: "T"}, job.Node{Name: "kid", Type: "T"})
		e.end(top, statemachine.Suspend)
		e.Check(e.typed(top.Nth(1)).Fail(ctx, ""))
		e.equal("who woke the parent", e.begin(top).Woken, []store.Kin{{Name: "kid", ID: top.Nth(1)}})

		first, second, third := e.keyed("k"), e.keyed("k"), e.keyed("k")
		e.Check(e.typed(second).Fail(ctx, "")) // it waits
		e.queue(job.Queued, first, third)
		e.Check(e.typed(first).Fail(ctx, ""))
		e.queue(job.Queued, third)
		e.Check(e.typed(second).Retry(ctx))
		e.queue(job.Queued, third, second)
	})
}

// A repetition ends when the job is failed by hand, and goes on when it is retried.
func TestFailByHandEndsRepeating(t *testing.T) {
	each(t, func(e *env) {
		snap := e.repeating("STARTED, +1 HOUR")
		h := e.typed(snap.Info.ID)
		e.Check(h.Fail(e.Context(), ""))
		e.equal("next run", e.info(h.ID()).Next, time.Time{})
		e.Check(h.Retry(e.Context(), client.RetryAfter(0)))
		e.equal("next run", e.info(h.ID()).Next, snap.Info.Ran.Add(time.Hour).Truncate(time.Second))
	})
}
