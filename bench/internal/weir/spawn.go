package weir

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"

	"github.com/weirworks/weir/bench/internal/lab"
)

const (
	spawnRuns = 50 // runs that are measured
	spawnsRun = 4  // children that each of them looks up, and spawns
)

// nest is a job that spawns children until it has as many as a message says. A negative message has it look up and spawn
// a few, and write what that took.
type nest struct {
	tuned
	In   port.In[int]
	took *atomic.Int64 // ns of those that are measured
	runs *atomic.Int64
}

// egg is a child that does nothing.
type egg struct{}

// Plan implements job.Planner.
func (egg) Plan() (*job.Plan, error) {
	return &job.Plan{Nodes: []job.Node{{Type: "egg", Graph: true}}}, nil
}

func nestling(n int) string { return fmt.Sprintf("kid%d", n) }

// Run implements worker.Worker.
func (w *nest) Run(_ context.Context, run *worker.Run) error {
	var have int
	if _, err := run.State().Get("have", &have); err != nil {
		return err
	}
	want, ok, err := w.In.Peek()
	if err != nil || !ok {
		return err
	}
	next := max(have, min(have+litter, want))
	if want < 0 {
		next = have + spawnsRun
	}
	began := time.Now()
	for i := have; i < next; i++ {
		if want < 0 {
			if _, err := run.Child(nestling(i * 7 % have)); err != nil {
				return err
			}
		}
		if _, err := run.Spawn(nestling(i), egg{}); err != nil {
			return err
		}
	}
	if want < 0 {
		w.took.Add(int64(time.Since(began)))
	}
	if err := run.State().Set("have", next); err != nil {
		return err
	}
	if next < want {
		return worker.ErrAgain
	}
	w.runs.Add(1)
	_, _, err = w.In.Read()
	return err
}

// spawn is what it takes to look up a child and to spawn another one, in a run of a job with more and more of them.
func spawn(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var figures []lab.Figure
		w := &nest{took: &atomic.Int64{}, runs: &atomic.Int64{}}
		err := r.serve(ctx, func(ctx context.Context) error {
			h, err := r.client.Start(ctx, job.Single(&nest{}, ""))
			if err != nil {
				return err
			}
			for _, n := range l.Size.Broods {
				w.runs.Store(0)
				if err := h.Write(ctx, "in", n); err != nil {
					return err
				}
				if err := lab.Reached(ctx, w.runs, 1); err != nil {
					return err
				}
				w.took.Store(0)
				for i := range spawnRuns {
					if err := h.Write(ctx, "in", -1); err != nil {
						return err
					}
					if err := lab.Reached(ctx, w.runs, i+2); err != nil {
						return err
					}
				}
				figures = append(figures, lab.Figure{
					Name: fmt.Sprintf("spawn.%d", n), Value: float64(w.took.Load()) / 1000 / spawnRuns / spawnsRun, Unit: "µs", Less: true,
				})
			}
			return nil
		}, w)
		return figures, err
	})
}
