package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

func TestO9PortsChangeAtRunTime(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		next := []port.Spec{
			{Name: "kept", Dir: port.Input, Limit: 3, Default: json.RawMessage("1")},
			in("fresh"), out("kept"),
		}
		given := append([]port.Spec{}, next...)
		check := func(h *client.Handle) {
			e.Helper()
			if !reflect.DeepEqual(next, given) {
				e.Errorf("the caller's ports became %+v", next)
			}
			info := e.Info(h)
			names := []string{}
			for _, p := range info.Ports {
				names = append(names, fmt.Sprint(p.Dir, " ", p.Name))
			}
			if want := []string{"in fresh", "in kept", "out kept"}; !slices.Equal(names, want) {
				e.Errorf("ports are %q, want %q", names, want)
			}
			if p := e.portOf(h, port.Input, "kept"); p.Limit != 3 || string(p.Default) != "1" {
				e.Errorf("options were not replaced: %+v", p)
			}
			e.empties(h, port.Input, "kept", "1", "2")
			e.empties(h, port.Output, "kept", "3")
			e.refused(h.Write(e.Ctx, "lost", 1), job.ErrPort)
			e.Check(h.SetPorts(e.Ctx, []port.Spec{in("lost")}))
			e.reads(h, port.Input, "lost", "none")
		}
		fill := func(h *client.Handle) {
			e.Helper()
			e.Check(h.Write(client.WithoutNotify(e.Ctx), "kept", 1, 2))
			e.Check(h.Write(client.WithoutNotify(e.Ctx), "lost", 5))
			e.Check(h.WriteOut(client.WithoutNotify(e.Ctx), "kept", 3))
		}
		before := []port.Spec{preset("kept", "0"), preset("lost", "0"), out("kept")}
		outside := e.free(nil, before...)
		e.settled(outside, 1)
		fill(outside)
		e.Check(outside.SetPorts(e.Ctx, next))
		check(outside)

		inside := e.free(func(run *worker.Run) error {
			if run.Info().Steps == 0 {
				return nil
			}
			return run.SetPorts(next)
		}, before...)
		e.settled(inside, 1)
		fill(inside)
		e.woken(func() { e.Check(inside.Run(e.Ctx)) }, inside)
		check(inside)
	})
}

func TestO10DrainLeavesThePortEmpty(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(nil, preset("in", "0"), out("out"))
		e.settled(h, 1)
		e.empties(h, port.Input, "in")
		var all []any
		var want []string
		for i := range 2500 {
			all = append(all, i)
			want = append(want, fmt.Sprint(i))
		}
		e.Check(h.Write(client.WithoutNotify(e.Ctx), "in", all...))
		e.empties(h, port.Input, "in", want...)
		e.holds(h, port.Input, "in", 0)
		e.empties(h, port.Input, "in")
		e.reads(h, port.Input, "in", "0")
		e.Check(h.WriteOut(e.Ctx, "out", nil, nil))
		e.empties(h, port.Output, "out", "null", "null")
	})
}

// Fewer than no messages are refused, and nothing is removed.
func TestO10NumbersBelowZero(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		h := e.free(nil, out("out"))
		e.Check(h.WriteOut(e.Ctx, "out", 1, 2, 3))
		_, err := h.Take(e.Ctx, port.Output, "out", -1)
		e.refused(err, job.ErrValue)
		_, err = h.Messages(e.Ctx, port.Output, "out", -2)
		e.refused(err, job.ErrValue)
		_, err = h.UnreadAfter(e.Ctx, port.Output, "out", -1, 1)
		e.refused(err, job.ErrValue)
		e.refused(h.Discard(e.Ctx, port.Output, "out", 0, -1, "token"), job.ErrValue)
		none, err := h.Take(e.Ctx, port.Output, "out", 0)
		e.Check(err)
		if len(none) != 0 {
			e.Errorf("took %v", none)
		}
		e.empties(h, port.Output, "out", "1", "2", "3")
	})
}

func TestO11ConnectMovesAllData(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		parent := e.free(nil)
		from := e.under(parent, "from", nil, out("out"))
		a := e.under(parent, "a", nil, in("in"))
		b := e.under(parent, "b", nil, in("in"), in("other"))
		to := []job.PortRef{a.Ref(port.Input, "in"), b.Ref(port.Input, "in"), b.Ref(port.Input, "other")}
		for _, h := range []*client.Handle{from, a, b, parent} {
			e.settled(h, 1)
		}
		e.Until("the parent rests for good", func() bool { return e.settled(parent, 1).Steps >= 2 })
		e.untouched(func() {
			moved, err := from.Connect(e.Ctx, port.Output, "out", to...)
			e.Check(err)
			if len(moved) != 0 {
				e.Errorf("an empty port gave %s", moved)
			}
		}, a, b)
		e.Check(a.Write(client.WithoutNotify(e.Ctx), "in", "before"))
		e.Check(from.WriteOut(e.Ctx, "out", 1, nil, "x"))
		e.woken(func() {
			moved, err := from.Connect(e.Ctx, port.Output, "out", to...)
			e.Check(err)
			if got := texts(moved); !slices.Equal(got, []string{"1", "null", `"x"`}) {
				e.Errorf("Connect returned %q", got)
			}
		}, a, b)
		e.holds(from, port.Output, "out", 0)
		e.empties(a, port.Input, "in", `"before"`, "1", "null", `"x"`)
		e.empties(b, port.Input, "in", "1", "null", `"x"`)
		e.empties(b, port.Input, "other", "1", "null", `"x"`)
		trace, err := b.Trace(e.Ctx, port.Input, "other", 2)
		e.Check(err)
		if len(trace) != 2 || len(trace[0].Read) != 1 || trace[0].Read[0].Job != from.ID() || len(trace[1].Write) != 1 {
			e.Errorf("the trace leads over %+v, want the move, then who wrote to the first port", trace)
		}
		_, err = from.Connect(e.Ctx, port.Output, "out", a.Ref(port.Input, "nope"))
		e.refused(err, job.ErrPort)
	})
}

// A run connects its own port, or more messages of a child's than one page has, to another child.
func TestO11ConnectInARun(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		const many = 2300
		source := e.acts(func(run *worker.Run) error {
			for i := range many {
				if run.Info().Steps == 0 {
					if err := put(run, "out", fmt.Sprint(i)); err != nil {
						return err
					}
				}
			}
			return run.SetDefault(port.Output, "out", "rest")
		})
		parent := e.free(func(run *worker.Run) error {
			s, err := run.Child("source")
			if errors.Is(err, job.ErrNotFound) {
				return nil
			}
			sink, err2 := run.Child("sink")
			if err != nil || err2 != nil {
				return errors.Join(err, err2)
			}
			from, err := s.Out("out")
			to, err2 := sink.In("in")
			own, err3 := run.Out("copy")
			if err := errors.Join(err, err2, err3); err != nil {
				return err
			}
			n, err := run.Connect(from, to, own)
			if err != nil || n == 0 {
				return err
			}
			return run.State().Set("moved", n)
		}, out("copy"))
		e.settled(parent, 1)
		sink := e.under(parent, "sink", nil, in("in"))
		e.settled(sink, 1)
		h := e.create(job.New{Type: "Free", Args: source, Ports: []port.Spec{out("out")}, Parent: parent.ID(), Name: "source"})
		e.Until("all are moved", func() bool { return e.portOf(sink, port.Input, "in").Waiting == many })
		e.reach(parent, statemachine.Completed)
		e.has(parent, "moved", fmt.Sprint(many))
		e.holds(h, port.Output, "out", 0)
		e.holds(parent, port.Output, "copy", many)
		var want []string
		for i := range many {
			want = append(want, fmt.Sprint(i))
		}
		e.empties(sink, port.Input, "in", want...)
		e.reads(sink, port.Input, "in", `"rest"`)
		e.empties(parent, port.Output, "copy", want...)
		e.reads(parent, port.Output, "copy", `"rest"`)
	})
}

// Ports of other trees get messages and default as well; what cannot be is refused before anything moves.
func TestO11ConnectAcrossTrees(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		from := e.free(nil, out("out"), in("own"))
		for range 4 { // in several shards
			to := e.free(nil, preset("in", "8"), out("out"))
			e.settled(from, 1)
			e.settled(to, 1)
			e.Check(from.SetDefault(e.Ctx, port.Output, "out", 7))
			var all []any
			var want []string
			for i := range 1200 {
				all, want = append(all, i), append(want, fmt.Sprint(i))
			}
			e.Check(from.WriteOut(client.WithoutNotify(e.Ctx), "out", all...))
			_, err := from.Connect(e.Ctx, port.Output, "out", to.Ref(port.Input, "in"), to.Ref(port.Input, "nope"))
			e.refused(err, job.ErrPort)
			_, err = from.Connect(e.Ctx, port.Output, "out", to.Ref(port.Output, "out"))
			e.refused(err, job.ErrPort)
			e.holds(from, port.Output, "out", 1200)
			e.reads(to, port.Input, "in", "8")
			e.woken(func() {
				moved, err := from.Connect(e.Ctx, port.Output, "out", to.Ref(port.Input, "in"), from.Ref(port.Input, "own"))
				e.Check(err)
				if len(moved) != 1200 {
					e.Errorf("%d moved", len(moved))
				}
				e.Until("all have arrived", func() bool { return e.portOf(to, port.Input, "in").Waiting == 1200 })
			}, to)
			e.holds(from, port.Output, "out", 0)
			e.empties(to, port.Input, "in", want...)
			e.reads(to, port.Input, "in", "7")
			e.empties(from, port.Input, "own", want...)
		}
		gone := e.free(nil, in("in"))
		e.ended(gone)
		e.Check(gone.Delete(e.Ctx))
		_, err := from.Connect(e.Ctx, port.Output, "out", gone.Ref(port.Input, "in"))
		e.refused(err, job.ErrNotFound)
	})
}

func TestO12ConnectCopiesTheDefault(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		parent := e.free(nil)
		from := e.under(parent, "from", nil, preset("in", "7"))
		same := e.under(parent, "same", nil, preset("in", "7"))
		other := e.under(parent, "other", nil, preset("in", "8"))
		none := e.under(parent, "none", nil, in("in"))
		for _, h := range []*client.Handle{from, same, other, none} {
			e.settled(h, 1)
		}
		to := []job.PortRef{same.Ref(port.Input, "in"), other.Ref(port.Input, "in"), none.Ref(port.Input, "in")}
		connect := func() {
			moved, err := from.Connect(e.Ctx, port.Input, "in", to...)
			e.Check(err)
			if len(moved) != 0 {
				e.Errorf("moved %s", moved)
			}
		}
		e.untouched(func() { e.woken(connect, other, none) }, same, from)
		e.untouched(connect, same, other, none, from)
		for _, h := range []*client.Handle{from, same, other, none} {
			e.reads(h, port.Input, "in", "7")
			e.holds(h, port.Input, "in", 0)
		}
	})
}

func TestO13ConnectToOutPorts(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		for name, spec := range map[string]port.Spec{"keeps": kept("out", "/o13/keeps"), "publishes": out("out", "/o13/publishes")} {
			grand := e.free(nil)
			e.settled(grand, 1) // else one run may be for itself and its child
			parent := e.under(grand, name, nil, in("in"), spec)
			heard := e.free(nil, in("in", "/o13/"+name))
			e.settled(heard, 1)
			e.settled(parent, 1)
			e.settled(grand, 2)
			e.Check(parent.Write(client.WithoutNotify(e.Ctx), "in", 1, 2))
			e.untouched(func() {
				e.woken(func() {
					_, err := parent.Connect(e.Ctx, port.Input, "in", parent.Ref(port.Output, "out"))
					e.Check(err)
				}, grand, heard)
			}, parent)
			e.Until("both are published", func() bool { return e.portOf(heard, port.Input, "in").Waiting == 2 })
			e.empties(heard, port.Input, "in", "1", "2")
			if spec.Keep {
				e.empties(parent, port.Output, "out", "1", "2")
			}
		}
	})
}
