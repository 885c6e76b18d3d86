package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/job"
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
}

func (f *workerFlags) add(s *settings, c *cobra.Command) {
	f.addPolicy(c)
	c.Flags().StringArrayVar(&f.queues, "queue", nil, "`QUEUE[=WEIGHT]` to serve; one of weight 6 gets six times the attention of one of weight 1 (default default)")
	c.Flags().IntVar(&f.concurrency, "concurrency", 0, "runs at a time (default twice the number of CPUs)")
	c.Flags().IntVar(&f.aging, "aging", 0, "one of `N` runs is of the lowest priority that is ready in its queue, so that higher ones hold up none for ever (default never)")
	c.Flags().StringSliceVar(&f.workkit, "workkit", nil, "serve the WorkKit schedules of these `NAMES` too: what is due in the keys NAME:next and NAME:jobs")
	s.completeFlag(c, "queue", queueWords)
	s.completeFlag(c, "workkit", kitWords)
}

// config is that of an engine that runs components.
func (f *workerFlags) config(store *redisstore.Store, log io.Writer) (worker.Config, error) {
	cfg := worker.Config{
		Store: store, Workers: f.workers(), Concurrency: f.concurrency, Aging: f.aging, Queues: map[string]int{},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
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

// engine makes an engine, or says what is wrong with the flags, and serves schedules of WorkKit as soon as it runs. flush is to be
// called when it has ended.
func (f *workerFlags) engine(c *cobra.Command, store *redisstore.Store, hooks ...worker.Hooks) (e *worker.Engine, flush func(), err error) {
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
	flushed, err := traced(c, store, &cfg)
	if err != nil {
		return nil, nil, err
	}
	if e, err = worker.New(cfg); err != nil || kits == nil {
		return e, flushed, err
	}
	stop := listen(c.Context(), kits, e)
	return e, func() { stop(); flushed() }, nil
}

// serve runs jobs until the program is told to stop.
func serve(ctx context.Context, c *cobra.Command, store *redisstore.Store, engine *worker.Engine) error {
	if _, err := fmt.Fprintf(c.ErrOrStderr(), "weir: serving components on %s; stop with Ctrl-C\n", store.Where()); err != nil {
		return err
	}
	interruptsOf(ctx).add(engine.Abort, nothing)
	told := make(chan func(), 1)
	tell := context.AfterFunc(ctx, func() { told <- tellStop(ctx, c.ErrOrStderr(), engine, job.NewClient(store), true) })
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

With --workkit they serve schedules that other programs keep in the keys of WorkKit, too:
docs/workkit.md tells how.

With --listen an HTTP server answers at /healthz (the process lives), /readyz (Redis is
reached, and the worker takes jobs: not while it stops) and /metrics (for Prometheus). It
asks for no password: let only those reach it who may see names of types and queues.

` + traceHelp,
		Example: "  weir worker --redis redis://localhost:6379 --queue default --queue slow=2\n  weir worker --listen 127.0.0.1:9090\n  weir worker --workkit app-tasks,mail",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.checkRoot(); err != nil {
				return err
			}
			return s.besideRedis(c, func(_ context.Context, store *redisstore.Store) error {
				if listen == "" {
					engine, flush, err := f.engine(c, store)
					if err != nil {
						return err
					}
					defer flush()
					return serve(c.Context(), c, store, engine)
				}
				return f.observed(c, store, listen)
			})
		},
	}
	f.add(s, c)
	c.Flags().StringVar(&listen, "listen", "", "`ADDRESS` of /healthz, /readyz and /metrics, such as 127.0.0.1:9090; port 0 picks a free one")
	return c
}

func newDev(s *settings) *cobra.Command {
	var f workerFlags
	var web apiFlags
	var data string
	c := &cobra.Command{
		Use:   "dev",
		Short: "Start a Redis of its own and run components on it: all in one, to try things",
		Long: `Start a redis-server of its own on a free port and run jobs of components on it, until
stopped: a second Ctrl-C does not wait for runs in progress. The page and the HTTP API are served
beside them, as weir serve does; if its address is taken, on another port. With --data its data survive
a restart, in an append-only file in that directory; without, they are gone. It is not for
production: one process, one machine, no password, and at most the last second lost when
the machine dies.`,
		Example: "  weir dev --data ./weir-data\n  export WEIR_REDIS_URL=redis://127.0.0.1:PORT   # as weir dev says",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if s.redis != "" {
				return usageError{errors.New("weir dev has a Redis of its own: leave --redis away, or use weir worker")}
			}
			if err := errors.Join(f.checkRoot(), web.check()); err != nil {
				return err
			}
			url, stop, err := startRedis(c.Context(), data)
			if err != nil {
				return err
			}
			defer stop()
			interruptsOf(c.Context()).add(nothing, stop)
			s.redis = url
			return s.besideRedis(c, func(_ context.Context, store *redisstore.Store) error {
				m := newMetrics(store)
				engine, flush, err := f.engine(c, store, m)
				if err != nil {
					return err
				}
				defer flush()
				if _, err := fmt.Fprintf(c.OutOrStdout(), "export WEIR_REDIS_URL=%s\n", url); err != nil {
					return err
				}
				l, err := web.listen(c, true)
				if err != nil {
					return err
				}
				defer l.Close()
				handler, err := web.server(c, s, store, f.workers())
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.ErrOrStderr(), "weir: page and HTTP API at %s://%s\n", web.scheme(), l.Addr()); err != nil {
					return err
				}
				return web.beside(c, store, l, handler, engine, m)
			})
		},
	}
	f.add(s, c)
	web.add(c)
	c.Flags().StringVar(&data, "data", "", "`DIR`ectory for the data; made if it is not there")
	return c
}

// startRedis starts a redis-server on a free port of this machine and waits for it.
func startRedis(ctx context.Context, data string) (url string, stop func(), err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", nil, errors.New("there is no redis-server on the PATH: install it (apt install redis-server), or use --redis with weir worker")
	}
	persist := "yes"
	dir, done := data, func() {}
	if data == "" {
		persist = "no"
		if dir, err = os.MkdirTemp("", "weir-dev-"); err != nil {
			return "", nil, err
		}
		done = func() { _ = os.RemoveAll(dir) }
	} else if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", nil, usageError{err}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return "", nil, err
	}
	if err := repairLog(ctx, dir); err != nil {
		done()
		return "", nil, err
	}
	// Its end is ours to tell: the context ends before the jobs have been handed back.
	cmd := exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--appendonly", persist, //nolint:gosec,noctx // of the PATH
		"--aof-load-truncated", "no", "--save", "", "--maxmemory-policy", "noeviction", "--logfile", filepath.Join(dir, "redis.log"))
	cmd.SysProcAttr = ownGroup() // Ctrl-C is for weir alone
	if err := cmd.Start(); err != nil {
		done()
		return "", nil, fmt.Errorf("starting %s: %w", program, err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		done()
	})
	address := net.JoinHostPort("127.0.0.1", port)
	if err := answering(ctx, address); err != nil {
		stop()
		return "", nil, fmt.Errorf("redis-server did not start, see %s: %w", filepath.Join(dir, "redis.log"), err)
	}
	return "redis://" + address, stop, nil
}

// repairLog cuts off what a power loss left of a transaction that was not written whole: redis-server may
// otherwise carry out half of it.
func repairLog(ctx context.Context, dir string) error {
	manifest := filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")
	if _, err := os.Stat(manifest); err != nil {
		return nil //nolint:nilerr // there is no log yet
	}
	cmd := exec.CommandContext(ctx, "redis-check-aof", "--fix", manifest) //nolint:gosec // of the PATH
	cmd.Stdin = strings.NewReader("y\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("checking the log of Redis, redis-check-aof --fix %s: %w\n%s", manifest, err, out)
	}
	return nil
}

// freePort asks the system for one.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// answering waits until something listens.
func answering(ctx context.Context, address string) error {
	var dialer net.Dialer
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
