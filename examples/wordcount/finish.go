package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// drain is how long runs may go on when the count ends early, and how long an engine is
// waited for after an error.
const drain = 2 * time.Second

// errAgain is the end of errors after which the tree cannot be continued.
var errAgain = errors.New("count again under another --tree")

// abandoned is an error after which the engine did not end in time and still runs.
type abandoned struct{ error }

func (e abandoned) Unwrap() error { return e.error }

// watcher looks on while the jobs run, until ctx ends.
type watcher interface{ watch(ctx context.Context) }

// silent watches nothing.
type silent struct{}

func (silent) watch(context.Context) {}

// finish runs the jobs until the tree is completed. When it returns, nothing runs any
// more, except after an abandoned error. tell gets an error that is not the end of ctx at
// once, before the wait for the engine: what runs may take a while to notice.
func finish(ctx context.Context, store *redisstore.Store, h *job.Handle, w watcher, warn *warnings, tell func(error)) error {
	engine, err := worker.New(worker.Config{
		Store:       store,
		Workers:     []worker.Worker{&List{}, &Split{}, &Count{}, &Merge{}},
		Concurrency: 2*instances() + 2, // as many as there are jobs: no stage waits for another
		Drain:       drain,             // a Split that goes on commits more often
		Logger:      slog.New(warn),
	})
	if err != nil {
		return err
	}
	return await(ctx, h, engine.Run, w, warn, tell)
}

// await waits for the tree while run, an engine's, works.
func await(ctx context.Context, h *job.Handle, run func(context.Context) error, w watcher, warn *warnings, tell func(error)) error {
	counting, stop := context.WithCancelCause(ctx)
	running := make(chan error, 1)
	go func() {
		err := run(counting)
		stop(err)
		running <- err
	}()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		w.watch(counting)
	}()
	info, err := h.Wait(counting)
	switch {
	case err != nil && context.Cause(counting) != nil:
		err = context.Cause(counting) // the engine's error says why it ended
	case err == nil && info.Status != statemachine.Completed:
		err = fmt.Errorf("the count was terminated; %w", errAgain)
	}
	warn.mute() // what comes now comes of stopping
	stop(nil)
	<-watching
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, <-running)
	}
	tell(err)
	select {
	case <-running:
		return err
	case <-time.After(drain):
		return abandoned{err}
	}
}
