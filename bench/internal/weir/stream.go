package weir

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// sink passes one message on and tells the ledger.
type sink struct {
	tuned
	In     port.In[string]
	Out    port.Out[string]
	ledger *lab.Ledger
}

// Run implements worker.Worker.
func (s *sink) Run(context.Context, *worker.Run) error {
	item, ok, err := s.In.Read()
	if !ok || err != nil {
		return err
	}
	s.ledger.Arrived(item)
	return s.Out.Write(item)
}

// many is how many messages a run in batches takes: as many as its snapshot holds.
const many = 1000

// relayMany passes on what waits.
type relayMany struct {
	tuned
	In     port.In[string]
	Out    port.Out[string]
	ledger *lab.Ledger
}

// Run implements worker.Worker.
func (r *relayMany) Run(context.Context, *worker.Run) error {
	for range min(r.In.Len(), many) {
		item, ok, err := r.In.Read()
		if !ok || err != nil {
			return err
		}
		if r.ledger != nil {
			r.ledger.Arrived(item)
		}
		if err := r.Out.Write(item); err != nil {
			return err
		}
	}
	return nil
}

// sinkMany is relayMany that tells the ledger.
type sinkMany struct{ relayMany }

// oneByOne is a row of three jobs that live as long as the stream and read one message a run.
func oneByOne() *graph.Graph {
	g := graph.New("stream")
	a := graph.Add(g, "a", &relay{})
	b := graph.Add(g, "b", &relay{})
	c := graph.Add(g, "c", &sink{})
	graph.Connect(graph.Input[string](g, "in"), a.In)
	graph.Connect(a.Out, b.In)
	graph.Connect(b.Out, c.In)
	graph.Export(g, "out", c.Out)
	return g
}

// manyAtOnce is the same with runs that read many.
func manyAtOnce() *graph.Graph {
	g := graph.New("batch")
	a := graph.Add(g, "a", &relayMany{})
	b := graph.Add(g, "b", &relayMany{})
	c := graph.Add(g, "c", &sinkMany{})
	graph.Connect(graph.Input[string](g, "in"), a.In)
	graph.Connect(a.Out, b.In)
	graph.Connect(b.Out, c.In)
	graph.Export(g, "out", c.Out)
	return g
}

// streams is n messages through some rows of three jobs.
type streams struct {
	name    string
	n, rows int
	ledger  *lab.Ledger
	graph   func() *graph.Graph
	workers []worker.Worker
}

// singly is streams of messages that are read one a run.
func singly(name string, n, rows int, t tuned) *streams {
	ledger := lab.NewLedger(n, n/rows)
	return &streams{
		name: name, n: n, rows: rows, ledger: ledger, graph: oneByOne,
		workers: []worker.Worker{&relay{tuned: t}, &sink{tuned: t, ledger: ledger}},
	}
}

// stream is messages that are read one a run.
func stream(which func(lab.Size) (name string, n, rows int), t tuned) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
			name, n, rows := which(l.Size)
			return singly(name, n, rows, t).run(ctx, r)
		})
	}
}

// batch is messages that are read many a run.
func batch(t tuned) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		n, k := l.Size.Batch, l.Size.Streams
		ledger := lab.NewLedger(n, n/k)
		s := &streams{
			name: "batch", n: n, rows: k, ledger: ledger, graph: manyAtOnce,
			workers: []worker.Worker{&relayMany{tuned: t}, &sinkMany{relayMany{tuned: t, ledger: ledger}}},
		}
		return with(ctx, l, func(r *rig) ([]lab.Figure, error) { return s.run(ctx, r) })
	}
}

// run starts a tree for each row and measures.
func (s *streams) run(ctx context.Context, r *rig) ([]lab.Figure, error) {
	handles := make([]*client.Handle, s.rows)
	for i := range handles {
		h, err := r.client.Start(ctx, s.graph())
		if err != nil {
			return nil, err
		}
		handles[i] = h
	}
	return s.measure(ctx, r, handles)
}

// measure puts the messages in before the clock starts, and looks at what came out when it
// has stopped.
func (s *streams) measure(ctx context.Context, r *rig, rows []*client.Handle) ([]lab.Figure, error) {
	each := s.n / s.rows
	for i, h := range rows {
		if err := fill(ctx, h, i*each, each); err != nil {
			return nil, err
		}
	}
	var used lab.Usage
	err := r.serve(ctx, func(ctx context.Context) (err error) {
		if used, err = r.lab.Measure(ctx, s.ledger.Wait); err != nil {
			return err
		}
		g, ctx := errgroup.WithContext(ctx)
		for i, h := range rows {
			g.Go(func() error { return drained(ctx, h, i*each, each) })
		}
		return g.Wait()
	}, s.workers...)
	return used.Throughput(s.name, s.n, "messages"), err
}

// fill sends the items from first on.
func fill(ctx context.Context, h *client.Handle, first, n int) error {
	const chunk = 1000
	for from := 0; from < n; from += chunk {
		items := make([]any, min(chunk, n-from))
		for i := range items {
			items[i] = lab.Item(first + from + i)
		}
		if err := h.Write(ctx, "in", items...); err != nil {
			return err
		}
	}
	return nil
}

// drained waits until the items from first on have come out and checks that each is there
// once, in order.
func drained(ctx context.Context, h *client.Handle, first, n int) error {
	err := lab.Until(ctx, func(ctx context.Context) error {
		info, err := h.Info(ctx)
		if err != nil {
			return err
		}
		if p, _ := info.Port(port.Output, "out"); p.Waiting < int64(n) {
			return wrong(info, "holds %d of %d messages", p.Waiting, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	raw, err := h.Drain(ctx, port.Output, "out")
	if err != nil {
		return err
	}
	items := make([]string, len(raw))
	for i := range raw {
		if err := json.Unmarshal(raw[i], &items[i]); err != nil {
			return err
		}
	}
	if err := lab.InOrder(items, first, n); err != nil {
		return fmt.Errorf("stream %s: %w", h.ID(), err)
	}
	return nil
}
