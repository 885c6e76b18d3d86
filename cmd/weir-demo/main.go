// Command weir-demo is what weir demo runs, without the rest of the command: a clone has it on the screen in two thirds of the time. make
// demo builds it, and weir behind it.
package main

import (
	"context"
	"errors"
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
	"github.com/weirworks/weir/internal/demo"
	"github.com/weirworks/weir/internal/ownredis"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/web"
	"github.com/weirworks/weir/worker"
)

// address is where the page is, if nobody else is there.
const address = "127.0.0.1:8080"

// drain is how long requests in progress have at the end.
const drain = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal does not wait for runs in progress
	dir, err := demo.Dir()
	if err == nil {
		err = run(ctx, dir, os.Stdout, os.Stderr)
	}
	if stop(); err != nil {
		fmt.Fprintln(os.Stderr, "weir-demo:", err)
		os.Exit(1)
	}
}

// run serves the shop whose state is in a directory until the context ends.
func run(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	cfg := redisstore.Config{Embedded: embedded.Start}
	url, stop, err := ownredis.Start(ctx, dir, false)
	kept := err == nil
	switch {
	case kept:
		defer stop()
		cfg.URL = url
	case !errors.Is(err, ownredis.ErrNoServer):
		return err
	}
	store, err := redisstore.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := demo.Start(ctx, job.NewClient(store)); err != nil {
		return err
	}
	engine, server, err := parts(store, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	defer server.Close()
	l, err := listen(ctx)
	if err != nil {
		return err
	}
	page := "http://" + l.Addr().String()
	if _, err := fmt.Fprintf(stdout, "%s\n\n%s", page, demo.Guide(page, dir, kept, os.Getpid())); err != nil {
		return errors.Join(err, l.Close())
	}
	return serve(ctx, l, server, engine)
}

// parts are the engine that runs the shop, and the API that shows it.
func parts(store *redisstore.Store, log *slog.Logger) (*worker.Engine, *api.Server, error) {
	queues := map[string]int{}
	for _, q := range demo.Queues() {
		queues[q] = 1
	}
	engine, err := worker.New(worker.Config{Store: store, Workers: demo.Workers(), Queues: queues, Concurrency: demo.Concurrency, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	cfg := api.Config{Store: store}
	for _, w := range demo.Workers() {
		cfg.Prototypes = append(cfg.Prototypes, w)
	}
	server, err := api.New(cfg)
	return engine, server, err
}

// listen opens the address, or another one if that is taken.
func listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	if l, err := lc.Listen(ctx, "tcp", address); err == nil {
		return l, nil
	}
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// serve runs jobs and answers requests until the context ends; if one of the two ends, so does the other.
func serve(ctx context.Context, l net.Listener, server *api.Server, engine *worker.Engine) error {
	both, ctx := errgroup.WithContext(ctx)
	answers := &http.Server{Handler: web.Handler(web.Config{API: server}), ReadHeaderTimeout: 5 * time.Second}
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
