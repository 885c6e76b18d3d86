package redisstore_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// row is a transaction of a run that writes a message to the port of a job that sleeps, and of
// that job's run on it, speculatively.
func (e *env) row(source, consumer job.ID) store.Tx {
	e.Helper()
	first := delta(e.begin(source), statemachine.Requeue)
	first.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
	i := e.info(consumer)
	p, _ := i.Port(port.Input, "in")
	touched, err := e.Redis.HGet(e.Context(), e.key(consumer), "touched").Int64()
	if !errors.Is(err, redis.Nil) {
		e.Check(err)
	}
	second := store.Delta{
		Job: consumer, Token: "guess" + first.Token, Outcome: statemachine.Suspend,
		Speculation: &store.Speculation{
			Version: i.Version, Touched: touched, Last: e.Redis.HGet(e.Context(), e.key(consumer), "last").Val(), Port: "in", Seen: 1, Limit: 1000,
		},
		Takes: []store.Take{{Dir: port.Input, Port: "in", Head: p.Total, N: 1}},
		Set:   map[string]json.RawMessage{"seen": json.RawMessage(`1`)},
	}
	return store.Tx{Deltas: []store.Delta{first, second}}
}

func TestSpeculation(t *testing.T) {
	each(t, func(e *env) {
		s, c := e.line()
		for n := range int64(3) {
			tx := e.row(s, c)
			b := beginning()
			res, snap, err := step(e.Context(), e.store, tx, b, []string{"S", "C"})
			e.Check(err)
			e.equal("result", known(res), store.Result{Applied: 2})
			e.equal("next", snap.Info.ID, s)
			e.is(statemachine.Suspended, c)
			e.holds(c, port.Input, "in")
			i := e.info(c)
			e.equal("steps, version, tries", []int64{i.Steps, i.Version, int64(i.Tries)}, []int64{n + 1, n + 1, 0})
			if i.Ran.IsZero() {
				e.Error("the job never ran")
			}
			e.unchanged("the same row again", func() {
				again, second, err := step(e.Context(), e.store, tx, b, []string{"S", "C"})
				e.Check(err)
				e.equal("result", known(again), known(res))
				e.equal("snapshot", second, snap)
			})
			e.commit(delta(snap, statemachine.Requeue))
			e.unchanged("a very late row", func() {
				late, second, err := step(e.Context(), e.store, tx, b, []string{"S", "C"})
				e.Check(err)
				e.equal("applied", late.Applied, 0)
				if second != nil {
					e.Errorf("began %s", second.Info.ID)
				}
			})
		}
		members, err := e.Redis.ZRange(e.Context(), e.key(c)[:len(e.key(c))-len("j:")-len(c)]+"due", 0, -1).Result()
		e.Check(err)
		for _, m := range members {
			if m == string(c) {
				e.Error("a job that sleeps is in due")
			}
		}
	})
}

// A job that did not finish what it was given is queued, as after any run.
func TestSpeculationThatGoesOn(t *testing.T) {
	each(t, func(e *env) {
		s, c := e.line()
		tx := e.row(s, c)
		tx.Deltas[0].Outcome, tx.Deltas[0].Writes[0].Items = statemachine.Suspend, raws("1", "2")
		tx.Deltas[1].Outcome, tx.Deltas[1].Speculation.Seen = statemachine.Requeue, 2
		res, snap, err := step(e.Context(), e.store, tx, beginning(), []string{"S", "C"})
		e.Check(err)
		e.equal("applied", res.Applied, 2)
		e.equal("next", snap.Info.ID, c)
		e.equal("inbox", snap.In.Of("in"), store.Inbox{Port: "in", Head: 1, Len: 1, Items: raws("2")})
	})
}

// Whatever happened to the job since it was seen, the speculation does not hold: what goes before it
// does, and the job runs the usual way, or does whatever it does now.
func TestSpeculationIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(e *env, c job.ID, tx *store.Tx)
		status  statemachine.Status
		holds   []string
	}{
		"message":     {func(e *env, c job.ID, _ *store.Tx) { e.write(c, "in", "0") }, statemachine.Queued, []string{"0", "1"}},
		"silent one":  {quietly, statemachine.Queued, []string{"0", "1"}},
		"run":         {func(e *env, c job.ID, _ *store.Tx) { e.wakeAndEnd(c) }, statemachine.Queued, []string{"1"}},
		"running":     {func(e *env, c job.ID, _ *store.Tx) { e.wake(c); e.begin(c) }, statemachine.Running, []string{"1"}},
		"queued":      {func(e *env, c job.ID, _ *store.Tx) { e.wake(c) }, statemachine.Queued, []string{"1"}},
		"state":       {func(e *env, c job.ID, _ *store.Tx) { e.set(c) }, statemachine.Queued, []string{"1"}},
		"default":     {func(e *env, c job.ID, _ *store.Tx) { e.fallback(c) }, statemachine.Queued, []string{"1"}},
		"lock":        {func(e *env, c job.ID, _ *store.Tx) { e.lock(c) }, statemachine.Queued, []string{"1"}},
		"termination": {func(e *env, c job.ID, _ *store.Tx) { e.Check(e.store.Apply(e.Context(), c, statemachine.Terminate)) }, statemachine.Terminating, []string{"1"}},
		"rate":        {func(_ *env, _ job.ID, tx *store.Tx) { tx.Deltas[1].Speculation.Limit = 0 }, statemachine.Queued, []string{"1"}},
		"other head":  {func(_ *env, _ job.ID, tx *store.Tx) { tx.Deltas[1].Takes[0].Head++ }, statemachine.Queued, []string{"1"}},
		"too much":    {func(_ *env, _ job.ID, tx *store.Tx) { tx.Deltas[1].Takes[0].N = 2 }, statemachine.Queued, []string{"1"}},
		"other run":   {func(_ *env, _ job.ID, tx *store.Tx) { tx.Deltas[1].Speculation.Last = "lost" }, statemachine.Queued, []string{"1"}},
		"ports": {func(e *env, c job.ID, _ *store.Tx) {
			e.Check(e.store.SetPorts(e.Context(), c, []port.Spec{{Name: "new", Dir: port.Input}}))
		}, statemachine.Queued, []string{"1"}},
		"end":          {func(_ *env, _ job.ID, tx *store.Tx) { tx.Deltas[0].Closes = []string{"out"} }, statemachine.Queued, []string{"1"}},
		"no port":      {func(_ *env, _ job.ID, tx *store.Tx) { tx.Deltas[1].Closes = []string{"no"} }, statemachine.Queued, []string{"1"}},
		"nothing came": {func(_ *env, _ job.ID, tx *store.Tx) { tx.Deltas[0].Writes = nil }, statemachine.Suspended, nil},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				s, consumer := e.line()
				tx := e.row(s, consumer)
				c.happens(e, consumer, &tx)
				res, _, err := step(e.Context(), e.store, tx, beginning(), []string{"S"})
				e.Check(err)
				e.equal("applied", res.Applied, 1)
				if res.Refused == nil {
					e.Error("the guess holds")
				}
				e.is(c.status, consumer)
				e.holds(consumer, port.Input, "in", c.holds...)
				e.equal("steps of the source", e.info(s).Steps, int64(1))
				if n := e.Redis.HGet(e.Context(), e.key(consumer)+":s", "seen").Val(); n != "" {
					e.Error("what the run set is there")
				}
			})
		})
	}
}

func quietly(e *env, c job.ID, _ *store.Tx) {
	e.Helper()
	e.Check(e.store.Write(e.Context(), c, store.Write{Dir: port.Input, Port: "in", Items: raws("0"), NoWake: true}))
}

func (e *env) wake(id job.ID) {
	e.Helper()
	e.Check(e.store.Apply(e.Context(), id, statemachine.Run))
}

func (e *env) wakeAndEnd(id job.ID) {
	e.Helper()
	e.wake(id)
	e.end(id, statemachine.Suspend)
}

func (e *env) set(id job.ID) {
	e.Helper()
	e.Check(e.store.SetState(e.Context(), id, map[string]json.RawMessage{"k": json.RawMessage(`1`)}, nil))
}

func (e *env) fallback(id job.ID) {
	e.Helper()
	e.Check(e.store.SetDefault(e.Context(), id, store.Default{Dir: port.Input, Port: "in", Value: json.RawMessage(`7`)}))
}

func (e *env) lock(id job.ID) {
	e.Helper()
	e.Check(e.Redis.Set(e.Context(), e.key(id)+":lock", "me", time.Hour).Err())
}

// Messages that were written without waking anybody are seen by the next run, whatever port
// wakes it.
func TestSpeculationAfterSilence(t *testing.T) {
	each(t, func(e *env) {
		s, c := e.lineWithSide()
		tx := e.row(s, c)
		e.Check(e.store.Write(e.Context(), c, store.Write{Dir: port.Input, Port: "side", Items: raws("0"), NoWake: true}))
		res, snap, err := step(e.Context(), e.store, tx, beginning(), []string{"C"})
		e.Check(err)
		e.equal("applied", res.Applied, 1)
		e.equal("job", snap.Info.ID, c)
		e.equal("side", snap.In.Of("side"), store.Inbox{Port: "side", Len: 1, Items: raws("0")})
	})
}

// A speculative run counts for the limit of runs, also in the script that begins it.
func TestSpeculationCounts(t *testing.T) {
	each(t, func(e *env) {
		s, c := e.line()
		tx := e.row(s, c)
		tx.Deltas[0].Outcome, tx.Deltas[1].Outcome = statemachine.Suspend, statemachine.Requeue
		_, snap, err := step(e.Context(), e.store, tx, beginning(), []string{"C"})
		e.Check(err)
		e.equal("job", snap.Info.ID, c)
		rate := e.Redis.HGet(e.Context(), e.key(c), "rate").Val()
		if !strings.HasSuffix(rate, ":2") {
			e.Errorf("rate is %q after two runs", rate)
		}
	})
}

// ofTheWay are times, tokens, and what only jobs have that were queued.
var ofTheWay = regexp.MustCompile(`"(last|rate|queued|ran|round|created|gen|again|ended)":"[^"]*" ?|\d{13}\\x1f`)

// A row of jobs that run for the first time and end, each on what the one before it wrote and closed, leaves what it
// leaves when they run one by one.
func TestSpeculationAtTheEnd(t *testing.T) {
	each(t, func(e *env) {
		var seen [2][]string
		for i, oneByOne := range []bool{true, false} {
			g := e.create(
				job.Node{Type: "g", Graph: true, Ports: ports(out("out"))},
				job.Node{Name: "a", Type: "A", Ports: ports(out("out", to(2)))},
				job.Node{Name: "b", Type: "B", Ports: ports(fed("in", 1), out("out", to(3)))},
				job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 1))})
			b := beginning()
			b.Row = 5
			snap, err := e.store.Begin(e.Context(), g.Nth(1), b)
			e.Check(err)
			e.equal("jobs in the row", []any{len(snap.Row), snap.Row[0].Info.ID, snap.Row[1].Info.ID}, []any{2, g.Nth(2), g.Nth(3)})
			tx := store.Tx{}
			for n := 1; n <= 3; n++ {
				d := store.Delta{Job: g.Nth(n), Token: "t" + string(g.Nth(n)), Outcome: statemachine.Complete, Entry: `{"step":0}`}
				if n == 1 || oneByOne {
					d.Token = snap.Token
				} else {
					s := snap.Row[n-2]
					d.Speculation = &store.Speculation{Version: s.Info.Version, Touched: s.Touched, Port: "in", Seen: 1, Closed: true, Limit: 10}
				}
				if n > 1 {
					d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
				}
				if n < 3 {
					d.Writes, d.Closes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}, []string{"out"}
				}
				if !oneByOne {
					tx.Deltas = append(tx.Deltas, d)
					continue
				}
				e.commit(d)
				if n < 3 {
					snap = e.begin(g.Nth(n + 1))
				}
			}
			if !oneByOne {
				e.equal("applied", e.commitRow(tx).Applied, 3)
				e.unchanged("the same row again", func() { e.equal("applied", e.commitRow(tx).Applied, 3) })
			}
			for key, text := range e.dump() {
				if strings.Contains(key, string(g)) {
					_, key, _ = strings.Cut(key, "}")
					text = strings.ReplaceAll(key+": "+text, string(g), "tree")
					seen[i] = append(seen[i], ofTheWay.ReplaceAllString(text, ""))
				}
			}
			slices.Sort(seen[i])
			e.is(statemachine.Completed, g, g.Nth(1), g.Nth(2), g.Nth(3))
		}
		e.equal("what is left", seen[1], seen[0])
	})
}
