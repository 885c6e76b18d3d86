package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
	"github.com/weirworks/weir/workkit"
)

// workerFlags say which jobs an engine serves.
type workerFlags struct {
	graphFlags
	queues      []string
	concurrency int
	aging       int
	workkit     []string
	passing     bool            // the data of the Redis end with the program
	more        []worker.Worker // besides components
	handlers    handlerService
}

// workers are those that the engine runs.
func (f *workerFlags) workers() []worker.Worker { return append(f.graphFlags.workers(), f.more...) }

func (f *workerFlags) add(s *settings, c *cobra.Command) {
	f.addPolicy(c)
	c.Flags().StringArrayVar(&f.queues, "queue", nil, "`QUEUE[=WEIGHT]` to serve; one of weight 6 gets six times the attention of one of weight 1 (default default)")
	c.Flags().IntVar(&f.concurrency, "concurrency", 0, "runs at a time (default twice the number of CPUs)")
	c.Flags().IntVar(&f.aging, "aging", 0, "one of `N` runs is of the lowest priority that is ready, so that higher ones hold it up for a while only (default never)")
	c.Flags().StringSliceVar(&f.workkit, "workkit", nil, "serve the WorkKit schedules of these `NAMES` too: what is due in the keys NAME:next and NAME:jobs")
	s.completeFlag(c, "queue", queueWords)
	s.completeFlag(c, "workkit", kitWords)
}

// passing is a store whose data end with the program, as was said when it began.
type passing struct{ *redisstore.Store }

// Warnings implements worker.Store: nobody is going to rely on it.
func (passing) Warnings(context.Context) []string { return nil }

// config is that of an engine that runs components.
func (f *workerFlags) config(store *redisstore.Store, log io.Writer) (worker.Config, error) {
	cfg := worker.Config{
		Store: store, Workers: f.workers(), Concurrency: f.concurrency, Aging: f.aging, Queues: map[string]int{},
		Logger: logger(log),
	}
	if f.passing {
		cfg.Store = passing{store}
	}
	for _, q := range f.queues {
		name, weight, given := strings.Cut(q, "=")
		n := 1
		if given {
			var err error
			if n, err = strconv.Atoi(weight); err != nil {
				return cfg, usageError{fmt.Errorf("--queue %q: write it as QUEUE=WEIGHT, as in mail=6", q)}
			}
		}
		cfg.Queues[name] = n
	}
	return cfg, cfg.Validate()
}

// engine makes an engine, or says what is wrong with the flags, and serves schedules of WorkKit as soon as it runs. stop is to be
// called when it has ended.
func (f *workerFlags) engine(c *cobra.Command, store *redisstore.Store, hooks []worker.Hooks) (e *worker.Engine, stop func(), err error) {
	if c.Flags().Changed("concurrency") && f.concurrency < 1 {
		return nil, nil, usageError{fmt.Errorf("--concurrency %d: use a positive number of runs at a time, or leave it out", f.concurrency)}
	}
	if f.aging < 0 {
		return nil, nil, usageError{fmt.Errorf("--aging %d: use a positive number of runs, of which one is of the lowest priority, or leave it out", f.aging)}
	}
	cfg, err := f.config(store, c.ErrOrStderr())
	if err != nil {
		return nil, nil, err
	}
	var kits *workkit.Listener
	if len(f.workkit) > 0 {
		if kits, err = workkit.New(workkit.Config{Store: store, Schedules: f.workkit, Logger: cfg.Logger}); err != nil {
			return nil, nil, err
		}
	}
	cfg.Hooks = hooks
	if e, err = worker.New(cfg); err != nil || kits == nil {
		return e, nothing, err
	}
	return e, listen(c.Context(), kits, e), nil
}

// spareHeap returns memory that counts as in use, but nothing is ever written there, so the machine gives none for it. A heap as small as
// that of an engine, whose state is in Redis, is else collected at each few megabytes, many times a second. With GOMEMLIMIT, of which
// it would be a part, there is none.
func spareHeap() []byte {
	if debug.SetMemoryLimit(-1) < math.MaxInt64 {
		return nil
	}
	return make([]byte, 64<<20)
}

// serve runs jobs until the program is told to stop.
func serve(ctx context.Context, c *cobra.Command, store *redisstore.Store, engine *worker.Engine) error {
	if !term.IsTerminal(c.ErrOrStderr()) { // else the welcome has said so
		if _, err := fmt.Fprintf(c.ErrOrStderr(), "weir: serving components on %s; stop with Ctrl-C\n", store.Where()); err != nil {
			return err
		}
	}
	defer runtime.KeepAlive(spareHeap())
	interruptsOf(ctx).add(engine.Abort, nothing)
	told := make(chan func(), 1)
	tell := context.AfterFunc(ctx, func() { told <- tellStop(ctx, c.ErrOrStderr(), engine, client.New(store), true) })
	err := engine.Run(ctx)
	if !tell() {
		(<-told)()
	}
	return err
}

func newWorker(s *settings) *cobra.Command {
	var f workerFlags
	var listen string
	c := &cobra.Command{
		Use:   "worker",
		Short: "Run jobs of components, until stopped",
		Long: `Run jobs whose types are components (weir types lists them) on a Redis, until stopped
with Ctrl-C or SIGTERM: runs in progress then have ten seconds to finish. A second Ctrl-C
stops at once: what it cuts off runs again, at the latest when its lease ends. Any number
of workers can serve one Redis.

With --handlers they run scripts that weir handler set has stored, too, in a sandbox:
docs/handlers.md tells how.

With --workkit they serve schedules that other programs keep in the keys of WorkKit, too:
docs/workkit.md tells how.

With --listen an HTTP server answers at /healthz (the process lives), /readyz (Redis is
reached, and the worker takes jobs: not while it stops) and /metrics (for Prometheus). It
asks for no password: let only those reach it who may see names of types and queues.

` + traceHelp,
		Example: "  weir worker --redis redis://localhost:6379 --queue default --queue slow=2\n  weir worker --listen 127.0.0.1:9090\n  weir worker --handlers --handler-secrets /run/secrets\n  weir worker --workkit app-tasks,mail",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(f.checkRoot(), f.handlers.check()); err != nil {
				return err
			}
			return s.besideRedis(c, func(_ context.Context, store *redisstore.Store) error {
				if err := f.welcome(c, fact{"Redis", store.Where()}, f.runs()); err != nil {
					return err
				}
				if listen != "" {
					return f.observed(c, store, listen)
				}
				hooks, flush, err := hooksOf(c, store, nil)
				if err != nil {
					return err
				}
				defer flush()
				engine, stop, err := f.engine(c, store, hooks)
				if err != nil {
					return err
				}
				defer stop()
				return f.handlers.beside(c, store, f.http(), func() error { return serve(c.Context(), c, store, engine) })
			})
		},
	}
	f.add(s, c)
	f.handlers.add(c, true)
	c.Flags().StringVar(&listen, "listen", "", "`ADDRESS` of /healthz, /readyz and /metrics, such as 127.0.0.1:9090; port 0 picks a free one")
	return c
}
