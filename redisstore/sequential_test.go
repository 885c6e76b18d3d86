package redisstore_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// keyed creates a tree with a sequential key.
func (e *env) keyed(key string, nodes ...job.Node) job.ID {
	e.Helper()
	if len(nodes) == 0 {
		nodes = []job.Node{{Type: "T", Ports: ports(in("in"), out("out"))}}
	}
	id := e.store.Keyed(newID(e), key)
	plan := &job.Plan{Nodes: nodes, SequentialKey: key}
	e.Check(plan.Validate())
	created, err := e.store.Create(e.Context(), id, plan, "test")
	e.Check(err)
	e.equal("created", created, true)
	return id
}

// queue wants the first of some trees of a key to hold it, with a status, and the others to wait in this order.
func (e *env) queue(status statemachine.Status, ids ...job.ID) {
	e.Helper()
	e.is(status, ids[0])
	e.is(job.Waiting, ids[1:]...)
	for i, id := range ids {
		turn, err := e.store.Turn(e.Context(), id)
		e.Check(err)
		want := job.Turn{Key: turn.Key, Holder: ids[0], Before: int64(i), Behind: int64(len(ids) - 1 - i)}
		e.equal("turn", turn, want)
	}
}

// unkeyed wants nothing to be left of sequential keys but the counter.
func (e *env) unkeyed() {
	e.Helper()
	for k, v := range e.dump() {
		if strings.HasSuffix(k, "}:keys") || strings.Contains(k, "}:key:") {
			e.Errorf("%s = %s is left", k, v)
		}
	}
}

// removed terminates and deletes a tree, whose root's Shutdown runs.
func (e *env) removed(id job.ID) {
	e.Helper()
	e.Check(e.store.Terminate(e.Context(), id))
	e.end(id, statemachine.Shutdown)
	e.Check(e.store.Delete(e.Context(), id))
}

// B52: of three with one key the first is ready; other keys, and jobs without one, are none of theirs.
func TestB52SequentialKey(t *testing.T) {
	each(t, func(e *env) {
		a, b, c := e.keyed("k"), e.keyed("k"), e.keyed("k")
		other, none := e.keyed("K"), e.single()
		e.queue(job.Queued, a, b, c)
		e.queue(job.Queued, other)
		e.is(job.Queued, none)
		e.equal("key", e.info(b).SequentialKey, "k")
		turn, err := e.store.Turn(e.Context(), none)
		e.Check(err)
		e.equal("turn without a key", turn, job.Turn{})
		_, err = e.store.Turn(e.Context(), newID(e))
		e.fails(err, job.ErrNotFound)
		keys, err := e.store.(*redisstore.Store).SequenceKeys(e.Context(), 0)
		e.Check(err)
		e.equal("keys", keys, []store.SequenceKey{{Key: "k", Holder: a, Waiting: 2}, {Key: "K", Holder: other}})
	})
}

// B53: each end of the head lets the next one go on: completed, failed, its tries exhausted, terminated, deleted.
func TestB53EndsOfTheHead(t *testing.T) {
	each(t, func(e *env) {
		var ids []job.ID
		for range 7 {
			ids = append(ids, e.keyed("k"))
		}
		e.end(ids[0], statemachine.Complete)
		e.queue(job.Queued, ids[1:]...)
		e.end(ids[1], statemachine.Fail)
		e.is(job.Failed, ids[1])
		e.queue(job.Queued, ids[2:]...)
		for try := range 3 { // a failure that is tried again does not let go of the key
			d := delta(e.begin(ids[2]), statemachine.Backoff)
			if try == 2 {
				d.Outcome = statemachine.Fail
			} else {
				d.Delay = time.Millisecond
			}
			d.Failure = &job.Failure{Error: "no"}
			e.commit(d)
			if try < 2 {
				e.queue(job.Scheduled, ids[2:]...)
				e.Until("its next try", func() bool { e.sweep(); return e.info(ids[2]).Status == job.Queued })
			}
		}
		e.queue(job.Queued, ids[3:]...)
		e.Check(e.store.Terminate(e.Context(), ids[3]))
		e.queue(job.Terminating, ids[3:]...)
		e.end(ids[3], statemachine.Shutdown)
		e.queue(job.Queued, ids[4:]...)
		e.removed(ids[4])
		e.queue(job.Queued, ids[5:]...)
		e.end(ids[5], statemachine.Suspend)
		e.queue(job.Suspended, ids[5:]...)
		e.write(ids[5], "in", "1")
		e.queue(job.Queued, ids[5:]...)
		e.end(ids[5], statemachine.Complete)
		e.queue(job.Queued, ids[6:]...)
		e.end(ids[6], statemachine.Complete)
		e.unkeyed()
	})
}

// B53: one that waits may be terminated and deleted, and promotes nobody by that.
func TestB53EndsOfThoseThatWait(t *testing.T) {
	each(t, func(e *env) {
		a, b, c, d := e.keyed("k"), e.keyed("k"), e.keyed("k"), e.keyed("k")
		e.removed(b)
		e.queue(job.Queued, a, c, d)
		e.Check(e.store.Terminate(e.Context(), c))
		e.queue(job.Queued, a, d)
		snap := e.begin(a)
		e.end(c, statemachine.Shutdown)
		e.queue(job.Running, a, d)
		e.commit(delta(snap, statemachine.Complete))
		e.queue(job.Queued, d)
		e.removed(d)
		e.unkeyed()
	})
}

// B54: one that waits is never begun, whatever its priority, its time and its messages; a list shows it.
func TestB54WaitingDoesNotOvertake(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		node := func(priority int, at time.Time) job.Node {
			return job.Node{Type: "T", Priority: &priority, At: at, Ports: ports(in("in"))}
		}
		a := e.keyed("k", node(0, time.Time{}))
		b := e.keyed("k", node(1000, time.Time{}))
		c := e.keyed("k", node(1000, time.Now().Add(-time.Hour)))
		later := e.keyed("k", node(1000, time.Now().Add(time.Hour)))
		e.Check(e.store.SetPriority(ctx, []job.ID{c}, 1000))
		e.write(c, "in", "1")
		e.queue(job.Queued, a, b, c, later)
		_, err := e.store.Begin(ctx, b, beginning())
		e.fails(err, job.ErrStatus)
		for _, event := range []statemachine.Event{statemachine.Run, statemachine.Force, statemachine.Retry} {
			e.fails(e.store.Apply(ctx, b, event), job.ErrStatus)
		}
		e.Check(e.store.RunAt(ctx, c, time.Time{}, 0))
		e.sweep()
		e.queue(job.Queued, a, b, c, later)
		var waiting []job.ID
		for i, err := range e.store.Jobs(ctx, job.Filter{Status: []statemachine.Status{job.Waiting}, Order: job.Oldest}) {
			e.Check(err)
			waiting = append(waiting, i.ID)
		}
		e.equal("that wait", len(waiting), 3)
		for _, next := range []job.ID{a, b, c} {
			e.equal("begins", e.pop(a.Shard(shards), "T"), next)
			e.equal("begins besides", e.pop(a.Shard(shards), "T"), job.ID(""))
			e.Check(e.store.Terminate(ctx, next))
			e.commit(store.Delta{Job: next, Token: e.token(next), Outcome: statemachine.Shutdown})
		}
		e.queue(job.Scheduled, later) // its own time still holds
		if i := e.info(later); time.Until(i.Next) < 50*time.Minute {
			e.Errorf("it is due at %s", i.Next)
		}
	})
}

// token is that of the run of a job that is going on.
func (e *env) token(id job.ID) string {
	e.Helper()
	token, err := e.Redis.HGet(e.Context(), fmt.Sprintf("weir:{%s:%d}:j:%s", e.Namespace, id.Shard(shards), id), "token").Result()
	e.Check(err)
	return token
}

// B58: neither a child nor a job that repeats has a sequential key.
func TestB58SequentialKeyRefused(t *testing.T) {
	t.Parallel()
	plan := &job.Plan{Nodes: []job.Node{{Type: "T", Name: "child"}}, Parent: newID(t), SequentialKey: "k"}
	err := plan.Validate()
	if err == nil || !strings.Contains(err.Error(), "a child cannot have the sequential key") {
		t.Errorf("error %v", err)
	}
	_, _, err = job.PlanChild("child", &job.Plan{Nodes: []job.Node{{Type: "T"}}, SequentialKey: "k"})
	if err == nil || !strings.Contains(err.Error(), "a child cannot have the sequential key") {
		t.Errorf("error %v", err)
	}
	again := &job.Plan{Nodes: []job.Node{{Type: "T"}}, Repeat: &job.Repeats{}, SequentialKey: "k"}
	if err := again.Validate(); err == nil || !strings.Contains(err.Error(), "a job that repeats cannot have the sequential key") {
		t.Errorf("error %v", err)
	}
	for _, key := range []string{"", strings.Repeat("x", 129), "a\nb", "\xff"} {
		if err := job.CheckSequentialKey(key); err == nil {
			t.Errorf("%q is taken", key)
		}
	}
}

// A tree that was over takes its key again, if it is free, or waits before all that were created after it.
func TestSequentialKeyOfTheRevived(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		a, b, c := e.keyed("k"), e.keyed("k"), e.keyed("k")
		e.end(a, statemachine.Fail)
		e.Check(e.store.Apply(ctx, a, statemachine.Retry))
		e.queue(job.Queued, b, a, c)
		e.end(b, statemachine.Complete)
		e.queue(job.Queued, a, c)
		e.write(b, "in", "1") // it has completed, and is woken
		e.queue(job.Queued, a, b, c)
		e.end(a, statemachine.Fail)
		e.queue(job.Queued, b, c)
		d := delta(e.begin(b), statemachine.Complete)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: 0, N: 1}}
		e.commit(d)
		e.end(c, statemachine.Complete)
		e.unkeyed()
		e.Check(e.store.Apply(ctx, a, statemachine.Retry)) // nobody holds it
		e.queue(job.Queued, a)
		e.Check(e.store.Terminate(ctx, a))
		e.end(a, statemachine.Shutdown)
		e.Check(e.store.Apply(ctx, a, statemachine.Force))
		e.queue(job.Queued, a)
		e.end(a, statemachine.Complete)
		e.Check(e.store.Terminate(ctx, a)) // it needs no key to end
		e.end(a, statemachine.Shutdown)
		e.unkeyed()
	})
}

// pair is a graph of two jobs, a that is ready and b that a feeds.
func pair(depth int) []job.Node {
	nodes := []job.Node{{Type: "G", Graph: true}}
	for i := 1; i < depth; i++ {
		nodes = append(nodes, job.Node{Type: "G", Name: fmt.Sprint("g", i), Parent: i - 1, Graph: true})
	}
	return append(nodes,
		job.Node{Type: "T", Name: "a", Parent: depth - 1, Ports: ports(out("out", to(depth+1)))},
		job.Node{Type: "T", Name: "b", Parent: depth - 1, Ports: ports(fed("in", 1))})
}

// The jobs of a graph wait with it, whatever is written to them, and follow it.
func TestSequentialKeyOfGraphs(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		first := e.keyed("k")
		g, h := e.keyed("k", pair(2)...), e.keyed("k", pair(1)...)
		e.queue(job.Queued, first, g, h)
		e.is(job.Waiting, g.Nth(2), h.Nth(1))
		e.write(g.Nth(3), "in", "0")
		_, err := e.store.Begin(ctx, g.Nth(3), beginning())
		e.fails(err, job.ErrStatus)
		e.is(job.Waiting, g.Nth(3))
		e.end(first, statemachine.Complete)
		e.Until("its jobs are ready", func() bool {
			e.sweep()
			return e.info(g.Nth(2)).Status == job.Queued && e.info(g.Nth(3)).Status == job.Queued
		})
		e.queue(job.Suspended, g, h)

		e.end(g.Nth(2), statemachine.Fail)
		e.is(job.Failed, g)
		e.Until("its jobs are ready", func() bool { e.sweep(); return e.info(h.Nth(1)).Status == job.Queued })
		e.queue(job.Suspended, h)
		e.Check(e.store.Apply(ctx, g.Nth(2), statemachine.Retry)) // its graph is to go on, and has no key
		e.queue(job.Suspended, h, g)
		_, err = e.store.Begin(ctx, g.Nth(2), beginning())
		e.fails(err, job.ErrStatus)
		e.is(job.Waiting, g.Nth(2))
		d := delta(e.begin(h.Nth(1)), statemachine.Complete)
		d.Closes = []string{"out"}
		e.commit(d)
		e.end(h.Nth(2), statemachine.Complete)
		e.is(job.Completed, h)
		e.Until("its jobs are ready", func() bool { e.sweep(); return e.info(g.Nth(2)).Status == job.Queued })
		e.queue(job.Suspended, g)
		e.Check(e.store.Terminate(ctx, g))
		e.unkeyed()
	})
}

// A graph of which all jobs were ended while it waited is over as soon as it has its key.
func TestSequentialKeyOfAnEndedGraph(t *testing.T) {
	each(t, func(e *env) {
		first := e.keyed("k")
		g, last := e.keyed("k", pair(1)...), e.keyed("k")
		for _, id := range []job.ID{g.Nth(1), g.Nth(2)} {
			e.Check(e.store.Terminate(e.Context(), id))
			e.end(id, statemachine.Shutdown)
		}
		e.queue(job.Queued, first, g, last)
		e.end(first, statemachine.Complete)
		e.Until("the graph is over", func() bool { e.sweep(); return e.info(g).Status == job.Completed })
		e.queue(job.Queued, last)
	})
}

// A graph that is created in parts waits as any other.
func TestSequentialKeyOfALargeGraph(t *testing.T) {
	each(t, func(e *env) {
		nodes := []job.Node{{Type: "G", Graph: true}}
		for i := range 400 {
			nodes = append(nodes, job.Node{Type: "T", Name: fmt.Sprint("n", i)})
		}
		first, g := e.keyed("k"), e.keyed("k", nodes...)
		e.queue(job.Queued, first, g)
		e.sweep()
		e.equal("begins", e.pop(g.Shard(shards), "T"), first)
		e.equal("begins", e.pop(g.Shard(shards), "T"), job.ID(""))
		e.Check(e.store.Terminate(e.Context(), first))
		e.commit(store.Delta{Job: first, Token: e.token(first), Outcome: statemachine.Shutdown})
		e.Until("all are ready", func() bool {
			e.sweep()
			n, err := e.store.Count(e.Context(), job.Filter{All: true, Type: "T", Status: []statemachine.Status{job.Queued}})
			e.Check(err)
			return n == 400
		})
	})
}

// Trees that a run starts wait for their key, too. An ID that is given once makes one tree.
func TestSequentialKeyOfLaunchedTrees(t *testing.T) {
	each(t, func(e *env) {
		base := job.IDAt(time.Now(), "once")
		var roots []job.ID
		for range 2 {
			from := e.single()
			d := delta(e.begin(from), statemachine.Complete)
			for i, id := range []job.ID{base, job.IDAt(time.Now(), "twice")} {
				l, err := store.PlanLaunch(&job.Plan{Nodes: []job.Node{{Type: "T"}}}, job.SequentialKey("k"), job.WithID(id))
				e.Check(err)
				l.ID = e.store.Keyed(l.ID, "k")
				if i == 0 {
					roots = append(roots, l.ID)
				}
				d.Launches = append(d.Launches, l)
			}
			e.commit(d)
			e.settled()
		}
		e.equal("the same tree", roots[0], roots[1])
		e.Until("they are there", func() bool {
			e.settled()
			turn, err := e.store.Turn(e.Context(), roots[0])
			return err == nil && turn.Holder == roots[0] && turn.Behind == 2
		})
		e.is(job.Queued, roots[0])
	})
}

// What is past its retention lets go of its key, and a repetition of any call promotes nobody.
func TestSequentialKeyOnce(t *testing.T) {
	each(t, func(e *env) {
		key := "k " + rand.Text()
		a, b, c := e.keyed(key), e.keyed(key), e.keyed(key)
		d := delta(e.begin(a), statemachine.Complete)
		e.commit(d)
		e.commit(d)
		e.queue(job.Queued, b, c)
		e.equal("created", e.created(b, key), false)
		e.queue(job.Queued, b, c)
		e.equal("created", e.created(c, key), false)
		e.queue(job.Queued, b, c)
		_, err := e.store.Create(e.Context(), elsewhere(e, key), &job.Plan{Nodes: []job.Node{{Type: "T"}}, SequentialKey: key}, "")
		e.fails(err, job.ErrID)
	})
}

// created creates a tree again.
func (e *env) created(id job.ID, key string) bool {
	e.Helper()
	created, err := e.store.Create(e.Context(), id, &job.Plan{Nodes: []job.Node{{Type: "T"}}, SequentialKey: key}, "test")
	e.Check(err)
	return created
}

// elsewhere is an ID in another shard than that of a key.
func elsewhere(e *env, key string) job.ID {
	for {
		if id := newID(e); e.store.Keyed(id, key) != id {
			return id
		}
	}
}

// The doctor tells of a key whose holder sleeps while others wait, and of one that nobody lets go of any more.
func TestExamineSequentialKeys(t *testing.T) {
	e := durable(t)
	e.healthy()
	a, _, c := e.keyed("k"), e.keyed("k"), e.keyed("other")
	e.examine(false).has(t, "keys", redisstore.OK, "2 sequential keys held, 1 tree waiting", "")
	e.end(a, statemachine.Suspend)
	hash := func(id job.ID) string { return fmt.Sprintf("weir:{%s:%d}:j:%s", e.Namespace, id.Shard(shards), id) }
	e.Check(e.Redis.HSet(e.Context(), hash(a), "ran", time.Now().Add(-2*time.Hour).UnixMilli()).Err())
	e.Check(e.Redis.Del(e.Context(), hash(c)).Err())
	found := e.examine(false)
	found.has(t, "keys", redisstore.Warning, `"k" is held by job .* slept for 2h0m0s; 1 tree waits for it`, "weir why")
	found.has(t, "keys", redisstore.Problem, `"other" is held by job .*, which does not exist`, "HDEL")
}
