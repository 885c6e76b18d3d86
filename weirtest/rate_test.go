package weirtest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Dial calls somebody who takes two calls a minute.
type Dial struct {
	In  port.In[int]
	Out port.Out[int]
}

func (*Dial) WorkerOptions() worker.Options {
	return worker.Options{MaxRuns: 2, MaxRunsPer: time.Minute}
}

func (d *Dial) Run(context.Context, *worker.Run) error {
	n, ok, err := d.In.Read()
	if err != nil || !ok {
		return err
	}
	return d.Out.Write(n)
}

// A rate holds by the clock of the test.
func TestRate(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Dial{})
	h := e.StartWorker(&Dial{})
	e.Feed(h, "in", 1, 2, 3, 4, 5)
	for _, want := range [][]int{{1, 2}, {3, 4}, {5}} {
		e.RunUntilIdle()
		if got := weirtest.Drain[int](e, h, "out"); !slices.Equal(got, want) {
			t.Errorf("%v came, want %v", got, want)
		}
		e.Advance(59 * time.Second)
		e.Empty(h, "out")
		e.Advance(time.Second)
	}
}

// Fetch asks somebody who takes four questions in 200 ms.
type Fetch struct {
	In port.In[int]
}

func (*Fetch) WorkerOptions() worker.Options {
	return worker.Options{MaxRuns: 4, MaxRunsPer: 200 * time.Millisecond}
}

func (f *Fetch) Run(context.Context, *worker.Run) error {
	_, _, err := f.In.Read()
	return err
}

// Jobs that wait for a rate are not begun again whenever one of them may run: what a job costs does not grow with their number.
func TestRateOfManyJobs(t *testing.T) {
	t.Parallel()
	cost := func(n int) float64 {
		e := weirtest.New(t, &Fetch{})
		for i := range n {
			e.Feed(e.StartWorker(&Fetch{}), "in", i)
		}
		before := e.Store().Traffic().RoundTrips
		e.RunUntilIdle()
		e.Advance(20 * time.Second)
		for h, err := range e.Client().Jobs(t.Context(), job.Filter{}) {
			if err != nil || h.Steps == 0 {
				t.Errorf("job %v has not run: %v", h.ID, err)
			}
		}
		return float64(e.Store().Traffic().RoundTrips-before) / float64(n)
	}
	few, many := cost(20), cost(100)
	t.Logf("%.0f round trips for each of 20 jobs, %.0f for each of 100", few, many)
	if many > 1.5*few {
		t.Errorf("each of 20 jobs costs %.0f round trips, each of 100 costs %.0f", few, many)
	}
}
