package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// state wants the whole state of a job to be this.
func (e *bench) state(h *client.Handle, want map[string]string) {
	e.Helper()
	raws, err := h.State(e.Ctx)
	e.Check(err)
	got := map[string]string{}
	for k, raw := range raws {
		got[k] = string(raw)
	}
	if !maps.Equal(got, want) {
		e.Errorf("state is %v, want %v", got, want)
	}
}

func TestS1StateHoldsAnyJSON(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		h := e.free(nil)
		e.state(h, map[string]string{})
		set, want := map[string]any{}, map[string]string{}
		for i, v := range values {
			k := fmt.Sprint("k", i)
			set[k] = json.RawMessage(v)
			raw, err := port.Encode(set[k])
			e.Check(err)
			want[k] = string(raw)
		}
		set[""], want[""] = 1, "1"
		set["ä b\n"], want["ä b\n"] = 2, "2"
		e.Check(h.SetState(e.Ctx, set))
		e.state(h, want)
		some, err := h.State(e.Ctx, "k0", "missing", "k3")
		e.Check(err)
		if len(some) != 2 || string(some["k0"]) != "null" || string(some["k3"]) != `""` {
			e.Errorf("three keys of which one is missing: %s", some)
		}
		e.Check(h.SetState(e.Ctx, map[string]any{"k0": 5, "new": 6}))
		e.Check(h.UnsetState(e.Ctx, "k1", "k2", "missing"))
		want["k0"], want["new"] = "5", "6"
		delete(want, "k1")
		delete(want, "k2")
		e.state(h, want)
		other, err := client.New(e.Open(e.URL)).Find(e.Ctx, string(h.ID()))
		e.Check(err)
		e.state(other, want)
	})
}

func TestS1StateInRuns(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(func(run *worker.Run) error {
			s := run.State()
			n := 0
			_, err := s.Get("n", &n)
			if err := errors.Join(err, s.Set("n", n+1), s.Set("gone", 1), s.Set(fmt.Sprint("step", n), nil)); err != nil {
				return err
			}
			s.Unset("gone", "outside")
			latest, err := s.GetMany([]string{"n", "gone", "outside", "step0"})
			if len(latest) != 2 || string(latest["n"]) != fmt.Sprint(n+1) || string(latest["step0"]) != "null" {
				err = errors.Join(err, fmt.Errorf("the run sees %s", latest))
			}
			return err
		})
		e.settled(h, 1)
		e.state(h, map[string]string{"n": "1", "step0": "null"})
		e.Check(h.SetState(e.Ctx, map[string]any{"n": 10, "outside": true, "kept": "x"}))
		e.rerun(h)
		e.state(h, map[string]string{"n": "11", "step0": "null", "step10": "null", "kept": `"x"`})
	})
}

// Nothing of a run that fails is in the state.
func TestS1FailedRunChangesNothing(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(func(run *worker.Run) error {
			run.State().Unset("a")
			return errors.Join(run.State().Set("b", 1), errOver)
		})
		e.reach(h, statemachine.Failed)
		e.Check(h.SetState(e.Ctx, map[string]any{"a": 1}))
		e.Check(h.Retry(e.Ctx))
		e.Until("it failed again", func() bool { i := e.Info(h); return i.Tries > 1 || i.Version > 1 })
		e.state(h, map[string]string{"a": "1"})
	})
}

func TestS2StateOfADeletedJob(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(nil)
		e.Check(h.SetState(e.Ctx, map[string]any{"a": 1}))
		e.Check(h.Terminate(e.Ctx))
		e.reach(h, statemachine.Terminated)
		e.Check(h.Delete(e.Ctx))
		e.Until("the job is gone", func() bool { ok, err := h.Exists(e.Ctx); e.Check(err); return !ok })
		_, err := h.State(e.Ctx)
		e.refused(err, job.ErrNotFound)
		_, err = h.State(e.Ctx, "a")
		e.refused(err, job.ErrNotFound)
		e.refused(h.SetState(e.Ctx, map[string]any{"a": 1}), job.ErrNotFound)
		e.refused(h.UnsetState(e.Ctx, "a"), job.ErrNotFound)
		if keys := e.keysOf(h); len(keys) > 0 {
			e.Errorf("the state came back: %q", keys)
		}
	})
}

func TestS3ContextTravels(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		nested := func(run *worker.Run) error {
			if run.Info().Steps > 0 {
				return nil
			}
			write := func(text string) error { return errors.Join(put(run, "out", text), run.Log(text)) }
			return errors.Join(write("0"),
				run.WithContext(port.Context{"a": 1, "b": "x"}, func() error {
					return errors.Join(write("1"), run.WithContext(port.Context{"b": []int{2}, "c": nil}, func() error { return write("2") }), write("3"))
				}), write("4"))
		}
		source := e.free(nested, out("out", "/s3"))
		got := make(chan port.Context, 20)
		reader := e.free(func(run *worker.Run) error {
			for {
				v, err := next(run, "in")
				if err != nil || v == "none" {
					return err
				}
				c, err := run.MessageContext("in")
				if err != nil {
					return err
				}
				got <- c
			}
		}, in("in"))
		e.settled(reader, 1)
		e.settled(source, 1)
		by := "job:" + string(source.ID())
		outer := job.WithContext(e.Ctx, port.Context{"a": 1, "by": "me"})
		e.Check(reader.Write(outer, "in", 1))
		e.Check(reader.Write(job.WithContext(outer, port.Context{"a": 2, "z": true}), "in", 2))
		e.Check(reader.Write(e.Ctx, "in", 3))
		for i, want := range []string{`{"a":1,"by":"me"}`, `{"a":2,"by":"me","z":true}`, `{}`} {
			if c := encoded(e, <-got); c != want {
				e.Errorf("message %d from outside has the context %s, want %s", i, c, want)
			}
		}
		want := []string{`null`, `{"a":1,"b":"x"}`, `{"a":1,"b":[2],"c":null}`, `{"a":1,"b":"x"}`, `null`}
		logs, err := source.Logs(e.Ctx, 10)
		e.Check(err)
		runs, err := source.Runs(e.Ctx, 10)
		e.Check(err)
		if len(logs) != 5 || len(runs) != 1 || len(runs[0].Write) != 5 || runs[0].By != "" {
			e.Fatalf("%s wrote log %+v and runs %+v", by, logs, runs)
		}
		for i, w := range want {
			if c := encoded(e, logs[i].Context); c != w || string(logs[i].Entry) != fmt.Sprintf(`"%d"`, i) {
				e.Errorf("log entry %d is %s with the context %s, want %s", i, logs[i].Entry, c, w)
			}
			if c := encoded(e, runs[0].Write[i].Context); c != w {
				e.Errorf("write %d has the context %s in the log, want %s", i, c, w)
			}
		}
		entries, err := reader.Runs(e.Ctx, 10)
		e.Check(err)
		if first := entries[0]; first.By != "me" || encoded(e, first.Write[0].Context) != `{"a":1}` {
			e.Errorf("the log says of a write from outside: %+v", first)
		}
	})
}

func encoded(e *bench, c port.Context) string {
	e.Helper()
	raw, err := json.Marshal(c)
	e.Check(err)
	return string(raw)
}

// Contexts of messages reach another job's run as they were when they were written.
func TestS3ContextOfAChildsMessages(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		parent := e.free(nil)
		from := e.under(parent, "from", func(run *worker.Run) error {
			return run.WithContext(port.Context{"order": 7}, func() error { return put(run, "out", "1") })
		}, out("out"))
		to := e.under(parent, "to", func(run *worker.Run) error {
			if _, err := next(run, "in"); err != nil {
				return err
			}
			c, err := run.MessageContext("in")
			return errors.Join(err, run.State().Set("context", c))
		}, in("in"))
		e.settled(from, 1)
		e.settled(to, 1)
		e.woken(func() {
			_, err := from.Connect(e.Ctx, port.Output, "out", to.Ref(port.Input, "in"))
			e.Check(err)
		}, to)
		e.has(to, "context", fmt.Sprintf(`{"by":"job:%s","order":7}`, from.ID()))
	})
}

// A run that connects ports keeps what the messages' contexts say besides their writer, which it is itself.
func TestS3ContextOfConnectedMessages(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		parent := e.free(func(run *worker.Run) error {
			c, err := run.Child("to")
			if errors.Is(err, job.ErrNotFound) {
				return nil
			}
			to, err2 := c.In("in")
			from, err3 := run.In("in")
			if err := errors.Join(err, err2, err3); err != nil {
				return err
			}
			return run.WithContext(port.Context{"a": 0, "b": 2}, func() error {
				_, err := run.Connect(from, to)
				return err
			})
		}, in("in"))
		e.settled(parent, 1)
		to := e.under(parent, "to", func(run *worker.Run) error {
			var all []port.Context
			for {
				v, err := next(run, "in")
				if err != nil || v == "none" {
					return errors.Join(err, run.State().Set("contexts", all))
				}
				c, err := run.MessageContext("in")
				if err != nil {
					return err
				}
				all = append(all, c)
			}
		}, in("in"))
		e.settled(to, 1)
		e.Check(parent.Write(client.WithoutNotify(job.WithContext(e.Ctx, port.Context{"a": 1, "by": "me"})), "in", 1))
		e.Check(parent.Write(client.WithoutNotify(e.Ctx), "in", 2))
		e.woken(func() { e.Check(parent.Run(e.Ctx)) }, to)
		by := "job:" + string(parent.ID())
		e.has(to, "contexts", fmt.Sprintf(`[{"a":1,"b":2,"by":%[1]q},{"a":0,"b":2,"by":%[1]q}]`, by))
	})
}

func TestS4LockHasOneHolder(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		h := e.free(nil)
		first, err := h.Lock(e.Ctx, time.Minute, 0)
		e.Check(err)
		if first.Token() == "" {
			e.Error("the lock has no token")
		}
		begun := time.Now()
		_, err = h.Lock(e.Ctx, time.Minute, 100*time.Millisecond)
		e.refused(err, job.ErrLocked)
		if d := time.Since(begun); d < 80*time.Millisecond {
			e.Errorf("gave up after %s", d)
		}
		e.Check(first.Refresh(e.Ctx, time.Minute))
		e.Check(first.Release(e.Ctx))
		second, err := h.Lock(e.Ctx, time.Minute, 0)
		e.Check(err)
		if second.Token() == first.Token() {
			e.Error("two locks have one token")
		}
		e.refused(first.Release(e.Ctx), job.ErrLocked) // the wrong token
		e.refused(first.Refresh(e.Ctx, time.Minute), job.ErrLocked)
		_, err = h.Lock(e.Ctx, time.Minute, 0)
		e.refused(err, job.ErrLocked)
		e.Check(second.Refresh(e.Ctx, 50*time.Millisecond))
		third, err := h.Lock(e.Ctx, time.Minute, enginetest.Patience) // it expires by itself
		e.Check(err)
		e.refused(second.Release(e.Ctx), job.ErrLocked)
		e.Check(third.Release(e.Ctx))
		e.refused(third.Release(e.Ctx), job.ErrLocked) // nobody has it
		e.refused(third.Refresh(e.Ctx, time.Minute), job.ErrLocked)
	})
}

func TestS4RefreshProlongs(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		h := e.free(nil)
		l, err := h.Lock(e.Ctx, 2*time.Second, 0)
		e.Check(err)
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
			e.Check(l.Refresh(e.Ctx, 2*time.Second))
			_, err := h.Lock(e.Ctx, time.Minute, 200*time.Millisecond)
			e.refused(err, job.ErrLocked)
		}
		e.Check(l.Release(e.Ctx))
	})
}

func TestS5LockedJobRunsLater(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		for name, free := range map[string]func(job.Lock, *atomic.Bool){
			"release": func(l job.Lock, open *atomic.Bool) { open.Store(true); e.Check(l.Release(e.Ctx)) },
			"expiry":  func(l job.Lock, open *atomic.Bool) { open.Store(true); e.Check(l.Refresh(e.Ctx, 100*time.Millisecond)) },
		} {
			var open atomic.Bool
			open.Store(true)
			h := e.free(func(run *worker.Run) error { return run.State().Set("open", open.Load()) }, in("in"))
			other := e.free(nil, in("in"))
			e.settled(h, 1)
			l, err := h.Lock(e.Ctx, time.Minute, 0)
			e.Check(err)
			open.Store(false)
			e.Check(h.Write(e.Ctx, "in", 1))
			e.Check(h.Run(e.Ctx))
			e.woken(func() { e.Check(other.Write(e.Ctx, "in", 1)) }, other) // others go on
			// The wake was taken and given back: its time in `due` is not that of a wake.
			e.Until("a run was refused", func() bool { return e.dueIn(h) > 3*time.Second })
			if i := e.Info(h); i.Status != statemachine.Queued || i.Steps != 1 {
				e.Errorf("%s: a locked job is %s after %d steps", name, i.Status, i.Steps)
			}
			free(l, &open)
			e.settled(h, 2)
			e.has(h, "open", "true")
		}
	})
}

// dueIn returns when the sweeper will look at a job.
func (e *bench) dueIn(h *client.Handle) time.Duration {
	e.Helper()
	for shard := range 4 {
		score, err := e.Redis.ZScore(e.Ctx, fmt.Sprintf("weir:{%s:%d}:due", e.Namespace, shard), string(h.ID())).Result()
		if err == nil {
			return time.Until(time.UnixMilli(int64(score)))
		}
	}
	return 0
}
