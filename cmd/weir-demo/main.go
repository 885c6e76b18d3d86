// Command weir-demo is what weir demo runs, without the rest of the command: a clone has it on the screen in two thirds of the time. make
// demo builds it, and weir behind it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/demo"
	"github.com/weirworks/weir/internal/ownredis"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/telemetry/health"
	"github.com/weirworks/weir/telemetry/metrics"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/web"
	"github.com/weirworks/weir/worker"
)

// exitUsage is the exit code of weir for what was typed wrong.
const exitUsage = 2

// drain is how long requests in progress have at the end.
const drain = 5 * time.Second

// settings are the flags, which are those of weir demo.
type settings struct {
	addr, data string
	fresh      bool
}

func main() {
	var f settings
	flag.StringVar(&f.addr, "addr", "", "`ADDRESS` of the page (default 127.0.0.1:8080, or any port if that is taken)")
	flag.StringVar(&f.data, "data", "", "`DIR`ectory for the data (default weir/demo in the cache directory of the user)")
	flag.BoolVar(&f.fresh, "fresh", false, "remove what an earlier demo has left, and begin anew")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "weir-demo: %q: there are flags only, see --help\n", flag.Arg(0))
		os.Exit(exitUsage)
	}
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // the second signal does not wait for runs in progress
	err := f.run(ctx, os.Stdout, os.Stderr)
	if stop(); err != nil {
		fmt.Fprintln(os.Stderr, "weir-demo:", err)
		code := 1
		if dir := (*ownredis.DirError)(nil); errors.As(err, &dir) {
			code = exitUsage
		}
		os.Exit(code)
	}
}

// run serves the shop until the context ends.
func (f *settings) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if f.data == "" {
		if f.data, err = demo.Dir(); err != nil {
			return err
		}
	}
	cfg := redisstore.Config{Embedded: embedded.Start}
	own, err := ownredis.Start(ctx, f.data, f.fresh)
	kept := err == nil
	switch {
	case kept:
		defer own.Stop()
		var release func()
		ctx, release = own.Guard(ctx)
		defer release()
		cfg.URL = own.URL
	case !errors.Is(err, ownredis.ErrNoServer):
		return err
	}
	store, err := redisstore.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	ran, err := demo.Start(ctx, client.New(store))
	if err != nil {
		return err
	}
	m := metrics.New(store)
	engine, server, err := parts(store, m, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	defer server.Close()
	l, err := f.listen(ctx, stderr)
	if err != nil {
		return err
	}
	page := "http://" + l.Addr().String()
	if _, err := fmt.Fprintf(stdout, "%s\n\n%s", page, demo.Guide(page, f.data, kept, ran, os.Getpid())); err != nil {
		return errors.Join(err, l.Close())
	}
	err = serve(ctx, l, health.Handler(health.Config{Store: store, Engine: engine, Metrics: m.Handler()}), server, engine)
	if died := context.Cause(ctx); errors.Is(died, ownredis.ErrDied) {
		return died // which is why the rest went wrong
	}
	return err
}

// parts are the engine that runs the shop, and graphs of components, and the API that shows them.
func parts(store *redisstore.Store, hooks worker.Hooks, log *slog.Logger) (*worker.Engine, *api.Server, error) {
	queues := map[string]int{}
	for _, q := range demo.Queues() {
		queues[q] = 1
	}
	workers := append(append(component.All(component.Policy{}), trigger.New()), demo.Workers()...)
	engine, err := worker.New(worker.Config{Store: store, Workers: workers, Queues: queues, Concurrency: demo.Concurrency, Hooks: []worker.Hooks{hooks}, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	cfg := api.Config{Store: store, Hooks: []worker.Hooks{hooks}}
	for _, w := range workers {
		cfg.Prototypes = append(cfg.Prototypes, w)
	}
	server, err := api.New(cfg)
	return engine, server, err
}

// usual is where the page is, if nobody says where.
const usual = "127.0.0.1:8080"

// listen opens the address, or if nobody chose it and it is taken, another one.
func (f *settings) listen(ctx context.Context, stderr io.Writer) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cmp.Or(f.addr, usual))
	if err == nil && !l.Addr().(*net.TCPAddr).IP.IsLoopback() { // nobody has been answered yet
		err = errors.Join(fmt.Errorf("--addr %s can be reached from other machines, where anybody could do all: use %s, or weir serve --tokens", f.addr, usual), l.Close())
	}
	if err == nil || f.addr != "" {
		return l, err
	}
	fmt.Fprintf(stderr, "weir-demo: %s is taken, so the page is elsewhere; --addr chooses where\n", usual)
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// serve runs jobs and answers requests until the context ends; if one of the two ends, so does the other.
func serve(ctx context.Context, l net.Listener, probes http.Handler, server *api.Server, engine *worker.Engine) error {
	both, ctx := errgroup.WithContext(ctx)
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler(web.Config{API: server}))
	mux.Handle("GET /healthz", probes)
	mux.Handle("GET /readyz", probes)
	mux.Handle("GET /metrics", probes)
	answers := &http.Server{
		Handler: api.PlainPaths(mux), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 6 * time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	both.Go(func() error {
		if err := answers.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	both.Go(func() error {
		err := engine.Run(ctx)
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		return errors.Join(err, server.Close(), answers.Shutdown(late))
	})
	return both.Wait()
}
