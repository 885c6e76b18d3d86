package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// resharding is an env on a cluster of its own, whose slots can be moved.
type resharding struct {
	*env
	cluster *redistest.Cluster
}

func onCluster(t *testing.T) *resharding {
	t.Helper()
	c := redistest.StartCluster(t)
	return &resharding{open(t, c.URL()), c}
}

// move begins to move the slot of a key to the next node, or to the one given.
func (e *resharding) move(key string, to ...int) *redistest.Move {
	e.Helper()
	slot, err := e.cluster.Slot(e.Context(), key)
	e.Check(err)
	if len(to) == 0 {
		owner, err := e.cluster.Owner(e.Context(), slot)
		e.Check(err)
		to = []int{(owner + 1) % len(e.cluster.Nodes)}
	}
	m, err := e.cluster.StartMove(e.Context(), slot, to[0])
	e.Check(err)
	return m
}

// refused wants an act to be refused for now, and to leave all as it is.
func (e *resharding) refused(what string, act func() error) {
	e.Helper()
	e.unchanged(what, func() {
		if err := act(); !errors.Is(err, job.ErrUnavailable) {
			e.Errorf("%s while the slot moves: %v, want one that is: %v", what, err, job.ErrUnavailable)
		}
	})
}

// keyByKey calls fn before the first key is moved, and after each of them.
func (e *resharding) keyByKey(m *redistest.Move, fn func(moved int)) {
	e.Helper()
	keys, err := m.Keys(e.Context(), 1000)
	e.Check(err)
	fn(0)
	for i, key := range keys {
		e.Check(m.Key(e.Context(), key))
		fn(i + 1)
	}
	e.Check(m.Finish(e.Context()))
}

// A commit is never carried out in part while its slot moves, wherever which of the keys are: it is
// refused for now, and when the slot has moved the same commit holds, once.
func TestReshardHalfCommit(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	s, c := e.line()
	e.write(s, "in", "1")
	snap := e.begin(s)
	d := delta(snap, statemachine.Suspend)
	d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: snap.In.Of("in").Head, N: 1}}
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("2")}}
	try := func() error {
		res, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
		return errors.Join(err, res[0].Refused)
	}
	e.keyByKey(e.move(e.key(s)), func(moved int) { e.refused(fmt.Sprintf("commit with %d keys moved", moved), try) })
	for range 2 {
		e.Check(try())
		e.holds(s, port.Input, "in")
		e.holds(c, port.Input, "in", "2")
	}
}

// A sweep forgets no reason to look at a job while its slot moves: the entry of `due` may be there
// before the job.
func TestReshardSweep(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	id := e.single()
	b := beginning()
	b.Lease = time.Millisecond
	_, err := e.store.Begin(e.Context(), id, b)
	e.Check(err)
	sweep := func() error { _, err := e.store.Sweep(e.Context()); return err }
	time.Sleep(5 * time.Millisecond) // the lease ends
	m := e.move(e.key(id))
	e.Check(m.Key(e.Context(), e.due(id)))
	e.keyByKey(m, func(moved int) { e.refused(fmt.Sprintf("sweep with %d more keys moved", moved), sweep) })
	e.is(statemachine.Running, id)
	e.Check(sweep())
	e.is(statemachine.Queued, id)
}

// A move that was broken off is a finding, with its slot and what it means for jobs, until it has ended.
func TestExamineNamesSlotsThatAreHalfMoved(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	id := e.single()
	cfg := redisstore.Config{URL: e.cluster.URL(), Namespace: e.Namespace}
	slot, err := e.cluster.Slot(e.Context(), e.key(id))
	e.Check(err)
	whole := func() {
		t.Helper()
		found := look(t, cfg, false).of("cluster")
		found.has(t, "cluster", redisstore.OK, "^3 masters, all slots are served$", "")
		e.equal("findings", len(found), 1)
	}
	whole()
	m := e.move(e.key(id))
	keys, err := m.Keys(e.Context(), 1)
	e.Check(err)
	e.Check(m.Key(e.Context(), keys[0]))
	look(t, cfg, false).has(t, "cluster", redisstore.Warning,
		fmt.Sprintf("^1 slot is half moved from one server to another: %d\\. .*shards in it are refused \\(not now\\), and their jobs wait$", slot),
		"redis-cli --cluster fix 127\\.0\\.0\\.1:\\d+$")
	e.Check(m.Finish(e.Context()))
	whole()
}

// All acts of all scripts are refused for now while the slot moves, and hold when it has.
func TestReshardRefuses(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	id := e.single()
	e.write(id, "in", "1")
	ctx := e.Context()
	fresh := newID(e)
	for fresh.Shard(shards) != id.Shard(shards) {
		fresh = newID(e)
	}
	plan := &job.Plan{Nodes: []job.Node{{Type: "T"}}}
	acts := map[string]func() error{
		"create":    func() error { _, err := e.store.Create(ctx, fresh, plan, "test"); return err },
		"begin":     func() error { _, err := e.store.Begin(ctx, id, beginning()); return err },
		"info":      func() error { _, err := e.store.Info(ctx, id); return err },
		"write":     func() error { return e.store.Write(ctx, id, store.Write{Dir: 'i', Port: "in", Items: raws("2")}) },
		"state":     func() error { return e.store.SetState(ctx, id, map[string]json.RawMessage{"k": raws("1")[0]}, nil) },
		"terminate": func() error { return e.store.Apply(ctx, id, statemachine.Terminate) },
		"delete":    func() error { return e.store.Delete(ctx, id) },
		"lock":      func() error { _, err := e.store.Lock(ctx, id, "me", time.Minute, 0); return err },
		"sweep":     func() error { return e.store.SweepOf(ctx, id) },
		"log":       func() error { _, err := e.store.Log(ctx, id, "", 10); return err },
		"reserve":   func() error { _, err := e.store.Reserve(ctx, id, 1); return err },
	}
	e.keyByKey(e.move(e.key(id)), func(moved int) {
		for _, name := range slices.Sorted(maps.Keys(acts)) {
			e.refused(fmt.Sprintf("%s with %d keys moved", name, moved), acts[name])
		}
	})
	e.is(statemachine.Queued, id)
	e.holds(id, port.Input, "in", "1")
	for _, name := range []string{"create", "info", "write", "state", "reserve", "begin"} {
		e.Check(acts[name]())
	}
}

// hub acts are those on what belongs to no shard.
func TestReshardNames(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	id := e.single()
	ctx := e.Context()
	_, err := e.store.Claim(ctx, "a", id)
	e.Check(err)
	e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "T", Queue: "q"}}))
	e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "A", Host: "h", PID: 1}))
	acts := map[string]func() error{
		"claim":   func() error { _, err := e.store.Claim(ctx, "b", id); return err },
		"unclaim": func() error { return e.store.Unclaim(ctx, "a", id) },
		"beat":    func() error { return e.store.Heartbeat(ctx, store.EngineInfo{ID: "B"}) },
		"publish": func() error { return e.store.Publish(ctx, "/c", raws("1")) },
	}
	e.keyByKey(e.move("weir:{"+e.Namespace+"}:meta"), func(moved int) {
		for _, name := range slices.Sorted(maps.Keys(acts)) {
			e.refused(fmt.Sprintf("%s with %d keys moved", name, moved), acts[name])
		}
	})
	for _, name := range []string{"beat", "claim", "unclaim", "publish"} {
		e.Check(acts[name]())
	}
}

// Plain commands, each of one key, see while a slot moves what they saw before: who has no such key asks
// the other server.
func TestReshardReads(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	ctx := e.Context()
	id := e.single()
	e.Check(e.store.SetState(ctx, id, map[string]json.RawMessage{"k": raws("1")[0]}, nil))
	snap := e.begin(id)
	d := delta(snap, statemachine.Backoff)
	d.Delay = time.Hour
	d.Failure = &job.Failure{Error: "bad"}
	e.commit(d)
	_, err := e.store.Claim(ctx, "a", id)
	e.Check(err)
	e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "T", Queue: "q"}}))
	e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "A", Host: "h", PID: 1}))
	reads := map[string]func() (any, error){
		"alias":    func() (any, error) { return e.store.Resolve(ctx, "a") },
		"aliases":  func() (any, error) { return e.store.Aliases(ctx, id) },
		"index":    func() (any, error) { return e.store.Prefixed(ctx, string(id)[:8], 10) },
		"types":    func() (any, error) { return e.store.Types(ctx) },
		"type":     func() (any, error) { return e.store.Type(ctx, "q", "T") },
		"engines":  func() (any, error) { return e.store.Engines(ctx) },
		"state":    func() (any, error) { return e.store.State(ctx, id) },
		"children": func() (any, error) { return e.store.Children(ctx, id) },
		"failures": func() (any, error) { return e.store.Failures(ctx, id) },
		"locked":   func() (any, error) { return e.store.Locked(ctx, id) },
		"details":  func() (any, error) { return e.store.Details(ctx, []job.ID{id}) },
	}
	before := map[string]any{}
	for name, read := range reads {
		seen, err := read()
		e.Check(err)
		before[name] = seen
	}
	for _, key := range []string{e.key(id), "weir:{" + e.Namespace + "}:meta"} {
		e.keyByKey(e.move(key), func(moved int) {
			for name, read := range reads {
				seen, err := read()
				e.Check(err)
				e.equal(fmt.Sprintf("%s with %d keys of %s moved", name, moved, key), seen, before[name])
			}
		})
	}
}

// A lock is one lock while its slot moves: nobody else gets it, wherever its key is.
func TestReshardLock(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	lead := func(held context.Context, fn func()) bool {
		others, err := e.store.Lead(held, func(context.Context) { fn() })
		e.Check(err)
		return others == 0
	}
	again := func(context.Context) { e.Error("two lead") }
	only := func(moved int) {
		others, err := e.store.Lead(e.Context(), again)
		e.Check(err)
		e.equal(fmt.Sprintf("a second one leads with %d keys moved", moved), others == 0, false)
	}
	e.equal("leads", lead(e.Context(), func() { e.keyByKey(e.move("weir:{"+e.Namespace+"}:sweeper"), only) }), true)
	m := e.move("weir:{" + e.Namespace + "}:sweeper") // to where nobody has it
	e.equal("leads", lead(e.Context(), func() { e.keyByKey(m, only) }), true)
}

// A server that joined the cluster, and has none of Weir's functions, can be given slots.
func TestReshardToNewServer(t *testing.T) {
	t.Parallel()
	e := onCluster(t)
	id := e.single()
	e.cluster.AddNode(t)
	write := func() error {
		return e.store.Write(e.Context(), id, store.Write{Dir: 'i', Port: "in", Items: raws("1")})
	}
	e.keyByKey(e.move(e.key(id), 3), func(moved int) { e.refused(fmt.Sprintf("write with %d keys moved", moved), write) })
	e.Check(write())
	e.holds(id, port.Input, "in", "1")
}
