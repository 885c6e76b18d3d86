package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Free is a worker that declares no ports: its jobs have those that they are created with.
type Free struct{ Key string }

// Run implements worker.Worker.
func (w *Free) Run(ctx context.Context, run *worker.Run) error {
	return (&Do{Key: w.Key}).act(ctx, run, func(p parts) code { return p.run })
}

// bench is an env with words for ports.
type bench struct{ *env }

// onEach runs fn on every kind of Redis.
func onEach(t *testing.T, fn func(e *bench)) {
	t.Helper()
	each(t, func(e *env) { fn(&bench{e}) })
}

// act is what a Free does in its runs.
type act func(run *worker.Run) error

// free creates a Free with ports; a nil fn does nothing.
func (e *bench) free(fn act, ports ...port.Spec) *client.Handle {
	e.Helper()
	return e.create(job.New{Type: "Free", Args: e.acts(fn), Ports: ports})
}

// under is free under a parent.
func (e *bench) under(parent *client.Handle, name string, fn act, ports ...port.Spec) *client.Handle {
	e.Helper()
	return e.create(job.New{Type: "Free", Args: e.acts(fn), Ports: ports, Parent: parent.ID(), Name: name})
}

func (e *bench) acts(fn act) *Free {
	e.Helper()
	p := parts{}
	if fn != nil {
		p.run = func(_ context.Context, run *worker.Run, _ *Do) error { return fn(run) }
	}
	return &Free{keep(e, p)}
}

func in(name string, channels ...string) port.Spec {
	return port.Spec{Name: name, Dir: port.Input, Channels: channels}
}

func out(name string, channels ...string) port.Spec {
	return port.Spec{Name: name, Dir: port.Output, Channels: channels}
}

// kept is an Out port that publishes, and keeps what it publishes.
func kept(name string, channels ...string) port.Spec {
	s := out(name, channels...)
	s.Keep = true
	return s
}

// preset is an In port with a default.
func preset(name, value string) port.Spec {
	return port.Spec{Name: name, Dir: port.Input, Default: json.RawMessage(value)}
}

func texts(raws []json.RawMessage) []string {
	all := []string{}
	for _, raw := range raws {
		all = append(all, string(raw))
	}
	return all
}

// empties wants a port to hold just these messages, and empties it.
func (e *bench) empties(h *client.Handle, dir port.Dir, name string, want ...string) {
	e.Helper()
	raws, err := h.Drain(e.Ctx, dir, name)
	e.Check(err)
	if got := texts(raws); !slices.Equal(got, want) {
		e.Errorf("%s port %q held %q, want %q", dir, name, got, want)
	}
}

// reads wants the next message of a port, or its default; "none" is none.
func (e *bench) reads(h *client.Handle, dir port.Dir, name, want string) {
	e.Helper()
	read := h.Read
	if dir == port.Input {
		read = h.ReadIn
	}
	var raw json.RawMessage
	ok, err := read(e.Ctx, name, &raw)
	e.Check(err)
	got := string(raw)
	if !ok {
		got = "none"
	}
	if got != want {
		e.Errorf("%s port %q: read %s, want %s", dir, name, got, want)
	}
}

func (e *bench) portOf(h *client.Handle, dir port.Dir, name string) job.PortInfo {
	e.Helper()
	p, ok := e.Info(h).Port(dir, name)
	if !ok {
		e.Fatalf("the job has no %s port %q", dir, name)
	}
	return p
}

// holds wants a port to have that many messages.
func (e *bench) holds(h *client.Handle, dir port.Dir, name string, want int64) {
	e.Helper()
	if n := e.portOf(h, dir, name).Waiting; n != want {
		e.Errorf("%s port %q holds %d messages, want %d", dir, name, n, want)
	}
}

// untouched wants fn to wake none of the jobs, which rest.
func (e *bench) untouched(fn func(), jobs ...*client.Handle) {
	e.Helper()
	before := make([]*job.Info, len(jobs))
	for i, h := range jobs {
		before[i] = e.settled(h, 0)
	}
	fn()
	for i, h := range jobs {
		if now := e.Info(h); !now.Queued.Equal(before[i].Queued) || now.Status != before[i].Status || now.Steps != before[i].Steps {
			e.Errorf("job %s (%s) was woken: %s after %d steps", h.ID(), now.Name, now.Status, now.Steps)
		}
	}
}

// woken wants fn to wake all of the jobs, which rest.
func (e *bench) woken(fn func(), jobs ...*client.Handle) {
	e.Helper()
	steps := make([]int64, len(jobs))
	for i, h := range jobs {
		steps[i] = e.settled(h, 1).Steps
	}
	fn()
	for i, h := range jobs {
		e.settled(h, steps[i]+1)
	}
}

// next reads a port in a run: its message, its default, or "none".
func next(run *worker.Run, name string) (string, error) {
	r, err := run.In(name)
	if err != nil {
		return "", err
	}
	raw, ok, err := r.Read()
	if !ok {
		return "none", err
	}
	return string(raw), err
}

// put writes to a port in a run.
func put(run *worker.Run, name string, messages ...string) error {
	w, err := run.Out(name)
	for _, m := range messages {
		if err == nil {
			err = w.Write(json.RawMessage(m))
		}
	}
	return err
}

func TestO1NamesAreChecked(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		for _, name := range []string{"", "a b", "a-b", "a.b", "ä", "a\n", "a/b", "a=b", strings.Repeat("x", 129)} {
			before := e.keys()
			_, err := e.Client.Create(e.Ctx, job.New{Type: "Free", Ports: []port.Spec{in(name)}})
			e.refused(err, port.ErrName)
			if now := e.keys(); !slices.Equal(now, before) {
				e.Errorf("%q: keys %q became %q", name, before, now)
			}
			h := e.free(nil, in("*"), out("*"))
			e.refused(h.Write(e.Ctx, name, 1), port.ErrName)
			e.refused(h.WriteOut(e.Ctx, name, 1), port.ErrName)
			_, err = h.Peek(e.Ctx, name, 1)
			e.refused(err, port.ErrName)
			e.refused(h.SetPorts(e.Ctx, []port.Spec{out(name)}), port.ErrName)
		}
		h := e.free(nil, in("a"), in("A"), in("_0Zz"))
		e.Check(h.Write(e.Ctx, "a", 1))
		e.Check(h.Write(e.Ctx, "A", 2))
		e.Check(h.Write(e.Ctx, "_0Zz", 3))
		e.empties(h, port.Input, "a", "1")
		e.empties(h, port.Input, "A", "2")
	})
}

func TestO2UnknownPortIsRefused(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		h := e.free(nil, in("in"), out("out"))
		e.refused(h.Write(e.Ctx, "other", 1), job.ErrPort)
		e.refused(h.Write(e.Ctx, "out", 1), job.ErrPort)
		e.refused(h.WriteOut(e.Ctx, "in", 1), job.ErrPort)
		_, err := h.Read(e.Ctx, "other", new(int))
		e.refused(err, job.ErrPort)
		_, err = h.Drain(e.Ctx, port.Input, "out")
		e.refused(err, job.ErrPort)
		e.refused(h.SetDefault(e.Ctx, port.Input, "other", 1), job.ErrPort)
		if ports := e.Info(h).Ports; len(ports) != 2 {
			e.Errorf("ports became %v", ports)
		}
	})
}

func TestO2PortOnDemandHasTheOptionsOfAny(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		star := port.Spec{Name: port.Any, Dir: port.Input, Limit: 7, Default: json.RawMessage("5"), Channels: []string{"/any"}}
		h := e.free(func(run *worker.Run) error {
			var got []string
			for _, name := range []string{"x", "x", "never"} {
				v, err := next(run, name)
				if err != nil {
					return err
				}
				got = append(got, v)
			}
			return run.State().Set("got", got)
		}, star, kept("*", "/made"))
		heard := e.free(nil, in("in", "/made"))
		e.settled(heard, 1)
		e.settled(h, 1)
		e.reads(h, port.Input, "y", "5") // not there yet
		e.woken(func() { e.Check(h.Write(e.Ctx, "x", 1)) }, h)
		e.has(h, "got", `["1","5","5"]`)
		p := e.portOf(h, port.Input, "x")
		if p.Limit != 7 || string(p.Default) != "5" || !slices.Equal(p.Channels, []string{"/any"}) {
			e.Errorf("port x is %+v", p)
		}
		e.reads(h, port.Input, "x", "5")
		e.woken(func() { e.Check(e.Client.Publish(e.Ctx, "/any", 2)) }, h)
		e.has(h, "got", `["2","5","5"]`)
		e.woken(func() { e.Check(h.WriteOut(e.Ctx, "fresh", 3)) }, heard)
		e.empties(heard, port.Input, "in", "3")
		e.empties(h, port.Output, "fresh", "3")
	})
}

// has wants a value in the state of a job.
func (e *bench) has(h *client.Handle, key, want string) {
	e.Helper()
	state, err := h.State(e.Ctx, key)
	e.Check(err)
	if got := string(state[key]); got != want {
		e.Errorf("state %q = %s, want %s", key, got, want)
	}
}

// values are messages that a careless store would change.
var values = []string{
	"null", "false", "0", `""`, "[]", "{}", `[[],[[null]],{"a":{"b":[1,2,{"c":null}]}}]`,
	"123456789012345678901234567890", "-9007199254740993", "0.1000000000000000055511151231257827",
	`"ÄÖ \u0000 \n \u001f 日本 🐘 \u2028"`, `"\u0001{}\n"`, `{"":"", "z":1, "a":2}`,
}

func TestO3ValuesComeBackEqual(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(func(run *worker.Run) error {
			for {
				r, err := run.In("in")
				if err != nil || r.Len() == 0 {
					return err
				}
				v, err := next(run, "in")
				if err == nil {
					err = put(run, "out", v)
				}
				if err != nil {
					return err
				}
			}
		}, in("in"), out("out"))
		var all []any
		var want []string
		for _, v := range values {
			all = append(all, json.RawMessage(v))
			raw, err := port.Encode(json.RawMessage(v))
			e.Check(err)
			want = append(want, string(raw))
		}
		e.Check(h.Write(e.Ctx, "in", all[:5]...))
		e.Check(h.Write(e.Ctx, "in", all[5:]...))
		e.Until("all are copied", func() bool { return len(enginetest.Outs[json.RawMessage](e.env, h, "out")) == len(values) })
		for _, w := range want[:2] {
			e.reads(h, port.Output, "out", w)
		}
		e.empties(h, port.Output, "out", want[2:]...)
	})
}

func TestO4EmptyPortIsNoneOrItsDefault(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(func(run *worker.Run) error {
			var got []string
			for _, name := range []string{"plain", "plain", "null", "set", "set", "set"} {
				v, err := next(run, name)
				if err != nil {
					return err
				}
				got = append(got, v)
			}
			r, err := run.In("set")
			return errors.Join(err, run.State().Set("got", got), run.State().Set("len", r.Len()))
		}, in("plain"), preset("null", "null"), preset("set", `{"a":[1]}`), out("out"))
		e.settled(h, 1)
		e.has(h, "got", `["none","none","null","{\"a\":[1]}","{\"a\":[1]}","{\"a\":[1]}"]`)
		e.has(h, "len", "0")
		for range 3 {
			e.reads(h, port.Input, "plain", "none")
			e.reads(h, port.Input, "null", "null")
			e.reads(h, port.Input, "set", `{"a":[1]}`)
			e.reads(h, port.Output, "out", "none")
		}
		e.holds(h, port.Input, "set", 0)
		e.Check(h.WriteOut(e.Ctx, "out", nil))
		e.reads(h, port.Output, "out", "null")
		e.reads(h, port.Output, "out", "none")
	})
}

func TestO5DefaultsMayBeNullAndFalse(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		var h *client.Handle
		for _, value := range []string{"null", "false", "0", `""`} {
			h = e.free(func(run *worker.Run) error {
				r, err := run.In("in")
				if err != nil {
					return err
				}
				_, data, err := r.Peek()
				return errors.Join(err, run.State().Set("data", data), run.State().Set("size", r.Len()))
			}, preset("in", value))
			e.settled(h, 1)
			e.has(h, "data", "true")
			e.has(h, "size", "0")
			p := e.portOf(h, port.Input, "in")
			if string(p.Default) != value || p.Waiting != 0 {
				e.Errorf("port with default %s is %+v", value, p)
			}
			e.reads(h, port.Input, "in", value)
		}
		e.Check(h.SetDefault(e.Ctx, port.Input, "in", nil)) // null, which is not none
		e.reads(h, port.Input, "in", "null")
	})
}

func TestO6DefaultsChangeAtRunTime(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(func(run *worker.Run) error {
			var got []string
			look := func(err error) error {
				v, err2 := next(run, "in")
				got = append(got, v)
				return errors.Join(err, err2)
			}
			if run.Info().Steps > 0 {
				return nil
			}
			return errors.Join(
				look(nil),
				look(run.SetDefault(port.Input, "in", 1)),
				look(run.SetDefault(port.Input, "in", "two")),
				look(run.ClearDefault(port.Input, "in")),
				look(run.SetDefault(port.Input, "in", false)),
				run.SetDefault(port.Output, "out", 9),
				run.State().Set("got", got))
		}, in("in"), out("out"))
		e.settled(h, 1)
		e.has(h, "got", `["none","1","\"two\"","none","false"]`)
		e.reads(h, port.Input, "in", "false")
		e.reads(h, port.Output, "out", "9")
		e.Check(h.SetDefault(e.Ctx, port.Input, "in", 3))
		e.reads(h, port.Input, "in", "3")
		e.Check(h.SetDefault(e.Ctx, port.Input, "in", 4))
		e.reads(h, port.Input, "in", "4")
		e.Check(h.ClearDefault(e.Ctx, port.Input, "in"))
		e.reads(h, port.Input, "in", "none")
		e.Check(h.ClearDefault(e.Ctx, port.Output, "out"))
		e.reads(h, port.Output, "out", "none")
	})
}

func TestO7DataComesBeforeTheDefault(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(func(run *worker.Run) error {
			got := []string{}
			for range 4 {
				v, err := next(run, "in")
				if err != nil {
					return err
				}
				got = append(got, v)
			}
			return run.State().Set("got", got)
		}, preset("in", "0"))
		e.settled(h, 1)
		e.woken(func() { e.Check(h.Write(e.Ctx, "in", 1, 2)) }, h)
		e.has(h, "got", `["1","2","0","0"]`)
		e.Check(h.Write(client.WithoutNotify(e.Ctx), "in", 3))
		e.reads(h, port.Input, "in", "3")
		e.reads(h, port.Input, "in", "0")
	})
}

func TestO8WritesWakeTheReader(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		parent := e.free(nil)
		e.settled(parent, 1) // else one run may be for itself and its child
		h := e.under(parent, "child", nil, in("in"), out("out"))
		e.settled(h, 1)
		e.settled(parent, 2) // woken by the child's run
		e.untouched(func() {
			e.Check(h.Write(client.WithoutNotify(e.Ctx), "in", 0))
			e.Check(h.WriteOut(client.WithoutNotify(e.Ctx), "out", 0))
		}, parent, h)
		e.woken(func() { e.Check(h.Write(e.Ctx, "in", 1)) }, h)
		e.settled(parent, 3)
		e.woken(func() { e.untouched(func() { e.Check(h.WriteOut(e.Ctx, "out", 1)) }, h) }, parent)
		e.empties(h, port.Input, "in", "0", "1")
		e.empties(h, port.Output, "out", "0", "1")
		orphan := e.free(nil, out("out"))
		e.untouched(func() { e.Check(orphan.WriteOut(e.Ctx, "out", 1)) }, orphan, parent)
		if s := e.Info(h).Status; s != statemachine.Completed {
			e.Error(fmt.Sprint("the child is ", s))
		}
	})
}

// keysOf returns the keys of a job in Redis.
func (e *bench) keysOf(h *client.Handle) []string {
	e.Helper()
	return slices.DeleteFunc(e.keys(), func(key string) bool { return !strings.Contains(key, "j:"+string(h.ID())) })
}

// A port that `*` admitted is one that the worker need not read: nothing is said of it, and nothing runs again for it.
func TestO2PortOnDemandIsLeftUnread(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		for _, end := range []error{nil, worker.ErrSuspend} {
			h := e.free(func(*worker.Run) error { return end }, port.Spec{Name: port.Any, Dir: port.Input})
			e.settled(h, 1)
			e.woken(func() { e.Check(h.Write(e.Ctx, "x", 1)) }, h)
			if i := e.Info(h); i.Reason != "" || !i.Next.IsZero() {
				e.Errorf("%s with the reason %q, runs next at %s", i.Status, i.Reason, i.Next)
			}
			e.empties(h, port.Input, "x", "1")
		}
	})
}

// Out ports have defaults as In ports do: their parents read them.
func TestO5DefaultsOfOutPorts(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{}, &Presets{})
		parent := e.free(func(run *worker.Run) error {
			c, err := run.Child("c")
			if errors.Is(err, job.ErrNotFound) {
				return nil
			}
			var got [3]json.RawMessage
			for i, name := range []string{"out", "null", "made"} {
				if err == nil {
					_, err = c.Read(name, &got[i])
				}
			}
			return errors.Join(err, run.State().Set("got", got))
		})
		e.settled(parent, 1)
		preset := func(name, value string) port.Spec {
			return port.Spec{Name: name, Dir: port.Output, Default: json.RawMessage(value)}
		}
		h := e.under(parent, "c", nil, preset("out", "7"), preset("null", "null"), preset("*", `"any"`), out("none"))
		e.settled(h, 1)
		e.settled(parent, 2)
		for range 2 {
			e.reads(h, port.Output, "out", "7")
			e.reads(h, port.Output, "null", "null")
			e.reads(h, port.Output, "none", "none")
		}
		e.has(parent, "got", `[7,null,"any"]`)
		e.Check(h.SetPorts(e.Ctx, []port.Spec{preset("out", "8"), out("null")}))
		e.reads(h, port.Output, "out", "8")
		e.reads(h, port.Output, "null", "none")
		e.reads(e.job("Presets", nil), port.Output, "out", "3")
	})
}

// Presets has an Out port with a default.
type Presets struct {
	Out port.Out[int] `port:",default=3"`
}

// Run implements worker.Worker.
func (*Presets) Run(context.Context, *worker.Run) error { return nil }

// A port that is named twice is a mistake, not two ports.
func TestO9PortTwice(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		twice := []port.Spec{preset("in", "1"), out("in"), preset("in", "2")}
		_, err := e.Client.Create(e.Ctx, job.New{Type: "Free", Args: e.acts(nil), Ports: twice})
		e.refused(err, job.ErrPort)
		run := e.runner(&Free{})
		h := e.free(func(run *worker.Run) error { return run.SetPorts(twice) }, in("before"))
		e.refused(h.SetPorts(e.Ctx, twice), job.ErrPort)
		e.Check(run(h))
		e.is(h, statemachine.Failed)
		if ports := e.Info(h).Ports; len(ports) != 1 {
			e.Errorf("ports became %+v", ports)
		}
	})
}
