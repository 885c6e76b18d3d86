package weirtest_test

import (
	"context"
	"slices"
	"testing"
	"time"

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
