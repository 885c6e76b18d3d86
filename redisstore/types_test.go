package redisstore_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// limits are the limits of types, by name, as a store says that they are registered.
func (e *env) limitsOfTypes(store *redisstore.Store) map[string]int {
	e.Helper()
	all, err := store.Types(e.Context())
	e.Check(err)
	found := map[string]int{}
	for _, t := range all {
		found[t.Type] = t.MaxRunning
	}
	return found
}

// register registers a type with a limit.
func (e *env) register(name string, limit int) {
	e.Helper()
	e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: name, Queue: job.DefaultQueue, MaxRunning: limit}}))
}

// behind writes a type into Redis as no registration does: who reads all types anew finds it.
func (e *env) behind(name string, limit int) {
	e.Helper()
	raw, err := json.Marshal(job.TypeInfo{Type: name, Queue: job.DefaultQueue, MaxRunning: limit})
	e.Check(err)
	e.Check(e.Redis.HSet(e.Context(), "weir:{"+e.Namespace+"}:types", job.DefaultQueue+" "+name, raw).Err())
}

// All types are read again when one was registered, changed or forgotten, by whomever, or Redis has lost what it knew, and not
// otherwise.
func TestTypesAreReadWhenTheyChanged(t *testing.T) {
	each(t, func(e *env) {
		ctx, version := e.Context(), "weir:{"+e.Namespace+"}:types:version"
		reader := e.Open(e.URL)
		want := func(what string, want map[string]int) {
			e.Helper()
			e.equal(what, e.limitsOfTypes(reader), want)
		}
		want("none", map[string]int{})
		e.behind("Old", 1)
		e.behind("Old", 2)
		want("without a version", map[string]int{"Old": 2})
		e.behind("Old", 3)
		want("without a version, changed", map[string]int{"Old": 3})

		e.register("T", 1)
		want("registered", map[string]int{"Old": 3, "T": 1})
		first, err := e.Redis.Get(ctx, version).Result()
		e.Check(err)
		e.behind("T", 7)
		want("kept", map[string]int{"Old": 3, "T": 1})
		e.register("T", 2)
		want("changed", map[string]int{"Old": 3, "T": 2})
		e.Check(e.store.(*redisstore.Store).ForgetType(ctx, job.DefaultQueue, "Old"))
		want("forgotten", map[string]int{"T": 2})

		e.behind("T", 1) // as Redis starts with what it had saved before
		e.Check(e.Redis.Set(ctx, version, first, 0).Err())
		want("gone back", map[string]int{"T": 1})
		e.Check(e.Redis.Del(ctx, "weir:{"+e.Namespace+"}:types", version).Err())
		want("lost", map[string]int{})
		e.register("T", 5)
		want("registered anew", map[string]int{"T": 5})
	})
}

// What a caller does with the list of types is not seen by the next one.
func TestTypesAreACopy(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	e.register("A", 1)
	e.register("B", 2)
	all, err := e.store.Types(e.Context())
	e.Check(err)
	all[0].MaxRunning = 9
	_ = append(all[:0], all[1])
	e.equal("types", e.limitsOfTypes(e.store.(*redisstore.Store)), map[string]int{"A": 1, "B": 2})
}

// As many types as there may be are registered by several scripts, and by a repeat of them.
func TestRegisterManyTypes(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), enginetest.Open(t, redisstore.Config{URL: redistest.Start(t).URL()})
	types := make([]job.TypeInfo, job.MaxTypes)
	for i := range types {
		types[i] = job.TypeInfo{Type: fmt.Sprintf("T%04d", i), Queue: job.DefaultQueue}
	}
	for range 2 {
		enginetest.Check(t, store.Register(ctx, types))
		all, err := store.Types(ctx)
		if enginetest.Check(t, err); len(all) != len(types) || all[len(all)-1].Type != "T4999" {
			t.Fatalf("%d types are registered", len(all))
		}
	}
}
