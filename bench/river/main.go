// Command river is River on PostgreSQL at the work of the benchmark. Its argument says what
// to do, and DATABASE_URL where.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/weirworks/weir/bench/internal/lab"
)

func main() {
	os.Exit(lab.Obey(context.Background(), map[string]func(context.Context, *lab.Lab) ([]lab.Figure, error){ //nolint:forbidigo // a program ends here
		"chain": chain, "hops": hops, "wake": wake,
	}))
}

// The default for both is 100 ms and a second: the chains of an idle system would wait for them.
const (
	fetchCooldown = time.Millisecond
	fetchPoll     = time.Millisecond
)

// stageArgs is one job of a chain: each stage inserts the next.
type stageArgs struct {
	Stage int    `json:"stage"`
	Item  string `json:"item"`
}

// Kind implements river.JobArgs.
func (stageArgs) Kind() string { return "stage" }

const stages = 3

type stageWorker struct {
	river.WorkerDefaults[stageArgs]
	ledger *lab.Ledger
}

// Work implements river.Worker.
func (w *stageWorker) Work(ctx context.Context, j *river.Job[stageArgs]) error {
	if j.Args.Stage == stages {
		w.ledger.Arrived(j.Args.Item)
		return nil
	}
	_, err := river.ClientFromContext[pgx.Tx](ctx).Insert(ctx, stageArgs{Stage: j.Args.Stage + 1, Item: j.Args.Item}, nil)
	return err
}

// serve runs a client for as long as fn does.
func serve(ctx context.Context, l *lab.Lab, ledger *lab.Ledger, fn func(*river.Client[pgx.Tx]) error) (err error) {
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(2*l.Concurrency + 10) // producers, workers, and the client itself
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &stageWorker{ledger: ledger})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: l.Concurrency}},
		Workers:       workers,
		FetchCooldown: fetchCooldown, FetchPollInterval: fetchPoll,
		Logger: quiet,
	})
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Stop(ctx)) }()
	return fn(client)
}

// insert returns a function that inserts an item at a stage.
func insert(c *river.Client[pgx.Tx], stage int) func(context.Context, int) error {
	return func(ctx context.Context, i int) error {
		_, err := c.Insert(ctx, stageArgs{Stage: stage, Item: lab.Item(i)}, nil)
		return err
	}
}

func chain(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := l.Size.Chain
	ledger := lab.NewLedger(n, n)
	var used lab.Usage
	err := serve(ctx, l, ledger, func(c *river.Client[pgx.Tx]) (err error) {
		used, err = l.Flood(ctx, n, ledger, insert(c, 1))
		return errors.Join(err, ledger.Once())
	})
	return used.Throughput("chain", n, "items"), err
}

func hops(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return drip(ctx, l, "hops", l.Size.Hops, 1, lab.NoPause)
}

func wake(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return drip(ctx, l, "wake", l.Size.Wakes, stages, lab.Doze)
}

func drip(ctx context.Context, l *lab.Lab, name string, n, stage int, pause func(context.Context) error) ([]lab.Figure, error) {
	ledger := lab.NewLedger(n, n)
	var times lab.Times
	err := serve(ctx, l, ledger, func(c *river.Client[pgx.Tx]) (err error) {
		times, err = lab.Drip(ctx, n, ledger, pause, insert(c, stage))
		return errors.Join(err, ledger.Once())
	})
	return times.Figures(name), err
}
