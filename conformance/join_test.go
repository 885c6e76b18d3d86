package conformance_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// joiner is a job that joins ports, with an Out port "out". Of each row it writes the
// messages as a list to "out", and to its state how many rows
// there were.
func (e *bench) joiner(names []string, ports ...port.Spec) *client.Handle {
	e.Helper()
	return e.free(func(run *worker.Run) error {
		n := 0
		if _, err := run.State().Get("rows", &n); err != nil {
			return err
		}
		err := run.Zip(func(row worker.Row) error {
			n++
			list := []json.RawMessage{}
			for _, name := range names {
				list = append(list, row[name])
			}
			raw, err := port.Encode(list)
			if err != nil {
				return err
			}
			return put(run, "out", string(raw))
		}, names...)
		if err2 := run.State().Set("rows", n); err2 != nil {
			return err2
		}
		return err
	}, append(ports, out("out"))...)
}

// A row has one message of each port: a port that is named twice is refused.
func TestJ2PortTwice(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner([]string{"a", "a"}, in("a"))
		e.Until("it fails", func() bool { return e.Info(h).Status == job.Failed })
		if why := e.Info(h).Reason; !strings.Contains(why, "twice") {
			e.Errorf("it failed as %q", why)
		}
	})
}

// fill writes to a port and wakes nobody.
func (e *bench) fill(h *client.Handle, name string, messages ...any) {
	e.Helper()
	e.Check(h.Write(client.WithoutNotify(e.Ctx), name, messages...))
}

// rerun runs a job that is suspended once more, and returns what becomes of it.
func (e *bench) rerun(h *client.Handle) statemachine.Status {
	e.Helper()
	e.woken(func() { e.Check(h.Run(e.Ctx)) }, h)
	return e.Info(h).Status
}

func (e *bench) is(h *client.Handle, want statemachine.Status) {
	e.Helper()
	if s := e.Info(h).Status; s != want {
		e.Errorf("the job is %s, want %s", s, want)
	}
}

func TestJ1NoPortsIsNothing(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner(nil, in("a"))
		e.settled(h, 1)
		e.fill(h, "a", 1)
		e.rerun(h)
		e.is(h, statemachine.Completed)
		e.has(h, "rows", "0")
		e.holds(h, port.Input, "a", 1)
	})
}

func TestJ2CompleteRowsInOrder(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner([]string{"a", "b", "c"}, in("a"), in("b"), in("c"))
		e.settled(h, 1)
		e.fill(h, "a", 1, 2, 3, 4)
		e.fill(h, "b", "x", "y")
		e.fill(h, "c", nil, false, 0)
		e.rerun(h)
		e.is(h, statemachine.Suspended)
		e.has(h, "rows", "2")
		e.empties(h, port.Output, "out", `[1,"x",null]`, `[2,"y",false]`)
		e.holds(h, port.Input, "a", 2)
		e.holds(h, port.Input, "b", 0)
		e.holds(h, port.Input, "c", 1)
		e.woken(func() { e.Check(h.Write(e.Ctx, "b", "z")) }, h)
		e.has(h, "rows", "3")
		e.empties(h, port.Output, "out", `[3,"z",0]`)
	})
}

func TestJ2EvenRowsLeaveNothing(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner([]string{"a", "b"}, in("a"), in("b"))
		e.settled(h, 1)
		e.fill(h, "a", 1, 2)
		e.fill(h, "b", 3, 4)
		e.rerun(h)
		e.is(h, statemachine.Completed)
		e.empties(h, port.Output, "out", "[1,3]", "[2,4]")
	})
}

func TestJ3IncompleteRowSuspends(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner([]string{"a", "b", "c"}, in("a"), in("b"), preset("c", "0"))
		e.settled(h, 1)
		e.fill(h, "a", 1, 2)
		e.fill(h, "c", 9)
		e.rerun(h)
		e.is(h, statemachine.Suspended)
		e.has(h, "rows", "0")
		e.empties(h, port.Input, "a", "1", "2")
		e.empties(h, port.Input, "c", "9")
		e.empties(h, port.Output, "out")
	})
}

func TestJ4DefaultsFillRows(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner([]string{"a", "b"}, in("a"), preset("b", "null"))
		e.settled(h, 1)
		e.fill(h, "a", 1, 2, 3)
		e.fill(h, "b", 7)
		e.rerun(h)
		e.is(h, statemachine.Completed)
		e.has(h, "rows", "3")
		e.empties(h, port.Output, "out", "[1,7]", "[2,null]", "[3,null]")
		e.reads(h, port.Output, "out", "none")
		e.Check(h.SetDefault(e.Ctx, port.Input, "b", 5))
		e.woken(func() { e.Check(h.Write(e.Ctx, "a", 4)) }, h)
		e.empties(h, port.Output, "out", "[4,5]")
	})
}

func TestJ5OnlyDefaultsRunOnce(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner([]string{"a", "b"}, preset("a", "1"), preset("b", "false"))
		e.settled(h, 1)
		e.is(h, statemachine.Completed)
		e.has(h, "rows", "1")
		e.holds(h, port.Output, "out", 0)
		for range 3 {
			e.reads(h, port.Output, "out", "[1,false]")
			e.rerun(h)
		}
		e.has(h, "rows", "1")
		e.woken(func() { e.Check(h.SetDefault(e.Ctx, port.Input, "b", "new")) }, h)
		e.has(h, "rows", "2")
		e.reads(h, port.Output, "out", `[1,"new"]`)
		e.holds(h, port.Output, "out", 0)
		e.rerun(h)
		e.has(h, "rows", "2")
		e.woken(func() { e.Check(h.Write(e.Ctx, "a", 2)) }, h) // a message is no default
		e.has(h, "rows", "3")
		e.empties(h, port.Output, "out", `[2,"new"]`)
		e.reads(h, port.Output, "out", `[1,"new"]`)
		e.Check(h.ClearDefault(e.Ctx, port.Input, "a"))
		e.rerun(h)
		e.has(h, "rows", "3")
	})
}

// A body that fails on defaults is called again.
func TestJ5FailedBodyIsRepeated(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.free(func(run *worker.Run) error {
			return run.Zip(func(worker.Row) error {
				if run.Info().Tries == 0 && run.Info().Steps == 0 && run.Info().Version == 0 {
					return errOver
				}
				return put(run, "out", "1")
			}, "a")
		}, preset("a", "1"), out("out"))
		e.reach(h, statemachine.Failed)
		e.reads(h, port.Output, "out", "none")
		e.Check(h.Retry(e.Ctx))
		e.settled(h, 1)
		e.reads(h, port.Output, "out", "1")
	})
}

func TestJ6NothingWithoutData(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		h := e.joiner([]string{"a", "b"}, in("a"), preset("b", "1"))
		e.settled(h, 1)
		e.is(h, statemachine.Completed)
		e.has(h, "rows", "0")
		e.empties(h, port.Output, "out")
		e.reads(h, port.Output, "out", "none")
	})
}
