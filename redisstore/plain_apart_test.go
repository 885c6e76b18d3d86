package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// bareTwins are twins without any jobs.
func bareTwins(t *testing.T) *twins {
	t.Helper()
	url := redistest.SharedRedis(t)
	w := &twins{began: minute()}
	for n, call := range []string{plainCall + " if result then call('HINCRBY', P .. 'plain', #deltas > 1 and 'rows' or 'runs', 1) end", "last"} {
		e := open(t, url)
		redisstore.Rewrite(t, e.Store, plainCall, call)
		w.both[n] = e
	}
	w.env = w.both[0]
	return w
}

// each does the same to both, and compares what is said of it and what is left.
func (w *twins) each(fn func(e *env) string) {
	w.Helper()
	var said [2]string
	for n, e := range w.both {
		said[n] = fn(e)
	}
	if said[0] != said[1] {
		w.Errorf("said: plain %s\ntx    %s", said[0], said[1])
	}
	if a, b := w.seen(w.both[0]), w.seen(w.both[1]); a != b {
		w.Errorf("differ: %s", firstDifference(a, b))
	}
}

// beginAs begins a run under a token that is the same for both.
func (e *env) beginAs(id job.ID, token string) *store.Snapshot {
	e.Helper()
	b := beginning()
	b.Token = token
	s, err := e.store.Begin(e.Context(), id, b)
	e.Check(err)
	return s
}

// txs commits transactions, and says what became of them.
func (e *env) txs(all ...store.Tx) string {
	e.Helper()
	res, err := e.store.Commit(e.Context(), all)
	return fmt.Sprintf("%+v %v", res, err)
}

// saying writes messages to the port out.
func saying(items ...string) []store.Write {
	return []store.Write{{Dir: port.Output, Port: "out", Items: raws(items...)}}
}

// A job writes to a child of its own graph, which was completed: it is woken while it runs.
func TestPlainOwnGraph(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.createAs(id, job.Node{Type: "T", Ports: ports(out("out", to(2)))},
			job.Node{Name: "g", Type: "G", Graph: true},
			job.Node{Name: "x", Type: "X", Parent: 1, Ports: ports(fed("in", 1))})
		s := e.beginAs(id, "t1")
		d := delta(s, statemachine.Suspend)
		d.Writes = saying("1")
		said := e.txs(store.Tx{Deltas: []store.Delta{d}})
		x := delta(e.beginAs(id.Nth(2), "x1"), statemachine.Complete)
		x.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
		said += e.txs(store.Tx{Deltas: []store.Delta{x}}) // the graph completes and wakes the root
		d = delta(e.beginAs(id, "t2"), statemachine.Suspend)
		d.Writes = saying("2")
		said += e.txs(store.Tx{Deltas: []store.Delta{d}})
		return said + fmt.Sprint(e.info(id).Status, e.info(id.Nth(1)).Status, e.info(id.Nth(2)).Status)
	})
}

// The output comes back to the job itself by a graph's port.
func TestPlainItself(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		g := in("in")
		g.Edges = []job.Edge{to(1)}
		e.createAs(id, job.Node{Type: "G", Graph: true, Ports: ports(g)},
			job.Node{Name: "a", Type: "T", Ports: ports(fed("in", 1), out("out", to(0)))})
		e.Check(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: raws("1")}))
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Suspend)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
		d.Writes = saying("2")
		return e.txs(store.Tx{Deltas: []store.Delta{d}}) + fmt.Sprint(e.info(id.Nth(1)).Status)
	})
}

// shared is a graph: a feeds the graph g, whose port shares messages among b and c.
func (e *env) shared(id job.ID) {
	e.Helper()
	g := fed("in", 1)
	g.Edges = []job.Edge{to(3, 4)}
	e.createAs(id, job.Node{Type: "G", Graph: true},
		job.Node{Name: "a", Type: "T", Ports: ports(out("out", to(2)))},
		job.Node{Name: "g", Type: "G", Graph: true, Ports: ports(g)},
		job.Node{Name: "b", Type: "X", Parent: 2, Ports: ports(fed("in", 1))},
		job.Node{Name: "c", Type: "X", Parent: 2, Ports: ports(fed("in", 1))})
}

// Keyed messages.
func TestPlainKeyed(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.shared(id)
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Suspend)
		d.Writes = saying("1")
		d.Writes[0].Keyed, d.Writes[0].Key = true, 1 // 1 % 2: the second
		return e.txs(store.Tx{Deltas: []store.Delta{d}}) + fmt.Sprint(e.peek(id.Nth(3), port.Input, "in"), e.peek(id.Nth(4), port.Input, "in"))
	})
}

// packsOf is a delta of as many runs as there are messages, each of which wrote one.
func packsOf(d store.Delta, items ...string) store.Delta {
	for i, item := range items {
		p := store.Part{Entry: fmt.Sprintf(`{"step":%d}`, i), Writes: saying(item)}
		if i == len(items)-1 {
			d.Entry, d.Writes = p.Entry, p.Writes
		} else {
			d.Before = append(d.Before, p)
		}
	}
	return d
}

// Packs shared among several.
func TestPlainPacks(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.shared(id)
		d := packsOf(delta(e.beginAs(id.Nth(1), "t1"), statemachine.Suspend), "1", "2", "3")
		return e.txs(store.Tx{Deltas: []store.Delta{d}}) + fmt.Sprint(e.peek(id.Nth(3), port.Input, "in"), e.peek(id.Nth(4), port.Input, "in"))
	})
}

// What packs leave in `sent`.
func TestPlainSent(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	other := newID(t)
	for other.Shard(shards) != id.Shard(shards) {
		other = newID(t)
	}
	w.each(func(e *env) string {
		for _, one := range []job.ID{id, other} {
			e.createAs(one, job.Node{Type: "T", Ports: ports(in("in"), out("out"))})
		}
		d := packsOf(delta(e.beginAs(id, "t1"), statemachine.Suspend), "1", "2", "3")
		o := delta(e.beginAs(other, "t2"), statemachine.Requeue) // not plain
		o.Entry, o.Writes = `{"step":0}`, saying("x")
		return e.txs(store.Tx{Deltas: []store.Delta{d}}, store.Tx{Deltas: []store.Delta{o}})
	})
}

// A guess on nothing that came.
func TestPlainNotWoken(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.createAs(id, job.Node{Type: "G", Graph: true},
			job.Node{Name: "a", Type: "T", Ports: ports(out("out", to(2)))},
			job.Node{Name: "b", Type: "X", Ports: ports(fed("in", 2))},
			job.Node{Name: "c", Type: "T", Ports: ports(out("out", to(2)))})
		e.Check(e.store.Write(e.Context(), id.Nth(2), store.Write{Dir: port.Input, Port: "in", Items: raws("1"), NoWake: true}))
		touched, _ := e.Redis.HGet(e.Context(), e.key(id.Nth(2)), "touched").Int64()
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Complete)
		d.Closes = []string{"out"}
		g := store.Delta{
			Job: id.Nth(2), Token: "t2", Outcome: statemachine.Suspend, Speculation: &store.Speculation{Port: "in", Seen: 1, Limit: 1000, Touched: touched},
			Takes: []store.Take{{Dir: port.Input, Port: "in", N: 1}},
		}
		return e.txs(store.Tx{Deltas: []store.Delta{d, g}})
	})
}

// guess is a speculative run of a job that has never run.
func guess(e *env, id job.ID, seen int, closed bool) store.Delta {
	return store.Delta{
		Job: id, Token: "guess" + fmt.Sprint(id.Number()), Outcome: statemachine.Suspend,
		Speculation: &store.Speculation{Port: "in", Seen: seen, Limit: 1000, Closed: closed},
		Takes:       []store.Take{{Dir: port.Input, Port: "in", N: seen}},
	}
}

// A child feeds its parent, which is next in the row.
func TestPlainParent(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.createAs(id, job.Node{Type: "P", Ports: ports(fed("in", 1))},
			job.Node{Name: "c", Type: "T", Ports: ports(out("out", to(0)))})
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Suspend)
		d.Writes = saying("1")
		said := e.txs(store.Tx{Deltas: []store.Delta{d, guess(e, id, 1, false)}})
		return said + fmt.Sprint(e.info(id).Status)
	})
}

// Two children in a row in front of their parent.
func TestPlainGrandparent(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.createAs(id, job.Node{Type: "P", Ports: ports(fed("in", 1))},
			job.Node{Name: "a", Type: "T", Ports: ports(out("out", to(2)))},
			job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1), out("out", to(0)))})
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Complete)
		d.Writes, d.Closes = saying("1"), []string{"out"}
		b := guess(e, id.Nth(2), 1, true)
		b.Writes, b.Closes, b.Outcome = saying("2"), []string{"out"}, statemachine.Complete
		said := e.txs(store.Tx{Deltas: []store.Delta{d, b, guess(e, id, 1, true)}})
		return said + fmt.Sprint(e.info(id).Status)
	})
}

// An error in the second of a row.
func TestPlainErrorInRow(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.createAs(id, job.Node{Type: "G", Graph: true},
			job.Node{Name: "a", Type: "T", Ports: ports(out("out", to(2)))},
			job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1), out("out", to(3)))},
			job.Node{Name: "c", Type: "T", Ports: ports(fed("in", 1), out("out"))})
		e.Check(e.Redis.Set(e.Context(), e.key(id.Nth(3))+":i:in", "damaged", 0).Err())
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Complete)
		d.Writes, d.Closes = saying("1"), []string{"out"}
		b := guess(e, id.Nth(2), 1, true)
		b.Writes, b.Closes, b.Outcome = saying("2"), []string{"out"}, statemachine.Complete
		_, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d, b}}})
		if err == nil {
			e.Error("no error")
		}
		p := e.port(id.Nth(2), port.Input, "in")
		return fmt.Sprint(e.info(id.Nth(1)).Status, e.info(id.Nth(2)).Status, " b.in closed ", p.Closed, " waiting ", p.Waiting, " total ", p.Total)
	})
}

// An error of the log: is what was written written again?
func TestPlainErrorOfLog(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.createAs(id, job.Node{Type: "T", Ports: ports(in("in"), out("out"))})
		e.write(id, "in", "1", "2")
		log := e.due(id)[:len(e.due(id))-3] + "l:" + string(id)
		d := delta(e.beginAs(id, "t1"), statemachine.Suspend)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 2}}
		d.Writes, d.Entry = saying("3"), `{"step":0}`
		e.Check(e.Redis.Set(e.Context(), log, "damaged", 0).Err())
		for range 3 {
			e.txs(store.Tx{Deltas: []store.Delta{d}})
		}
		e.Check(e.Redis.Del(e.Context(), log).Err())
		last := e.txs(store.Tx{Deltas: []store.Delta{d}})
		return last + fmt.Sprint(e.peek(id, port.Output, "out"), e.peek(id, port.Input, "in"))
	})
}

// The same with a limited port.
func TestPlainErrorOfLimited(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		p := in("in")
		p.Limit = 5
		e.createAs(id, job.Node{Type: "T", Ports: ports(p, out("out"))})
		e.write(id, "in", "1", "2")
		log := e.due(id)[:len(e.due(id))-3] + "l:" + string(id)
		d := delta(e.beginAs(id, "t1"), statemachine.Suspend)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 2}}
		d.Writes, d.Entry = saying("3"), `{"step":0}`
		e.Check(e.Redis.Set(e.Context(), log, "damaged", 0).Err())
		e.txs(store.Tx{Deltas: []store.Delta{d}})
		e.Check(e.Redis.Del(e.Context(), log).Err())
		last := e.txs(store.Tx{Deltas: []store.Delta{d}})
		in := e.port(id, port.Input, "in")
		return last + fmt.Sprint(e.info(id).Status, e.peek(id, port.Output, "out"), e.peek(id, port.Input, "in"), in.Total)
	})
}

// hinderedBy is hindered for a server that finds nothing plain, unless it is to.
func hinderedBy(t *testing.T, plain bool) *env {
	t.Helper()
	e := open(t, redistest.Start(t, "--enable-debug-command", "yes").URL())
	pieces := map[string]string{
		"local function start(":          hindrance + "local function start(",
		"= keys, args, redis.call, skip": "= keys, args, hindered(args[1]), skip",
	}
	if !plain {
		pieces[plainCall] = "last"
	}
	e.edit(pieces)
	return e
}

// Whatever is plain begins with what a full Redis refuses.
func TestPlainFirstWrite(t *testing.T) {
	e := hinderedBy(t, true)
	for _, c := range map[string]struct {
		limit int
		does  func(d *store.Delta)
	}{
		"take":         {0, func(d *store.Delta) { d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}} }},
		"take limited": {5, func(d *store.Delta) { d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}} }},
		"nothing":      {0, func(d *store.Delta) {}},
		"write":        {0, func(d *store.Delta) { d.Writes = saying("1") }},
		"close":        {0, func(d *store.Delta) { d.Closes = []string{"out"} }},
		"log":          {0, func(d *store.Delta) { d.Entry = "{}" }},
	} {
		for _, wired := range []bool{false, true} {
			p, o := in("in"), out("out")
			p.Limit = c.limit
			if wired {
				o = out("out", to(2))
			}
			id := e.create(job.Node{Type: "G", Graph: true}, job.Node{Name: "a", Type: "T", Ports: ports(p, o)}, job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1))})
			e.write(id.Nth(1), "in", "1", "2")
			d := delta(e.begin(id.Nth(1)), statemachine.Complete)
			c.does(&d)
			calls := e.hinder("commit", 0, func() { e.commit(d) })
			e.firstWrite(calls)
		}
	}
}

// What is left of a row whose commit fails anywhere: of messages, and of the end of input.
func TestPlainRowFails(t *testing.T) {
	for _, plain := range []bool{true, false} {
		for _, stored := range []int{0, 1} {
			e := hinderedBy(t, plain)
			prepare := func() (job.ID, store.Tx) {
				id := e.create(
					job.Node{Type: "G", Graph: true},
					job.Node{Name: "a", Type: "T", Ports: ports(in("in"), out("out", to(2)))},
					job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1), out("out", to(3)))},
					job.Node{Name: "c", Type: "T", Ports: ports(fed("in", 1), out("out"))})
				for range stored {
					e.Check(e.store.Write(e.Context(), id.Nth(2), store.Write{Dir: port.Input, Port: "in", Items: raws("0"), NoWake: true}))
				}
				touched, _ := e.Redis.HGet(e.Context(), e.key(id.Nth(2)), "touched").Int64()
				e.write(id.Nth(1), "in", "1")
				d := delta(e.begin(id.Nth(1)), statemachine.Complete)
				d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
				d.Writes, d.Closes, d.Entry = saying("1"), []string{"out"}, `{"step":0}`
				b := guess(e, id.Nth(2), 1+stored, true)
				b.Speculation.Touched = touched
				b.Writes, b.Closes, b.Outcome, b.Entry = saying("2"), []string{"out"}, statemachine.Complete, `{"step":0}`
				return id, store.Tx{Deltas: []store.Delta{d, b}}
			}
			commit := func(tx store.Tx) error { _, err := e.store.Commit(e.Context(), []store.Tx{tx}); return err }
			_, tx := prepare()
			whole := e.hinder("commit", 0, func() { e.Check(commit(tx)) })
			first := e.firstWrite(whole)
			hang, lost, twice := []int{}, []int{}, []int{}
			for n := first; n <= len(whole); n++ {
				id, tx := prepare()
				var err error
				e.hinder("commit", n, func() { err = commit(tx) })
				if err == nil {
					continue
				}
				_ = commit(tx) // whoever asks again
				e.sweep()
				a, b, c := e.info(id.Nth(1)), e.info(id.Nth(2)), e.info(id.Nth(3))
				aout, _ := a.Port(port.Output, "out")
				bin, _ := b.Port(port.Input, "in")
				cin, _ := c.Port(port.Input, "in")
				if aout.Closed && a.Status == statemachine.Completed && !bin.Closed {
					hang = append(hang, n)
				}
				if a.Status == statemachine.Completed && bin.Total < int64(1+stored) {
					lost = append(lost, n)
				}
				if cin.Waiting > 1 {
					twice = append(twice, n)
				}
			}
			if len(hang)+len(twice) > 0 || len(lost) > 1 {
				t.Errorf("plain %v, %d stored: of %q b never ends after %v, lost %v, got twice %v", plain, stored, whole, hang, lost, twice)
			}
		}
	}
}

// A child that feeds its parent completes, and the parent's run on what it wrote was made before: is the parent ever told?
func TestPlainKin(t *testing.T) {
	w := bareTwins(t)
	for _, e := range w.both {
		id := newID(t)
		e.createAs(id, job.Node{Type: "P", Ports: ports(fed("in", 1))},
			job.Node{Name: "c", Type: "T", Ports: ports(out("out", to(0)))})
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Complete)
		d.Writes, d.Closes = saying("1"), []string{"out"}
		e.txs(store.Tx{Deltas: []store.Delta{d, guess(e, id, 1, true)}})
		e.is(statemachine.Queued, id) // it has to be told of its child
	}
}

// The output comes back to the job itself, whose port has a limit: what the log says of where it went.
func TestPlainItselfLimited(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		g := in("in")
		g.Edges = []job.Edge{to(1)}
		p := fed("in", 1)
		p.Limit = 5
		e.createAs(id, job.Node{Type: "G", Graph: true, Ports: ports(g)},
			job.Node{Name: "a", Type: "T", Ports: ports(p, out("out", to(0)))})
		e.Check(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: raws("1", "1")}))
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Suspend)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 2}}
		d.Writes, d.Entry = saying("2"), `{"step":0}`
		log := e.due(id)[:len(e.due(id))-3] + "l:" + string(id)
		said := e.txs(store.Tx{Deltas: []store.Delta{d}})
		return said + fmt.Sprint(e.info(id.Nth(1)).Status, e.Redis.LRange(e.Context(), log, 0, -1).Val()[0][13:])
	})
}

// The key of the graph is damaged: what was read stays, though the head goes on.
func TestPlainErrorOfGraph(t *testing.T) {
	w := bareTwins(t)
	id := newID(t)
	w.each(func(e *env) string {
		e.createAs(id, job.Node{Type: "G", Graph: true}, job.Node{Name: "a", Type: "T", Ports: ports(in("in"), out("out"))})
		e.write(id.Nth(1), "in", "1", "2")
		d := delta(e.beginAs(id.Nth(1), "t1"), statemachine.Complete)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 2}}
		whole := e.Redis.HGetAll(e.Context(), e.key(id)).Val()
		e.Check(e.Redis.Del(e.Context(), e.key(id)).Err())
		e.Check(e.Redis.Set(e.Context(), e.key(id), "damaged", 0).Err())
		e.txs(store.Tx{Deltas: []store.Delta{d}})
		e.Check(e.Redis.Del(e.Context(), e.key(id)).Err())
		for f, v := range whole {
			e.Check(e.Redis.HSet(e.Context(), e.key(id), f, v).Err())
		}
		e.txs(store.Tx{Deltas: []store.Delta{d}})
		p := e.port(id.Nth(1), port.Input, "in")
		return fmt.Sprint(e.info(id.Nth(1)).Status, " waiting ", p.Waiting, " total ", p.Total)
	})
}
