package worker_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// upTo writes the numbers up to its parameter, ten a run.
type upTo struct {
	Last int
	Out  port.Out[int]
}

func (u *upTo) Run(_ context.Context, run *worker.Run) error {
	var n int
	if _, err := run.State().Get("n", &n); err != nil {
		return err
	}
	for range 10 {
		if n == u.Last {
			return nil
		}
		n++
		if err := u.Out.Write(n); err != nil {
			return err
		}
	}
	if err := run.State().Set("n", n); err != nil {
		return err
	}
	return worker.ErrAgain
}

// adder adds up any numbers, five a run.
type adder struct {
	In  port.In[json.RawMessage]
	Sum port.Out[json.RawMessage]
}

func (a *adder) Run(_ context.Context, run *worker.Run) error {
	var sum, n int
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	for range 5 {
		raw, ok, err := a.In.Read()
		if err != nil || !ok {
			break
		}
		if err := json.Unmarshal(raw, &n); err != nil {
			return err
		}
		sum += n
	}
	if a.In.Done() {
		raw, err := json.Marshal(sum)
		if err != nil {
			return err
		}
		return a.Sum.Write(raw)
	}
	return run.State().Set("sum", sum)
}

// last keeps a number.
type last struct{ In port.In[int] }

func (l *last) Run(_ context.Context, run *worker.Run) error {
	n, ok, err := l.In.Read()
	if err != nil || !ok {
		return err
	}
	return run.State().Set("n", n)
}

// TestAgain: a source that asks to run again does so until it is done, and not while what
// it feeds is full. Its consumer takes any JSON.
func TestAgain(t *testing.T) {
	e := weirtest.New(t, &upTo{}, &adder{}, &last{})
	g := graph.New("g")
	source := graph.Add(g, "source", &upTo{Last: 1000})
	sum := graph.Add(g, "sum", &adder{})
	result := graph.Add(g, "result", &last{})
	graph.ToJSON(source.Out, sum.In, graph.Limit(20))
	graph.FromJSON(sum.Sum, result.In)
	h := e.Start(g)
	most := int64(0)
	for e.RunNext() {
		p, _ := e.Info(e.Child(h, "sum")).Port(port.Input, "in")
		most = max(most, p.Waiting)
	}
	if e.Status(h) != statemachine.Completed || weirtest.State[int](e, e.Child(h, "result"), "n") != 500500 {
		t.Errorf("the graph is %s, the sum %d", e.Status(h), weirtest.State[int](e, e.Child(h, "result"), "n"))
	}
	if most > 30 { // the limit and one commit
		t.Errorf("up to %d messages waited", most)
	}
}
