package redisstore_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// limitedSet is the set of the jobs of a queue that wait for limits, as docs/redis.md says.
func (e *env) limitedSet(shard int, queue string) string {
	return fmt.Sprintf("weir:{%s:%d}:limited:%s", e.Namespace, shard, queue)
}

// inQueue returns what is known of a queue.
func (e *env) inQueue(name string) redisstore.QueueInfo {
	e.Helper()
	all, err := e.store.(*redisstore.Store).Queues(e.Context())
	e.Check(err)
	i := slices.IndexFunc(all, func(q redisstore.QueueInfo) bool { return q.Name == name })
	if i < 0 {
		return redisstore.QueueInfo{}
	}
	return all[i]
}

// counted wants the sets of those that wait for limits to have the jobs that do, whatever happened before.
func (e *env) counted(queue string, ids ...job.ID) {
	e.Helper()
	want, got := []string{}, []string{}
	for _, id := range ids {
		v, err := e.Redis.HMGet(e.Context(), e.key(id), "status", "queue", "claim").Result()
		e.Check(err)
		if claim, _ := v[2].(string); claim != "" && v[1] == queue && v[0] == string(statemachine.Queued) {
			want = append(want, string(id))
		}
	}
	for shard := range shards {
		some, err := e.Redis.ZRange(e.Context(), e.limitedSet(shard, queue), 0, -1).Result()
		e.Check(err)
		got = append(got, some...)
	}
	slices.Sort(want)
	slices.Sort(got)
	e.equal("jobs that wait for limits", got, want)
}

// Jobs that wait for limits, of whatever kind, are counted by queue: each once, and none any more that has its place or has ended.
func TestLimitedByQueue(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		mail := func() job.ID { return e.create(job.Node{Type: "T", Queue: "mail"}) }
		runs := []*store.Snapshot{e.enters(e.single()), e.enters(mail())}
		a, b, c, d := e.single(), e.single(), mail(), mail()
		for range 3 { // who is asked again waits as before
			for _, id := range []job.ID{a, b, c, d} {
				e.refused(id)
			}
		}
		e.Check(e.Redis.HSet(ctx, e.key(b), "queued", time.Now().Add(-time.Hour).UnixMilli()).Err())
		e.Check(e.Redis.ZRem(ctx, e.limitedSet(b.Shard(shards), job.DefaultQueue), string(b)).Err())
		e.refused(b)
		q := e.inQueue(job.DefaultQueue)
		e.equal("default", []any{q.Limited, q.LimitedFor.Round(time.Minute), q.Pending}, []any{2, time.Hour, 0})
		e.equal("mail", e.inQueue("mail").Limited, 2)

		e.Check(e.store.Terminate(ctx, a))
		e.equal("after one is terminated", e.inQueue(job.DefaultQueue).Limited, 1)
		e.Check(e.store.(*redisstore.Store).Fail(ctx, c, store.ByHand{}))
		e.settled()
		e.equal("after one has failed", e.inQueue("mail").Limited, 1)
		for _, s := range runs {
			e.commit(delta(s, statemachine.Complete))
		}
		e.settled()
		for _, name := range []string{job.DefaultQueue, "mail"} {
			q := e.inQueue(name)
			e.equal(name, []any{q.Limited, q.LimitedFor, q.Pending}, []any{0, time.Duration(0), 1 + min(1, strings.Count(name, "default"))})
		}
		for k, v := range e.dump() {
			if strings.HasSuffix(k, "}:due") && strings.Contains(fmt.Sprint(v), "!limited") {
				e.Errorf("%s = %v is left", k, v)
			}
		}
		e.enters(b)
		e.enters(d)
	})
}

// A patch may put who waits into another queue: he is ready there until he has looked, and waits there then.
func TestLimitedInAnotherQueue(t *testing.T) {
	each(t, func(e *env) {
		nodes := func(queue string) []job.Node {
			return []job.Node{{Type: "g", Graph: true}, {Name: "a", Type: "T", Queue: queue}}
		}
		g := newID(e)
		_, err := e.store.Create(e.Context(), g, &job.Plan{Nodes: nodes("one")}, "test")
		e.Check(err)
		e.enters(e.single())
		e.enters(e.single())
		id := g.Nth(1)
		e.refused(id)
		e.counted("one", id)
		h, err := client.New(e.store).Find(e.Context(), string(g))
		e.Check(err)
		e.Check(h.Patch(e.Context(), planned(nodes("two"))))
		e.equal("one", []int{e.inQueue("one").Limited, e.inQueue("two").Limited + e.inQueue("two").Pending}, []int{0, 1})
		e.refused(id)
		e.equal("two", []int{e.inQueue("one").Limited, e.inQueue("two").Limited}, []int{0, 1})
	})
}

// A job that begins where nobody knows of its limit any more waits no longer, whether it holds another place or not.
func TestLimitedNoMore(t *testing.T) {
	each(t, func(e *env) {
		e.enters(e.single())
		e.enters(e.single())
		id := e.single()
		e.refused(id)
		e.begin(id)
		e.counted(job.DefaultQueue, id)
		e.equal("waiting", e.inQueue(job.DefaultQueue).Limited, 0)
		e.Until("nobody waits for the limit", func() bool {
			e.settled()
			return e.limit().Waiting == 0
		})

		_, err := e.ofQueue(e.single(), 1)
		e.Check(err)
		both, b := e.create(job.Node{Type: "U"}), beginning()
		b.Token, b.Running = rand.Text(), []store.RunLimit{{Type: "U", Max: 1}, {Queue: job.DefaultQueue, Max: 1}}
		for range 2 { // its place of the type may be in another shard
			_, err = e.store.Begin(e.Context(), both, b)
			e.fails(err, job.ErrLimit)
			e.settled()
		}
		e.equal("waiting", e.inQueue(job.DefaultQueue).Limited, 1)
		b.Token, b.Running = rand.Text(), b.Running[:1]
		s, err := e.store.Begin(e.Context(), both, b)
		e.Check(err)
		e.equal("waiting", e.inQueue(job.DefaultQueue).Limited, 0)
		e.commit(delta(s, statemachine.Complete))
		e.Until("nothing of its places and claims is left", func() bool {
			e.settled()
			for k := range e.dump() {
				if strings.Contains(k, "waits:") || strings.HasSuffix(k, "held:type:U") {
					return false
				}
			}
			return true
		})
	})
}

// What programs of an older version leave in the sets is put right: who waits puts himself there when he looks, and the sweeper takes
// out those that do not wait.
func TestLimitedIsRepaired(t *testing.T) {
	each(t, func(e *env) {
		running, other, waits, gone := e.single(), e.single(), e.single(), newID(e)
		e.enters(running)
		e.enters(other)
		e.refused(waits)
		e.Check(e.Redis.Del(e.Context(), e.limitedSet(waits.Shard(shards), job.DefaultQueue)).Err())
		e.refused(waits)
		e.counted(job.DefaultQueue, waits)

		for _, id := range []job.ID{running, other, gone, waits} {
			shard := id.Shard(shards)
			for _, queue := range []string{job.DefaultQueue, "other"} {
				e.Check(e.Redis.ZAdd(e.Context(), e.limitedSet(shard, queue), redis.Z{Score: 1, Member: string(id)}).Err())
				e.Check(e.Redis.ZAdd(e.Context(), e.due(id), redis.Z{Score: 1, Member: "!limited " + queue}).Err())
			}
		}
		entries := func() (all []string) {
			for shard := range shards {
				some, err := e.Redis.ZRange(e.Context(), fmt.Sprintf("weir:{%s:%d}:due", e.Namespace, shard), 0, -1).Result()
				e.Check(err)
				for _, m := range some {
					if strings.HasPrefix(m, "!limited") {
						all = append(all, fmt.Sprint(shard, m))
					}
				}
			}
			return all
		}
		e.Until("the sweeper has looked", func() bool {
			e.settled()
			return len(entries()) == 1
		})
		e.equal("entries of due", entries(), []string{fmt.Sprint(waits.Shard(shards), "!limited default")})
		e.counted(job.DefaultQueue, waits, running, gone)
		e.counted("other", waits, running, gone)
	})
}

// A place goes to no job that nobody will begin, as its queue is paused or no engine may have it: others have it then.
func TestLimitOfJobsThatNobodyBegins(t *testing.T) {
	engine := func(queue string, types ...string) store.EngineInfo {
		return store.EngineInfo{ID: queue, Queues: map[string]int{queue: 1}, Types: types}
	}
	for name, mails := range map[string]func(*env){
		"the queue is paused": func(e *env) {
			e.Check(e.store.Heartbeat(e.Context(), engine("mail", "T")))
			_, err := e.store.(*redisstore.Store).PauseQueue(e.Context(), "mail")
			e.Check(err)
		},
		"no engine serves the queue": func(*env) {},
		"engines lack the type":      func(e *env) { e.Check(e.store.Heartbeat(e.Context(), engine("mail", "other"))) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				mails(e)
				e.Check(e.store.Heartbeat(e.Context(), engine(job.DefaultQueue, "T")))
				mail := func() job.ID { return e.create(job.Node{Type: "T", Queue: "mail"}) }
				first, second := e.enters(e.single()), e.enters(e.single())
				a, b, waits := mail(), mail(), mail()
				for _, id := range []job.ID{a, b, waits} {
					e.refused(id)
				}
				here := e.single()
				e.refused(here)
				e.commit(delta(first, statemachine.Complete))
				e.commit(delta(second, statemachine.Complete))
				e.settled()
				e.equal("they have the places", []int64{e.limit().Running, e.limit().Waiting}, []int64{2, 2})
				e.equal("a has one", e.Redis.HGet(e.Context(), e.key(a), "place").Val() != "", true)

				e.Until("the place is free", func() bool {
					e.settled()
					return e.Redis.HExists(e.Context(), e.key(here), "place").Val()
				})
				e.enters(here)
				e.Until("the next of them has given back his", func() bool {
					e.settled()
					return e.Redis.HGet(e.Context(), e.key(waits), "place").Err() != nil
				})
				for _, id := range []job.ID{a, b, waits} {
					e.equal("what it says and holds", e.Redis.HMGet(e.Context(), e.key(id), "place", "claim").Val(), []any{nil, nil})
					e.equal("status", e.info(id).Status, statemachine.Queued)
				}
				e.enters(a) // for somebody takes it after all
				e.refused(b)
			})
		})
	}
}

// What waits for its first run in a queue that is paused stays a record.
func TestRecordsOfAPausedQueue(t *testing.T) {
	each(t, func(e *env) {
		e.Check(e.store.Heartbeat(e.Context(), store.EngineInfo{ID: "A", Queues: map[string]int{job.DefaultQueue: 1}, Types: []string{"T"}}))
		root := newID(e)
		e.createRecord(root, 1)
		id := root.Nth(1)
		_, err := e.store.(*redisstore.Store).PauseQueue(e.Context(), job.DefaultQueue)
		e.Check(err)
		before := e.Redis.ZScore(e.Context(), e.due(id), string(id)).Val()
		e.Until("the sweeper has looked", func() bool {
			e.settled()
			return e.Redis.ZScore(e.Context(), e.due(id), string(id)).Val() > before
		})
		e.equal("records", e.records(), 1)
	})
}

// Who waits for a limit in a queue that is paused leaves the line at once, and is ready where the queue goes on.
func TestPausedQueuesWaitForNoLimit(t *testing.T) {
	each(t, func(e *env) {
		store := e.store.(*redisstore.Store)
		first, second := e.enters(e.single()), e.enters(e.single())
		var waiting []job.ID
		for range 120 {
			waiting = append(waiting, e.create(job.Node{Type: "T", Queue: "mail"}))
			e.refused(waiting[len(waiting)-1])
		}
		here := e.single()
		e.refused(here)
		_, err := store.PauseQueue(e.Context(), "mail")
		e.Check(err)
		e.settled()
		q := e.inQueue("mail")
		e.equal("waiting and ready", []any{q.Limited, q.Pending}, []any{0, len(waiting)})
		e.equal("in line", e.limit().Waiting, int64(1))
		e.commit(delta(first, statemachine.Complete))
		e.commit(delta(second, statemachine.Complete))
		e.settled()
		e.commit(delta(e.enters(here), statemachine.Complete))
		e.settled()
		_, err = store.ResumeQueue(e.Context(), "mail")
		e.Check(err)
		e.enters(waiting[0])
		e.enters(waiting[1])
		e.refused(waiting[2])
	})
}
