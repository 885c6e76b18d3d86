package worker_test

import (
	"context"
	"slices"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Sparing reads one message a run and commits it at once.
type Sparing struct {
	In  port.In[int]
	Out port.Out[int]
}

func (s *Sparing) Run(_ context.Context, run *worker.Run) error {
	n, ok, err := s.In.Read()
	if err != nil || !ok {
		return err
	}
	if n < 0 {
		return context.Canceled // what fails it does not matter
	}
	if err := s.Out.Write(n); err != nil {
		return err
	}
	return run.Checkpoint()
}

// A run that ends with a checkpoint has taken messages anyway: those it left are not
// forgotten, be more to come or not.
func TestCheckpointAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		g := graph.New("g")
		s := graph.Add(g, "s", &Sparing{}, graph.OnFailure(job.DeadLetter))
		graph.Connect(graph.Input[int](g, "in"), s.In)
		graph.Export(g, "out", s.Out)
		graph.Export(g, "errors", graph.Errors(g, s))
		e := weirtest.New(t, &Sparing{})
		h := e.Start(g)
		e.Feed(h, "in", 1, 2, -3, 4, 5)
		want := statemachine.Suspended
		if closed {
			e.CloseIn(h, "in")
			want = statemachine.Completed
		}
		e.RunUntilIdle()
		if got := weirtest.Drain[int](e, h, "out"); !slices.Equal(got, []int{1, 2, 4, 5}) || e.Status(h) != want {
			t.Errorf("closed %v: got %v, the graph is %s", closed, got, e.Status(h))
		}
	}
}
