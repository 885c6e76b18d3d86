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
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/statemachine"
)

// retained creates a tree that is kept for so long after it has settled.
func (e *env) retained(d time.Duration, nodes ...job.Node) job.ID {
	e.Helper()
	id := newID(e)
	plan := &job.Plan{Nodes: nodes, Retain: d}
	e.Check(plan.Validate())
	created, err := e.store.Create(e.Context(), id, plan, "test")
	e.Check(err)
	e.equal("created", created, true)
	return id
}

// lone is a job with an In port, which holds a message, and an Out port.
func lone() job.Node {
	fed := in("in")
	fed.Initial = raws("0")
	return job.Node{Type: "T", Ports: ports(fed, out("out"))}
}

// gone wants nothing to be left of a tree but that nobody may make it anew.
func (e *env) vanished(id job.ID) {
	e.Helper()
	_, err := e.store.Info(e.Context(), id)
	e.fails(err, job.ErrNotFound)
	for k, v := range e.dump() {
		if strings.Contains(k+v, string(id.Tree())) && !strings.HasSuffix(k, ":erased") {
			e.Errorf("%s = %.300s is left of tree %s", k, v, id)
		}
	}
}

// spawnPlan has a run of a job spawn a child, which is returned, and end with an outcome.
func (e *env) spawnPlan(parent job.ID, plan *job.Plan, outcome statemachine.Event) job.ID {
	e.Helper()
	base, err := e.store.Reserve(e.Context(), parent, len(plan.Nodes))
	e.Check(err)
	d := delta(e.begin(parent), outcome)
	d.Spawns = []store.Spawn{{Plan: plan, Base: base}}
	e.commit(d)
	return parent.Nth(base)
}

// child is the plan of one.
func child(name string) *job.Plan {
	n := lone()
	n.Name = name
	return &job.Plan{Nodes: []job.Node{n}}
}

func TestRetainRemovesWhatSettled(t *testing.T) {
	each(t, func(e *env) {
		completed, failed, terminated := e.retained(time.Millisecond, lone()), e.retained(time.Millisecond, lone()), e.retained(time.Millisecond, lone())
		kept, waiting := e.retained(job.Forever, lone()), e.retained(time.Millisecond, lone())
		last := delta(e.begin(completed), statemachine.Complete)
		e.commit(last)
		e.end(failed, statemachine.Fail)
		e.Check(e.store.Terminate(e.Context(), terminated))
		e.end(terminated, statemachine.Shutdown)
		e.end(kept, statemachine.Complete)
		e.sweep()
		e.vanished(completed)
		e.vanished(failed)
		e.vanished(terminated)
		e.is(statemachine.Completed, kept)
		e.is(statemachine.Queued, waiting)

		e.fails(e.try(last).Refused, job.ErrNotFound) // whatever is sent late makes nothing anew
		e.fails(e.store.Write(e.Context(), failed, store.Write{Dir: port.Input, Port: "in", Items: raws("1")}), job.ErrNotFound)
		_, err := e.store.Create(e.Context(), completed, &job.Plan{Nodes: []job.Node{lone()}}, "")
		if err == nil {
			t.Error("the tree was made again")
		}
		e.vanished(completed)
	})
}

// A job that has completed as it was not given anything yet is there when its first message comes, however short its retention is.
func TestRetainWaitsForTheFirstMessage(t *testing.T) {
	each(t, func(e *env) {
		node := job.Node{Type: "T", Ports: ports(in("in"))}
		id, closed := e.retained(time.Millisecond, node), e.retained(time.Millisecond, node)
		e.Check(e.store.ClosePort(e.Context(), closed, port.Input, "in"))
		e.end(closed, statemachine.Complete)
		e.end(id, statemachine.Complete)
		wait := e.info(id).Expires.Sub(e.info(id).Ran)
		e.equal("kept for a minute", wait >= time.Minute && wait < 2*time.Minute, true)
		e.sweep()
		e.vanished(closed)
		e.write(id, "in", "1")
		d := delta(e.begin(id), statemachine.Complete)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
		e.commit(d)
		e.sweep()
		e.vanished(id)
	})
}

// A tree that comes to life before it goes stays, and its time begins anew.
func TestRetainBeginsAnew(t *testing.T) {
	each(t, func(e *env) {
		id := e.retained(time.Millisecond, lone())
		e.end(id, statemachine.Complete)
		e.write(id, "in", "1")
		e.equal("it says when it goes, once it is to run", e.info(id).Expires.IsZero(), true)
		e.sweep()
		e.is(statemachine.Queued, id)
		e.end(id, statemachine.Complete)
		e.sweep()
		e.vanished(id)
	})
}

func TestRetainOfTheNamespace(t *testing.T) {
	each(t, func(e *env) {
		r, err := e.store.Retention(e.Context())
		e.Check(err)
		e.equal("retention", r, job.DefaultRetention)
		expires := func(outcome statemachine.Event) time.Duration {
			id := e.single()
			e.end(id, outcome)
			i := e.info(id)
			return i.Expires.Sub(i.Ran).Round(time.Hour)
		}
		e.equal("completed trees go after", expires(statemachine.Complete), 7*24*time.Hour)
		e.equal("failed trees go after", expires(statemachine.Fail), 30*24*time.Hour)
		e.Check(e.store.SetRetention(e.Context(), job.Retention{Ended: time.Millisecond}))
		id := e.create(lone())
		e.end(id, statemachine.Complete)
		e.sweep()
		e.vanished(id)
		e.equal("failed trees go after", expires(statemachine.Fail), 30*24*time.Hour)
		e.Check(e.store.SetRetention(e.Context(), job.Retention{Ended: job.Forever, Failed: time.Hour}))
		r, err = e.store.Retention(e.Context())
		e.Check(err)
		e.equal("retention", r, job.Retention{Ended: job.Forever, Failed: time.Hour, Log: job.Forever})
		id = e.single()
		e.end(id, statemachine.Complete)
		e.equal("expires", e.info(id).Expires, time.Time{})
		e.equal("failed trees go after", expires(statemachine.Fail), time.Hour)
	})
}

// What nobody has read is kept: of the root, and of the jobs of a graph.
func TestRetainKeepsWhatIsUnread(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		root := e.retained(time.Millisecond, lone())
		d := delta(e.begin(root), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1", "2")}}
		e.commit(d)
		graph := e.retained(time.Millisecond, job.Node{Type: "G", Graph: true}, job.Node{Name: "n", Type: "T", Ports: ports(out("out"))})
		d = delta(e.begin(graph.Nth(1)), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("3")}}
		e.commit(d)
		e.is(statemachine.Completed, root, graph)
		e.sweep()
		e.sweep()
		for _, id := range []job.ID{root, graph} {
			e.equal("kept for what is unread", e.info(id).Unread, true)
		}
		e.holds(root, port.Output, "out", "1", "2")
		e.Check(e.store.Take(ctx, root, store.Take{Dir: port.Output, Port: "out", N: 1}, rand.Text()))
		e.sweep()
		e.equal("kept for what is unread", e.info(root).Unread, true)
		e.Check(e.store.Take(ctx, root, store.Take{Dir: port.Output, Port: "out", Head: 1, N: 1}, rand.Text()))
		e.Check(e.store.Take(ctx, graph.Nth(1), store.Take{Dir: port.Output, Port: "out", N: 1}, rand.Text()))
		e.equal("kept for what is unread", e.info(root).Unread, false)
		e.sweep()
		e.vanished(root)
		e.vanished(graph)
	})
}

// A child goes with its tree, whatever it has written.
func TestRetainTakesChildrenAlong(t *testing.T) {
	each(t, func(e *env) {
		root := e.retained(time.Millisecond, lone())
		kid := e.spawnPlan(root, child("kid"), statemachine.Suspend)
		d := delta(e.begin(kid), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		e.commit(d)
		e.end(root, statemachine.Complete) // the child has woken it
		e.sweep()
		e.vanished(root)
	})
}

// What may still run keeps its tree: a child, a timer, a lock, a subscription.
func TestRetainWaitsForWhatMayRun(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		parent := e.retained(time.Millisecond, lone())
		kid := e.spawnPlan(parent, child("kid"), statemachine.Complete)
		sleeper := e.retained(time.Millisecond, lone())
		e.end(e.spawnPlan(sleeper, child("kid"), statemachine.Suspend), statemachine.Suspend)
		e.end(sleeper, statemachine.Complete)
		timer := e.retained(time.Millisecond, lone())
		e.end(timer, statemachine.Complete)
		e.Check(e.store.RunAt(ctx, timer, time.Time{}, time.Hour))
		locked := e.retained(time.Millisecond, lone())
		e.end(locked, statemachine.Complete)
		e.Check(e.Redis.Set(ctx, e.key(locked)+":lock", "token", time.Hour).Err())
		listens := lone()
		listens.Ports[0].Channels = []string{"/news"}
		listener := e.retained(time.Millisecond, listens)
		e.end(listener, statemachine.Complete)
		failed := e.retained(time.Millisecond, job.Node{Type: "G", Graph: true},
			job.Node{Name: "a", Type: "T", Ports: ports(out("out", to(2)))}, job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1))})
		e.end(failed.Nth(1), statemachine.Fail)
		e.is(statemachine.Suspended, failed.Nth(2))
		e.sweep()
		e.vanished(failed) // nobody waits for what is suspended there
		e.is(statemachine.Completed, parent, sleeper, timer, locked, listener)
		e.is(statemachine.Queued, kid)
		e.end(kid, statemachine.Complete) // wakes its parent, which settles anew
		e.end(parent, statemachine.Complete)
		e.sweep()
		e.vanished(parent)
	})
}

// Of a tree that is past its retention nothing goes on, though what a job waits for room in goes before it.
func TestRetainWakesNobody(t *testing.T) {
	each(t, func(e *env) {
		inner := job.Node{Name: "inner", Type: "H", Graph: true}
		full := limited(fed("in", 1), 1)
		id := e.retained(time.Millisecond, job.Node{Type: "G", Graph: true},
			job.Node{Name: "a", Type: "T", Ports: ports(full)}, inner,
			job.Node{Name: "b", Type: "T", Parent: 2, Ports: ports(out("out", to(1)))})
		e.equal("found it full", e.writes(id.Nth(3), statemachine.Requeue, "1", "2").Full, true)
		e.end(id.Nth(1), statemachine.Fail)
		e.is(statemachine.Suspended, id.Nth(3))
		e.sweep()
		e.vanished(id)
	})
}

// A tree that was not to go yet is looked at again, though nothing in it says so.
func TestRetainLooksAgain(t *testing.T) {
	t.Parallel()
	clock := redisstore.NewClock(time.UnixMilli(1e12))
	e := openBy(t, redisstore.Config{Embedded: embedded.Start, Clock: clock})
	s := e.Store
	id := e.retained(time.Second, lone())
	kid := e.spawnPlan(id, child("kid"), statemachine.Suspend)
	e.Check(s.Apply(t.Context(), id, statemachine.Terminate)) // it alone: it is woken no more
	e.end(id, statemachine.Shutdown)
	clock.Set(clock.Now().Add(2 * time.Second))
	e.sweep()
	e.is(statemachine.Terminated, id)
	e.end(kid, statemachine.Complete)
	clock.Set(clock.Now().Add(61 * time.Second))
	e.sweep()
	_, err := s.Info(t.Context(), id)
	e.fails(err, job.ErrNotFound)
	_, err = s.Info(t.Context(), kid)
	e.fails(err, job.ErrNotFound)
}

// A released child goes when a run of its parent that was told of its end is committed.
func TestReleaseRemovesChildren(t *testing.T) {
	each(t, func(e *env) {
		root := e.single()
		plan := child("kid")
		plan.Release = true
		kid := e.spawnPlan(root, plan, statemachine.Suspend)
		d := delta(e.begin(kid), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		e.commit(d)
		e.sweep()
		e.is(statemachine.Completed, kid)
		told := e.begin(root)
		e.equal("children that woke it", len(told.Woken), 1)
		d = delta(told, statemachine.Fail)
		d.Failure = &job.Failure{Error: "no"}
		e.commit(d) // this run has seen nothing
		e.sweep()
		e.is(statemachine.Completed, kid)
		e.Check(e.store.Apply(e.Context(), root, statemachine.Retry))
		told = e.begin(root)
		d = delta(told, statemachine.Suspend)
		d.Woken = told.WokenTo
		e.commit(d)
		e.sweep()
		_, err := e.store.Info(e.Context(), kid)
		e.fails(err, job.ErrNotFound)
		kids, err := e.store.Children(e.Context(), root)
		e.Check(err)
		e.equal("children", len(kids), 0)
		e.is(statemachine.Suspended, root)
	})
}

// A child that its parent lets go later is removed then, if it has settled and its parent was told of that; else as soon as both
// are so.
func TestReleaseLater(t *testing.T) {
	each(t, func(e *env) {
		root := e.single()
		old := e.spawnPlan(root, child("old"), statemachine.Suspend)
		e.end(old, statemachine.Fail)
		young := e.spawnPlan(root, child("young"), statemachine.Suspend) // which was told of the other one
		let := func(names ...string) {
			e.Helper()
			told := e.begin(root)
			d := delta(told, statemachine.Suspend)
			d.Woken, d.Released = told.WokenTo, names
			e.commit(d)
			e.sweep()
		}
		e.is(statemachine.Failed, old)
		e.wake(root)
		let("old", "young", "nobody")
		_, err := e.store.Info(e.Context(), old)
		e.fails(err, job.ErrNotFound)
		e.is(statemachine.Queued, young)
		e.end(young, statemachine.Complete)
		e.sweep()
		e.is(statemachine.Completed, young)
		let()
		_, err = e.store.Info(e.Context(), young)
		e.fails(err, job.ErrNotFound)
		e.is(statemachine.Suspended, root)
	})
}

// A child with a time of its own goes so long after its end, but not before its parent was told of that.
func TestRetainOfAChild(t *testing.T) {
	t.Parallel()
	clock := redisstore.NewClock(time.UnixMilli(1e12))
	e := openBy(t, redisstore.Config{Embedded: embedded.Start, Clock: clock})
	s := e.Store
	root := e.single()
	plan := child("kid")
	plan.Retain = time.Second
	kid := e.spawnPlan(root, plan, statemachine.Suspend)
	e.end(kid, statemachine.Fail)
	clock.Set(clock.Now().Add(2 * time.Second))
	e.sweep()
	e.is(statemachine.Failed, kid)
	told := e.begin(root)
	d := delta(told, statemachine.Suspend)
	d.Woken = told.WokenTo
	e.commit(d)
	clock.Set(clock.Now().Add(61 * time.Second))
	e.sweep()
	_, err := s.Info(t.Context(), kid)
	e.fails(err, job.ErrNotFound)
	e.is(statemachine.Suspended, root)
}

// A large tree goes in pieces, and a child that was adopted from another tree goes on alone.
func TestRetainRemovesLargeTrees(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		nodes := []job.Node{{Type: "G", Graph: true}}
		for i := range 1500 {
			nodes = append(nodes, job.Node{Name: fmt.Sprint("n", i), Type: "T", Ports: ports(in("in"))})
		}
		root := e.retained(time.Millisecond, nodes...)
		for n := 1; n < len(nodes); n++ {
			e.end(root.Nth(n), statemachine.Complete)
		}
		parent, adopted := e.retained(time.Millisecond, lone()), e.retained(job.Forever, lone())
		for adopted.Shard(shards) == parent.Shard(shards) {
			adopted = e.retained(job.Forever, lone())
		}
		e.Check(e.store.Adopt(ctx, parent, adopted, "kid"))
		e.end(adopted, statemachine.Complete)
		e.end(parent, statemachine.Complete)
		e.Until("all is removed", func() bool {
			e.sweep()
			_, err := e.store.Info(ctx, root.Nth(1500))
			return err != nil && len(e.left(root)) == 0 && len(e.left(parent)) == 0
		})
		e.equal("parent", e.info(adopted).Parent, job.ID(""))
		e.is(statemachine.Completed, adopted)
	})
}

// left returns the keys of jobs of a tree.
func (e *env) left(id job.ID) (keys []string) {
	e.Helper()
	for k := range e.dump() {
		if strings.Contains(k, string(id.Tree())) {
			keys = append(keys, k)
		}
	}
	return keys
}
