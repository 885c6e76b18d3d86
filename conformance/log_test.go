package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Mute is a Free of which nothing that it reads and writes is logged.
type Mute struct{ Free }

// WorkerOptions implements worker.Configured.
func (w *Mute) WorkerOptions() worker.Options { return worker.Options{NoLog: true} }

func (e *bench) runs(h *client.Handle) []job.RunEntry {
	e.Helper()
	all, err := h.Runs(e.Ctx, 100)
	e.Check(err)
	return all
}

// moved writes movements as text: port, from where on, how many and the data.
func moved(list []job.Movement) string {
	parts := []string{}
	for _, m := range list {
		parts = append(parts, fmt.Sprintf("%s %s %d+%d %s", m.Dir, m.Port, m.From, m.N, texts(m.Data)))
	}
	return strings.Join(parts, ", ")
}

func (e *bench) same(what, got, want string) {
	e.Helper()
	if got != want {
		e.Errorf("%s: %s, want %s", what, got, want)
	}
}

// once does something in a job's first run only.
func once(fn act) act {
	return func(run *worker.Run) error {
		if run.Info().Steps > 0 {
			return nil
		}
		return fn(run)
	}
}

func TestO14GroupIsOneEntry(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		h := e.free(once(func(run *worker.Run) error {
			failed := run.Group(func() error { return errors.Join(put(run, "out", "8"), errOver) })
			if !errors.Is(failed, errOver) {
				return fmt.Errorf("a group returned %w", failed)
			}
			return errors.Join(put(run, "out", "1"), run.Group(func() error {
				v, err := next(run, "in")
				return errors.Join(err, put(run, "out", v), run.Group(func() error { return put(run, "out", "3") }))
			}), run.Group(func() error { return put(run, "out", "4") }))
		}), in("in"), out("out"))
		e.Check(h.Write(client.WithoutLog(e.Ctx), "in", 2))
		e.serve(&Free{})
		e.settled(h, 1)
		runs := e.runs(h)
		if len(runs) != 1 {
			e.Fatalf("log is %+v", runs)
		}
		e.empties(h, port.Output, "out", "1", "2", "3", "4")
		r := runs[0]
		e.same("outside of groups", moved(r.Write), "out out 0+1 [1]")
		if len(r.Groups) != 2 {
			e.Fatalf("groups are %+v", r.Groups)
		}
		e.same("read in the group", moved(r.Groups[0].Read), "in in 0+1 [2]")
		e.same("written in the group", moved(r.Groups[0].Write), "out out 0+2 [2 3]")
		e.same("written in the other", moved(r.Groups[1].Write), "out out 0+1 [4]")
		e.same("sent", moved(r.Sent), "out out 0+4 []")
	})
}

// What a failed group did is undone, and what came before it is not.
func TestO14FailedGroupIsUndone(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		h := e.free(once(func(run *worker.Run) error {
			return run.Group(func() error {
				if err := errors.Join(put(run, "out", "1"), run.State().Set("a", 1)); err != nil {
					return err
				}
				failed := run.Group(func() error {
					_, err := run.Spawn("child", job.Single(&Free{Key: "none"}, ""))
					_, err2 := next(run, "in")
					run.State().Unset("a")
					return errors.Join(err, err2, put(run, "out", "9"), run.State().Set("b", 1), run.SetDefault(port.Input, "in", 5), run.Log("no"), errOver)
				})
				if !errors.Is(failed, errOver) {
					return failed
				}
				if _, err := run.Child("child"); !errors.Is(err, job.ErrNotFound) {
					return fmt.Errorf("the child of the failed group: %w", err)
				}
				v, err := next(run, "in")
				return errors.Join(err, put(run, "out", v))
			})
		}), in("in"), out("out"))
		e.Check(h.Write(client.WithoutLog(e.Ctx), "in", 2))
		e.serve(&Free{})
		e.settled(h, 1)
		e.empties(h, port.Output, "out", "1", "2")
		e.state(h, map[string]string{"a": "1"})
		e.reads(h, port.Input, "in", "none")
		if logs, err := h.Logs(e.Ctx, 10); err != nil || len(logs) > 0 {
			e.Errorf("logged %v, %v", logs, err)
		}
		g := e.runs(h)[0].Groups
		if len(g) != 1 {
			e.Fatalf("groups are %+v", g)
		}
		e.same("read", moved(g[0].Read), "in in 0+1 [2]")
		e.same("written", moved(g[0].Write), "out out 0+2 [1 2]")
	})
}

func TestO15LoggingIsSwitchedOff(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{}, &Mute{})
		h := e.free(once(func(run *worker.Run) error {
			quiet := func() error {
				_, err := next(run, "in")
				return errors.Join(err, put(run, "secret", "7"), put(run, "out", "2"))
			}
			return errors.Join(put(run, "out", "1"), run.Unlogged(quiet), put(run, "out", "3"))
		}), in("in"), out("out"), out("secret"))
		e.Check(h.Write(client.WithoutLog(e.Ctx), "in", 5))
		e.serve(&Free{}, &Mute{})
		e.settled(h, 1)
		runs := e.runs(h)
		if len(runs) != 1 {
			e.Fatalf("log is %+v", runs)
		}
		e.same("read", moved(runs[0].Read), "")
		e.same("written", moved(runs[0].Write), "out out 0+2 [1 3]")
		e.same("sent", moved(runs[0].Sent), "out out 0+1 [], out out 2+1 []")
		e.empties(h, port.Output, "out", "1", "2", "3")

		mute := e.create(job.New{Type: "Mute", Args: e.acts(func(run *worker.Run) error { return put(run, "out", "1") }), Ports: []port.Spec{out("out")}})
		e.settled(mute, 1)
		if runs := e.runs(mute); len(runs) > 0 {
			e.Errorf("a type without log has %+v", runs)
		}
	})
}

func TestO16LogKeepsTheValueOfTheTime(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(once(func(run *worker.Run) error {
			o := map[string]any{"list": []int{1}}
			keys := port.Context{"k": 1}
			raw := json.RawMessage("[1]")
			w, err := run.Out("out")
			err = errors.Join(err, run.Log(o), run.State().Set("o", o), run.SetDefault(port.Input, "in", o),
				run.WithContext(keys, func() error {
					keys["k"] = 2
					return errors.Join(w.Write(raw), run.Log("x"))
				}))
			o["list"].([]int)[0] = 9
			raw[1] = '9'
			return err
		}), in("in"), out("out"))
		e.settled(h, 1)
		logs, err := h.Logs(e.Ctx, 5)
		e.Check(err)
		e.same("log", string(logs[0].Entry), `{"list":[1]}`)
		e.same("context", encoded(e, logs[1].Context), `{"k":1}`)
		e.has(h, "o", `{"list":[1]}`)
		e.reads(h, port.Input, "in", `{"list":[1]}`)
		r := e.runs(h)[0]
		e.same("written", moved(r.Write), "out out 0+1 [[1]]")
		e.same("context", encoded(e, r.Write[0].Context), `{"k":1}`)
		e.empties(h, port.Output, "out", "[1]")
	})
}

func TestLogIsOfTheJobOrItsTree(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		root := e.free(once(func(run *worker.Run) error { return put(run, "out", "1") }), out("out"))
		e.settled(root, 1)
		a := e.under(root, "a", once(func(run *worker.Run) error { return put(run, "out", "2") }), out("out"))
		e.settled(a, 1)
		b := e.under(root, "b", nil, in("in"))
		e.settled(b, 1)
		e.Check(b.Write(job.WithContext(e.Ctx, port.Context{"by": "somebody"}), "in", 3))
		of := func(h *client.Handle) string {
			all := []string{}
			for _, r := range e.runs(h) {
				all = append(all, fmt.Sprint(r.Job.Number(), " ", texts(r.Write[0].Data)[0], " ", r.By))
			}
			return strings.Join(all, ", ")
		}
		e.same("tree", of(root), fmt.Sprintf("%d 1 , %d 2 , %d 3 somebody", root.ID().Number(), a.ID().Number(), b.ID().Number()))
		e.same("a", of(a), fmt.Sprintf("%d 2 ", a.ID().Number()))
		e.same("b", of(b), fmt.Sprintf("%d 3 somebody", b.ID().Number()))
		last, err := root.Runs(e.Ctx, 1)
		e.Check(err)
		if len(last) != 1 || last[0].Job != b.ID() {
			e.Errorf("the last entry is %+v", last)
		}
	})
}

func TestTraceBackOverThreeJobs(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		pass := func(to string) act {
			return func(run *worker.Run) error {
				v, err := next(run, "in")
				if err != nil || v == "none" {
					return err
				}
				c, err := run.Child(to)
				if errors.Is(err, job.ErrNotFound) {
					return put(run, "out", v)
				}
				if err != nil {
					return err
				}
				return c.Write("in", json.RawMessage(v))
			}
		}
		a := e.free(pass("b"), in("in"))
		b := e.under(a, "b", pass("c"), in("in"))
		c := e.under(b, "c", pass(""), in("in"), out("out"))
		for i := range 3 {
			e.Check(a.Write(job.WithContext(e.Ctx, port.Context{"by": fmt.Sprint("w", i)}), "in", i))
			e.Until("it has arrived", func() bool { return e.portOf(c, port.Output, "out").Total == int64(i)+1 })
		}
		e.empties(c, port.Output, "out", "0", "1", "2")
		trace, err := c.Trace(e.Ctx, port.Output, "out", 1)
		e.Check(err)
		who := []string{}
		for _, r := range trace {
			who = append(who, fmt.Sprint(r.Job.Number(), r.By))
			for _, m := range append(slices.Clone(r.Read), r.Write...) {
				e.same("data", fmt.Sprint(texts(m.Data)), "[1]")
			}
		}
		n := func(h *client.Handle) string { return fmt.Sprint(h.ID().Number()) }
		if want := []string{n(c), n(b), n(a), n(a) + "w1"}; !slices.Equal(who, want) {
			e.Errorf("the trace leads over %q, want %q", who, want)
		}
		_, err = c.Trace(e.Ctx, port.Output, "out", 3)
		e.refused(err, job.ErrNotFound)
		o, err := c.Origin(e.Ctx, port.Output, "out", 2)
		e.Check(err)
		if len(o.Steps) != 4 || len(o.Missing) > 0 || o.More || o.Trimmed.Entries > 0 {
			e.Errorf("the origin is %+v", o)
		}
	})
}

func TestLogLeavesOutLargeData(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		large, small := strings.Repeat("x", store.MaxLoggedMessage), strings.Repeat("y", store.MaxLoggedMessage/2)
		h := e.free(once(func(run *worker.Run) error {
			err := put(run, "large", `"`+large+`"`)
			for range 50 {
				err = errors.Join(err, put(run, "small", `"`+small+`"`))
			}
			return err
		}), in("in"), out("large"), out("small"))
		e.settled(h, 1)
		e.Check(h.Write(e.Ctx, "in", large))
		runs := e.runs(h)
		e.same("large", moved(runs[0].Write[:1]), "out large 0+1 []")
		if w := runs[0].Write[1]; len(runs[0].Write) != 2 || w.N != 50 || w.Data != nil {
			e.Errorf("of 50 messages the log has %d of %d", len(w.Data), w.N)
		}
		e.same("from outside", moved(runs[1].Write), "in in 0+1 []")
		e.holds(h, port.Output, "small", 50)
	})
}

func TestLogHasErrorsWithTheirStack(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{}, &Mute{})
		for _, typ := range []string{"Free", "Mute"} {
			h := e.create(job.New{Type: typ, Args: e.acts(func(run *worker.Run) error { explode(); return put(run, "out", "1") }), Ports: []port.Spec{out("out")}})
			e.reach(h, statemachine.Failed)
			runs := e.runs(h)
			if len(runs) != 1 || !strings.Contains(runs[0].Error, "boom") || !strings.Contains(runs[0].Stack, "explode") {
				e.Errorf("%s: log is %+v", typ, runs)
			}
			fs, err := h.Failures(e.Ctx)
			if err != nil || len(fs) != 1 || !strings.Contains(fs[0].Stack, "explode") {
				e.Errorf("%s: failures are %+v, %v", typ, fs, err)
			}
		}
		h := e.free(func(run *worker.Run) error { return errors.Join(put(run, "out", "1"), errOver) }, out("out"))
		e.reach(h, statemachine.Failed)
		if runs := e.runs(h); len(runs) != 1 || !strings.Contains(runs[0].Error, errOver.Error()) || len(runs[0].Write) > 0 {
			e.Errorf("log is %+v", runs)
		}
	})
}

func explode() { panic("boom") }
