package crew

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// once makes a failed run the failure of its job.
type once struct{}

// WorkerOptions implements worker.Configured.
func (once) WorkerOptions() worker.Options {
	return worker.Options{Tries: 1, Backoff: worker.ExponentialBackoff(20*time.Millisecond, time.Hour)}
}

// Loop sends each message round that many times before it passes it on.
type Loop struct {
	tuned
	Laps  int
	In    port.In[Message]
	Again port.Out[Message]
	Out   port.Out[Message]
}

// Run implements worker.Worker.
func (w *Loop) Run(_ context.Context, run *worker.Run) error {
	return pass(run, w.In, func(m Message) error {
		if m.Laps < w.Laps {
			m.Laps++
			return w.Again.Write(m)
		}
		m.Laps = 0
		return w.Out.Write(m)
	})
}

// errMoody, errBroken and errFussy are the failures of workers that are to fail.
var (
	errMoody  = errors.New("not today")
	errBroken = errors.New("this worker handles nothing")
	errFussy  = errors.New("this worker does not handle such numbers")
)

// Moody passes messages on and fails now and then; its failure policy has it run again.
type Moody struct {
	once
	In  port.In[Message]
	Out port.Out[Message]
}

// Run implements worker.Worker.
func (w *Moody) Run(_ context.Context, run *worker.Run) error {
	if rand.IntN(20) == 0 {
		return errMoody
	}
	return pass(run, w.In, w.Out.Write)
}

// Broken fails as soon as it has a message, which its graph ignores.
type Broken struct {
	once
	In port.In[Message]
}

// Run implements worker.Worker.
func (w *Broken) Run(_ context.Context, run *worker.Run) error {
	return pass(run, w.In, func(Message) error { return errBroken })
}

// FussyOne of so many messages is none that Fussy handles: those whose number it divides.
const FussyOne = 5

// Fussy passes messages on but for some, which become dead letters.
type Fussy struct {
	once
	In  port.In[Message]
	Out port.Out[Message]
}

// Run implements worker.Worker.
func (w *Fussy) Run(_ context.Context, run *worker.Run) error {
	return pass(run, w.In, func(m Message) error {
		if m.N%FussyOne == 0 {
			return errFussy
		}
		return w.Out.Write(m)
	})
}

// Unwrap passes on the messages of dead letters.
type Unwrap struct {
	tuned
	In  port.In[job.Letter]
	Out port.Out[Message]
}

// Run implements worker.Worker.
func (w *Unwrap) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	for l, err := range w.In.All() {
		if err != nil {
			return err
		}
		var m Message
		if err := port.Decode(l.Messages["in"], &m); err != nil {
			return fmt.Errorf("a dead letter of a run that failed with %q: %w", strings.TrimSpace(l.Error), err)
		}
		m.Path += ">" + run.Info().Name
		if err := w.Out.Write(m); err != nil {
			return err
		}
	}
	return nil
}
