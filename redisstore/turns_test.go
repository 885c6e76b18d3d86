package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Trees of a shard that always have work take turns, also those whose turn is not over when others begin their next: after some
// rounds each has had as many turns as any other, but for one.
func TestTurnsOfTrees(t *testing.T) {
	each(t, func(e *env) {
		const trees, slots, rounds = 7, 3, 20
		turns := map[job.ID]int{}
		for len(turns) < trees {
			id := newID(e)
			for id.Shard(shards) != 0 {
				id = newID(e)
			}
			e.createAs(id, job.Node{Type: "A"})
			turns[id] = 0
		}
		var active []*store.Snapshot
		for range trees * rounds {
			snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, 0, -1, beginning(), []string{"A"}))
			e.Check(err)
			if snap == nil {
				e.Fatal("nothing is ready")
			}
			turns[snap.Info.ID]++
			if active = append(active, snap); len(active) < slots {
				continue
			}
			e.commit(delta(active[0], statemachine.Requeue))
			active = active[1:]
		}
		for id, n := range turns {
			if n < rounds-1 || n > rounds+1 {
				e.Errorf("tree %s had %d turns of %d: %v", id, n, rounds, turns)
			}
		}
	})
}

// Very many trees of one type hold up no tree of another one that comes after them, also not for one engine alone, whose tokens begin alike: of
// sixteen runs about one is of the other type.
func TestTurnsOfTypes(t *testing.T) {
	each(t, func(e *env) {
		const many = 400 // with a fair lot, the chance that the other one is not among that many is 6e-12
		create := func(typ string) job.ID {
			id := newID(e)
			for id.Shard(shards) != 0 {
				id = newID(e)
			}
			e.createAs(id, job.Node{Type: typ})
			return id
		}
		for range many + 1 {
			create("Big")
		}
		small := create("Small")
		for range many {
			b := store.Begin{Token: job.RunToken("ONEENGINEALONE"), Lease: time.Minute}
			snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, 0, -1, b, []string{"Big", "Small"}))
			e.Check(err)
			if snap.Info.ID == small {
				return
			}
		}
		e.Errorf("%d runs of Big began, and none of Small", many)
	})
}
