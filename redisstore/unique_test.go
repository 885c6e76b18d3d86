package redisstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/statemachine"
)

// solo is a tree of one job with these args.
func solo(args string) *job.Plan {
	n := job.Node{Type: "T", Ports: ports(in("in"), out("out"))}
	if args != "" {
		n.Args = json.RawMessage(args)
	}
	return &job.Plan{Nodes: []job.Node{n}}
}

// unique starts a tree with a unique key, and returns which one is there then.
func (e *env) unique(by job.UniqueBy, opts ...job.Option) (job.ID, bool) {
	e.Helper()
	h, err := client.New(e.store).Start(e.Context(), solo(""), append(opts, job.Unique(by))...)
	e.Check(err)
	return h.ID(), h.Created()
}

// fresh wants a new tree to be created.
func (e *env) fresh(by job.UniqueBy, opts ...job.Option) job.ID {
	e.Helper()
	id, created := e.unique(by, opts...)
	if !created {
		e.Fatalf("%s was there already, and is %s", id, e.info(id).Status)
	}
	return id
}

// same wants a tree to be there already.
func (e *env) same(want job.ID, by job.UniqueBy, opts ...job.Option) {
	e.Helper()
	id, created := e.unique(by, opts...)
	if created || id != want {
		e.Fatalf("%s (created: %t) instead of %s, which is %s", id, created, want, e.info(want).Status)
	}
}

// uniques are what the namespace remembers of unique keys.
func (e *env) uniques() (all []string) {
	e.Helper()
	for k, v := range e.dump() {
		if strings.HasSuffix(k, "}:unique") {
			all = append(all, v)
		}
	}
	return all
}

// clocked is a namespace whose clock the test moves.
func clocked(t *testing.T) (e *env, pass func(time.Duration)) {
	t.Helper()
	clock := redisstore.NewClock(time.UnixMilli(1e12))
	return openBy(t, redisstore.Config{Embedded: embedded.Start, Clock: clock}), func(d time.Duration) { clock.Set(clock.Now().Add(d)) }
}

// Whatever a tree does that has not settled, it is found under its key; when it has, or is gone, a new one is made.
func TestUniqueUntilDone(t *testing.T) {
	each(t, func(e *env) {
		by := job.UniqueBy{Key: "k"}
		ends := map[string]func(job.ID){
			"completed": func(id job.ID) { e.end(id, statemachine.Complete) },
			"failed":    func(id job.ID) { e.end(id, statemachine.Fail) },
			"terminated": func(id job.ID) {
				e.Check(e.store.Terminate(e.Context(), id))
				e.same(id, by) // it is terminating
				e.end(id, statemachine.Shutdown)
			},
			"deleted": e.removed,
		}
		for what, end := range ends {
			id := e.fresh(by)
			e.equal("key", e.info(id).UniqueKey, "k")
			e.same(id, by)
			other := e.fresh(job.UniqueBy{Key: "K"})
			e.same(other, job.UniqueBy{Key: "K"})
			snap := e.begin(id)
			e.same(id, by)
			d := delta(snap, statemachine.Backoff)
			d.Delay, d.Failure = time.Millisecond, &job.Failure{Error: "no"}
			e.commit(d)
			e.same(id, by)
			e.Until("its next try", func() bool { e.sweep(); return e.info(id).Status == job.Queued })
			e.end(id, statemachine.Suspend)
			e.same(id, by)
			e.write(id, "in", "1")
			e.same(id, by)
			end(id)
			next := e.fresh(by)
			if next == id {
				e.Errorf("%s: its ID came again", what)
			}
			e.end(next, statemachine.Complete)
			e.end(other, statemachine.Complete)
		}
	})
}

// A tree that came to life again is found, unless another one was created meanwhile; then both run.
func TestUniqueRevived(t *testing.T) {
	each(t, func(e *env) {
		by := job.UniqueBy{Key: "k"}
		first := e.fresh(by)
		e.end(first, statemachine.Fail)
		e.Check(e.store.Apply(e.Context(), first, statemachine.Retry))
		e.same(first, by)
		e.end(first, statemachine.Complete)
		e.write(first, "in", "1")
		e.same(first, by)
		e.end(first, statemachine.Complete)
		second := e.fresh(by)
		e.write(first, "in", "2")
		e.is(job.Queued, first, second)
		e.same(second, by)
		e.end(first, statemachine.Complete)
		e.removed(first)
		e.same(second, by) // the removal of the former took nothing away from it
		e.removed(second)
		e.equal("what is left of keys", e.uniques(), []string(nil))
		e.removed(e.fresh(by))
	})
}

// Within a window the tree is found whether it has settled or not; behind it never. Each caller says how far back it looks.
func TestUniqueWindow(t *testing.T) {
	t.Parallel()
	e, pass := clocked(t)
	hour := job.UniqueBy{Key: "k", For: time.Hour}
	first := e.fresh(hour, job.Retain(time.Minute))
	e.end(first, statemachine.Complete)
	pass(time.Hour - time.Millisecond)
	e.sweep()
	e.same(first, hour) // though its retention is shorter
	later := e.fresh(job.UniqueBy{Key: "k"})
	e.same(later, hour)
	e.removed(later)
	pass(time.Minute)
	e.sweep()
	_, err := e.store.Info(t.Context(), first)
	e.fails(err, job.ErrNotFound)
	second := e.fresh(hour)
	pass(59 * time.Minute)
	e.same(second, hour)
	e.same(second, job.UniqueBy{Key: "k", For: 24 * time.Hour})
	pass(2 * time.Minute)
	e.is(job.Queued, second)
	e.same(second, job.UniqueBy{Key: "k"}) // it is not done
	third := e.fresh(hour)                 // but no more in the window
	e.is(job.Queued, second, third)
	e.same(third, job.UniqueBy{Key: "k"})
	e.removed(third)
	e.fresh(hour) // what was deleted is not found
}

// Of any number of callers at once, by themselves and in bulk, one creates the tree.
func TestUniqueManyCallers(t *testing.T) {
	each(t, func(e *env) {
		const callers, keys = 12, 5
		var mu sync.Mutex
		made, got := map[string]int{}, map[string]map[job.ID]bool{}
		note := func(key string, h *client.Handle) {
			mu.Lock()
			defer mu.Unlock()
			if got[key] == nil {
				got[key] = map[job.ID]bool{}
			}
			got[key][h.ID()] = true
			if h.Created() {
				made[key]++
			}
		}
		var group sync.WaitGroup
		for c := range callers {
			group.Go(func() {
				cl := client.New(e.store)
				var many []client.Starting
				for n := range keys {
					key := job.Unique(job.UniqueBy{Key: fmt.Sprint("k", n)})
					if c%2 == 0 {
						many = append(many, client.Starting{Plan: solo(""), Options: []job.Option{key}}, client.Starting{Plan: solo(""), Options: []job.Option{key}})
						continue
					}
					h, err := cl.Start(e.Context(), solo(""), key)
					if err != nil {
						e.Error(err)
						return
					}
					note(fmt.Sprint("k", n), h)
				}
				all, err := cl.StartMany(e.Context(), many)
				if err != nil {
					e.Error(err)
				}
				for n, one := range all {
					note(fmt.Sprint("k", n/2), one.Handle)
				}
			})
		}
		group.Wait()
		for key, ids := range got {
			if len(ids) != 1 || made[key] != 1 {
				e.Errorf("%s: %d jobs, created %d times", key, len(ids), made[key])
			}
		}
		n, err := e.store.Count(e.Context(), job.Filter{})
		e.Check(err)
		e.equal("jobs", n, keys)
	})
}

// Without a key it is the type and the args that count, however these are written; of a graph its definition.
func TestUniqueByArgs(t *testing.T) {
	each(t, func(e *env) {
		client := client.New(e.store)
		start := func(plan *job.Plan) job.ID {
			h, err := client.Start(e.Context(), plan, job.Unique(job.UniqueBy{}))
			e.Check(err)
			return h.ID()
		}
		a := start(solo(`{"a":1,"b":[2.50,"<"]}`))
		e.equal("the same args", start(solo(`{ "b": [2.50, "<"], "a": 1 }`)), a)
		key, err := job.UniqueKey("T", map[string]any{"b": json.RawMessage(`[2.50,"<"]`), "a": 1})
		e.Check(err)
		e.equal("key", e.info(a).UniqueKey, key)
		e.same(a, job.UniqueBy{Key: key})
		other := solo(`{"a":1,"b":[2.50,"<"]}`)
		other.Nodes[0].Type = "U"
		all := []job.ID{a, start(other), start(solo(`{"a":2,"b":[2.50,"<"]}`)), start(solo(""))}
		e.equal("no args", start(solo("{}")), all[3])
		graph := func(kid string) *job.Plan {
			return &job.Plan{Nodes: []job.Node{{Type: "G", Graph: true}, {Name: kid, Type: "T", Ports: ports(in("in"))}}}
		}
		all = append(all, start(graph("n")), start(graph("m")))
		e.equal("the same graph", start(graph("n")), all[4])
		slices.Sort(all)
		e.equal("different work", len(slices.Compact(all)), 6)
	})
}

// A sequential key, an ID and an idempotency key go together with a unique key; an alias and a parent do not.
func TestUniqueWithOthers(t *testing.T) {
	each(t, func(e *env) {
		by := job.UniqueBy{Key: "k"}
		a := e.fresh(by, job.SequentialKey("s"))
		e.equal("key", e.info(a).UniqueKey, "k")
		e.same(a, by, job.SequentialKey("s"))
		b := e.fresh(by, job.SequentialKey("other"))
		c := e.fresh(by)
		d := e.fresh(job.UniqueBy{Key: "d"}, job.SequentialKey("s"))
		e.is(job.Waiting, d)
		e.same(d, job.UniqueBy{Key: "d"}, job.SequentialKey("s"))
		e.same(b, by, job.SequentialKey("other"))
		e.same(c, by, job.WithID(newID(e)))
		own := newID(e)
		f := e.fresh(job.UniqueBy{Key: "f"}, job.WithID(own))
		e.equal("its ID", f, e.store.Keyed(own, "f"))
		g := e.fresh(job.UniqueBy{Key: "g"}, job.Key("once"))
		e.same(g, job.UniqueBy{Key: "g"}, job.Key("once"))
		e.end(g, statemachine.Complete)
		e.same(g, job.UniqueBy{Key: "g"}, job.Key("once")) // which is for longer
		h := e.fresh(job.UniqueBy{Key: "g"})
		e.same(h, job.UniqueBy{Key: "g"}, job.Key("another"))

		client := client.New(e.store)
		_, err := client.Start(e.Context(), solo(""), job.Unique(by), job.Alias("name"))
		e.fails(err, job.ErrValue)
		child := solo("")
		child.Parent, child.Nodes[0].Name, child.Unique = a, "kid", &by
		e.fails(child.Validate(), job.ErrValue)
		for _, bad := range []job.UniqueBy{{Key: strings.Repeat("k", 129)}, {Key: "a\nb"}, {Key: "\xff"}} {
			_, err := client.Start(e.Context(), solo(""), job.Unique(bad))
			e.fails(err, job.ErrName)
		}
		for _, bad := range []time.Duration{-1, time.Microsecond, job.MaxUniqueFor + 1} {
			_, err := client.Start(e.Context(), solo(""), job.Unique(job.UniqueBy{For: bad}))
			e.fails(err, job.ErrValue)
		}
		_, err = e.store.Create(e.Context(), newID(e), &job.Plan{Nodes: solo("").Nodes, Unique: &job.UniqueBy{}}, "")
		e.fails(err, job.ErrName)
	})
}

// Of a large plan whose key another tree has nothing is created, whoever died before.
func TestUniqueLargePlan(t *testing.T) {
	each(t, func(e *env) {
		plan := crowd(700)
		plan.Unique = &job.UniqueBy{Key: "k"}
		client := client.New(e.store)
		first, err := client.Start(e.Context(), plan)
		e.Check(err)
		e.unchanged("a second one", func() {
			again, err := client.Start(e.Context(), plan)
			e.Check(err)
			e.equal("created", again.Created(), false)
			e.equal("tree", again.ID(), first.ID())
		})
	})
}

// A key whose tree is lost, as a Redis lost its last writes, is free.
func TestUniqueOfALostTree(t *testing.T) {
	each(t, func(e *env) {
		by := job.UniqueBy{Key: "k", For: time.Hour}
		id := e.fresh(by)
		e.Check(e.Redis.Del(e.Context(), e.key(id)).Err())
		e.fresh(by)
	})
}

// Jobs without a unique key have no field for one.
func TestUniqueCostsOthersNothing(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.end(id, statemachine.Complete)
		n, err := e.Redis.HExists(e.Context(), e.key(id), "unique").Result()
		e.Check(err)
		w, err := e.Redis.HExists(e.Context(), e.key(id), "window").Result()
		e.Check(err)
		e.equal("fields", []bool{n, w}, []bool{false, false})
		e.equal("keys", e.uniques(), []string(nil))
	})
}

// The error of a store names the tree that is there.
func TestDuplicateError(t *testing.T) {
	each(t, func(e *env) {
		id := e.fresh(job.UniqueBy{Key: "k"})
		plan := solo("")
		plan.Unique = &job.UniqueBy{Key: "k"}
		_, err := e.store.Create(e.Context(), e.store.Keyed(newID(e), "k"), plan, "")
		e.fails(err, job.ErrExists)
		var same *job.DuplicateError
		e.equal("is one", errors.As(err, &same), true)
		e.equal("tree", same.ID, id)
	})
}

// A tree with a key is refused as a child, also if it is to become one later.
func TestKeyedTreesAreNotAdopted(t *testing.T) {
	each(t, func(e *env) {
		parent := e.single()
		for _, id := range []job.ID{e.keyed("k"), e.fresh(job.UniqueBy{Key: "k"})} {
			e.unchanged("adopting", func() { e.fails(e.store.Adopt(e.Context(), parent, id, "kid"), job.ErrStatus) })
			e.equal("parent", e.info(id).Parent, job.ID(""))
		}
	})
}
