package job_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Square is a child of Sum.
type Square struct {
	Of  int
	Out port.Out[int]
}

// Run writes one number.
func (s *Square) Run(context.Context, *worker.Run) error { return s.Out.Write(s.Of * s.Of) }

// Sum adds up what its children write, and keeps none of them.
type Sum struct {
	Upto int
	Out  port.Out[int]
}

// Start spawns the children.
func (s *Sum) Start(_ context.Context, run *worker.Run) error {
	for n := 1; n <= s.Upto; n++ {
		if _, err := run.Spawn(fmt.Sprint(n), job.Single(&Square{Of: n}, ""), job.Release()); err != nil {
			return err
		}
	}
	return run.State().Set("left", s.Upto)
}

// Run takes the result of each child that has ended since the last run: after this one it is gone.
func (s *Sum) Run(_ context.Context, run *worker.Run) error {
	var left, sum int
	_, noLeft := run.State().Get("left", &left)
	_, noSum := run.State().Get("sum", &sum)
	if err := errors.Join(noLeft, noSum); err != nil {
		return err
	}
	for _, child := range run.WokenBy() {
		n, err := worker.Await[int](run, child.Name())
		if errors.Is(err, worker.ErrNotYet) {
			continue
		} else if err != nil {
			return err
		}
		left, sum = left-1, sum+n
	}
	if err := errors.Join(run.State().Set("left", left), run.State().Set("sum", sum)); err != nil {
		return err
	}
	if left > 0 {
		return worker.ErrNotYet
	}
	return s.Out.Write(sum)
}

// A job with many children takes their results as they come, and keeps none of them.
func ExampleRelease() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Sum{}, &Square{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = engine.RunWhile(ctx, func(ctx context.Context) error {
		h, err := client.New(store).Start(ctx, job.Single(&Sum{Upto: 10}, ""))
		if err != nil {
			return err
		}
		if _, err := h.Wait(ctx); err != nil {
			return err
		}
		sum, err := h.Peek(ctx, "out", 1)
		fmt.Printf("%s\n", sum)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [385]
}

// A tree is kept for a day after it has settled.
func ExampleRetain() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	h, err := client.New(store).Start(ctx, job.Single(&Square{Of: 3}, ""), job.Retain(24*time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := h.Info(ctx)
	fmt.Println(job.RetentionText(info.Retain), err)
	// Output: 1d <nil>
}
