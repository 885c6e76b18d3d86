package redisstore_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// failed is a job that has failed, with args, and an In port.
func (e *env) failed() job.ID {
	e.Helper()
	id := e.create(job.Node{Type: "T", Args: json.RawMessage(`{"Width":1}`), Ports: ports(in("in"), out("out"))})
	e.end(id, statemachine.Fail)
	return id
}

// typed is a handle of a job of the store, whose type takes the argument Width.
func (e *env) typed(id job.ID) *client.Handle {
	e.Helper()
	width := port.Param{Name: "Width", Kind: "number"}
	if _, err := e.store.Type(e.Context(), job.DefaultQueue, "T"); err != nil {
		e.fails(err, job.ErrUnknownType)
		e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue, Params: []port.Param{width}}}))
	}
	h, err := client.New(e.store).Find(e.Context(), string(id))
	e.Check(err)
	return h
}

// near wants a time to be about so long after another one.
func (e *env) near(what string, got, from time.Time, d time.Duration) {
	e.Helper()
	if off := got.Sub(from.Add(d)); off < -time.Second || off > 30*time.Second {
		e.Fatalf("%s is %s, want %s after %s", what, got, d, from)
	}
}

// B35: a retry happens after a delay, without one now; a negative one is refused. So it is of failed, scheduled and, if wanted,
// running jobs.
func TestB35RetryAfterADelay(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		for _, status := range []statemachine.Status{statemachine.Failed, statemachine.Scheduled, statemachine.Running} {
			h := e.typed(e.reach(status))
			now, err := e.store.Now(ctx)
			e.Check(err)
			e.Check(h.Retry(ctx, client.RetryAfter(5*time.Second), client.RetryRunning()))
			e.is(statemachine.Scheduled, h.ID())
			e.near("next run", e.info(h.ID()).Next, now, 5*time.Second)
			e.Check(h.Retry(ctx))
			e.is(statemachine.Queued, h.ID())
			e.end(h.ID(), statemachine.Complete)
		}
		h := e.typed(e.failed())
		e.unchanged("a negative delay", func() { e.fails(h.Retry(ctx, client.RetryAfter(-5*time.Second)), job.ErrValue) })
		e.unchanged("a time that cannot be stored", func() {
			e.fails(h.Retry(ctx, client.RetryAt(time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC))), job.ErrTooLarge)
		})
	})
}

// B36: a time wins over a delay; one that is past is now.
func TestB36RetryAtATime(t *testing.T) {
	each(t, func(e *env) {
		h := e.typed(e.failed())
		at := time.Now().Add(2 * time.Hour).Truncate(time.Millisecond).UTC()
		e.Check(h.Retry(e.Context(), client.RetryAfter(900*time.Second), client.RetryAt(at)))
		e.equal("next run", e.info(h.ID()).Next, at)
		e.Check(h.Retry(e.Context(), client.RetryAt(at.Add(-4*time.Hour))))
		e.is(statemachine.Queued, h.ID())
		e.begin(h.ID())
	})
}

// repeating is a job that repeats, and whose first run has just begun.
func (e *env) repeating(schedule string) *store.Snapshot {
	e.Helper()
	r := job.RepeatRule{Schedule: schedule}
	repeats, err := r.Repeats(time.Now())
	e.Check(err)
	id := newID(e)
	_, err = e.store.Create(e.Context(), id, &job.Plan{Nodes: []job.Node{{Type: "T", Ports: ports(in("in"), out("out"))}}, Repeat: repeats}, "")
	e.Check(err)
	return e.begin(id)
}

// B37: a repeating job that is retried at a time runs when its repeat says, counted from its last run, and repeats afterwards. Without a
// time it is tried now.
func TestB37RetryByTheRepeat(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		for _, status := range []statemachine.Status{statemachine.Running, statemachine.Failed} {
			snap := e.repeating("STARTED, +1 HOUR")
			h := e.typed(snap.Info.ID)
			if status == statemachine.Failed {
				e.commit(delta(snap, statemachine.Fail))
			}
			want := snap.Info.Ran.Add(time.Hour).Truncate(time.Second) // as SQLite reckons
			e.Check(h.Retry(ctx, client.RetryRunning(), client.RetryAfter(10*time.Second), client.RetryAt(time.Now().Add(48*time.Hour))))
			i := e.info(h.ID())
			e.equal("status", i.Status, statemachine.Scheduled)
			e.equal("next run", []time.Time{i.Next, i.Repeat.Scheduled}, []time.Time{want, want})
			e.equal("completed", i.Repeat.Count, int64(0))

			e.Check(h.Retry(ctx, client.RetryAfter(0))) // it waits for its time already
			e.equal("next run", e.info(h.ID()).Next, want)
			e.Check(h.Retry(ctx))
			snap = e.begin(h.ID())
			d := delta(snap, statemachine.Reschedule)
			next, ok := snap.Info.Repeat.After(&snap.Info, snap.Info.Ran)
			e.equal("a further time", ok, true)
			d.Repeat, d.Delay = next, time.Hour
			e.commit(d)
			e.equal("next run", e.info(h.ID()).Repeat.Scheduled, snap.Info.Ran.Add(time.Hour).Truncate(time.Second))
		}
		snap := e.repeating("STARTED, +1 HOUR")
		e.commit(delta(snap, statemachine.Fail))
		e.Check(e.typed(snap.Info.ID).Retry(ctx, client.RetryPriority(9)))
		e.is(statemachine.Queued, snap.Info.ID)
	})
}

// A repeating job that is retried now runs now, though its schedule would have it wait, or passes late times over.
func TestRetryNowOfARepeatingJob(t *testing.T) {
	each(t, func(e *env) {
		for _, r := range []job.RepeatRule{{Schedule: "cron:30 9 * * *"}, {Schedule: "every:1h", Missed: "skip"}} {
			repeats, err := r.Repeats(time.Now())
			e.Check(err)
			plan := &job.Plan{Nodes: []job.Node{{Type: "T"}}, Repeat: repeats}
			if r.Missed == "skip" { // it is late
				plan.Nodes[0].At = time.Now().Add(-time.Hour)
			}
			id := newID(e)
			_, err = e.store.Create(e.Context(), id, plan, "")
			e.Check(err)
			e.Check(e.typed(id).Fail(e.Context(), ""))
			e.Check(e.typed(id).Retry(e.Context()))
			i := e.begin(id).Info
			next, again := i.Repeat.Waits(&i)
			e.equal("the run goes on", []any{next, again}, []any{(*job.Repeats)(nil), true})
		}
	})
}

// B38: with IgnoreRepeat the time counts, and the job still repeats, from then on.
func TestB38RetryIgnoresTheRepeat(t *testing.T) {
	each(t, func(e *env) {
		snap := e.repeating("SCHEDULED, +1 HOUR")
		h := e.typed(snap.Info.ID)
		e.commit(delta(snap, statemachine.Fail))
		at := time.Now().Add(7 * time.Hour).Truncate(time.Millisecond).UTC()
		e.Check(h.Retry(e.Context(), client.RetryAt(at), client.IgnoreRepeat()))
		i := e.info(h.ID())
		e.equal("next run", []time.Time{i.Next, i.Repeat.Scheduled}, []time.Time{at, at})
		i.Ran = at.Add(time.Minute)
		next, ok := i.Repeat.After(i, at.Add(2*time.Minute))
		e.equal("a further time", ok, true)
		e.equal("after that", next.Scheduled, at.Add(time.Hour).Truncate(time.Second))
	})
}

// B40: a retry gives other args, another priority and another name, all with the new time, or nothing of it.
func TestB40RetryWithNewData(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		h := e.typed(e.failed())
		for what, wrong := range map[string]struct {
			opt  client.RetryOption
			kind error
		}{
			"args of no such name": {client.RetryArgs(map[string]any{"Wide": 1}), port.ErrParams},
			"args of another kind": {client.RetryArgs(map[string]any{"Width": "x"}), port.ErrParams},
			"a priority":           {client.RetryPriority(1001), job.ErrValue},
			"a name":               {client.RetryName("no name"), job.ErrName},
			"an empty name":        {client.RetryName(""), job.ErrName},
		} {
			e.unchanged(what, func() {
				e.fails(h.Retry(ctx, client.RetryArgs(map[string]any{"Width": 2}), client.RetryAfter(time.Hour), wrong.opt), wrong.kind)
			})
		}
		e.Check(h.Retry(ctx, client.RetryArgs(map[string]any{"Width": 2}), client.RetryPriority(850), client.RetryName("newName"), client.RetryAfter(time.Hour)))
		i := e.info(h.ID())
		e.equal("args, name, priority", []any{string(i.Args), i.Name, *i.Priority}, []any{`{"Width":2}`, "newName", 850})
		e.equal("status", i.Status, statemachine.Scheduled)
		for name, want := range map[string]int{"newName": 1, "": 1, "T": 0} {
			n, err := e.store.Count(ctx, job.Filter{Name: name})
			e.Check(err)
			e.equal("jobs of the name "+name, n, want)
		}
		e.Check(h.Retry(ctx))
		i = e.info(h.ID())
		e.equal("what it keeps", []any{string(i.Args), i.Name, *i.Priority}, []any{`{"Width":2}`, "newName", 850})
		e.equal("args of the run", string(e.begin(h.ID()).Info.Args), `{"Width":2}`)
	})
}

// A child gets a name that is free under its parent; a node of a graph keeps its name.
func TestRetryNamesChildren(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		id := e.create(job.Node{Type: "T"}, job.Node{Name: "a", Type: "T"}, job.Node{Name: "b", Type: "T"})
		e.end(id, statemachine.Suspend)
		a := id.Nth(1)
		e.end(a, statemachine.Fail)
		h := e.typed(a)
		e.unchanged("a name that is taken", func() { e.fails(h.Retry(ctx, client.RetryName("b")), job.ErrExists) })
		e.Check(h.Retry(ctx, client.RetryName("c")))
		kids, err := e.store.Children(ctx, id)
		e.Check(err)
		e.equal("children", kids, map[string]job.ID{"b": id.Nth(2), "c": a})
		snap := e.begin(id)
		e.equal("who woke the parent", snap.Woken, []store.Kin{{Name: "c", ID: a}})
		e.end(a, statemachine.Fail)
		e.Check(h.Retry(ctx, client.RetryName("c"))) // its own

		_, node, _ := e.pair()
		e.end(node, statemachine.Fail)
		e.unchanged("a node", func() { e.fails(e.typed(node).Retry(ctx, client.RetryName("c")), job.ErrStatus) })
		e.Check(e.typed(node).Retry(ctx, client.RetryAfter(time.Hour)))
		e.is(statemachine.Scheduled, node)

		lone, other := e.failed(), e.single()
		e.Check(e.store.Adopt(ctx, other, lone, "kid"))
		if lone.Tree() != other.Tree() {
			e.fails(e.typed(lone).Retry(ctx, client.RetryName("c")), job.ErrStatus)
		}
	})
}

// A retry of a running job is refused, unless it is to lose its run: whatever that commits is fenced.
func TestRetryOfARunningJob(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		id, snap, d := e.full()
		h := e.typed(id)
		for _, opts := range [][]client.RetryOption{nil, {client.RetryAfter(0)}, {client.RetryPriority(1)}} {
			e.unchanged("a retry", func() { e.fails(h.Retry(ctx, opts...), job.ErrStatus) })
		}
		e.Check(h.Retry(ctx, client.RetryRunning()))
		e.is(statemachine.Queued, id)
		e.unchanged("the commit of the run", func() { e.fails(e.try(d).Refused, job.ErrFenced) })
		e.fails(e.store.Refresh(ctx, id, snap.Token, time.Hour, nil), job.ErrFenced)
		e.begin(id)
	})
}

// A job that is retried at a time does not run before, whatever timers it had; those behind that time stay.
func TestRetryLaterThanTimers(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		for name, later := range map[string]time.Duration{"one": 0, "two": 3 * time.Hour} {
			id := e.create(job.Node{Type: "T", Ports: ports(in("in"))})
			d := delta(e.begin(id), statemachine.Suspend)
			d.Wakes = []time.Duration{time.Minute}
			if later > 0 {
				d.Wakes = append(d.Wakes, later)
			}
			e.commit(d)
			h := e.typed(id)
			e.Check(h.Fail(ctx, "no longer"))
			now, err := e.store.Now(ctx)
			e.Check(err)
			e.Check(h.Retry(ctx, client.RetryAfter(time.Hour)))
			member := "@" + string(id)
			score, err := e.Redis.ZScore(ctx, e.due(id), member).Result()
			if later == 0 && err == nil {
				e.Errorf("%s: a timer is due at %s", name, time.UnixMilli(int64(score)))
			} else if later > 0 {
				e.Check(err)
				e.near("the timer that stays", time.UnixMilli(int64(score)), now, later)
			}
			e.near("next run", e.info(id).Next, now, time.Hour)
		}
	})
}

// A reason that is too long, or that nobody could read, is refused.
func TestFailByHandForAReason(t *testing.T) {
	each(t, func(e *env) {
		h := e.typed(e.create(job.Node{Type: "T", Args: json.RawMessage(`{"Width":1}`), Ports: ports(in("in"))}))
		e.unchanged("a bad reason", func() {
			e.fails(h.Fail(e.Context(), strings.Repeat("x", job.MaxReason+1)), job.ErrTooLarge)
			for _, bad := range []string{"a\x02b", "\xff", "a\x1f"} {
				e.fails(h.Fail(e.Context(), bad), job.ErrValue)
			}
		})
		e.Check(h.Fail(e.Context(), "two\nlines\tand a tab"))
	})
}

// A retry at a time of a tree with a sequential key waits for the key, and then for the time.
func TestRetryLaterWithASequentialKey(t *testing.T) {
	each(t, func(e *env) {
		a, b := e.keyed("k"), e.keyed("k")
		e.end(a, statemachine.Fail)
		at := time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
		e.Check(e.typed(a).Retry(e.Context(), client.RetryAt(at)))
		e.queue(job.Queued, b, a)
		e.end(b, statemachine.Complete)
		e.queue(job.Scheduled, a)
		e.equal("next run", e.info(a).Next, at)
		e.Check(e.typed(a).Retry(e.Context()))
		e.queue(job.Queued, a)
		e.end(a, statemachine.Complete)
		e.unkeyed()
	})
}

// Args of another version of the type ask for an engine that has it.
func TestRetryWithArgsOfAnotherVersion(t *testing.T) {
	each(t, func(e *env) {
		id := e.failed()
		e.Check(e.store.Retry(e.Context(), id, store.Retry{Args: json.RawMessage(`{"W":2}`), TypeVersion: 2}))
		e.equal("version", e.info(id).TypeVersion, 2)
		snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, id.Shard(shards), -1, beginning(), []string{"T"}))
		e.Check(err)
		if snap != nil {
			t.Fatalf("an engine without version 2 runs %+v", snap.Info)
		}
		snap, err = popped(e.store.Pop(e.Context(), job.DefaultQueue, id.Shard(shards), -1, beginning(), []string{"T", job.Takes("T", 2)}))
		e.Check(err)
		e.equal("job", snap.Info.ID, id)
	})
}

// What a retry follows from is looked at anew if the job ran meanwhile.
func TestRetryOfARepeatThatMoved(t *testing.T) {
	each(t, func(e *env) {
		snap := e.repeating("STARTED, +1 HOUR")
		e.commit(delta(snap, statemachine.Fail))
		i := e.info(snap.Info.ID)
		next, ok := i.Repeat.Retried(i, time.Now())
		e.equal("a further time", ok, true)
		r := store.Retry{Later: true, At: next.Scheduled, Repeat: next, Version: i.Version + 1, Ran: i.Ran}
		e.unchanged("another version", func() { e.fails(e.store.Retry(e.Context(), i.ID, r), job.ErrMoved) })
		r.Version, r.Ran = i.Version, i.Ran.Add(time.Millisecond)
		e.unchanged("another run", func() { e.fails(e.store.Retry(e.Context(), i.ID, r), job.ErrMoved) })
		r.Ran = i.Ran
		e.Check(e.store.Retry(e.Context(), i.ID, r))
		e.equal("next run", e.info(i.ID).Next, next.Scheduled)
	})
}

// A retry by hand is in the log of its job: who it was, and what they gave it.
func TestRetryIsLogged(t *testing.T) {
	each(t, func(e *env) {
		ctx := job.WithContext(e.Context(), port.Context{port.ContextBy: "anna"})
		id := e.failed()
		e.Check(e.typed(id).Retry(ctx))
		e.end(id, statemachine.Fail)
		e.Check(e.typed(id).Retry(ctx, client.RetryArgs(map[string]int{"Width": 2}), client.RetryPriority(700), client.RetryAfter(time.Hour)))
		logs, err := e.store.Logs(e.Context(), id, 100)
		e.Check(err)
		var notes []string
		for _, one := range logs {
			notes = append(notes, string(one.Entry))
		}
		e.equal("notes", notes, []string{`{"retried":"by hand (anna)"}`, `{"retried":"by hand (anna), with other args, with priority 700, in 1h0m0s"}`})
	})
}

// A name in which a / is cannot be in a path, and is refused.
func TestRetryWithASlashInTheName(t *testing.T) {
	each(t, func(e *env) {
		h := e.typed(e.failed())
		e.unchanged("a/b", func() { e.fails(h.Retry(e.Context(), client.RetryName("a/b")), job.ErrName) })
	})
}
