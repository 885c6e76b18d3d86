package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// outside are the events that callers fire.
var outside = []statemachine.Event{statemachine.Run, statemachine.Retry, statemachine.Force, statemachine.Terminate}

// tolerated are the statuses in which an event that the state machine refuses is
// satisfied already: there is, or will be, a run that begins after the call, or the job ends.
func tolerated(status statemachine.Status, event statemachine.Event) bool {
	switch event {
	case statemachine.Run, statemachine.Force:
		return status == statemachine.Queued || status == statemachine.Running
	case statemachine.Terminate:
		return status == statemachine.Terminating || status == statemachine.Terminated
	default:
		return false
	}
}

func TestApplyEveryEvent(t *testing.T) {
	each(t, func(e *env) {
		for _, status := range statemachine.Statuses() {
			for _, event := range outside {
				id := e.reach(status)
				want, illegal := statemachine.Next(status, event)
				switch {
				case illegal == nil:
					e.Check(e.store.Apply(e.Context(), id, event))
				case tolerated(status, event) && status == statemachine.Running:
					e.Check(e.store.Apply(e.Context(), id, event))
				case tolerated(status, event):
					e.unchanged(string(event)+" of a job that is "+string(status), func() {
						e.Check(e.store.Apply(e.Context(), id, event))
					})
				default:
					e.unchanged(string(event)+" of a job that is "+string(status), func() {
						e.fails(e.store.Apply(e.Context(), id, event), job.ErrStatus)
					})
				}
				e.is(want, id)
				if want == statemachine.Queued || want == statemachine.Terminating && status != statemachine.Running {
					e.begin(id) // it is really ready
				}
			}
		}
		for _, event := range outside {
			e.fails(e.store.Apply(e.Context(), newID(e), event), job.ErrNotFound)
		}
	})
}

func TestRunDuringARunMakesAnother(t *testing.T) {
	each(t, func(e *env) {
		for _, event := range []statemachine.Event{statemachine.Run, statemachine.Force} {
			id := e.single()
			snap := e.begin(id)
			e.Check(e.store.Apply(e.Context(), id, event))
			e.equal("again", e.commit(delta(snap, statemachine.Complete)).Again, true)
			e.equal("again", e.commit(delta(e.begin(id), statemachine.Complete)).Again, false)
		}
	})
}

func TestTerminateDuringARun(t *testing.T) {
	each(t, func(e *env) {
		for _, outcome := range []statemachine.Event{
			statemachine.Complete, statemachine.Suspend, statemachine.Requeue, statemachine.Fail, statemachine.Backoff,
		} {
			id, _, d := e.full()
			d.Outcome = outcome
			e.Check(e.store.Apply(e.Context(), id, statemachine.Terminate))
			e.is(statemachine.Terminating, id)
			e.commit(d)
			e.is(statemachine.Terminating, id)
			e.holds(id, 'o', "out", "4", "5") // what the run did holds
			snap := e.begin(id)
			e.equal("shutdown", snap.Shutdown, true)
			e.commit(delta(snap, statemachine.Shutdown))
			e.is(statemachine.Terminated, id)
			e.write(id, "in", "9")
			e.is(statemachine.Terminated, id) // data does not wake it
		}
		// The run dies: Shutdown runs anyway.
		id := e.single()
		b := beginning()
		b.Lease = time.Millisecond
		_, err := e.store.Begin(e.Context(), id, b)
		e.Check(err)
		e.Check(e.store.Apply(e.Context(), id, statemachine.Terminate))
		e.sweep()
		e.is(statemachine.Terminating, id)
		e.equal("shutdown", e.begin(id).Shutdown, true)
	})
}

func TestDataWakesOnlySleepers(t *testing.T) {
	each(t, func(e *env) {
		for _, status := range statemachine.Statuses() {
			if status == statemachine.Scheduled {
				continue // reach makes it without a port
			}
			id := e.reach(status)
			e.write(id, "in", "1")
			want := status
			if to, err := statemachine.Next(status, statemachine.Wake); err == nil {
				want = to
			}
			e.is(want, id)
			e.holds(id, 'i', "in", "1")
		}
	})
}

func TestSweepLeavesTheLivingAlone(t *testing.T) {
	each(t, func(e *env) {
		for _, status := range statemachine.Statuses() {
			if status == statemachine.Queued || status == statemachine.Terminating {
				continue // looked at again and again until begun
			}
			id := e.reach(status)
			e.unchanged("sweep of a job that is "+string(status), e.sweep)
			e.is(status, id)
		}
	})
}

func TestSweepManyAtOnce(t *testing.T) {
	each(t, func(e *env) {
		const n = 450 // more than one batch
		soon := time.Now().Add(time.Second)
		nodes := []job.Node{{Type: "T", At: soon}}
		for i := range n - 1 {
			nodes = append(nodes, job.Node{Name: fmt.Sprint("n", i), Type: "T", At: soon})
		}
		id := e.create(nodes...)
		time.Sleep(time.Until(soon) + 100*time.Millisecond)
		acted, err := e.store.Sweep(e.Context())
		e.Check(err)
		if acted < n { // more on a slow machine, where the first wakes are due again meanwhile
			e.Fatalf("sweep acted on %d of %d jobs", acted, n)
		}
		all, err := e.store.Tree(e.Context(), id)
		e.Check(err)
		for _, i := range all {
			e.equal("status", i.Status, statemachine.Queued)
		}
	})
}

// Who leads has the lock for a shorter time while something is due soon: if its process dies another one follows the sooner.
func TestLeadInHurry(t *testing.T) {
	each(t, func(e *env) {
		ctx, stop := context.WithCancel(e.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil { // a clock that jumps may end a leadership
				_, err := e.store.Lead(ctx, func(lead context.Context) {
					e.store.Watch(lead, time.Second, func(err error) { e.Error(err) })
				})
				if err != nil && ctx.Err() == nil {
					e.Error(err)
				}
			}
		}()
		defer func() {
			stop()
			<-done
		}()
		left := func() time.Duration { return e.Redis.PTTL(ctx, "weir:{"+e.Namespace+"}:sweeper").Val() }
		e.Until("it leads for long", func() bool { return left() > time.Second })
		id := newID(e.T)
		_, err := e.store.Create(ctx, id, &job.Plan{Nodes: []job.Node{{Type: "T", At: time.Now().Add(time.Hour)}}}, "")
		e.Check(err)
		e.Check(e.store.RunAt(ctx, id, time.Now().Add(1500*time.Millisecond), 0))
		e.Until("it leads for a moment", func() bool { ttl := left(); return ttl > 0 && ttl <= 600*time.Millisecond })
		e.Until("the job is due", func() bool { return e.info(id).Status == statemachine.Queued })
		e.end(id, statemachine.Complete)
		e.Until("it leads for long again", func() bool { return left() > time.Second })
	})
}

func TestLead(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		others, err := e.store.Lead(ctx, func(lead context.Context) {
			others, err := e.store.Lead(ctx, func(context.Context) { e.Error("two lead") })
			e.Check(err)
			if others <= 0 || others > 2*time.Second {
				e.Errorf("another one leads for %s", others)
			}
			e.Check(e.Redis.Del(ctx, "weir:{"+e.Namespace+"}:sweeper").Err())
			select {
			case <-lead.Done(): // noticed at the next sign of life
			case <-time.After(20 * time.Second):
				e.Error("a lost leadership is not noticed")
			}
		})
		e.Check(err)
		e.equal("nobody else leads", others, time.Duration(0))
		others, err = e.store.Lead(ctx, func(lead context.Context) { e.Check(lead.Err()) })
		e.Check(err)
		e.equal("nobody else leads any more", others, time.Duration(0))
	})
}
