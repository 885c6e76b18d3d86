package weir

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

const (
	sleepers = 10           // jobs in a row that sleep
	perTree  = sleepers + 1 // and the graph's own
)

// dormant is a graph of jobs in a row that wait for a message that never comes.
func dormant() *graph.Graph {
	g := graph.New("dormant")
	from := graph.Input[string](g, "in")
	for i := range sleepers {
		r := graph.Add(g, fmt.Sprintf("sleeper%d", i), &relay{})
		graph.Connect(from, r.In)
		from = r.Out
	}
	return g
}

// sleep starts so many trees of sleeping jobs that there are about n jobs, counting the have
// that are there already, and returns how many there are.
func (r *rig) sleep(ctx context.Context, have, n int) (int, error) {
	trees := max(n-have, 0) / perTree
	return have + trees*perTree, r.lab.Produce(ctx, trees, r.startDormant)
}

func (r *rig) startDormant(ctx context.Context, _ int) error {
	_, err := r.client.Start(ctx, dormant())
	return err
}

// memoryOfRows is what jobs of graphs weigh that have not run yet.
func memoryOfRows(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		// What connections and scripts take is there before the jobs are weighed.
		if err := l.Produce(ctx, l.Concurrency, r.startDormant); err != nil {
			return nil, err
		}
		have := 0
		return l.Weigh(ctx, "memory.row", func(ctx context.Context, n int) (int, error) {
			var err error
			have, err = r.sleep(ctx, have, n)
			return have, err
		})
	})
}

// loner has run once and sleeps.
type loner struct {
	tuned
	ran *atomic.Int64
}

// Run implements worker.Worker.
func (s *loner) Run(context.Context, *worker.Run) error {
	s.ran.Add(1)
	return worker.ErrSuspend
}

// memoryOfLoners is what jobs weigh that are trees of their own and have run once.
func memoryOfLoners(t tuned) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
			var ran atomic.Int64
			run := func(ctx context.Context, n int) error {
				ran.Store(0)
				return r.serve(ctx, func(ctx context.Context) error {
					err := l.Produce(ctx, n, func(ctx context.Context, _ int) error {
						_, err := r.client.Start(ctx, job.Single(&loner{}, ""))
						return err
					})
					if err != nil {
						return err
					}
					return lab.Reached(ctx, &ran, n)
				}, &loner{tuned: t, ran: &ran})
			}
			if err := run(ctx, l.Concurrency); err != nil {
				return nil, err
			}
			have := 0
			return l.Weigh(ctx, "memory.lone", func(ctx context.Context, n int) (int, error) {
				err := run(ctx, n-have)
				have = n
				return n, err
			})
		})
	}
}

// growthOfJobs is streams while more and more jobs of other trees sleep.
func growthOfJobs(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var figures []lab.Figure
		have := 0
		for _, n := range l.Size.Jobs {
			var err error
			if have, err = r.sleep(ctx, have, n); err != nil {
				return nil, err
			}
			f, err := singly(fmt.Sprintf("growth.jobs.%d", n), l.Size.Stream, l.Size.Streams, tuned{}).run(ctx, r)
			if err != nil {
				return nil, err
			}
			figures = append(figures, f...)
		}
		return figures, nil
	})
}

// brood is a job with Streams children that are rows of three, and N others that have run once.
type brood struct {
	tuned
	Streams, N int
}

// litter is how many children a run creates.
const litter = 400

// Run implements worker.Worker.
func (b *brood) Run(_ context.Context, run *worker.Run) error {
	var have int
	if _, err := run.State().Get("have", &have); err != nil {
		return err
	}
	if have == 0 {
		for i := range b.Streams {
			if _, err := run.Spawn(streamName(i), oneByOne()); err != nil {
				return err
			}
		}
	}
	next := min(have+litter, b.N)
	for i := have; i < next; i++ {
		if _, err := run.Spawn(fmt.Sprintf("loner%d", i), job.Single(&loner{}, "")); err != nil {
			return err
		}
	}
	if have == next {
		return worker.ErrSuspend
	}
	if err := run.State().Set("have", next); err != nil {
		return err
	}
	return worker.ErrAgain
}

func streamName(i int) string { return fmt.Sprintf("stream%d", i) }

// growthOfSiblings is streams that are children of a job with more and more others.
func growthOfSiblings(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var figures []lab.Figure
		for _, n := range l.Size.Siblings {
			rows, err := r.breed(ctx, n)
			if err != nil {
				return nil, err
			}
			s := singly(fmt.Sprintf("growth.siblings.%d", n), l.Size.Stream, len(rows), tuned{})
			s.workers = append(s.workers, &brood{}) // its children wake it
			f, err := s.measure(ctx, r, rows)
			if err != nil {
				return nil, err
			}
			figures = append(figures, f...)
		}
		return figures, nil
	})
}

// breed starts a brood with n children besides the streams, and returns these when the others
// have all run.
func (r *rig) breed(ctx context.Context, n int) ([]*client.Handle, error) {
	var ran atomic.Int64
	rows := make([]*client.Handle, r.lab.Size.Streams)
	err := r.serve(ctx, func(ctx context.Context) error {
		root, err := r.client.Start(ctx, job.Single(&brood{Streams: len(rows), N: n}, ""))
		if err != nil {
			return err
		}
		if err := lab.Reached(ctx, &ran, n); err != nil {
			return err
		}
		for i := range rows {
			if rows[i], err = root.Child(ctx, streamName(i)); err != nil {
				return err
			}
		}
		return nil
	}, &brood{}, &loner{ran: &ran})
	return rows, err
}
