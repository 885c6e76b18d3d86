package redisstore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// siblings is a job with children that have a run to begin.
func (e *env) siblings(names ...string) (parent job.ID, children []job.ID) {
	e.Helper()
	parent = e.single()
	d := delta(e.begin(parent), statemachine.Suspend)
	for _, name := range names {
		d.Spawns = append(d.Spawns, e.spawn(parent, name))
		children = append(children, parent.Nth(d.Spawns[len(d.Spawns)-1].Base))
	}
	e.commit(d)
	return parent, children
}

// spawn is a lone child to be created.
func (e *env) spawn(parent job.ID, name string) store.Spawn {
	e.Helper()
	base, err := e.store.ReserveChild(e.Context(), parent, name, 1)
	e.Check(err)
	return store.Spawn{Plan: &job.Plan{Nodes: []job.Node{{Type: "T", Name: name, Ports: ports(in("in"), out("out"))}}}, Base: base}
}

func (e *env) woken(s *store.Snapshot, want ...string) {
	e.Helper()
	names := []string{}
	for _, kin := range s.Woken {
		names = append(names, kin.Name)
	}
	if !slices.Equal(names, want) {
		e.Errorf("the run is told of %q, want %q", names, want)
	}
}

// conclude ends a run that took notice of who woke it.
func (e *env) conclude(s *store.Snapshot, outcome statemachine.Event) {
	e.Helper()
	d := delta(s, outcome)
	d.Woken = s.WokenTo
	e.commit(d)
}

func TestWokenByChildren(t *testing.T) {
	each(t, func(e *env) {
		parent, kids := e.siblings("a", "b", "c")
		e.end(kids[2], statemachine.Suspend)
		e.end(kids[0], statemachine.Complete)
		s := e.begin(parent)
		e.woken(s, "c", "a")
		e.equal("child", s.Woken[1].ID, kids[0])

		// One that fails is told of nothing: the next run is told again. What comes meanwhile is for a later one.
		e.end(kids[1], statemachine.Fail)
		e.commit(store.Delta{Job: parent, Token: s.Token, Outcome: statemachine.Backoff})
		e.Check(e.store.Apply(e.Context(), parent, statemachine.Run))
		s = e.begin(parent)
		e.woken(s, "c", "a", "b")
		e.Check(e.store.Apply(e.Context(), kids[2], statemachine.Run))
		e.end(kids[2], statemachine.Suspend)
		e.conclude(s, statemachine.Suspend)
		e.is(statemachine.Queued, parent)
		s = e.begin(parent)
		e.woken(s, "c")
		e.conclude(s, statemachine.Complete)

		// A message is from nobody of them.
		e.write(parent, "in", "1")
		e.woken(e.begin(parent))
	})
}

// A run is told of that many at a time, and those that are no children any more it is not told of.
func TestWokenByManyChildren(t *testing.T) {
	each(t, func(e *env) {
		parent, _ := e.siblings()
		key := "weir:{" + e.Namespace + fmt.Sprintf(":%d}:j:%s", parent.Shard(shards), parent)
		names, woke := map[string]any{}, []redis.Z{}
		for i := range job.MaxWoken + 2 {
			name := fmt.Sprintf("kid%d", i)
			if i != 5 {
				names[name] = string(parent.Nth(i + 1))
			}
			woke = append(woke, redis.Z{Score: float64(i + 1), Member: name})
		}
		e.Check(e.Redis.HSet(e.Context(), key+":c", names).Err())
		e.Check(e.Redis.ZAdd(e.Context(), key+":w", woke...).Err())
		e.Check(e.store.Apply(e.Context(), parent, statemachine.Run))
		s := e.begin(parent)
		e.equal("children told of", len(s.Woken), job.MaxWoken-1)
		e.equal("the first", s.Woken[0], store.Kin{Name: "kid0", ID: parent.Nth(1)})
		e.conclude(s, statemachine.Suspend)
		e.is(statemachine.Queued, parent)
		s = e.begin(parent)
		e.woken(s, fmt.Sprintf("kid%d", job.MaxWoken), fmt.Sprintf("kid%d", job.MaxWoken+1))
		e.conclude(s, statemachine.Suspend)
		e.is(statemachine.Suspended, parent)
	})
}

// A child of another tree tells its name with the order that wakes its parent.
func TestWokenByAdoptedChild(t *testing.T) {
	each(t, func(e *env) {
		parent, child := e.single(), e.single()
		for child.Shard(shards) == parent.Shard(shards) {
			child = e.single()
		}
		e.end(parent, statemachine.Complete)
		e.Check(e.store.Adopt(e.Context(), parent, child, "kid"))
		e.end(child, statemachine.Complete)
		e.sweep()
		s := e.begin(parent)
		e.woken(s, "kid")
		e.equal("child", s.Woken[0].ID, child)
	})
}

func TestReserveChild(t *testing.T) {
	each(t, func(e *env) {
		parent, kids := e.siblings("a")
		n, err := e.store.ReserveChild(e.Context(), kids[0], "a", 3)
		e.Check(err)
		e.equal("numbers", n, 2)
		_, err = e.store.ReserveChild(e.Context(), parent, "a", 1)
		e.fails(err, job.ErrExists)
		n, err = e.store.ReserveChild(e.Context(), parent, "b", 1)
		e.Check(err)
		e.equal("numbers", n, 5)
		_, err = e.store.ReserveChild(e.Context(), newID(e), "a", 1)
		e.fails(err, job.ErrNotFound)
		id, err := e.store.Child(e.Context(), parent, "a")
		e.Check(err)
		e.equal("child", id, kids[0])
		_, err = e.store.Child(e.Context(), parent, "b")
		e.fails(err, job.ErrNotFound)
	})
}

// A child gets its alias with the commit, unless another job is faster.
func TestSpawnAlias(t *testing.T) {
	each(t, func(e *env) {
		other := e.single()
		_, err := e.store.Claim(e.Context(), "taken", other)
		e.Check(err)
		parent := e.single()
		d := delta(e.begin(parent), statemachine.Complete)
		for _, alias := range []string{"free", "taken"} {
			s := e.spawn(parent, alias)
			s.Alias = alias
			d.Spawns = append(d.Spawns, s)
		}
		e.commit(d)
		e.sweep()
		id, err := e.store.Resolve(e.Context(), "free")
		e.Check(err)
		e.equal("alias", id, parent.Nth(d.Spawns[0].Base))
		names, err := e.store.Aliases(e.Context(), id)
		e.Check(err)
		e.equal("aliases", names, []string{"free"})
		id, err = e.store.Resolve(e.Context(), "taken")
		e.Check(err)
		e.equal("alias", id, other)
		loser := parent.Nth(d.Spawns[1].Base)
		log, err := e.store.Logs(e.Context(), loser, 10)
		e.Check(err)
		e.equal("log", len(log), 1)
		e.equal("log", string(log[0].Entry), `"it did not get the alias \"taken\", which job `+string(other)+` has"`)
	})
}
