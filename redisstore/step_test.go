package redisstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// line is a graph of a source (type S), its consumer (type C) and one that stands apart.
func (e *env) line() (source, consumer job.ID) {
	e.Helper()
	g := e.create(
		job.Node{Type: "g", Graph: true},
		job.Node{Name: "s", Type: "S", Ports: ports(in("in"), out("out", to(2)))},
		job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 1))},
		job.Node{Name: "x", Type: "C", Ports: ports(in("in"))})
	e.begin(g.Nth(3))
	return g.Nth(1), g.Nth(2)
}

// lineWithSide is a graph of a source and its consumer, which has a port more that nobody feeds.
func (e *env) lineWithSide() (source, consumer job.ID) {
	e.Helper()
	g := e.create(
		job.Node{Type: "g", Graph: true},
		job.Node{Name: "s", Type: "S", Ports: ports(in("in"), out("out", to(2)))},
		job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 1), in("side"))})
	return g.Nth(1), g.Nth(2)
}

func (e *env) step(d store.Delta, b store.Begin, types ...string) (store.Result, *store.Snapshot) {
	e.Helper()
	res, snap, err := step(e.Context(), e.store, store.Tx{Deltas: []store.Delta{d}}, b, types)
	e.Check(err)
	return res, snap
}

func TestStepBeginsWhatItMadeReady(t *testing.T) {
	each(t, func(e *env) {
		s, c := e.line()
		d := delta(e.begin(s), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1", "2")}}
		b := beginning()
		res, snap := e.step(d, b, "B", "C")
		e.equal("result", known(res), store.Result{Applied: 1})
		e.is(statemachine.Completed, s)
		e.is(statemachine.Running, c)
		e.equal("job, token", []any{snap.Info.ID, snap.Token}, []any{c, b.Token})
		e.equal("inbox", snap.In.Of("in"), store.Inbox{Port: "in", Len: 2, Items: raws("1", "2")})
		e.unchanged("the same step again", func() {
			again, second := e.step(d, b, "B", "C")
			e.equal("result", known(again), known(res))
			e.equal("snapshot", second, snap)
		})
		e.commit(delta(snap, statemachine.Suspend))
		e.is(statemachine.Suspended, c)
	})
}

func TestStepBeginsNothing(t *testing.T) {
	each(t, func(e *env) {
		s, c := e.line()
		// Of another type.
		d := delta(e.begin(s), statemachine.Requeue)
		d.Delay = time.Hour
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		for range 2 {
			res, snap := e.step(d, beginning(), "S", "X")
			e.equal("result", known(res), store.Result{Applied: 1, Again: true})
			if snap != nil {
				e.Fatalf("began %s", snap.Info.ID)
			}
		}
		e.is(statemachine.Queued, s, c)
		// Ready before, not by this commit.
		_, snap := e.step(delta(e.begin(s), statemachine.Complete), beginning(), "S", "C")
		if snap == nil || snap.Info.ID != c {
			e.Fatalf("began %v, not %s", snap, c)
		}
		// Locked.
		e.commit(delta(snap, statemachine.Suspend))
		e.Check(e.Redis.Set(e.Context(), e.key(c)+":lock", "me", time.Hour).Err())
		e.Check(e.store.Apply(e.Context(), s, statemachine.Run))
		d = delta(e.begin(s), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("2")}}
		_, snap = e.step(d, beginning(), "S", "C")
		if snap != nil {
			e.Fatalf("began %s", snap.Info.ID)
		}
		e.is(statemachine.Queued, c)
	})
}

func TestStepGoesOnWithTheSameJob(t *testing.T) {
	each(t, func(e *env) {
		s, _ := e.line()
		snap := e.begin(s)
		e.write(s, "in", "1")
		d := delta(snap, statemachine.Complete)
		b := beginning()
		b.Token = "a-token.with%magic" // any text may be a token
		_, next := e.step(d, b, "S")
		if next == nil || next.Info.ID != s {
			e.Fatalf("the step began %v", next)
		}
		e.equal("inbox", texts(next.In.Of("in").Items), []string{"1"})
		e.unchanged("the same step again", func() {
			_, again := e.step(d, b, "S")
			e.equal("snapshot", again, next)
		})
		// The repeat of a step whose run has ended begins nothing.
		e.commit(delta(next, statemachine.Suspend))
		e.unchanged("a very late step", func() {
			res, again := e.step(d, b, "S")
			e.fails(res.Refused, job.ErrFenced)
			if again != nil {
				e.Errorf("began %s", again.Info.ID)
			}
		})
	})
}

func TestStepShutsDown(t *testing.T) {
	each(t, func(e *env) {
		s, _ := e.line()
		snap := e.begin(s)
		e.Check(e.store.Apply(e.Context(), s, statemachine.Terminate))
		d := delta(snap, statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		_, next := e.step(d, beginning(), "S")
		if next == nil || next.Info.ID != s || !next.Shutdown {
			e.Fatalf("the step began %+v", next)
		}
		e.equal("the commit of a run that is terminated holds", e.info(s).Steps, int64(1))
		e.commit(delta(next, statemachine.Shutdown))
		e.is(statemachine.Terminated, s)
	})
}

// A worker of one queue does not take jobs of another.
func TestStepStaysInItsQueue(t *testing.T) {
	each(t, func(e *env) {
		g := e.create(
			job.Node{Type: "g", Graph: true},
			job.Node{Name: "s", Type: "S", Queue: "fast", Ports: ports(out("out", to(2), to(3)))},
			job.Node{Name: "slow", Type: "C", Queue: "slow", Ports: ports(fed("in", 1))},
			job.Node{Name: "fast", Type: "C", Queue: "fast", Ports: ports(fed("in", 1))})
		d := delta(e.begin(g.Nth(1)), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		_, snap := e.step(d, beginning(), "C")
		e.equal("job begun", snap.Info.ID, g.Nth(3))
		e.is(statemachine.Queued, g.Nth(2))
	})
}

// A row of steps moves messages from job to job without a begin in between.
func TestStepsInARow(t *testing.T) {
	each(t, func(e *env) {
		const n = 20
		nodes := []job.Node{{Type: "g", Graph: true}}
		for i := 1; i <= n; i++ {
			p := ports(fed("in", 1), out("out"))
			if i == 1 {
				p[0].Sources = 0
			}
			if i < n {
				p[1].Edges = []job.Edge{to(i + 1)}
			}
			nodes = append(nodes, job.Node{Name: string(rune('a' + i)), Type: "T", Ports: p})
		}
		g := e.create(nodes...)
		e.write(g.Nth(1), "in", "7", "8")
		snap := e.begin(g.Nth(1))
		for snap != nil {
			box := snap.In.Of("in")
			d := delta(snap, statemachine.Complete)
			d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: box.Head, N: len(box.Items)}}
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: box.Items}}
			d.Closes = []string{"out"}
			_, snap = e.step(d, beginning(), "T")
		}
		e.holds(g.Nth(n), port.Output, "out", "7", "8")
		all, err := e.store.Tree(e.Context(), g)
		e.Check(err)
		if i := slices.IndexFunc(all, func(i *job.Info) bool { return i.Status != statemachine.Completed }); i >= 0 {
			e.Errorf("job %d is %s", i, all[i].Status)
		}
	})
}
