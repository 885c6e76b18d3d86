package crew

import (
	"context"
	"errors"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Step is what a Serial tells of a run: that its tree, of all with one sequential key, has begun, or is about to end.
type Step struct {
	Key string `json:"key"`
	N   int    `json:"n"` // its place in the order of creation
	End bool   `json:"end,omitempty"`
}

// Serial is one of several trees with a sequential key. It runs two or three times: the last run fails, if it is to.
type Serial struct {
	acting
	Key   string
	N     int
	Fails bool
	Out   port.Out[Step] `port:"out,channel=/chaos/serial"`
}

// Run implements worker.Worker.
func (w *Serial) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	var done int
	if _, err := run.State().Get(CountKey, &done); err != nil {
		return err
	}
	think()
	if done == 2 {
		return worker.Permanent(errors.New("it was to fail"))
	}
	if err := errors.Join(run.State().Set(CountKey, done+1), w.Out.Write(Step{w.Key, w.N, done == 1})); err != nil {
		return err
	}
	if done == 1 && !w.Fails {
		return nil
	}
	return errors.Join(run.WakeAfter(5*time.Millisecond), worker.ErrSuspend)
}

// SerialEar keeps what Serials tell: of one key in the order of their commits, as its trees lie in one shard.
type SerialEar struct {
	acting
	In  port.In[Step] `port:"in,channel=/chaos/serial"`
	All port.Out[Step]
}

// SerialChannel is where Serials publish.
const SerialChannel = "/chaos/serial"

// Run implements worker.Worker.
func (w *SerialEar) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	for s, err := range w.In.All() {
		if err != nil {
			return err
		}
		if err := w.All.Write(s); err != nil {
			return err
		}
	}
	return nil
}
