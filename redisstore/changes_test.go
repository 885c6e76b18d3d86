package redisstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// changed returns what has changed since a place, and moves it on.
func (e *env) changed(all bool, p *redisstore.Place, most int) redisstore.Changes {
	e.Helper()
	c, err := e.store.(*redisstore.Store).Changes(e.Context(), all, *p, most)
	e.Check(err)
	*p = c.Next
	return c
}

func (e *env) sees(what string, c redisstore.Changes, want ...job.ID) {
	e.Helper()
	slices.Sort(want)
	if slices.Sort(c.IDs); !slices.Equal(c.IDs, want) || c.Lost {
		e.Errorf("%s: changes %v, want %v; lost: %t", what, c.IDs, want, c.Lost)
	}
}

// Who follows changes is told of each job that was created, got another status, was adopted or removed, once for all
// that happened between; before somebody follows nothing is noted.
func TestChanges(t *testing.T) {
	each(t, func(e *env) {
		e.single()
		if keys := e.Redis.Exists(e.Context(), fmt.Sprintf("weir:{%s:0}:changes:roots", e.Namespace)).Val(); keys != 0 {
			t.Error("changes are noted for nobody")
		}
		var roots, all redisstore.Place
		e.changed(false, &roots, 100)
		e.changed(true, &all, 100)
		e.sees("nothing", e.changed(false, &roots, 100))

		tree := e.create(job.Node{Type: "T", Ports: ports(in("in"))}, job.Node{Name: "a", Type: "T", Ports: ports(in("in"))})
		lone := e.single()
		again := roots
		e.sees("created", e.changed(false, &roots, 100), tree, lone)
		e.sees("created, all", e.changed(true, &all, 100), tree, tree.Nth(1), lone)
		e.sees("read again", e.changed(false, &again, 100), tree, lone)

		e.end(tree.Nth(1), statemachine.Suspend)
		e.sees("a child", e.changed(false, &roots, 100))
		e.sees("a child, all", e.changed(true, &all, 100), tree.Nth(1))
		e.end(lone, statemachine.Complete)
		e.sees("twice", e.changed(false, &roots, 100), lone)

		place, err := e.store.(*redisstore.Store).ParsePlace(roots.String())
		e.Check(err)
		other := e.single()
		e.Check(e.store.Terminate(e.Context(), other))
		e.end(other, statemachine.Shutdown)
		e.sees("created and ended", e.changed(false, &place, 100), other)
		e.Check(e.store.Delete(e.Context(), other))
		e.sees("removed", e.changed(false, &place, 100), other)
		for _, text := range []string{"", "x", "AAAA", roots.String() + "AA"} {
			if _, err := e.store.(*redisstore.Store).ParsePlace(text); err == nil {
				t.Errorf("%q is a place", text)
			}
		}
	})
}

// Who follows one tree is told of no other, and also of jobs whose ports have changed, or what waits in them or has passed.
func TestChangesOfATree(t *testing.T) {
	each(t, func(e *env) {
		passing := in("in")
		passing.Edges = []job.Edge{to(1)}
		plan := []job.Node{
			{Type: "G", Graph: true, Ports: ports(passing)},
			{Name: "a", Type: "T", Ports: ports(fed("in", 1), out("out", to(2)))},
			{Name: "b", Type: "T", Ports: ports(fed("in", 1))},
		}
		tree, other := e.create(plan...), e.create(plan...)
		var p redisstore.Place
		changed := func() redisstore.Changes {
			c, err := e.store.(*redisstore.Store).ChangesOf(e.Context(), tree, p, 100)
			e.Check(err)
			p = c.Next
			return c
		}
		changed()
		e.sees("nothing", changed())
		e.write(other, "in", "1")
		e.write(tree, "in", "1")
		e.sees("messages that wake", changed(), tree, tree.Nth(1)) // the graph has passed one on
		e.write(tree, "in", "2")
		e.sees("messages for a queued job", changed(), tree, tree.Nth(1))
		e.end(other.Nth(1), statemachine.Suspend)
		snap := e.begin(tree.Nth(1))
		e.sees("a run", changed(), tree.Nth(1))
		d := delta(snap, store.Checkpoint)
		d.Next, d.Lease = "next", time.Hour
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
		e.commit(d)
		e.sees("a checkpoint", changed(), tree.Nth(1))
		e.Check(e.store.Take(e.Context(), tree.Nth(1), store.Take{Dir: port.Input, Port: "in", Head: 1, N: 1}, "taken"))
		e.sees("a message is taken", changed(), tree.Nth(1))
		e.sees("nothing more", changed())
		e.Check(e.store.Terminate(e.Context(), other))
		e.sees("another tree ends", changed())
	})
}

// What is read in parts is told in the order in which it changed, and nothing is left out.
func TestChangesInParts(t *testing.T) {
	each(t, func(e *env) {
		var p redisstore.Place
		e.changed(false, &p, 100)
		var want, got []job.ID
		for range 20 {
			want = append(want, e.single())
		}
		for {
			c := e.changed(false, &p, 3)
			if len(c.IDs) > 3 || c.Lost {
				t.Fatalf("%d changes of 3 at most, lost: %t", len(c.IDs), c.Lost)
			}
			if got = append(got, c.IDs...); len(c.IDs) == 0 {
				break
			}
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("changes %v, want %v", got, want)
		}
	})
}

// Changes that nobody followed for a while are forgotten: who comes back then is told.
func TestChangesAreForgotten(t *testing.T) {
	each(t, func(e *env) {
		var p redisstore.Place
		e.changed(false, &p, 100)
		old := p
		for n := range shards {
			key := fmt.Sprintf("weir:{%s:%d}:changes:roots", e.Namespace, n)
			if ttl := e.Redis.PTTL(e.Context(), key).Val(); ttl <= 0 {
				t.Errorf("%s stays for %v", key, ttl)
			}
			e.Check(e.Redis.Del(e.Context(), key).Err()) // as when its time is over
		}
		id := e.single()
		if c := e.changed(false, &p, 100); !c.Lost || len(c.IDs) != 0 {
			t.Errorf("after the changes were forgotten: %+v", c)
		}
		if c := e.changed(false, &p, 100); c.Lost || len(c.IDs) != 0 {
			t.Errorf("afterwards: %+v", c)
		}
		if c := e.changed(false, &old, 100); !c.Lost {
			t.Errorf("an old place: %+v", c)
		}
		e.end(id, statemachine.Suspend)
		e.sees("later", e.changed(false, &p, 100), id)
	})
}

// The notes of a shard do not grow without bound: the oldest go, and who has not read them is told.
func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	e := openBy(t, redisstore.Config{URL: redistest.SharedRedis(t), Shards: 1})
	var p redisstore.Place
	e.changed(true, &p, 100)
	old := p
	for range 4 {
		nodes := make([]job.Node, 3000)
		for i := range nodes {
			nodes[i] = job.Node{Name: fmt.Sprint(i), Type: "T", Ports: ports(in("in"))}
		}
		nodes[0].Name = ""
		e.create(nodes...)
	}
	most := e.Redis.ZCard(e.Context(), fmt.Sprintf("weir:{%s:0}:changes:all", e.Namespace)).Val()
	if most > 10_101 || most < 10_000 {
		t.Errorf("%d changes are kept of a shard", most)
	}
	if c := e.changed(true, &old, 100); !c.Lost {
		t.Error("nothing is said of changes that are not kept")
	}
}
