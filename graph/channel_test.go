package graph_test

import (
	"context"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Teller publishes what it reads, from ports that keep it and one that does not.
type Teller struct {
	In    port.In[int]
	Only  port.Out[int] `port:"only,channel=/only"`
	Kept  port.Out[int] `port:"kept,channel=/kept,keep"`
	Wired port.Out[int] `port:"wired,channel=/wired"`
	Plain port.Out[int] `port:"plain"`
}

func (w *Teller) Run(context.Context, *worker.Run) error {
	for n, err := range w.In.All() {
		for _, out := range []port.Out[int]{w.Only, w.Kept, w.Wired, w.Plain} {
			if err == nil {
				err = out.Write(n)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Hearer gets what is published.
type Hearer struct {
	Only  port.In[int] `port:"only,channel=/only"`
	Kept  port.In[int] `port:"kept,channel=/kept"`
	Wired port.In[int] `port:"wired,channel=/wired"`
}

func (*Hearer) Run(context.Context, *worker.Run) error { return worker.ErrSuspend }

// An Out port that publishes to a channel and is wired to nobody keeps nothing, unless asked to.
func TestPublishedIsNotKept(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Teller{}, &Hearer{}, &Step{})
	hearer := e.StartWorker(&Hearer{})
	g := graph.New("g")
	teller := graph.Add(g, "teller", &Teller{})
	graph.Connect(graph.Input[int](g, "in"), teller.In)
	graph.Connect(teller.Wired, graph.Add(g, "step", &Step{By: 2}).In)
	h := e.Start(g)
	e.Feed(h, "in", 1, 2, 3)
	e.RunUntilIdle()

	told := e.Info(e.Child(h, "teller"))
	for name, want := range map[string]int64{"only": 0, "kept": 3, "wired": 0, "plain": 3} {
		p, _ := told.Port(port.Output, name)
		if p.Waiting != want || p.Total != 3 || p.Keep != (name == "kept") {
			t.Errorf("%s keeps %d of %d, want %d; keep: %t", name, p.Waiting, p.Total, want, p.Keep)
		}
	}
	heard := e.Info(hearer)
	for _, p := range heard.Ports {
		if p.Waiting != 3 {
			t.Errorf("%d messages came over channel %s", p.Waiting, p.Name)
		}
	}
	step := e.Info(e.Child(h, "step"))
	if p, _ := step.Port(port.Input, "in"); p.Total != 3 {
		t.Errorf("%d messages came along the wire", p.Total)
	}

	// So it is with ports that are set while the job lives.
	lone := e.StartWorker(&Teller{})
	ports := []port.Spec{
		{Name: "in", Dir: port.Input},
		{Name: "only", Dir: port.Output, Channels: []string{"/only"}, Keep: true},
		{Name: "kept", Dir: port.Output, Channels: []string{"/kept"}},
		{Name: "wired", Dir: port.Output},
		{Name: "plain", Dir: port.Output},
	}
	if err := lone.SetPorts(t.Context(), ports); err != nil {
		t.Fatal(err)
	}
	e.Feed(lone, "in", 1, 2)
	e.RunUntilIdle()
	for name, want := range map[string]int64{"only": 2, "kept": 0, "wired": 2, "plain": 2} {
		if p, _ := e.Info(lone).Port(port.Output, name); p.Waiting != want || p.Total != 2 {
			t.Errorf("set while it lives, %s keeps %d of %d, want %d", name, p.Waiting, p.Total, want)
		}
	}
}

func TestKeepOption(t *testing.T) {
	t.Parallel()
	type inKeeps struct {
		Idling
		In port.In[int] `port:"in,channel=/a,keep"`
	}
	type noChannel struct {
		Idling
		Out port.Out[int] `port:"out,keep"`
	}
	type valued struct {
		Idling
		Out port.Out[int] `port:"out,keep=1,channel=/a"`
	}
	for _, w := range []any{&inKeeps{}, &noChannel{}, &valued{}} {
		if _, err := job.NodeOf(w, "", ""); err == nil {
			t.Errorf("%T is accepted", w)
		}
	}
}
