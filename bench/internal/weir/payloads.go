package weir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

const (
	bodyLines = 500    // payloads that are written to a journal together
	noop      = "noop" // the type of their jobs
)

// payloads are written to a journal, each body with its fsync, and then moved to Redis, where they are jobs.
func payloads(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		dir, err := os.MkdirTemp("", "weir-bench-journal")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		j, err := journal.Open(journal.Config{Dir: dir})
		if err != nil {
			return nil, err
		}
		figures, err := r.payloads(ctx, j)
		return figures, errors.Join(err, j.Close())
	})
}

func (r *rig) payloads(ctx context.Context, j *journal.Journal) ([]lab.Figure, error) {
	bodies := max(r.lab.Size.Payloads/bodyLines, 1)
	n := bodies * bodyLines
	accepted, err := r.lab.Measure(ctx, func(ctx context.Context) error {
		return r.lab.Produce(ctx, bodies, func(ctx context.Context, i int) error {
			var body bytes.Buffer
			for k := range bodyLines {
				fmt.Fprintf(&body, "%s\n", lab.Item(i*bodyLines+k))
			}
			receipt, err := j.Write(noop, body.Bytes())
			if err != nil {
				return err
			}
			return receipt.Wait(ctx)
		})
	})
	if err != nil {
		return nil, err
	}
	arrived := &arriving{Store: r.store}
	m := &journal.Mover{Journal: j, Store: arrived}
	moved, err := r.lab.Measure(ctx, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		over := make(chan error, 1)
		go func() { over <- m.Run(ctx) }()
		err := lab.Reached(ctx, &arrived.n, n)
		stop()
		return errors.Join(err, <-over)
	})
	if err != nil {
		return nil, err
	}
	if jobs, err := r.client.Count(ctx, job.Filter{Type: noop}); err != nil || jobs != n {
		return nil, fmt.Errorf("%d payloads became %d jobs: %w", n, jobs, err)
	}
	return append(accepted.Throughput("payloads", n, "payloads"), moved.Throughput("payloads.moved", n, "payloads")...), nil
}

// arriving counts payloads that became jobs.
type arriving struct {
	journal.Store
	n atomic.Int64
}

// CreateArrivals implements journal.Store.
func (a *arriving) CreateArrivals(ctx context.Context, epoch string, all []store.Arrival) error {
	err := a.Store.CreateArrivals(ctx, epoch, all)
	if err == nil {
		a.n.Add(int64(len(all)))
	}
	return err
}

// ended counts runs whose code is over.
type ended struct {
	worker.NoHooks
	n atomic.Int64
}

// Ended implements worker.Hooks.
func (e *ended) Ended(*worker.RunEnd) { e.n.Add(1) }

// handlers has jobs done by a handler in node that does nothing. All are ready before the clock starts; no process is.
func handlers(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		for _, name := range append(coldTypes(), noop) {
			if _, err := handler.Set(ctx, r.store, name, handler.Definition{Lang: "node", Body: "return null"}); err != nil {
				return nil, err
			}
		}
		n := max(l.Size.Payloads/10, 1)
		if err := r.startPayloads(ctx, n); err != nil {
			return nil, err
		}
		pool, err := runner.New(runner.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		done := &ended{}
		service, err := runner.NewService(runner.ServiceConfig{Store: r.store, Pool: pool, Engine: worker.Config{
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), Hooks: []worker.Hooks{done},
		}})
		if err != nil {
			return nil, errors.Join(err, pool.Close())
		}
		serving, stop := context.WithCancel(ctx)
		over := make(chan error, 1)
		used, err := l.Measure(ctx, func(ctx context.Context) error {
			go func() { over <- service.Run(serving) }()
			return lab.Reached(ctx, &done.n, n)
		})
		var cold lab.Times
		if err == nil {
			cold, err = r.cold(ctx)
		}
		stop()
		if err = errors.Join(err, <-over, pool.Close()); err != nil {
			return nil, err
		}
		if completed, err := r.client.Count(ctx, job.Filter{Type: noop, Status: []statemachine.Status{statemachine.Completed}}); err != nil || completed != n {
			return nil, fmt.Errorf("%d of %d jobs are completed: %w", completed, n, err)
		}
		return append(used.Throughput("handlers", n, "jobs"), cold.Figures("handlers.cold")...), nil
	})
}

// coldTypes are handlers that have no process yet.
func coldTypes() (all []string) {
	for i := range 10 {
		all = append(all, fmt.Sprintf("cold%d", i))
	}
	return all
}

// cold is how long the first job of a handler takes, whose process is to be started.
func (r *rig) cold(ctx context.Context) (times lab.Times, err error) {
	plans := journal.Plans{Types: r.store}
	for _, name := range coldTypes() {
		plan, err := plans.Plan(ctx, name, []byte("first"))
		if err != nil {
			return nil, err
		}
		began := time.Now()
		started, err := r.client.StartMany(ctx, []client.Starting{{Plan: plan}})
		if err != nil {
			return nil, err
		}
		if _, err := started[0].Handle.Wait(ctx); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}

// startPayloads creates jobs of the handler.
func (r *rig) startPayloads(ctx context.Context, n int) error {
	plans := journal.Plans{Types: r.store}
	for from := 0; from < n; from += bodyLines {
		var all []client.Starting
		for i := from; i < min(from+bodyLines, n); i++ {
			plan, err := plans.Plan(ctx, noop, []byte(lab.Item(i)))
			if err != nil {
				return err
			}
			all = append(all, client.Starting{Plan: plan, Options: []job.Option{job.EnginesLater()}})
		}
		if _, err := r.client.StartMany(ctx, all); err != nil {
			return err
		}
	}
	return nil
}
