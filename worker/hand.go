package worker

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/weirworks/weir/internal/store"
)

// errExited: user code called runtime.Goexit, as testing.T.FailNow does.
var errExited = errors.New("the worker ended its goroutine instead of returning")

// hand runs user code in a goroutine of its own, so that even its death is noticed: one run
// after the other, for as long as it lives. Its zero value is ready for use.
type hand struct {
	work chan task
	done chan error
	gone chan struct{} // closed when the goroutine has ended
}

// task is a run that is to be worked on.
type task struct {
	ctx  context.Context //nolint:containedctx // on its way to another goroutine
	kind *kind
	run  *Run
	snap *store.Snapshot
}

// do works on a run, and returns when that is over.
func (h *hand) do(t task) error {
	if h.work == nil {
		h.begin()
	}
	select {
	case h.work <- t:
	case <-h.gone: // it did not survive the run before
		h.begin()
		h.work <- t
	}
	return <-h.done
}

func (h *hand) begin() {
	h.work, h.done, h.gone = make(chan task), make(chan error, 1), make(chan struct{})
	go serve(h.work, h.done, h.gone)
}

// rest ends the goroutine.
func (h *hand) rest() {
	if h.work != nil {
		close(h.work)
		h.work = nil
	}
}

func serve(work <-chan task, done chan<- error, gone chan<- struct{}) {
	defer close(gone)
	for t := range work {
		one(t, done)
	}
}

func one(t task, done chan<- error) {
	err := errExited
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: debug.Stack()}
		}
		done <- err
	}()
	if t.run.hooks == nil {
		err = work(t.ctx, t.kind, t.run, t.snap)
		return
	}
	err = t.run.hooks.Run(t.ctx, t.run, func(ctx context.Context) error { return work(ctx, t.kind, t.run, t.snap) })
}
