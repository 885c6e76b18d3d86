package redisstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// limitedTo2 is how a run begins where at most two of type T go on at once.
func limitedTo2() store.Begin {
	b := beginning()
	b.Running = []store.RunLimit{{Type: "T", Max: 2}}
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
func (e *env) enters(id job.ID) *store.Snapshot {
	e.Helper()
	b := limitedTo2()
	b.Token = rand.Text()
	s, err := e.store.Begin(e.Context(), id, b)
	e.Check(err)
	return s
}

// limit returns the only limit that is in use; none if there is none.
func (e *env) limit() redisstore.LimitInfo {
	e.Helper()
	all, err := e.store.(*redisstore.Store).Limits(e.Context())
	e.Check(err)
	if len(all) > 1 {
		e.Fatalf("limits: %+v", all)
	}
	if len(all) == 0 {
		return redisstore.LimitInfo{}
	}
	one, err := e.store.(*redisstore.Store).Limit(e.Context(), all[0].Name)
	e.Check(err)
	one.Waited, one.Free = all[0].Waited, all[0].Free // by a later clock
	e.equal("the limit by its name", *one, all[0])
	return all[0]
}

// settled carries out what shards have for each other.
func (e *env) settled() {
	e.Helper()
	for range 5 {
		_, err := e.store.Sweep(e.Context())
		e.Check(err)
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
		e.equal("reason", e.info(c).Reason, "limit: type:T has no free place")
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

		e.Check(e.store.Terminate(ctx, d)) // who waits goes
		e.settled()
		e.equal("waiting", e.limit().Waiting, int64(0))
		e.end(d, statemachine.Shutdown)
		e.commit(delta(third, statemachine.Suspend))
		e.commit(delta(fourth, statemachine.Fail))
		e.settled()
		e.equal("limits in use", e.limit().Name, "")
		for k, v := range e.dump() {
			if strings.Contains(k, "held:") || strings.Contains(k, "waits:") || strings.Contains(k, "limited:") || strings.HasSuffix(k, "}:limits") || strings.HasSuffix(k, ":limits") {
				e.Errorf("%s = %s is left", k, v)
			}
		}
	})
}

// A checkpoint keeps the place, a dead process gives it back when its lease is over, and its commit comes too late.
func TestLimitSurvivesCrashes(t *testing.T) {
	each(t, func(e *env) {
		a, b, c := e.single(), e.single(), e.single()
		dead, alive := e.enters(a), e.enters(b)
		e.refused(c)
		check := delta(alive, store.Checkpoint)
		check.Next, check.Lease = rand.Text(), time.Minute
		e.commit(check)
		e.Check(e.store.Refresh(e.Context(), b, check.Next, time.Minute, nil))
		e.Check(e.store.Refresh(e.Context(), a, dead.Token, time.Millisecond, nil))
		e.Until("the lease is over", func() bool {
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
		begin := func(id job.ID) (*store.Snapshot, error) {
			b := beginning()
			b.Token = rand.Text()
			b.Running = []store.RunLimit{{Type: "T", Max: 1, By: "who"}, {Queue: job.DefaultQueue, Max: 2}}
			return e.store.Begin(e.Context(), id, b)
		}
		of := func(args string) job.ID { return e.create(job.Node{Type: "T", Args: raws(args)[0]}) }
		ann, ann2, bob, eve := of(`{"who":"ann"}`), of(`{"who":"ann"}`), of(`{"who":"bob"}`), of(`{"who":7}`)
		first, err := begin(ann)
		e.Check(err)
		_, err = begin(ann2)
		e.fails(err, job.ErrLimit)
		e.equal("reason", e.info(ann2).Reason, "limit: type:T=ann has no free place")
		_, err = begin(bob)
		e.Check(err)
		_, err = begin(eve)
		e.fails(err, job.ErrLimit)
		e.equal("reason", e.info(eve).Reason, "limit: queue:default has no free place")
		e.commit(delta(first, statemachine.Complete))
		e.settled()
		_, err = begin(eve)
		e.Check(err)
		_, err = begin(ann2)
		e.fails(err, job.ErrLimit) // it has its place of the type, and waits for the queue's
		e.equal("reason", e.info(ann2).Reason, "limit: queue:default has no free place")
	})
}

// Values of an argument that differ have limits that differ; null is as good as none, and so are lists and objects.
func TestLimitByValues(t *testing.T) {
	each(t, func(e *env) {
		for args, name := range map[string]string{
			`{"who":true}`: "type:T=true", `{"who":false}`: "type:T=false", `{"who":0}`: "type:T=0", `{"who":0.5}`: "type:T=0.5",
			`{"who":"0"}`: "type:T=0", `{"who":""}`: "type:T=", `{"who":null}`: "type:T=", `{}`: "type:T=", `{"who":[1]}`: "type:T=", `{"who":{}}`: "type:T=",
		} {
			id := e.create(job.Node{Type: "T", Args: raws(args)[0]})
			b := beginning()
			b.Token, b.Running = rand.Text(), []store.RunLimit{{Type: "T", Max: 1, By: "who"}}
			snap, err := e.store.Begin(e.Context(), id, b)
			e.Check(err)
			e.equal("limit of "+args, e.limit().Name, name)
			e.commit(delta(snap, statemachine.Complete))
			e.settled()
		}
	})
}

// Whatever jobs do, never more than that many runs go on, and none is left waiting indefinitely.
func TestLimitHoldsAtRandom(t *testing.T) {
	each(t, func(e *env) {
		seed := uint64(time.Now().UnixNano())
		e.Logf("seed %d", seed)
		r := mathRand(seed)
		ids := make([]job.ID, 12)
		for i := range ids {
			ids[i] = e.single()
		}
		running, over := map[job.ID]*store.Snapshot{}, map[job.ID]bool{}
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
				e.Check(e.store.Refresh(e.Context(), id, snap.Token, time.Millisecond, nil))
				e.Until("the lease is over", func() bool {
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
				e.counted(job.DefaultQueue, ids...)
			}
		}
		e.settled()
		e.equal("limits in use", e.limit().Name, "")
	})
}

func mathRand(seed uint64) *mrand.Rand { return mrand.New(mrand.NewPCG(seed, 1)) } //nolint:gosec // for a test

// ofQueue begins a run as an engine does that knows of a limit of the queue; of 0: of none.
func (e *env) ofQueue(id job.ID, max int) (*store.Snapshot, error) {
	e.Helper()
	b := beginning()
	b.Token = rand.Text()
	if max > 0 {
		b.Running = []store.RunLimit{{Queue: job.DefaultQueue, Max: max}}
	}
	return e.store.Begin(e.Context(), id, b)
}

// Who waits for a place goes on at once when the limit of a queue is removed, also those that claim one meanwhile, as engines know
// of it later. All surfaces forget the limit, and nothing of it is left.
func TestLimitThatIsRemoved(t *testing.T) {
	each(t, func(e *env) {
		s := e.store.(*redisstore.Store)
		e.Check(s.SetQueueLimit(e.Context(), job.DefaultQueue, 1))
		ids := make([]job.ID, 60)
		for i := range ids {
			ids[i] = e.single()
		}
		running, err := e.ofQueue(ids[0], 1)
		e.Check(err)
		for _, id := range ids[1:58] {
			_, err := e.ofQueue(id, 1)
			e.fails(err, job.ErrLimit)
		}
		e.settled()
		e.equal("waiting", e.limit().Waiting, int64(57))
		e.Check(s.SetQueueLimit(e.Context(), job.DefaultQueue, 0))
		e.settled()
		e.equal("limits", e.limit(), redisstore.LimitInfo{})
		for _, name := range []string{"queue:" + job.DefaultQueue, "type:T=a", "other"} {
			_, err = s.Limit(e.Context(), name)
			e.fails(err, job.ErrNotFound)
		}
		all, err := s.Queues(e.Context())
		e.Check(err)
		if e.equal("limit of the queue", all[0].Limit, 0); all[0].Pending != 59 {
			e.Fatalf("%d jobs are ready", all[0].Pending)
		}
		runs := []*store.Snapshot{running}
		for i, id := range ids[1:58] { // those of engines that know it, and of others
			e.equal("reason", e.info(id).Reason, "")
			run, err := e.ofQueue(id, i%2)
			e.Check(err)
			runs = append(runs, run)
		}
		_, err = e.ofQueue(ids[58], 1)
		if err != nil { // it has claimed a place in another shard
			e.fails(err, job.ErrLimit)
			e.settled()
			_, err = e.ofQueue(ids[58], 1)
			e.Check(err)
		}
		for _, run := range runs {
			e.commit(delta(run, statemachine.Complete))
		}
		e.settled()
		for k, v := range e.dump() {
			if strings.Contains(k, "held:") || strings.Contains(k, "waits:") || strings.Contains(k, "limited:") {
				e.Errorf("%s = %s is left", k, v)
			}
		}
		for _, id := range ids[:58] {
			if n := e.Redis.HExists(e.Context(), e.key(id), "place"); n.Val() {
				e.Errorf("job %s still has a place", id)
			}
		}
	})
}

// A changed limit counts at once, whatever engines still believe: more go on, or fewer.
func TestLimitThatIsChanged(t *testing.T) {
	each(t, func(e *env) {
		store := e.store.(*redisstore.Store)
		a, b, c, d := e.single(), e.single(), e.single(), e.single()
		e.Check(store.SetQueueLimit(e.Context(), job.DefaultQueue, 1))
		idle := e.limit()
		e.equal("an idle limit", idle, redisstore.LimitInfo{Name: "queue:" + job.DefaultQueue, Max: 1})
		first, err := e.ofQueue(a, 1)
		e.Check(err)
		for _, id := range []job.ID{b, c} {
			_, err = e.ofQueue(id, 1)
			e.fails(err, job.ErrLimit)
		}
		waiting, err := store.Pending(e.Context(), job.DefaultQueue)
		e.Check(err)
		e.equal("ready jobs, of which two wait for the limit", waiting, 3)
		e.Check(store.SetQueueLimit(e.Context(), job.DefaultQueue, 3))
		e.settled()
		e.equal("places", e.limit().Max, 3)
		e.equal("running", e.limit().Running, int64(3))
		second, err := e.ofQueue(b, 1)
		e.Check(err)
		third, err := e.ofQueue(c, 1)
		e.Check(err)
		e.Check(store.SetQueueLimit(e.Context(), job.DefaultQueue, 2))
		e.commit(delta(first, statemachine.Complete))
		e.settled()
		_, err = e.ofQueue(d, 3)
		e.fails(err, job.ErrLimit)
		e.settled()
		_, err = e.ofQueue(d, 3)
		e.fails(err, job.ErrLimit)
		e.commit(delta(second, statemachine.Complete))
		e.commit(delta(third, statemachine.Complete))
		e.settled()
		_, err = e.ofQueue(d, 3)
		e.Check(err)
	})
}

// The limit of a type is in the catalogue: it shows before anybody runs, and another registration changes it.
func TestLimitOfARegisteredType(t *testing.T) {
	each(t, func(e *env) {
		register := func(max int, by string) {
			e.Helper()
			e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue, MaxRunning: max, MaxRunningBy: by}}))
		}
		register(3, "who")
		e.equal("idle", e.limit(), redisstore.LimitInfo{Name: "type:T", Max: 3, By: "who"})
		register(1, "")
		a, b := e.single(), e.single()
		first := e.enters(a)
		e.refused(b)
		e.settled()
		e.refused(b)
		register(2, "")
		e.settled()
		e.equal("running", e.limit().Running, int64(2))
		register(1, "")
		register(0, "")
		e.settled()
		e.equal("limits", e.limit(), redisstore.LimitInfo{})
		e.enters(b)
		e.commit(delta(first, statemachine.Complete))
	})
}

// For how long who waits has been ready does not begin anew with another claim: its place may have been given to it, and taken back, as
// no engine was there to begin its run.
func TestLimitWaitsSinceReady(t *testing.T) {
	each(t, func(e *env) {
		redisstore.Hashes(e.Store)
		e.enters(e.single())
		e.enters(e.single())
		id := e.single()
		e.Check(e.Redis.HSet(e.Context(), e.key(id), "queued", time.Now().Add(-time.Hour).UnixMilli()).Err())
		e.refused(id)
		e.Until("it waits", func() bool {
			e.settled()
			return e.limit().Waiting == 1
		})
		e.equal("waited", e.limit().Waited.Round(time.Minute), time.Hour)
	})
}
