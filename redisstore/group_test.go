package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// pairs is a graph of n sources (type S), each with its consumer (type C): the i-th are jobs
// number 2i+1 and 2i+2.
func (e *env) pairs(n int) job.ID {
	e.Helper()
	nodes := []job.Node{{Type: "g", Graph: true}}
	for i := range n {
		name := string(rune('a' + i))
		nodes = append(nodes,
			job.Node{Name: "s" + name, Type: "S", Ports: ports(in("in"), out("out", to(2*i+2)))},
			job.Node{Name: "c" + name, Type: "C", Ports: ports(fed("in", 1), out("out"))})
	}
	return e.create(nodes...)
}

// spoke returns a delta of a source's run that writes one message.
func spoke(s *store.Snapshot, item string) store.Delta {
	d := delta(s, statemachine.Suspend)
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws(item)}}
	return d
}

// answer is what came of a step.
type answer struct {
	res  store.Result
	snap *store.Snapshot
	err  error
}

// grouped makes steps in the order given, all of which wait for the shard and then go together.
// before is called before they do.
func (e *env) grouped(root job.ID, before func(), steps ...func(ctx context.Context) answer) []answer {
	e.Helper()
	waiting, pass := redisstore.Occupy(e.store.(*redisstore.Store), root, time.Minute)
	out := make([]chan answer, len(steps))
	for i, step := range steps {
		out[i] = make(chan answer, 1)
		go func() { out[i] <- step(e.Context()) }()
		for waiting() <= i {
			time.Sleep(time.Millisecond)
		}
	}
	before()
	pass()
	all := make([]answer, len(steps))
	for i := range out {
		all[i] = <-out[i]
	}
	return all
}

// stepping is a step of a delta, which begins a run of type C under the token.
func (e *env) stepping(token string, deltas ...store.Delta) func(context.Context) answer {
	return func(ctx context.Context) (a answer) {
		b := beginning()
		b.Token = token
		a.res, a.snap, a.err = step(ctx, e.store, store.Tx{Deltas: deltas}, b, []string{"C"})
		return a
	}
}

// Commits that wait for their shard go together, and each holds, or is refused, by itself.
func TestGroupCommit(t *testing.T) {
	each(t, func(e *env) {
		g := e.pairs(4)
		var snaps []*store.Snapshot
		for i := range 4 {
			snaps = append(snaps, e.begin(g.Nth(2*i+1)))
		}
		fenced := spoke(snaps[1], `"b"`)
		fenced.Token = "another"
		speculation := spoke(snaps[3], `"d"`)
		wrong := store.Delta{Job: g.Nth(8), Token: "guessed", Outcome: statemachine.Suspend, Speculation: &store.Speculation{Version: 7, Port: "in", Seen: 1}}
		all := e.grouped(g, func() {},
			e.stepping("one", spoke(snaps[0], `"a"`)),
			e.stepping("two", fenced),
			func(ctx context.Context) (a answer) {
				res, err := e.store.Commit(ctx, []store.Tx{{Deltas: []store.Delta{spoke(snaps[2], `"c"`)}}})
				return answer{res: res[0], err: err}
			},
			e.stepping("four", speculation, wrong))
		for i, a := range all {
			e.Check(a.err)
			e.equal("applied", a.res.Applied, []int{1, 0, 1, 1}[i])
		}
		e.fails(all[1].res.Refused, job.ErrFenced)
		e.fails(all[3].res.Refused, job.ErrMoved)
		e.equal("begun", []any{all[0].snap.Info.ID, all[0].snap.Token, all[1].snap == nil, all[3].snap.Info.ID, all[3].snap.Token},
			[]any{g.Nth(2), "one", true, g.Nth(8), "four"})
		e.equal("inboxes", []any{all[0].snap.In.Of("in").Items, all[3].snap.In.Of("in").Items}, []any{raws(`"a"`), raws(`"d"`)})
		e.is(statemachine.Running, g.Nth(2), g.Nth(3), g.Nth(8)) // the fenced one's job has another run
		e.is(statemachine.Suspended, g.Nth(1), g.Nth(4), g.Nth(5), g.Nth(7))
		e.is(statemachine.Queued, g.Nth(6)) // nobody asked for a run behind it
		e.commit(spoke(snaps[1], `"late"`))
		e.holds(g.Nth(4), port.Input, "in", `"late"`)
	})
}

// A speculation that does not hold leaves nothing behind for the transactions that go with it: its job
// is queued, and no longer one that may be guessed about.
func TestGroupCommitOfWrongSpeculations(t *testing.T) {
	each(t, func(e *env) {
		g := e.create(
			job.Node{Type: "g", Graph: true},
			job.Node{Name: "a", Type: "S", Ports: ports(in("in"), out("out", to(3)))},
			job.Node{Name: "b", Type: "S", Ports: ports(in("in"), out("out", to(3)))},
			job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 2))})
		a, b, c := e.begin(g.Nth(1)), e.begin(g.Nth(2)), g.Nth(3)
		speculation := func(version int64, seen int) store.Delta {
			return store.Delta{
				Job: c, Token: "guessed", Outcome: statemachine.Suspend,
				Takes:       []store.Take{{Dir: port.Input, Port: "in", N: seen}},
				Speculation: &store.Speculation{Version: version, Port: "in", Seen: seen, Limit: 100},
			}
		}
		nothing := func(ctx context.Context, d ...store.Delta) answer {
			res, err := e.store.Commit(ctx, []store.Tx{{Deltas: d}})
			return answer{res: res[0], err: err}
		}
		all := e.grouped(g, func() {},
			func(ctx context.Context) answer { return nothing(ctx, spoke(a, "1"), speculation(7, 1)) },
			func(ctx context.Context) answer { return nothing(ctx, spoke(b, "2"), speculation(0, 2)) })
		for _, one := range all {
			e.Check(one.err)
			e.equal("applied", one.res.Applied, 1)
			e.fails(one.res.Refused, job.ErrMoved)
		}
		e.is(statemachine.Queued, c)
		e.holds(c, port.Input, "in", "1", "2")
	})
}

// One that waits in vain leaves, and nothing of it is done.
func TestGroupCommitIsLeft(t *testing.T) {
	each(t, func(e *env) {
		g := e.pairs(2)
		a, b := e.begin(g.Nth(1)), e.begin(g.Nth(3))
		ctx, cancel := context.WithCancel(e.Context())
		left := make(chan error, 1)
		all := e.grouped(g, func() {
			cancel()
			e.fails(<-left, context.Canceled)
		}, func(context.Context) answer {
			got := e.stepping("one", spoke(a, "1"))(ctx)
			left <- got.err
			return got
		}, e.stepping("two", spoke(b, "2")))
		e.Check(all[1].err)
		e.is(statemachine.Running, g.Nth(1), g.Nth(4))
		e.is(statemachine.Suspended, g.Nth(2), g.Nth(3))
		e.Check(e.stepping("again", spoke(a, "1"))(e.Context()).err)
		e.is(statemachine.Running, g.Nth(2))
	})
}

// Nor does one wait indefinitely: the connection of those before it may be broken.
func TestGroupCommitGoesAlone(t *testing.T) {
	each(t, func(e *env) {
		g := e.pairs(1)
		waiting, pass := redisstore.Occupy(e.store.(*redisstore.Store), g, time.Millisecond)
		e.Check(e.stepping("one", spoke(e.begin(g.Nth(1)), "1"))(e.Context()).err)
		e.equal("waiting", waiting(), 0)
		pass()
		e.is(statemachine.Running, g.Nth(2))
	})
}

// A commit that breaks the script does not keep those that go with it.
func TestGroupCommitOfDamage(t *testing.T) {
	each(t, func(e *env) {
		g := e.pairs(3)
		var steps []func(context.Context) answer
		for i, token := range []string{"one", "two", "three"} {
			steps = append(steps, e.stepping(token, spoke(e.begin(g.Nth(2*i+1)), `"x"`)))
		}
		e.Check(e.Redis.Set(e.Context(), e.key(g.Nth(4))+":i:in", "no list", 0).Err())
		all := e.grouped(g, func() {}, steps...)
		e.Check(errors.Join(all[0].err, all[2].err))
		if err := all[1].err; err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			e.Errorf("the damaged one: %v", err)
		}
		for i, a := range []answer{all[0], all[2]} {
			e.equal("applied", a.res.Applied, 1)
			e.equal("begun", a.snap.Info.ID, g.Nth(4*i+2))
		}
		e.fails(all[1].err, job.ErrRefused)
		e.is(statemachine.Running, g.Nth(2), g.Nth(6))
	})
}

// The driver repeats a group whose reply is lost: each answer is what it would have been.
func TestGroupCommitOfLostReplies(t *testing.T) {
	t.Parallel()
	addr := strings.TrimSuffix(strings.TrimPrefix(redistest.SharedRedis(t), "redis://"), "/0")
	for _, lost := range []int{0, 1, 2} {
		p := redistest.StartProxy(t, addr)
		e := open(t, p.URL())
		g := e.pairs(3)
		var steps []func(context.Context) answer
		for i, token := range []string{"one", "two", "three"} {
			steps = append(steps, e.stepping(token, spoke(e.begin(g.Nth(2*i+1)), `"x"`)))
		}
		all := e.grouped(g, func() { p.DropReplies(lost, `"x"`) }, steps...)
		e.equal("replies lost", p.Dropped(), lost)
		for i, a := range all {
			e.Check(a.err)
			e.equal("result", known(a.res), store.Result{Applied: 1})
			e.equal("begun", []any{a.snap.Info.ID, a.snap.In.Of("in").Items}, []any{g.Nth(2*i + 2), raws(`"x"`)})
			d := delta(a.snap, statemachine.Suspend)
			d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
			e.commit(d)
		}
		e.is(statemachine.Suspended, g.Nth(1), g.Nth(2), g.Nth(3), g.Nth(4), g.Nth(5), g.Nth(6))
	}
}

// A group has its bounds: what is too much for one goes with the next.
func TestGroupCommitIsBounded(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	g := e.pairs(5)
	large := `"` + strings.Repeat("x", 200<<10) + `"`
	var steps []func(context.Context) answer
	for i, token := range []string{"one", "two", "three", "four", "five"} {
		steps = append(steps, e.stepping(token, spoke(e.begin(g.Nth(2*i+1)), large)))
	}
	for i, a := range e.grouped(g, func() {}, steps...) {
		e.Check(a.err)
		e.equal("begun", a.snap.Info.ID, g.Nth(2*i+2))
	}
}

// A transaction that a damaged key ends does not touch those behind it in the call.
func TestCommitBehindDamage(t *testing.T) {
	each(t, func(e *env) {
		_, g := e.shoal(8)
		var txs []store.Tx
		for n := 2; n <= 8; n++ {
			txs = append(txs, store.Tx{Deltas: []store.Delta{delta(e.begin(g.Nth(n)), statemachine.Complete)}})
		}
		e.Check(e.Redis.Set(e.Context(), e.key(g.Nth(2))+":s", "damaged", 0).Err())
		txs[0].Deltas[0].Set = map[string]json.RawMessage{"x": raws("1")[0]}
		res, err := e.store.Commit(e.Context(), txs)
		if err == nil {
			e.Errorf("results %+v of a damaged job", res[0])
		}
		for n := 3; n <= 8; n++ {
			e.is(statemachine.Completed, g.Nth(n))
		}
	})
}
