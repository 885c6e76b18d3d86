package crew

import (
	"context"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Stamped is a message of the soak: padding of a usual size, and for some when they were sent.
type Stamped struct {
	At  time.Time `json:"at,omitzero"`
	Pad string    `json:"pad"`
}

// Pass passes messages on and does nothing else.
type Pass struct {
	tuned
	In  port.In[Stamped]
	Out port.Out[Stamped]
}

// Run implements worker.Worker.
func (w *Pass) Run(context.Context, *worker.Run) error {
	for m, err := range w.In.All() {
		if err == nil {
			err = w.Out.Write(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Drop counts messages, and publishes when those that say so were sent.
type Drop struct {
	tuned
	In    port.In[Stamped]
	Heard port.Out[time.Time] `port:"heard,channel=/chaos/heard"`
}

// HeardChannel is where Drop publishes, and HeardName the port that it does so with.
const (
	HeardChannel = "/chaos/heard"
	HeardName    = "heard"
)

// Run implements worker.Worker.
func (w *Drop) Run(_ context.Context, run *worker.Run) error {
	var count int
	if _, err := run.State().Get(CountKey, &count); err != nil {
		return err
	}
	for m, err := range w.In.All() {
		if err != nil {
			return err
		}
		count++
		if m.At.IsZero() {
			continue
		}
		if err := w.Heard.Write(m.At); err != nil {
			return err
		}
	}
	return run.State().Set(CountKey, count)
}

// LoadLimit is how many messages may wait in front of a row of the soak.
const LoadLimit = 1000

// LoadRow is a row of the soak, whose last job is named DropName.
func LoadRow() *graph.Graph {
	g := graph.New("load")
	a, b, c := graph.Add(g, "a", &Pass{}), graph.Add(g, "b", &Pass{}), graph.Add(g, "c", &Pass{})
	d := graph.Add(g, DropName, &Drop{})
	graph.Connect(graph.Input[Stamped](g, "in"), a.In, graph.Limit(LoadLimit))
	graph.Connect(a.Out, b.In, graph.Limit(LoadLimit))
	graph.Connect(b.Out, c.In, graph.Limit(LoadLimit))
	graph.Connect(c.Out, d.In, graph.Limit(LoadLimit))
	return g
}

// DropName is the name of the last job of a LoadRow.
const DropName = "d"
