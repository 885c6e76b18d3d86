// Package lab is what every case of the benchmark needs: a Redis of its own, how much work
// there is to do, items to do it with and a ledger of those that arrived.
package lab

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// Lab is where one trial of one case takes place.
type Lab struct {
	Redis       *Redis
	Size        Size
	Concurrency int // runs, or tasks, or producers, at a time: the same for every system
}

// Figure is one number that was measured.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Less  bool    `json:"less"` // less is better
}

// Case is one system at one workload. Run fails if the results of the work are wrong.
type Case struct {
	Workload string
	System   string
	Fsync    string // appendfsync of the Redis, if not what the others have
	Run      func(ctx context.Context, l *Lab) ([]Figure, error)
}

// Size says how much work there is.
type Size struct {
	Chain    int           // items, each a tree of its own
	Hops     int           // items that go through the chain one at a time
	Stream   int           // messages that are read one a run
	Streams  int           // rows of three jobs that share them
	Batch    int           // messages that are read many a run
	Trees    int           // parents that wait for children
	Children int           // of each parent
	Wakes    int           // messages to a job that sleeps
	Idle     time.Duration // how long a worker without work is looked at
	Jobs     []int         // numbers of jobs that sleep, for memory and growth; ascending
	Siblings []int         // numbers of children of one parent, for growth; ascending
	Kills    int           // workers that are killed
	Stuck    int           // jobs that each of them has
	Slow     bool          // also what takes minutes: asynq after a kill
	Patience time.Duration // how long a case may take
}

// Check returns an error unless a size can be worked with.
func (s Size) Check() error {
	if s.Streams < 1 || s.Stream%s.Streams != 0 || s.Batch%s.Streams != 0 {
		return fmt.Errorf("%d and %d messages cannot be shared evenly by %d streams", s.Stream, s.Batch, s.Streams)
	}
	return nil
}

// Produce calls fn for each number below n, as many at a time as there are producers.
func (l *Lab) Produce(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for p := range l.Concurrency {
		g.Go(func() error {
			for i := p; i < n; i += l.Concurrency {
				if err := fn(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
