// Command orders is a shop: orders come over HTTP, are validated, reserved, paid, approved, shipped and announced. It is the
// pattern for a program of your own: see README.md.
package main

import (
	"context"
	"encoding/json"
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

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/telemetry/metrics"
	"github.com/weirworks/weir/worker"
)

// settings is what the command line says.
type settings struct {
	redis, namespace, listen, output string
	metrics                          string
	orders, workers                  int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// run runs the program: with "work" first, a worker process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	works := len(args) > 0 && args[0] == "work"
	if works {
		args = args[1:]
	}
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.redis, "redis", os.Getenv("WEIR_REDIS_URL"), "`URL` of the Redis that keeps the orders (default $WEIR_REDIS_URL)")
	flags.StringVar(&s.namespace, "namespace", "orders", "namespace in that Redis")
	flags.StringVar(&s.listen, "listen", "127.0.0.1:0", "`ADDRESS` that takes orders over HTTP")
	flags.StringVar(&s.metrics, "metrics", "", "orders work: `ADDRESS` that tells Prometheus of this process at /metrics")
	flags.StringVar(&s.output, "o", "text", "`FORMAT` of the result: text or json")
	flags.IntVar(&s.orders, "orders", 1000, "how many orders come")
	flags.IntVar(&s.workers, "workers", 2, "worker processes to start; 0 if they are started elsewhere, with: orders work")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	switch {
	case s.redis == "":
		return errors.New("no Redis given: use --redis URL or set WEIR_REDIS_URL, like redis://localhost:6379")
	case s.orders < 0 || s.workers < 0:
		return errors.New("--orders and --workers are 0 or more")
	case s.output != "text" && s.output != "json":
		return fmt.Errorf("-o %q is not known: use text or json", s.output)
	case works:
		return s.work(ctx)
	}
	t, err := s.serve(ctx, stderr)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return json.NewEncoder(stdout).Encode(t)
	}
	_, err = fmt.Fprintf(stdout, "%d orders in %.1f s: %d shipped for %d.%02d, %d declined, %d wait for approval, %d dead letters; %d notices\n",
		t.Orders, t.Seconds, t.Shipped, t.Cents/100, t.Cents%100, t.Declined, t.Waiting, t.Dead, t.Notified)
	return err
}

func (s *settings) open(ctx context.Context) (*redisstore.Store, error) {
	return redisstore.Open(ctx, redisstore.Config{URL: s.redis, Embedded: embedded.Start, Namespace: s.namespace})
}

// work is a worker process: an engine until the process is told to stop. Then runs in progress may end, for worker.DefaultDrain.
func (s *settings) work(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Getenv(pipeEnv) != "" { // the process that started this one is gone when its pipe is
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	store, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	m := metrics.New(store)
	if s.metrics != "" {
		server := &http.Server{Handler: m.Handler(), ReadHeaderTimeout: 10 * time.Second}
		defer server.Close()
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.metrics)
		if err != nil {
			return err
		}
		go func() { _ = server.Serve(listener) }() // until it is closed
	}
	engine, err := worker.New(worker.Config{
		Store: store, Workers: workers(pretended{}), Queues: map[string]int{job.DefaultQueue: 1, payQueue: 1}, Hooks: []worker.Hooks{m},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	return engine.Run(ctx)
}

// serve starts the shop, or goes on with it, and returns what became of the orders.
func (s *settings) serve(ctx context.Context, stderr io.Writer) (*Totals, error) {
	began := time.Now()
	store, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	h, err := client.New(store).Start(ctx, shop(), job.Alias("orders"), job.PatchExisting(), job.EnginesLater())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fleet := startFleet(ctx, s, stderr)
	defer fleet.stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: ingest(h), ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(err)
		}
	}()
	d, err := openDesk(ctx, h)
	if err != nil {
		return nil, err
	}
	t, came, err := d.totals(ctx)
	if err != nil {
		return nil, err
	}
	t.Orders = max(s.orders, came)
	go func() {
		if err := load(ctx, "http://"+listener.Addr().String(), came, t.Orders); err != nil {
			cancel(err)
		}
	}()
	for !t.settled() {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		orders := t.Orders
		if t, _, err = d.totals(ctx); err != nil {
			return nil, err
		}
		t.Orders = orders
	}
	t.Seconds = time.Since(began).Seconds()
	return t, nil
}

// desk looks at what became of orders.
type desk struct{ validate, tally *client.Handle }

// openDesk finds the jobs that know.
func openDesk(ctx context.Context, h *client.Handle) (d desk, err error) {
	if d.validate, err = h.Child(ctx, "validate"); err != nil {
		return d, err
	}
	d.tally, err = h.Child(ctx, "tally")
	return d, err
}

// totals returns what became of the orders so far, and how many came: as many as Validate ever got.
func (d desk) totals(ctx context.Context) (t *Totals, came int, err error) {
	info, err := d.validate.Info(ctx)
	if err != nil {
		return nil, 0, err
	}
	in, _ := info.Port(port.Input, "in")
	dead, _ := info.Port(port.Output, job.ErrorsPort)
	state, err := d.tally.State(ctx, "sum")
	if err != nil {
		return nil, 0, err
	}
	var sum Event
	if raw, ok := state["sum"]; ok {
		if err := json.Unmarshal(raw, &sum); err != nil {
			return nil, 0, err
		}
	}
	return &Totals{
		Shipped: sum.Shipped, Declined: sum.Declined, Waiting: sum.Waiting, Cents: sum.Cents, Notified: sum.Notified, Dead: int(dead.Waiting),
	}, int(in.Total), nil
}
