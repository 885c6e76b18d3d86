package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// A sweeper acts on timers at their time, not in its next round: on those that are there when it begins, those that
// lie behind another one in the same shard, and those that this or another process sets meanwhile.
func TestTimersBetweenRounds(t *testing.T) {
	each(t, func(e *env) {
		other := enginetest.Open(e, redisstore.Config{URL: e.URL, Namespace: e.Namespace, Shards: shards})
		suspended := func() job.ID {
			e.Helper()
			id := e.single()
			e.end(id, statemachine.Suspend)
			return id
		}
		root := e.create(
			job.Node{Type: "T", Ports: ports(in("in"))},
			job.Node{Name: "a", Type: "T", Ports: ports(in("in"))})
		e.end(root, statemachine.Suspend)
		e.end(root.Nth(1), statemachine.Suspend)
		here, there := suspended(), suspended()
		// The sweeper of this process hears others once a server of it listens.
		e.freeSlots("T")
		e.Check(e.store.RunAt(e.Context(), root, time.Time{}, 50*time.Millisecond))
		e.Check(e.store.RunAt(e.Context(), root.Nth(1), time.Time{}, 150*time.Millisecond))

		ctx, cancel := context.WithCancel(e.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			e.store.Watch(ctx, time.Hour, func(err error) { e.Error(err) })
		}()
		defer func() { cancel(); <-watched }()
		e.rings(root, root.Nth(1))
		e.Check(e.store.RunAt(e.Context(), here, time.Time{}, 100*time.Millisecond))
		e.Check(other.RunAt(e.Context(), there, time.Now().Add(100*time.Millisecond), 0))
		late, err := job.NewID()
		e.Check(err)
		plan := &job.Plan{Nodes: []job.Node{{Type: "T", At: time.Now().Add(100 * time.Millisecond)}}}
		_, err = other.Create(e.Context(), late, plan, "test")
		e.Check(err)
		e.rings(here, there, late)
	})
}

// rings waits until each of the jobs is queued.
func (e *env) rings(ids ...job.ID) {
	e.Helper()
	for _, id := range ids {
		for end := time.Now().Add(20 * time.Second); e.info(id).Status != statemachine.Queued; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				e.Fatalf("the timer of job %s does not fire between two rounds", id)
			}
		}
	}
}

// A sweeper that nobody needs asks little of Redis.
func TestIdleSweeperAsksLittle(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := open(t, s.URL())
	id := e.single()
	e.end(id, statemachine.Suspend)
	e.Check(e.store.RunAt(e.Context(), id, time.Now().Add(time.Hour), 0))
	ctx, cancel := context.WithTimeout(e.Context(), 2*time.Second)
	defer cancel()
	before := e.asked()
	e.store.Watch(ctx, 100*time.Millisecond, func(err error) { e.Error(err) })
	if n := e.asked() - before; n > 100 { // 20 rounds, of which 5 look at the shards
		t.Errorf("%d commands in 20 rounds", n)
	}
}

// asked is how many commands a server has carried out.
func (e *env) asked() (n int) {
	e.Helper()
	text := e.Redis.Info(e.Context(), "stats").Val()
	_, text, _ = strings.Cut(text, "total_commands_processed:")
	_, err := fmt.Sscan(text, &n)
	e.Check(err)
	return n
}

// The more ready jobs there are, the less often each is looked at: a look at any of a type has engines come for all.
func TestManyReadyAreLeftAlone(t *testing.T) {
	const many = 1500
	each(t, func(e *env) {
		ctx := e.Context()
		nodes := []job.Node{{Type: "T"}}
		for i := range many {
			nodes = append(nodes, job.Node{Name: fmt.Sprintf("many%d", i), Type: "Many"})
		}
		root := e.create(nodes...)
		due := e.due(root)
		_, err := e.Redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			for n := range many + 1 {
				p.ZAdd(ctx, due, redis.Z{Member: string(root.Nth(n))})
			}
			return nil
		})
		e.Check(err)
		began := time.Now().Add(-time.Millisecond) // Redis cuts off what is less
		e.Check(e.store.SweepOf(ctx, root))
		swept := time.Since(began)
		left := func(id job.ID) time.Duration {
			at, err := e.Redis.ZScore(ctx, due, string(id)).Result()
			e.Check(err)
			return time.UnixMilli(int64(at)).Sub(began)
		}
		age := time.Second + 10*swept // of a job, at most: it is as many seconds apart, a moment later
		if one := left(root); one < time.Second || one > age+swept {
			e.Errorf("the only ready job of its type is left alone for %s", one)
		}
		for n := 1; n <= many; n++ {
			if one := left(root.Nth(n)); one < many*time.Second/1000 {
				e.Fatalf("one of %d ready jobs is left alone for %s", many, one)
			}
		}
		all, err := e.store.(*redisstore.Store).Queues(ctx)
		e.Check(err)
		e.equal("ready", all[0].Pending, many+1)
	})
}

// Of many jobs that became ready together some are looked at again soon: whoever does so has engines come for all.
func TestManyReadyTogether(t *testing.T) {
	each(t, func(e *env) {
		id := newID(e)
		e.createAs(id, crowd(300).Nodes...)
		e.Until("each was looked at once", func() bool {
			e.settled()
			soon, err := e.Redis.ZCount(e.Context(), e.due(id), "-inf", fmt.Sprint(time.Now().Add(900*time.Millisecond).UnixMilli())).Result()
			e.Check(err)
			return soon < 250
		})
		for range 3 {
			first, err := e.Redis.ZRangeWithScores(e.Context(), e.due(id), 0, 0).Result()
			e.Check(err)
			if left := time.Until(time.UnixMilli(int64(first[0].Score))); left > 2*time.Second {
				e.Fatalf("none of them is looked at for %s", left)
			}
			time.Sleep(time.Second)
			e.settled()
		}
	})
}
