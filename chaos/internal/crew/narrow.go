package crew

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// What limits runs of Narrow: NarrowMost go on at once at most, and NarrowRuns begin within NarrowPer.
const (
	NarrowMost = 2
	NarrowRuns = 2
	NarrowPer  = 500 * time.Millisecond
)

// Narrow says a number, once, in a run of which few go on at once, and few begin in a time.
type Narrow struct {
	Out port.Out[Message]
}

// WorkerOptions implements worker.Configured.
func (*Narrow) WorkerOptions() worker.Options {
	o := acting{}.WorkerOptions()
	o.MaxRunning, o.MaxRuns, o.MaxRunsPer = NarrowMost, NarrowRuns, NarrowPer
	return o
}

// Run implements worker.Worker.
func (w *Narrow) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	think()
	time.Sleep(time.Duration(2+rand.IntN(10)) * time.Millisecond)
	return w.Out.Write(Message{N: 1})
}

// Mended is what a number that Fussy does not handle becomes when it is requeued in the end.
func Mended(n int) int {
	if n%FussyOne != 0 {
		return n
	}
	return n + 1_000_001
}

// requeue gives all dead letters below a job back to who could not handle them, most of them put right.
func requeue(ctx context.Context, c *client.Client, h *client.Handle) error {
	var bad error
	_, err := c.RequeueAll(ctx, client.LetterFilter{Job: h.ID()}, func(l *client.StoredLetter) bool {
		if rand.IntN(3) == 0 {
			return true // it comes again
		}
		var m Message
		err := port.Decode(l.Messages["in"], &m)
		if m.N = Mended(m.N); err == nil {
			l.Messages["in"], err = port.Encode(m)
		}
		bad = errors.Join(bad, err)
		return err == nil
	})
	return errors.Join(err, bad)
}
