// Package weir has the cases of Weir itself, by its public API.
package weir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// System is what Weir is called in the results; variants have a word behind it.
const System = "weir"

// rig is Weir running in a lab.
type rig struct {
	lab    *lab.Lab
	store  *redisstore.Store
	client *client.Client
	drain  time.Duration // of its engines; zero for what they have by themselves
	hooks  []worker.Hooks
}

// with opens a store for the time that fn runs.
func with(ctx context.Context, l *lab.Lab, fn func(r *rig) ([]lab.Figure, error)) (figures []lab.Figure, err error) {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: l.Redis.URL()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return fn(&rig{lab: l, store: store, client: client.New(store)})
}

// serve runs workers for as long as fn does.
func (r *rig) serve(ctx context.Context, fn func(context.Context) error, workers ...worker.Worker) error {
	return r.serveQueues(ctx, nil, fn, workers...)
}

// serveQueues is serve for jobs in other queues than the default.
func (r *rig) serveQueues(ctx context.Context, queues map[string]int, fn func(context.Context) error, workers ...worker.Worker) error {
	engine, err := worker.New(worker.Config{
		Store: r.store, Workers: workers, Queues: queues, Concurrency: r.lab.Concurrency, Drain: r.drain, Hooks: r.hooks,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), // that its Redis has no append-only file is known
	})
	if err != nil {
		return err
	}
	return engine.RunWhile(ctx, fn)
}

// tuned are the options that the workers here share. They are pure: their ledger bears to be told twice.
type tuned struct{ noLog, notPure, commitEach bool }

// WorkerOptions implements worker.Configured.
func (t tuned) WorkerOptions() worker.Options {
	return worker.Options{
		NoLog: t.noLog, Pure: !t.notPure && !t.commitEach, CommitEachRun: t.commitEach,
	}
}

// wrong returns an error about a job that is not as it should be.
func wrong(i *job.Info, format string, args ...any) error {
	return fmt.Errorf("job %s (%s, %s): %s", i.ID, i.Type, i.Status, fmt.Sprintf(format, args...))
}
