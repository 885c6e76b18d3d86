package peers

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/bench/internal/lab"
)

// Ceiling and Fused are what the bare scripts are called: they do for each message the least
// that a durable run can be, one by one or three in one script. There is no engine around
// them: nothing wakes, no lease ends, no worker is looked up, nothing is logged.
const (
	Ceiling = "ceiling"
	Fused   = "ceiling fused"
)

//go:embed scripts/step.lua
var stepLua string

//go:embed scripts/fused.lua
var fusedLua string

var (
	stepScript  = redis.NewScript(stepLua)
	fusedScript = redis.NewScript(fusedLua)
)

// CeilingCases are the bare scripts at the streams of Weir.
func CeilingCases() []lab.Case {
	return []lab.Case{
		{Workload: "stream", System: Ceiling, Run: ceiling(lab.Size.Rows, stepRow)},
		{Workload: "stream", System: Fused, Run: ceiling(lab.Size.Rows, fusedRow)},
		{Workload: "single", System: Ceiling, Run: ceiling(lab.Size.Row, stepRow)},
		{Workload: "single", System: Fused, Run: ceiling(lab.Size.Row, fusedRow)},
	}
}

// bare is a row of three jobs without engine: four lists, and a hash for each job.
type bare struct {
	rdb   *redis.Client
	row   int
	n     int
	slots chan struct{} // that many scripts at a time, as there are runs at a time in Weir
}

func (b *bare) list(i int) string { return fmt.Sprintf("{bare}:%d:list:%d", b.row, i) }
func (b *bare) job(i int) string  { return fmt.Sprintf("{bare}:%d:job:%d", b.row, i) }

// ceiling puts the messages in before the clock starts, and looks at what came out when it
// has stopped.
func ceiling(which func(lab.Size) (name string, n, rows int), run func(context.Context, *bare) error) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		name, n, rows := which(l.Size)
		slots := make(chan struct{}, l.Concurrency)
		all := make([]*bare, rows)
		for row := range all {
			all[row] = &bare{rdb: l.Redis.Client, row: row, n: n / rows, slots: slots}
			if err := all[row].fill(ctx); err != nil {
				return nil, err
			}
		}
		used, err := l.Measure(ctx, func(ctx context.Context) error {
			g, ctx := errgroup.WithContext(ctx)
			for _, b := range all {
				g.Go(func() error { return run(ctx, b) })
			}
			return g.Wait()
		})
		if err != nil {
			return nil, err
		}
		for _, b := range all {
			if err := b.check(ctx); err != nil {
				return nil, err
			}
		}
		return used.Throughput(name, n, "messages"), nil
	}
}

func (b *bare) fill(ctx context.Context) error {
	pipe := b.rdb.Pipeline()
	for i := range b.n {
		pipe.RPush(ctx, b.list(0), lab.Item(b.row*b.n+i))
	}
	for i := range stages {
		pipe.HSet(ctx, b.job(i), "token", "begun", "version", 0)
	}
	_, err := pipe.Exec(ctx)
	return err
}

func (b *bare) check(ctx context.Context) error {
	items, err := b.rdb.LRange(ctx, b.list(len(stages)), 0, -1).Result()
	if err != nil {
		return err
	}
	return lab.InOrder(items, b.row*b.n, b.n)
}

// stepRow runs the three jobs of a row side by side, each message with a script of its own
// for each job. A job goes on when the one before has written.
func stepRow(ctx context.Context, b *bare) error {
	g, ctx := errgroup.WithContext(ctx)
	ready := make(chan struct{}, b.n)
	for range b.n {
		ready <- struct{}{}
	}
	for i := range stages {
		from, to := ready, make(chan struct{}, b.n)
		g.Go(func() error { return b.stage(ctx, i, from, to) })
		ready = to
	}
	return g.Wait()
}

func (b *bare) stage(ctx context.Context, i int, ready <-chan struct{}, wrote chan<- struct{}) error {
	keys := []string{b.job(i), b.list(i), b.list(i + 1)}
	token, item := "begun", ""
	for range b.n {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		b.slots <- struct{}{}
		next, err := b.step(ctx, keys, token, &item)
		<-b.slots
		if err != nil {
			return err
		}
		token = next
		wrote <- struct{}{}
	}
	return nil
}

// step commits the run of a job with the item that it read last, or reads the first.
func (b *bare) step(ctx context.Context, keys []string, token string, item *string) (next string, err error) {
	if *item == "" {
		if *item, err = b.rdb.LIndex(ctx, keys[1], 0).Result(); err != nil {
			return "", err
		}
	}
	next = rand.Text()
	*item, err = stepScript.Run(ctx, b.rdb, keys, token, next, *item).Text()
	if errors.Is(err, redis.Nil) {
		*item, err = "", nil
	}
	return next, err
}

// fusedRow runs all three jobs of a row by one script a message.
func fusedRow(ctx context.Context, b *bare) error {
	keys := []string{b.job(0), b.job(1), b.job(2), b.list(0), b.list(len(stages))}
	item, err := b.rdb.LIndex(ctx, keys[3], 0).Result()
	if err != nil {
		return err
	}
	token := "begun"
	for i := range b.n {
		next, version := rand.Text(), strconv.Itoa(i)
		b.slots <- struct{}{}
		item, err = fusedScript.Run(ctx, b.rdb, keys, token, version, version, version, next, item).Text()
		<-b.slots
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		token = next
	}
	return nil
}
