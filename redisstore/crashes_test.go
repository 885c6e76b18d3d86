package redisstore_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// die begins a run of a job, ends its lease, and sweeps.
func (e *env) die(id job.ID) {
	e.Helper()
	b := beginning()
	b.Lease = time.Millisecond
	_, err := e.store.Begin(e.Context(), id, b)
	e.Check(err)
	e.Check(e.Redis.ZAdd(e.Context(), e.due(id), redis.Z{Score: 1, Member: string(id)}).Err())
	_, err = e.store.Sweep(e.Context())
	e.Check(err)
}

// Runs that end without a word are counted until one commits; from the third on the job is left
// alone for longer and longer.
func TestCrashesAreCounted(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		now := func() time.Time {
			e.Helper()
			at, err := e.Redis.Time(e.Context()).Result()
			e.Check(err)
			return at.Truncate(time.Millisecond)
		}
		for n, rest := range []time.Duration{1, 1, 1, 2, 4, 8, 16, 32, 60, 60} {
			before := now()
			e.die(id)
			after := now()
			score, err := e.Redis.ZScore(e.Context(), e.due(id), string(id)).Result()
			e.Check(err)
			if next := time.UnixMilli(int64(score)); next.Before(before.Add(rest*time.Second)) || next.After(after.Add(rest*time.Second)) {
				e.Errorf("after death %d it is looked at %s later, want %s", n+1, next.Sub(before), rest*time.Second)
			}
			info := e.info(id)
			e.equal("deaths, status", []any{info.Crashes, info.Status}, []any{n + 1, statemachine.Queued})
			if said := strings.Contains(info.Reason, "ended without a word"); said != (n >= 2) {
				e.Errorf("after death %d the reason is %q", n+1, info.Reason)
			}
		}
		e.end(id, statemachine.Suspend)
		e.equal("deaths after a commit, reason", []any{e.info(id).Crashes, e.info(id).Reason}, []any{0, ""})
		e.write(id, "in", "1")
		e.die(id)
		e.equal("deaths", e.info(id).Crashes, 1)
		lost := 0
		entries, err := e.store.LogBack(e.Context(), id, "", 100)
		e.Check(err)
		for _, one := range entries {
			if string(one.Note) == `{"lost":"a run whose process died, or was cut off"}` {
				lost++
			}
		}
		e.equal("runs that the log says are lost", lost, 11)
	})
}

// A log that somebody has damaged keeps no job from being recovered, or from what people do to it.
func TestDamagedLogKeepsNoJob(t *testing.T) {
	each(t, func(e *env) {
		anna := job.WithContext(e.Context(), port.Context{port.ContextBy: "anna"})
		id := e.single()
		e.Check(e.Redis.Set(e.Context(), e.logKey(id), "x", 0).Err())
		b := beginning()
		b.Lease = time.Millisecond
		_, err := e.store.Begin(e.Context(), id, b)
		e.Check(err)
		e.Check(e.Redis.ZAdd(e.Context(), e.due(id), redis.Z{Score: 1, Member: string(id)}).Err())
		if _, err = e.store.Sweep(e.Context()); err == nil {
			e.Errorf("nobody is told of the damage")
		}
		e.equal("status, crashes", []any{e.info(id).Status, e.info(id).Crashes}, []any{statemachine.Queued, 1})
		for what, act := range map[string]func() error{
			"state": func() error {
				return e.store.SetState(anna, id, map[string]json.RawMessage{"a": json.RawMessage("1")}, nil)
			},
			"priority":  func() error { return e.store.SetPriority(anna, []job.ID{id}, 700) },
			"close":     func() error { return e.store.ClosePort(anna, id, port.Input, "in") },
			"terminate": func() error { return e.store.Terminate(anna, id) },
		} {
			if act() == nil {
				e.Errorf("%s: nobody is told of the damage", what)
			}
		}
		i := e.info(id)
		in, _ := i.Port(port.Input, "in")
		state, err := e.store.State(e.Context(), id)
		e.Check(err)
		e.equal("what was done", []any{len(state), *i.Priority, in.Closed, i.Status}, []any{1, 700, true, statemachine.Terminating})
	})
}

// A run that is lent may end without a word, as often as it likes: it is counted apart, and the job is ready at once.
func TestLapsesAreNoCrashes(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		for n := range 12 {
			b := beginning()
			b.Token = strings.Repeat("x", n+1)
			_, err := e.store.Begin(e.Context(), id, b)
			e.Check(err)
			e.fails(e.Store.Lend(e.Context(), id, "other", time.Hour), job.ErrFenced)
			e.Check(e.Store.Lend(e.Context(), id, b.Token, time.Hour))
			e.Check(e.Store.Lend(e.Context(), id, b.Token, time.Millisecond)) // a repeat
			e.sweep()
			info := e.info(id)
			e.equal("status, lapses, crashes, reason", []any{info.Status, info.Lapses, info.Crashes, info.Reason}, []any{statemachine.Queued, n + 1, 0, ""})
			e.fails(e.Store.Lend(e.Context(), id, b.Token, time.Hour), job.ErrFenced)
		}
		e.equal("entries of the log", e.Redis.LLen(e.Context(), e.logKey(id)).Val(), int64(0)) // there may be very many
		e.die(id)
		e.equal("lapses, crashes after a crash", []any{e.info(id).Lapses, e.info(id).Crashes}, []any{12, 1})
		e.end(id, statemachine.Suspend)
		e.equal("lapses, crashes after a commit", []any{e.info(id).Lapses, e.info(id).Crashes}, []any{0, 0})
	})
}
