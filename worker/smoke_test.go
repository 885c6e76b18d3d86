package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

type Source struct {
	N   int
	Out port.Out[int]
}

func (s *Source) Run(_ context.Context, _ *worker.Run) error {
	for i := range s.N {
		if err := s.Out.Write(i); err != nil {
			return err
		}
	}
	return nil
}

type Double struct {
	In  port.In[int]
	Out port.Out[int]
}

func (d *Double) Run(_ context.Context, _ *worker.Run) error {
	for v, err := range d.In.All() {
		if err != nil {
			return err
		}
		if err := d.Out.Write(2 * v); err != nil {
			return err
		}
	}
	return nil
}

type Sum struct {
	In    port.In[int]
	Total port.Out[int]
}

func (s *Sum) Run(_ context.Context, run *worker.Run) error {
	sum := 0
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	for v, err := range s.In.All() {
		if err != nil {
			return err
		}
		sum += v
	}
	if err := run.State().Set("sum", sum); err != nil {
		return err
	}
	if s.In.Done() {
		return s.Total.Write(sum)
	}
	return nil
}

func TestSmoke(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := redisstore.Open(ctx, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, err := worker.New(worker.Config{Store: s, Workers: []worker.Worker{&Source{}, &Double{}, &Sum{}}})
	if err != nil {
		t.Fatal(err)
	}
	ectx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- e.Run(ectx) }()
	g := graph.New("sums")
	src := graph.Add(g, "src", &Source{N: 5000})
	dbl := graph.Add(g, "dbl", &Double{}, graph.Instances(3))
	sum := graph.Add(g, "sum", &Sum{})
	graph.Connect(src.Out, dbl.In)
	graph.Connect(dbl.Out, sum.In)
	graph.Export(g, "total", sum.Total)
	h, err := job.NewClient(s).Start(ctx, g, job.Alias("x"))
	if err != nil {
		t.Fatal(err)
	}
	wctx, wcancel := context.WithTimeout(ctx, 8*time.Second)
	defer wcancel()
	info, err := h.Wait(wctx)
	if err != nil {
		tree, _ := h.Tree(ctx)
		b, _ := json.MarshalIndent(tree, "", " ")
		t.Fatalf("%v %+v\n%s", err, info, b)
	}
	var n int
	ok, err := h.Read(ctx, "total", &n)
	t.Log(n, ok, err)
	if n != 2*(4999*5000/2) {
		t.Error("wrong sum")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
