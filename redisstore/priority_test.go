package redisstore_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// pop begins a run of the first ready job of a queue in a shard, and returns the job, or nothing.
func (e *env) pop(shard int, types ...string) job.ID {
	e.Helper()
	snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, shard, -1, beginning(), types))
	e.Check(err)
	if snap == nil {
		return ""
	}
	return snap.Info.ID
}

// popped returns which of some jobs of one shard begin, in order, by their places.
func (e *env) popped(ids []job.ID, types ...string) (order []int) {
	e.Helper()
	for id := e.pop(ids[0].Shard(shards), types...); id != ""; id = e.pop(ids[0].Shard(shards), types...) {
		for i, other := range ids {
			if id == other {
				order = append(order, i)
			}
		}
	}
	return order
}

// Of the ready jobs of a queue those of a higher priority begin first, across types; a change holds at once, for jobs that are
// ready, too.
func TestPriorityOrder(t *testing.T) {
	each(t, func(e *env) {
		var ids []job.ID
		for _, n := range []struct {
			typ      string
			priority int
		}{{"A", 0}, {"B", 500}, {"A", 1000}, {"A", 500}, {"B", 501}, {"B", 499}} {
			id := newID(e)
			for len(ids) > 0 && id.Shard(shards) != ids[0].Shard(shards) {
				id = newID(e)
			}
			e.createAs(id, job.Node{Type: n.typ, Priority: &n.priority})
			ids = append(ids, id)
		}
		e.Check(e.store.SetPriority(e.Context(), ids[5:], 700))
		e.Check(e.store.SetPriority(e.Context(), ids[5:], 700))
		if p := e.info(ids[5]).Priority; p == nil || *p != 700 {
			e.Errorf("its priority is %v", p)
		}
		got := e.popped(ids, "A", "B")
		if len(got) != 6 || got[0] != 2 || got[1] != 5 || got[2] != 4 || got[5] != 0 {
			e.Errorf("they begin in the order %v, want 2 5 4, then 1 and 3, then 0", got)
		}
		// One that is running gets it for the next time.
		e.Check(e.store.SetPriority(e.Context(), ids[:1], 900))
		e.is(statemachine.Running, ids[0])
		e.equal("ready", e.pop(ids[0].Shard(shards), "A", "B"), job.ID(""))
		e.Check(e.store.SetPriority(e.Context(), []job.ID{newID(e)}, 1)) // it may be gone by then
	})
}

// A caller may ask for a job of the lowest priority that is ready, of the types that it has.
func TestPopOfTheLowestPriority(t *testing.T) {
	each(t, func(e *env) {
		var ids []job.ID
		for n, priority := range []int{900, 100, 500, 900, 100, 0} {
			id := newID(e)
			for len(ids) > 0 && id.Shard(shards) != ids[0].Shard(shards) {
				id = newID(e)
			}
			e.createAs(id, job.Node{Type: []string{"A", "B", "A", "B", "A", "C"}[n], Priority: &priority})
			ids = append(ids, id)
		}
		var got []int
		for range ids {
			b := beginning()
			b.Lowest = true
			snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, ids[0].Shard(shards), -1, b, []string{"A", "B"}))
			e.Check(err)
			if snap != nil {
				got = append(got, *e.info(snap.Info.ID).Priority)
			}
		}
		e.equal("priorities, one after another", got, []int{100, 100, 500, 900, 900})
	})
}

// An engine that lacks the type of the first job begins the first of those that it has.
func TestPopOfSomeTypes(t *testing.T) {
	each(t, func(e *env) {
		ids := []job.ID{newID(e)}
		e.createAs(ids[0], job.Node{Type: "A"})
		for ids = append(ids, newID(e)); ids[1].Shard(shards) != ids[0].Shard(shards); {
			ids[1] = newID(e)
		}
		e.createAs(ids[1], job.Node{Type: "B"})
		e.equal("begun", e.popped(ids, "B", "C"), []int{1})
		e.equal("begun then", e.popped(ids, "A"), []int{0})
	})
}

// A priority is of a job and all below it: neither of those above it nor of those beside it.
func TestPriorityOfAPart(t *testing.T) {
	each(t, func(e *env) {
		g := e.create(job.Node{Type: "G", Graph: true}, job.Node{Type: "G", Name: "a", Graph: true}, job.Node{Type: "T", Name: "c", Parent: 1}, job.Node{Type: "T", Name: "b"})
		h, err := client.New(e.store).Find(e.Context(), string(g.Nth(1)))
		e.Check(err)
		e.Check(h.SetPriority(e.Context(), 900))
		for n, want := range []string{"-", "900", "900", "-"} {
			got := "-"
			if p := e.info(g.Nth(n)).Priority; p != nil {
				got = strconv.Itoa(*p)
			}
			e.equal(fmt.Sprint("job ", n), got, want)
		}
	})
}

// A pop begins no job of a lower priority than it is asked for. It notes then which one is the first of its type: were that noted
// wrongly, as keys may be damaged, engines would be told of an urgent job again and again.
func TestPopAtLeast(t *testing.T) {
	each(t, func(e *env) {
		id, low := newID(e), 100
		e.createAs(id, job.Node{Type: "T", Priority: &low})
		types := "weir:{" + e.Namespace + ":" + strconv.Itoa(id.Shard(shards)) + "}:ready:default"
		right := e.Redis.ZScore(e.Context(), types, "T").Val()
		e.Check(e.Redis.ZAdd(e.Context(), types, redis.Z{Score: 100 << 40, Member: "T"}).Err()) // of priority 900
		b := beginning()
		for _, b.AtLeast = range []int{900, 101} {
			if snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, id.Shard(shards), -1, b, []string{"T"})); err != nil || snap != nil {
				e.Errorf("at least %d: %+v, %v", b.AtLeast, snap, err)
			}
		}
		if got := e.Redis.ZScore(e.Context(), types, "T").Val(); got != right {
			e.Errorf("the first of its type is noted with %v, want %v", got, right)
		}
		b.AtLeast = 100
		if snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, id.Shard(shards), -1, b, []string{"T"})); err != nil || snap == nil {
			e.Errorf("at least 100: %v, %v", snap, err)
		}
	})
}
