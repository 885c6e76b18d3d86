package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Nine reads a message of each of its ports that has one, and fails.
type Nine struct{ In, B, C, D, E, F, G, H, I port.In[string] }

func (n *Nine) Run(context.Context, *worker.Run) error {
	read := false
	for _, in := range []port.In[string]{n.In, n.B, n.C, n.D, n.E, n.F, n.G, n.H, n.I} {
		_, ok, err := in.Read()
		if err != nil {
			return err
		}
		read = read || ok
	}
	if read {
		return errors.New("not now")
	}
	return nil
}

// nine is a graph of a Nine, whose letters come out.
func nine(t *testing.T) (*weirtest.Engine, *client.Handle) {
	t.Helper()
	g := graph.New("g")
	n := graph.Add(g, "n", &Nine{}, graph.OnFailure(job.DeadLetter))
	for _, in := range []string{"in", "b", "c", "d", "e", "f", "g", "h", "i"} {
		graph.WireInput(g, in, "n."+in)
	}
	graph.Export(g, "out", graph.Errors(g, n))
	e := weirtest.New(t, &Nine{})
	return e, e.Start(g)
}

// A message of the largest size that is allowed becomes a letter, which is larger; whoever is outside takes it.
func TestLargeDeadLetter(t *testing.T) {
	t.Parallel()
	e, h := nine(t)
	large := strings.Repeat("x", worker.MaxMessage-len(`""`))
	e.Feed(h, "in", large)
	e.RunUntilIdle()
	if s := e.Status(h); s != statemachine.Suspended {
		t.Fatalf("the graph is %s: %s", s, e.Info(h).Reason)
	}
	letters := weirtest.Drain[job.Letter](e, h, "out")
	if len(letters) != 1 || letters[0].Error != "not now" || string(letters[0].Messages["in"]) != `"`+large+`"` {
		t.Errorf("%d letters, the first of them %.100v", len(letters), letters)
	}
}

// Messages that are too large together for a letter stay where they are, and the job's reason says so.
func TestTooLargeDeadLetter(t *testing.T) {
	t.Parallel()
	e, h := nine(t)
	large := strings.Repeat("x", worker.MaxMessage-len(`""`))
	for _, in := range []string{"in", "b", "c", "d", "e", "f", "g", "h", "i"} {
		e.Feed(h, in, large)
	}
	e.RunUntilIdle()
	n := e.Info(e.Child(h, "n"))
	if n.Status != statemachine.Failed || !strings.HasPrefix(n.Reason, "not now (and no dead letter could be written: ") || !strings.Contains(n.Reason, "at most 7340032 are allowed") {
		t.Errorf("the job is %s: %s", n.Status, n.Reason)
	}
	if p, _ := n.Port(port.Input, "i"); p.Waiting != 1 {
		t.Errorf("%d messages wait, want 1", p.Waiting)
	}
}
