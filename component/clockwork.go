package component

import (
	"context"

	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// missed checks the parameter of that name.
func (c *check) missed(value string) {
	if err := clockwork.CheckMissed(value); err != nil {
		c.add("%v", err)
	}
}

// follow writes the ticks of a clock that are due, and asks for a run when the next is.
func follow(ctx context.Context, run *worker.Run, c clockwork.Clock, out port.Out[Tick]) error {
	s, sched, fresh, err := c.Load(run)
	if err != nil {
		return err
	}
	before := s
	save := func() error { return run.State().Set(clockwork.StateKey, s) }
	p := pace{run: run, save: save}
	for ctx.Err() == nil {
		t, ok := c.Take(run.Now(), &s, sched)
		if !ok {
			break
		}
		if err := out.Write(Tick{N: t.N, At: t.At, Missed: t.Missed}); err != nil {
			return err
		}
		if err := p.wrote(0); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if fresh || s != before {
		if err := save(); err != nil {
			return err
		}
	}
	if c.Over(&s) {
		return nil
	}
	return sleep(run, s.Next)
}
