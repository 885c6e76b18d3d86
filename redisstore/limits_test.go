package redisstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// limitedTo2 is how a run begins where at most two of type T go on at once.
func limitedTo2() job.Begin {
	b := beginning()
	b.Running = []job.RunLimit{{Type: "T", Max: 2}}
	return b
}

// refused wants a job to wait for a place.
func (e *env) refused(id job.ID) {
	e.Helper()
	b := limitedTo2()
	b.Token = rand.Text()
	_, err := e.store.Begin(e.Context(), id, b)
	e.fails(err, job.ErrLimit)
}

// enters begins a run of a job that gets a place.
func (e *env) enters(id job.ID) *job.Snapshot {
	e.Helper()
	b := limitedTo2()
	b.Token = rand.Text()
	s, err := e.store.Begin(e.Context(), id, b)
	e.ok(err)
	return s
}

// limit returns the only limit that is in use; none if there is none.
func (e *env) limit() redisstore.LimitInfo {
	e.Helper()
	all, err := e.store.(*redisstore.Store).Limits(e.Context())
	e.ok(err)
	if len(all) > 1 {
		e.Fatalf("limits: %+v", all)
	}
	if len(all) == 0 {
		return redisstore.LimitInfo{}
	}
	return all[0]
}

// settled carries out what shards have for each other.
func (e *env) settled() {
	e.Helper()
	for range 5 {
		_, err := e.store.Sweep(e.Context())
		e.ok(err)
		time.Sleep(time.Millisecond)
	}
}

// A place is given back by each end of a run, and goes to who has waited longest, those of a higher priority first.
func TestLimitOfRunsAtOnce(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		a, b, c, d := e.single(), e.single(), e.single(), e.single()
		urgent := e.create(job.Node{Type: "T", Priority: new(900)})
		first, second := e.enters(a), e.enters(b)
		for _, id := range []job.ID{c, d, urgent} {
			e.refused(id)
		}
		e.equal("reason", e.info(c).Reason, "limit: type:T has 2 places")
		got := e.limit()
		e.equal("limit", fmt.Sprint(got.Name, got.Max, got.Running, got.Waiting, got.Next[0]), fmt.Sprint("type:T", 2, 2, 3, urgent))

		e.commit(delta(first, statemachine.Complete))
		e.settled()
		e.refused(c)
		third := e.enters(urgent)
		d2 := delta(second, statemachine.Backoff)
		d2.Failure, d2.Delay = &job.Failure{Error: "no"}, time.Hour
		e.commit(d2)
		e.settled()
		fourth := e.enters(c)
		e.refused(d)

		e.ok(e.store.Terminate(ctx, d)) // who waits goes
		e.settled()
		e.equal("waiting", e.limit().Waiting, int64(0))
		e.end(d, statemachine.Shutdown)
		e.commit(delta(third, statemachine.Suspend))
		e.commit(delta(fourth, statemachine.Fail))
		e.settled()
		e.equal("limits in use", e.limit().Name, "")
		for k, v := range e.dump() {
			if strings.Contains(k, "held:") || strings.Contains(k, "waits:") || strings.HasSuffix(k, "}:limits") || strings.HasSuffix(k, ":limits") {
				e.Errorf("%s = %s is left", k, v)
			}
		}
	})
}

// A checkpoint keeps the place, a dead process gives it back when its lease is over, and its commit comes too late.
func TestLimitSurvivesDeaths(t *testing.T) {
	each(t, func(e *env) {
		a, b, c := e.single(), e.single(), e.single()
		dead, alive := e.enters(a), e.enters(b)
		e.refused(c)
		check := delta(alive, job.Checkpoint)
		check.Next, check.Lease = rand.Text(), time.Minute
		e.commit(check)
		e.ok(e.store.Refresh(e.Context(), b, check.Next, time.Minute))
		e.ok(e.store.Refresh(e.Context(), a, dead.Token, time.Millisecond))
		e.until("the lease is over", func() bool {
			e.settled()
			return e.info(a).Status == statemachine.Queued
		})
		e.settled()
		third := e.enters(c)
		e.refused(a)
		e.fails(e.try(delta(dead, statemachine.Complete)).Refused, job.ErrFenced)
		e.commit(delta(third, statemachine.Complete))
		e.settled()
		last := e.enters(a)
		alive.Token = check.Next
		e.commit(delta(alive, statemachine.Complete))
		e.commit(delta(last, statemachine.Complete))
		e.settled()
		e.equal("limits in use", e.limit().Name, "")
	})
}

// Each value of an argument has places of its own, and a queue has a limit besides.
func TestLimitByArgumentAndQueue(t *testing.T) {
	each(t, func(e *env) {
		begin := func(id job.ID) (*job.Snapshot, error) {
			b := beginning()
			b.Token = rand.Text()
			b.Running = []job.RunLimit{{Type: "T", Max: 1, By: "who"}, {Queue: job.DefaultQueue, Max: 2}}
			return e.store.Begin(e.Context(), id, b)
		}
		of := func(args string) job.ID { return e.create(job.Node{Type: "T", Args: raws(args)[0]}) }
		ann, ann2, bob, eve := of(`{"who":"ann"}`), of(`{"who":"ann"}`), of(`{"who":"bob"}`), of(`{"who":7}`)
		first, err := begin(ann)
		e.ok(err)
		_, err = begin(ann2)
		e.fails(err, job.ErrLimit)
		e.equal("reason", e.info(ann2).Reason, "limit: type:T:ann has 1 places")
		_, err = begin(bob)
		e.ok(err)
		_, err = begin(eve)
		e.fails(err, job.ErrLimit)
		e.equal("reason", e.info(eve).Reason, "limit: queue:default has 2 places")
		e.commit(delta(first, statemachine.Complete))
		e.settled()
		_, err = begin(eve)
		e.ok(err)
		_, err = begin(ann2)
		e.fails(err, job.ErrLimit) // it has its place of the type, and waits for the queue's
		e.equal("reason", e.info(ann2).Reason, "limit: queue:default has 2 places")
	})
}

// Whatever jobs do, never more than so many runs go on, and none is left waiting for ever.
func TestLimitHoldsAtRandom(t *testing.T) {
	each(t, func(e *env) {
		seed := uint64(time.Now().UnixNano())
		e.Logf("seed %d", seed)
		r := mathRand(seed)
		ids := make([]job.ID, 12)
		for i := range ids {
			ids[i] = e.single()
		}
		running, over := map[job.ID]*job.Snapshot{}, map[job.ID]bool{}
		for n := 0; len(over) < len(ids); n++ {
			if n == 3000 {
				e.Fatalf("%d of %d jobs are over after %d steps: %+v", len(over), len(ids), n, e.limit())
			}
			id := ids[r.IntN(len(ids))]
			snap := running[id]
			switch {
			case over[id]:
			case snap == nil:
				b := limitedTo2()
				b.Token = rand.Text()
				s, err := e.store.Begin(e.Context(), id, b)
				if err == nil {
					running[id] = s
				} else if !errors.Is(err, job.ErrLimit) && !errors.Is(err, job.ErrStatus) {
					e.Fatal(err)
				}
			case r.IntN(4) == 0: // its process dies
				e.ok(e.store.Refresh(e.Context(), id, snap.Token, time.Millisecond))
				e.until("the lease is over", func() bool {
					e.settled()
					return e.info(id).Status == statemachine.Queued || e.info(id).Status == statemachine.Scheduled
				})
				delete(running, id)
			case r.IntN(3) == 0:
				e.commit(delta(snap, statemachine.Requeue))
				delete(running, id)
			default:
				e.commit(delta(snap, []statemachine.Event{statemachine.Complete, statemachine.Fail, statemachine.Suspend}[r.IntN(3)]))
				delete(running, id)
				over[id] = true
			}
			if len(running) > 2 {
				e.Fatalf("%d runs go on at once", len(running))
			}
			if r.IntN(5) == 0 {
				e.settled()
			}
		}
		e.settled()
		e.equal("limits in use", e.limit().Name, "")
	})
}

func mathRand(seed uint64) *mrand.Rand { return mrand.New(mrand.NewPCG(seed, 1)) } //nolint:gosec // for a test
