package redisstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// full begins a run of a new job and returns a delta that does everything a run can do:
// takes, writes (own port, spawned child, its own input), state, spawns, closes, log.
func (e *env) full() (job.ID, *store.Snapshot, store.Delta) {
	e.Helper()
	id := e.create(job.Node{Type: "T", Ports: ports(in("in"), out("out"), out("done"))})
	first := delta(e.begin(id), statemachine.Requeue)
	first.Set = map[string]json.RawMessage{"old": json.RawMessage("1"), "kept": json.RawMessage("2")}
	e.commit(first)
	e.write(id, "in", "1", "2", "3")
	snap := e.begin(id)
	base, err := e.store.Reserve(e.Context(), id, 2)
	e.Check(err)
	d := delta(snap, statemachine.Complete)
	d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: snap.In.Of("in").Head, N: 2}}
	d.Writes = []store.Write{
		{Dir: port.Output, Port: "out", Items: raws("4", "5")},
		{Job: id.Nth(base), Dir: port.Input, Port: "in", Items: raws("6")},
	}
	d.Set = map[string]json.RawMessage{"new": json.RawMessage(`"x"`), "kept": json.RawMessage("3")}
	d.Unset = []string{"old", "never"}
	d.Spawns = []store.Spawn{{Base: base, Plan: &job.Plan{Nodes: []job.Node{
		{Name: "kid", Type: "K", Ports: ports(in("in"), out("out"))},
		{Name: "grandkid", Type: "K"},
	}}}}
	d.Closes = []string{"done"}
	d.Log = []string{`"one"`, `{"n":2}`}
	d.Reason = "why"
	return id, snap, d
}

// checkFull wants all that full did.
func (e *env) checkFull(id job.ID, d store.Delta) {
	e.Helper()
	kid := id.Nth(d.Spawns[0].Base)
	e.holds(id, port.Input, "in", "3")
	e.holds(id, port.Output, "out", "4", "5")
	e.holds(kid, port.Input, "in", "6")
	state, err := e.store.State(e.Context(), id)
	e.Check(err)
	e.equal("state", state, map[string]json.RawMessage{"new": json.RawMessage(`"x"`), "kept": json.RawMessage("3")})
	kids, err := e.store.Children(e.Context(), id)
	e.Check(err)
	e.equal("children", kids, map[string]job.ID{"kid": kid})
	e.equal("grandchild's parent", e.info(id.Nth(d.Spawns[0].Base+1)).Parent, kid)
	i := e.info(id)
	e.equal("status, reason", []any{i.Status, i.Reason}, []any{statemachine.Completed, "why"})
	e.equal("steps, version", []int64{i.Steps, i.Version}, []int64{2, 2})
	e.equal("closed", e.port(id, port.Output, "done").Closed, true)
	p := e.port(id, port.Input, "in")
	e.equal("waiting, total", []int64{p.Waiting, p.Total}, []int64{1, 3})
	e.is(statemachine.Queued, kid)
	e.equal("creator", e.info(kid).By, "job:"+string(id))
	log, err := e.store.Logs(e.Context(), id, 10)
	e.Check(err)
	e.equal("log", []string{string(log[0].Entry), string(log[1].Entry)}, d.Log)
}

func TestCommitAppliesAllAtOnce(t *testing.T) {
	each(t, func(e *env) {
		id, _, d := e.full()
		res := e.commit(d)
		e.equal("again", res.Again, false)
		e.checkFull(id, d)
		e.unchanged("the same commit again", func() {
			again := e.commit(d)
			e.equal("answer", known(again), known(res))
		})
	})
}

func TestRefusedCommitChangesNothing(t *testing.T) {
	at := func(f func(*store.Delta)) func(*env, job.ID, *store.Delta) {
		return func(_ *env, _ job.ID, d *store.Delta) { f(d) }
	}
	for _, c := range []struct {
		name string
		do   func(e *env, id job.ID, d *store.Delta)
		want error
	}{
		{"wrong token", at(func(d *store.Delta) { d.Token = "wrong" }), job.ErrFenced},
		{"no token", at(func(d *store.Delta) { d.Token = "" }), job.ErrFenced},
		{"no such job", at(func(d *store.Delta) { d.Job = d.Job.Nth(99) }), job.ErrNotFound},
		{"moved head", func(e *env, id job.ID, _ *store.Delta) {
			e.Check(e.store.Take(e.Context(), id, store.Take{Dir: port.Input, Port: "in", N: 1}, "outside"))
		}, job.ErrMoved},
		{"more than there is", at(func(d *store.Delta) { d.Takes[0].N = 4 }), job.ErrMoved},
		{"take from no port", at(func(d *store.Delta) { d.Takes[0].Port = "nope" }), job.ErrPort},
		{"take from no job", at(func(d *store.Delta) { d.Takes[0].Job = d.Job.Nth(99) }), job.ErrMoved},
		{"write to no port", at(func(d *store.Delta) { d.Writes[0].Port = "nope" }), job.ErrPort},
		{"write to no port of a new child", at(func(d *store.Delta) { d.Writes[1].Port = "nope" }), job.ErrPort},
		{"write to no job", at(func(d *store.Delta) { d.Writes[1].Job = d.Job.Nth(99) }), job.ErrMoved},
		{"write to no port of a child", func(e *env, id job.ID, d *store.Delta) {
			d.Writes[0] = store.Write{Job: e.child(id), Dir: port.Input, Port: "nope", Items: raws("1")}
		}, job.ErrPort},
		{"close of no port", at(func(d *store.Delta) { d.Closes = append(d.Closes, "nope") }), job.ErrPort},
		{"close of an In port", at(func(d *store.Delta) { d.Closes = append(d.Closes, "in") }), job.ErrPort},
		{"child name taken", func(e *env, id job.ID, d *store.Delta) {
			e.child(id)
			d.Spawns[0].Plan.Nodes[0].Name = "first"
		}, job.ErrExists},
		{"one child name twice", at(func(d *store.Delta) {
			d.Spawns = append(d.Spawns, store.Spawn{Base: d.Spawns[0].Base + 5, Plan: d.Spawns[0].Plan})
		}), job.ErrExists},
		{"outcome of another status", at(func(d *store.Delta) { d.Outcome = statemachine.Shutdown }), job.ErrStatus},
		{"no outcome", at(func(d *store.Delta) { d.Outcome = "" }), job.ErrStatus},
		{"unknown outcome", at(func(d *store.Delta) { d.Outcome = "vanish" }), job.ErrStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(e *env) {
				id, _, d := e.full()
				good := d
				good.Takes, good.Writes = slices.Clone(d.Takes), slices.Clone(d.Writes)
				good.Spawns = []store.Spawn{{Base: d.Spawns[0].Base, Plan: &job.Plan{Nodes: slices.Clone(d.Spawns[0].Plan.Nodes)}}}
				if c.name == "child name taken" || c.name == "write to no port of a child" {
					// The child is created in a checkpoint, after which the run goes on.
					d.Token = "second"
				}
				c.do(e, id, &d)
				e.unchanged("a refused commit", func() {
					for range 2 {
						res := e.try(d)
						e.fails(res.Refused, c.want)
						e.equal("deltas that hold", res.Applied, 0)
					}
				})
				if !errors.Is(c.want, job.ErrMoved) && d.Token != "second" {
					e.commit(good)
					e.checkFull(id, good)
				}
			})
		})
	}
}

// child commits, by a checkpoint, a child named "first" and leaves the run to the token "second".
func (e *env) child(id job.ID) job.ID {
	e.Helper()
	base, err := e.store.Reserve(e.Context(), id, 1)
	e.Check(err)
	var token string
	e.Check(e.Redis.HGet(e.Context(), e.key(id), "token").Scan(&token))
	e.commit(store.Delta{
		Job: id, Token: token, Outcome: store.Checkpoint, Next: "second", Lease: time.Hour,
		Spawns: []store.Spawn{{Base: base, Plan: &job.Plan{Nodes: []job.Node{{Name: "first", Type: "T", Ports: ports(in("in"), out("out"))}}}}},
	})
	return id.Nth(base)
}

func TestDeadRunIsFenced(t *testing.T) {
	each(t, func(e *env) {
		id, snap, d := e.full()
		e.Check(e.store.Refresh(e.Context(), id, snap.Token, time.Hour, nil))
		e.sweep()
		e.is(statemachine.Running, id)
		e.Check(e.store.Refresh(e.Context(), id, snap.Token, time.Millisecond, nil))
		e.sweep()
		e.is(statemachine.Queued, id)
		for _, status := range []statemachine.Status{statemachine.Queued, statemachine.Running} {
			e.is(status, id)
			e.unchanged("what a dead run still does", func() {
				res := e.try(d)
				e.fails(res.Refused, job.ErrFenced)
				e.equal("deltas that hold", res.Applied, 0)
				e.fails(e.store.Refresh(e.Context(), id, snap.Token, time.Hour, nil), job.ErrFenced)
				res, next, err := step(e.Context(), e.store, store.Tx{Deltas: []store.Delta{d}}, beginning(), []string{"T", "K"})
				e.Check(err)
				e.fails(res.Refused, job.ErrFenced)
				if next != nil {
					e.Errorf("a fenced step begins %s", next.Info.ID)
				}
			})
			if status == statemachine.Queued {
				next := e.begin(id)
				e.equal("the next run reads the same", next.In, snap.In)
				e.equal("the next run has the same state", next.State, snap.State)
			}
		}
		i := e.info(id)
		e.equal("a lost run is no step, no try", []int64{i.Steps, int64(i.Tries)}, []int64{1, 0})
	})
}

func TestCheckpoint(t *testing.T) {
	each(t, func(e *env) {
		id, snap, d := e.full()
		d.Outcome, d.Next, d.Lease = store.Checkpoint, "second", time.Hour
		res := e.commit(d)
		e.equal("again", res.Again, false)
		e.is(statemachine.Running, id)
		e.holds(id, port.Input, "in", "3")
		e.unchanged("the same checkpoint again", func() { e.equal("answer", known(e.commit(d)), known(res)) })
		e.fails(e.store.Refresh(e.Context(), id, snap.Token, time.Hour, nil), job.ErrFenced)
		e.Check(e.store.Refresh(e.Context(), id, "second", time.Hour, nil))

		e.write(id, "in", "4")
		last := store.Delta{
			Job: id, Token: "second", Outcome: statemachine.Complete,
			Takes: []store.Take{{Dir: port.Input, Port: "in", Head: 2, N: 1}},
		}
		res = e.commit(last)
		e.equal("data of before the end makes it queued", res.Again, true)
		e.holds(id, port.Input, "in", "4")
		e.is(statemachine.Queued, id)
		e.equal("steps", e.info(id).Steps, int64(3))
		e.fails(e.try(d).Refused, job.ErrFenced)

		// A checkpoint's lease counts.
		snap = e.begin(id)
		d = delta(snap, store.Checkpoint)
		d.Next, d.Lease = "third", time.Millisecond
		e.commit(d)
		e.sweep()
		e.is(statemachine.Queued, id)
		e.fails(e.try(store.Delta{Job: id, Token: "third", Outcome: statemachine.Complete}).Refused, job.ErrFenced)
	})
}

func TestDataDuringARun(t *testing.T) {
	each(t, func(e *env) {
		for outcome, want := range map[statemachine.Event]statemachine.Status{
			statemachine.Complete: statemachine.Queued,
			statemachine.Suspend:  statemachine.Queued,
			statemachine.Requeue:  statemachine.Queued,
			statemachine.Fail:     statemachine.Failed,
			statemachine.Backoff:  statemachine.Scheduled,
		} {
			id := e.single()
			snap := e.begin(id)
			e.write(id, "in", "1")
			e.is(statemachine.Running, id)
			d := delta(snap, outcome)
			d.Delay = time.Hour
			if outcome == statemachine.Requeue {
				d.Delay = 0
			}
			e.equal(string(outcome), e.commit(d).Again, want == statemachine.Queued)
			e.is(want, id)
			if want == statemachine.Queued {
				snap = e.begin(id)
				d = delta(snap, statemachine.Complete)
				d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
				e.equal("second run", e.commit(d).Again, false)
			}
		}
		// What a run writes to itself arrives as well.
		id := e.single()
		d := delta(e.begin(id), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Input, Port: "in", Items: raws("1")}}
		e.equal("own message", e.commit(d).Again, true)
	})
}

func TestFailures(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.write(id, "in", "1")
		for n := 1; n <= 23; n++ {
			d := delta(e.begin(id), statemachine.Backoff)
			d.Failure = &job.Failure{At: time.Unix(int64(n), 0).UTC(), Step: 0, Error: fmt.Sprint("no ", n, "\nü"), Stack: "s"}
			d.Reason = "no"
			if n == 22 {
				d.Delay = time.Millisecond // else none: it fires at the next sweep anyway
			}
			if n == 23 {
				d.Outcome = statemachine.Fail
			}
			e.commit(d)
			i := e.info(id)
			e.equal("tries, steps", []int64{int64(i.Tries), i.Steps, i.Version}, []int64{int64(n), 0, int64(n)})
			if n == 23 {
				break
			}
			e.is(statemachine.Scheduled, id)
			e.sweep()
			e.is(statemachine.Queued, id)
		}
		e.is(statemachine.Failed, id)
		e.holds(id, port.Input, "in", "1")
		fs, err := e.store.Failures(e.Context(), id)
		e.Check(err)
		e.equal("failures kept", len(fs), 20)
		e.equal("newest", fs[0], job.Failure{At: time.Unix(23, 0).UTC(), Error: "no 23\nü", Stack: "s"})
		e.equal("oldest", fs[19].Error, "no 4\nü")

		e.Check(e.store.Apply(e.Context(), id, statemachine.Retry))
		e.equal("tries after retry", e.info(id).Tries, 0)
		e.end(id, statemachine.Fail)
		e.Check(e.store.Apply(e.Context(), id, statemachine.Retry))
		e.end(id, statemachine.Complete)
		i := e.info(id)
		e.equal("tries, steps after success", []int64{int64(i.Tries), i.Steps}, []int64{0, 1})
	})
}

func TestHandedBackRunDoesNotCount(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.end(id, statemachine.Fail)
		e.Check(e.store.Apply(e.Context(), id, statemachine.Retry))
		for _, delay := range []time.Duration{0, time.Millisecond, time.Hour} {
			d := delta(e.begin(id), statemachine.Requeue)
			d.Handed, d.Delay, d.Reason = true, delay, "nobody"
			e.equal("again", e.commit(d).Again, true)
			i := e.info(id)
			e.equal("status, reason, steps, tries", []any{i.Status, i.Reason, i.Steps, i.Tries},
				[]any{statemachine.Queued, "nobody", int64(0), 0})
		}
	})
}

func TestLogsAreOfOneJob(t *testing.T) {
	each(t, func(e *env) {
		root := e.create(job.Node{Type: "T"}, job.Node{Name: "a", Type: "T"})
		for i := range 5 {
			for _, id := range []job.ID{root, root.Nth(1)} {
				e.Check(e.store.Apply(e.Context(), id, statemachine.Run))
				d := delta(e.begin(id), statemachine.Complete)
				d.Log = []string{fmt.Sprintf(`"%d %d"`, id.Number(), i)}
				e.commit(d)
			}
		}
		log, err := e.store.Logs(e.Context(), root.Nth(1), 2)
		e.Check(err)
		e.equal("entries", len(log), 2)
		for i, l := range log {
			e.equal("entry", []any{l.Job, string(l.Entry)}, []any{root.Nth(1), fmt.Sprintf(`"1 %d"`, 3+i)})
			if age := time.Since(l.At); age > time.Minute || age < -time.Minute {
				e.Errorf("logged %v ago", age)
			}
		}
	})
}

func TestManyTransactions(t *testing.T) {
	each(t, func(e *env) {
		root := e.create(job.Node{Type: "T"}, job.Node{Name: "a", Type: "T"}, job.Node{Name: "b", Type: "T"}, job.Node{Name: "c", Type: "T"})
		var d []store.Delta
		for i := range 4 {
			d = append(d, delta(e.begin(root.Nth(i)), statemachine.Complete))
		}
		bad := d[1]
		bad.Token = "wrong"
		txs := []store.Tx{{Deltas: []store.Delta{d[0], bad, d[2]}}, {Deltas: []store.Delta{bad, d[2]}}, {Deltas: []store.Delta{d[2], d[3]}}}
		check := func() {
			res, err := e.store.Commit(e.Context(), txs)
			e.Check(err)
			e.equal("results", len(res), 3)
			e.equal("applied", []int{res[0].Applied, res[1].Applied, res[2].Applied}, []int{1, 0, 2})
			e.fails(res[0].Refused, job.ErrFenced)
			e.fails(res[1].Refused, job.ErrFenced)
			e.Check(res[2].Refused)
		}
		check()
		e.is(statemachine.Completed, root.Nth(2), root.Nth(3))
		e.is(statemachine.Running, root.Nth(1))
		e.unchanged("the same transactions again", check)

		other := e.create(job.Node{Type: "T"})
		for other.Shard(shards) == root.Shard(shards) {
			other = e.create(job.Node{Type: "T"})
		}
		e.unchanged("a commit across shards", func() {
			_, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d[1], {Job: other, Token: "x"}}}})
			if err == nil {
				e.Error("a commit across shards is accepted")
			}
		})
		for _, txs := range [][]store.Tx{nil, {{}}} {
			if _, err := e.store.Commit(e.Context(), txs); err == nil {
				e.Error("an empty commit is accepted")
			}
		}
		if _, _, err := step(e.Context(), e.store, store.Tx{}, beginning(), nil); err == nil {
			e.Error("an empty step is accepted")
		}
	})
}

// What a commit was refused for is named: which port or child of which job, and what to do.
func TestRefusedCommitNamesWhatItLacks(t *testing.T) {
	each(t, func(e *env) {
		id, _, good := e.full()
		for name, c := range map[string]struct {
			do   func(d *store.Delta)
			want string
		}{
			"a port that was dropped": {
				func(d *store.Delta) { d.Writes = []store.Write{{Dir: port.Output, Port: "fast", Items: raws("1")}} },
				fmt.Sprintf(`port: job %s has no Out port "fast", or it was removed since the run began; give the job that port, or use one that it has`, id),
			},
			"a port to close": {
				func(d *store.Delta) { d.Closes = []string{"slow"} },
				fmt.Sprintf(`port: job %s has no Out port "slow", or it was removed since the run began; give the job that port, or use one that it has`, id),
			},
			"a port to read": {
				func(d *store.Delta) { d.Takes = []store.Take{{Dir: port.Input, Port: "more", N: 1}} },
				fmt.Sprintf(`port: job %s has no In port "more", or it was removed since the run began; give the job that port, or use one that it has`, id),
			},
			"a child's name": {
				func(d *store.Delta) { d.Spawns = append(d.Spawns, store.Spawn{Base: 50, Plan: d.Spawns[0].Plan}) },
				fmt.Sprintf(`already exists: job %s has a child %q; take another name, or use that child`, id, good.Spawns[0].Plan.Nodes[0].Name),
			},
		} {
			d := good
			d.Takes, d.Spawns = slices.Clone(good.Takes), slices.Clone(good.Spawns)
			c.do(&d)
			if err := e.try(d).Refused; err == nil || err.Error() != c.want {
				e.Errorf("%s:\n got %v\nwant %s", name, err, c.want)
			}
		}
		_, err := e.store.Create(e.Context(), id.Nth(60), &job.Plan{Nodes: []job.Node{{Name: "kid", Type: "K"}}, Parent: id}, "test")
		e.Check(err)
		_, err = e.store.Create(e.Context(), id.Nth(61), &job.Plan{Nodes: []job.Node{{Name: "kid", Type: "K"}}, Parent: id}, "test")
		want := fmt.Sprintf(`under parent %[1]s: already exists: job %[1]s has a child "kid"; take another name, or use that child`, id)
		if err == nil || err.Error() != want {
			e.Errorf("create:\n got %v\nwant %s", err, want)
		}
	})
}
