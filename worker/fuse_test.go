package worker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Hop passes one message on, and counts, also as its progress.
type Hop struct {
	In  port.In[int]
	Out port.Out[int]
}

// WorkerOptions implements worker.Configured.
func (*Hop) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run implements worker.Worker.
func (w *Hop) Run(_ context.Context, run *worker.Run) error {
	v, ok, err := w.In.Read()
	if !ok || err != nil {
		return err
	}
	var n, sum int
	if _, err := run.State().Get("n", &n); err != nil {
		return err
	}
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	return errors.Join(run.State().Set("n", n+1), run.State().Set("sum", sum+v), run.Progress(n+1, 0, "hops"), w.Out.Write(v))
}

func (w *Hop) hop() (worker.Worker, *port.In[int], *port.Out[int])  { return w, &w.In, &w.Out }
func (w *Call) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// hopper is a worker with a port on each side.
type hopper interface {
	hop() (worker.Worker, *port.In[int], *port.Out[int])
}

// Alone is Call each of whose runs has a commit of its own.
type Alone struct{ Call }

// WorkerOptions implements worker.Configured.
func (*Alone) WorkerOptions() worker.Options { return worker.Options{CommitEachRun: true} }

func (w *Alone) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// Acting is Call that does not declare itself pure.
type Acting struct{ Call }

// WorkerOptions implements worker.Configured.
func (*Acting) WorkerOptions() worker.Options { return worker.Options{} }

func (w *Acting) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

func (w *Tried) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// row is a graph of three jobs, each of which reads what the one before it writes.
func row(middle hopper) *graph.Graph {
	g := graph.New("row")
	w, in, out := middle.hop()
	a, c := graph.Add(g, "a", &Hop{}), graph.Add(g, "c", &Hop{})
	graph.AddWorker(g, "b", w)
	graph.Connect(graph.Input[int](g, "in"), a.In)
	graph.Connect(a.Out, *in)
	graph.Connect(*out, c.In)
	graph.Export(g, "out", c.Out)
	return g
}

// line starts a row of three jobs with the numbers from 1 to n to go through it.
func (b *bench) line(n int) *client.Handle {
	b.Helper()
	h := b.Start(row(&Hop{}))
	b.feed(h, n)
	b.Check(h.Close(b.Ctx, "in"))
	return h
}

// feed writes the numbers from 1 to n.
func (b *bench) feed(h *client.Handle, n int) {
	b.Helper()
	items := make([]any, n)
	for i := range items {
		items[i] = i + 1
	}
	b.Check(h.Write(b.Ctx, "in", items...))
}

// hopped fails the test unless n messages went through a line, each once and in order.
func (b *bench) hopped(h *client.Handle, n int) {
	b.Helper()
	want := make([]int, n)
	for i := range want {
		want[i] = i + 1
	}
	b.same(h, want...)
	b.counted(h, want)
}

// counted fails the test unless each job of a tree of Hops has counted just these messages.
func (b *bench) counted(h *client.Handle, got []int) {
	b.Helper()
	b.counts(h, got, func(i *job.Info) bool { return !i.Graph })
}

// hopCounts fails the test unless each Hop of a tree has counted just these messages.
func (b *bench) hopCounts(h *client.Handle, got []int) {
	b.Helper()
	b.counts(h, got, func(i *job.Info) bool { return i.Type == "Hop" })
}

func (b *bench) counts(h *client.Handle, got []int, who func(*job.Info) bool) {
	b.Helper()
	sum := 0
	for _, v := range got {
		sum += v
	}
	infos, err := h.Tree(b.Ctx)
	b.Check(err)
	for _, i := range infos {
		if !who(i) {
			continue
		}
		hop, err := b.Client.Find(b.Ctx, string(i.ID))
		b.Check(err)
		if got, want := fmt.Sprint(b.State(hop)), fmt.Sprintf("map[n:%d sum:%d]", len(got), sum); got != want {
			b.Errorf("state of %s: %s, want %s", i.Name, got, want)
		}
	}
}

// rows is a store that tells how runs were committed.
type rows struct {
	worker.Store

	mu           sync.Mutex
	longest      int
	tried        int            // speculations
	speculations map[job.ID]int // that held
}

func (s *rows) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	res, next, err := s.Store.Step(ctx, txs, b, types)
	for i := range res {
		s.note(txs[i], res[i])
	}
	return res, next, err
}

func (s *rows) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	res, err := s.Store.Commit(ctx, txs)
	for i := range res {
		s.note(txs[i], res[i])
	}
	return res, err
}

func (s *rows) note(tx store.Tx, res store.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest = max(s.longest, res.Applied)
	for _, d := range tx.Deltas {
		if d.Speculation != nil {
			s.tried++
		}
	}
	for _, d := range tx.Deltas[:res.Applied] {
		if d.Speculation != nil {
			s.speculations[d.Job]++
		}
	}
}

// TestFusion: messages go through three jobs in one commit each, most of them.
func TestFusion(t *testing.T) {
	each(t, func(b *bench) {
		const n = 60
		s := &rows{Store: b.Store, speculations: map[job.ID]int{}}
		h := b.Start(row(&Hop{}))
		b.serve(func(c *worker.Config) { c.Store = s })
		b.through(h, "in", n)
		b.Check(h.Close(b.Ctx, "in"))
		b.settled(h, 4)
		b.hopped(h, n)
		s.mu.Lock()
		defer s.mu.Unlock()
		b.Logf("at most %d runs in a commit, guesses %v", s.longest, s.speculations)
		if s.longest != 3 || len(s.speculations) != 2 {
			b.Errorf("at most %d runs in a commit, of guesses held %v; want all three, and both that are fed", s.longest, s.speculations)
		}
		children, err := h.Children(b.Ctx)
		b.Check(err)
		for name, c := range children {
			runs, err := c.Runs(b.Ctx, 10_000)
			b.Check(err)
			var read, wrote int
			for _, r := range runs {
				for _, m := range r.Read {
					read += m.N
				}
				for _, m := range r.Write {
					wrote += m.N
				}
			}
			if read != n || wrote != n {
				b.Errorf("by the log %s read %d messages and wrote %d, want %d", name, read, wrote, n)
			}
		}
	})
}

// What a speculative run may not do: it is dropped, and what happens is what happens without.
func TestFusionStops(t *testing.T) {
	var tried sync.Map
	for name, c := range map[string]struct {
		middle       hopper
		code         code
		messages     int  // 60 for 0
		speculations bool // some hold
		failed       int
	}{
		"not pure": {middle: &Acting{}}, "CommitEachRun": {middle: &Alone{}},
		"checkpoint": {middle: &Call{}, code: func(_ context.Context, run *worker.Run, _ *Call) error {
			return run.Checkpoint()
		}},
		"child": {middle: &Call{}, code: func(_ context.Context, run *worker.Run, _ *Call) error {
			if _, err := run.Child("x"); !errors.Is(err, job.ErrNotFound) {
				return err
			}
			return nil
		}},
		"ignored": {middle: &Call{}, code: func(_ context.Context, run *worker.Run, _ *Call) error {
			_ = run.Checkpoint() // what it returns in a speculative run does not matter
			return nil
		}},
		"long": {middle: &Call{}, messages: 10, code: func(context.Context, *worker.Run, *Call) error {
			time.Sleep(shortRun + time.Millisecond)
			return nil
		}},
		"errors": {middle: &Tried{}, speculations: true, failed: 15, code: func(_ context.Context, run *worker.Run, w *Call) error {
			v, ok, err := w.In.Peek()
			if key := fmt.Sprint(run.ID(), v); ok && err == nil && v%4 == 0 {
				if _, again := tried.LoadOrStore(key, true); !again || run.Info().Tries == 0 {
					return errors.New("not at the first try")
				}
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n := cmp.Or(c.messages, 60)
			each(t, func(b *bench) {
				var runs atomic.Int64
				key := keep(b.T, passing(&runs, c.code))
				s := &rows{Store: b.Store, speculations: map[job.ID]int{}}
				h := b.Start(row(keyed(c.middle, key)))
				b.serve(func(cfg *worker.Config) {
					cfg.Store, cfg.Workers = s, append(everything(), &Alone{}, &Acting{})
				})
				b.through(h, "in", n)
				want := make([]int, n)
				for i := range want {
					want[i] = i + 1
				}
				if got := enginetest.Outs[int](b, h, "out"); !slices.Equal(got, want) {
					b.Errorf("out: %v", got)
				}
				children, err := h.Children(b.Ctx)
				b.Check(err)
				s.mu.Lock()
				defer s.mu.Unlock()
				if got := s.speculations[children["b"].ID()]; got > 0 != c.speculations {
					b.Errorf("%d guesses held", got)
				}
				if got := int(runs.Load()); got > n+c.failed+c.failed+5 && !c.speculations {
					b.Errorf("%d runs for %d messages", got, n)
				}
			})
		})
	}
}

// keyed gives a worker its code.
func keyed(m hopper, key string) hopper {
	switch m.(type) {
	case *Alone:
		return &Alone{Call{Key: key}}
	case *Acting:
		return &Acting{Call{Key: key}}
	case *Tried:
		return &Tried{Call{Key: key}}
	}
	return &Call{Key: key}
}

// through writes the numbers from 1 to n one by one, so that the jobs sleep in between.
func (b *bench) through(h *client.Handle, in string, n int) {
	b.Helper()
	for i := range n {
		b.Check(h.Write(b.Ctx, in, i+1))
		b.Until("it came through", func() bool { return b.came(h) > int64(i) })
	}
}

// came returns how many messages have come out of a graph.
func (b *bench) came(h *client.Handle) int64 {
	b.Helper()
	i := b.Info(h)
	p, _ := i.Port(port.Output, "out")
	return p.Total
}

// The last words of a job, and the end of what it feeds, are not lost on a job that is suspended.
func TestFusionWithLastWords(t *testing.T) {
	each(t, func(b *bench) {
		w := &Ending{Call: Call{Key: keep(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			return w.Out.Write(v)
		})}, End: keep(b.T, func(_ context.Context, _ *worker.Run, w *Call) error { return w.Out.Write(99) })}
		g := graph.New("row")
		a, c := graph.Add(g, "a", w), graph.Add(g, "c", &Hop{})
		graph.Connect(graph.Input[int](g, "in"), a.In)
		graph.Connect(a.Out, c.In)
		graph.Export(g, "out", c.Out)
		h := b.Start(g)
		b.serve()
		b.through(h, "in", 5)
		children, err := h.Children(b.Ctx)
		b.Check(err)
		b.Check(children["a"].Terminate(b.Ctx))
		b.Completed(children["c"], 6)
		b.same(h, 1, 2, 3, 4, 5, 99)
	})
}

// In a graph with feedback nothing runs speculatively: whether anything still moves in it is asked at the
// end of each run.
func TestFusionKeepsOutOfFeedback(t *testing.T) {
	each(t, func(b *bench) {
		g := graph.New("row")
		a, c := graph.Add(g, "a", &Hop{}), graph.Add(g, "c", &Alternate{})
		graph.Connect(graph.Input[int](g, "in"), a.In)
		graph.Connect(a.Out, c.In)
		graph.Connect(c.Back, a.In, graph.Feedback())
		graph.Export(g, "out", c.Out)
		h := b.Start(g)
		s := &rows{Store: b.Store, speculations: map[job.ID]int{}}
		b.serve(func(c *worker.Config) { c.Store, c.Workers = s, append(everything(), &Alternate{}) })
		b.through(h, "in", 20)
		b.Check(h.Close(b.Ctx, "in"))
		b.settled(h, 3)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tried > 0 {
			b.Errorf("%d guesses", s.tried)
		}
	})
}

// Alternate passes each number on when it comes for the second time; the first time it goes
// back.
type Alternate struct {
	In   port.In[int]
	Out  port.Out[int]
	Back port.Out[int]
}

// WorkerOptions implements worker.Configured.
func (*Alternate) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run implements worker.Worker.
func (w *Alternate) Run(_ context.Context, run *worker.Run) error {
	v, ok, err := w.In.Read()
	if !ok || err != nil {
		return err
	}
	key := fmt.Sprint(v)
	var back bool
	if _, err := run.State().Get(key, &back); err != nil {
		return err
	}
	if back {
		return w.Out.Write(v)
	}
	return errors.Join(run.State().Set(key, true), w.Back.Write(v))
}

// Runs fuse within a queue, whose weight and pause are to keep their meaning.
func TestFusionKeepsToQueues(t *testing.T) {
	each(t, func(b *bench) {
		g := graph.New("row")
		a, c := graph.Add(g, "a", &Hop{}), graph.Add(g, "c", &Hop{}, graph.Queue("other"))
		graph.Connect(graph.Input[int](g, "in"), a.In)
		graph.Connect(a.Out, c.In)
		graph.Export(g, "out", c.Out)
		h := b.Start(g)
		s := &rows{Store: b.Store, speculations: map[job.ID]int{}}
		b.serve(func(c *worker.Config) { c.Store, c.Queues = s, map[string]int{"default": 1, "other": 1} })
		b.through(h, "in", 20)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.speculations) > 0 {
			b.Errorf("guesses %v", s.speculations)
		}
	})
}

// A job whose ports are fed in turn is known from one run to the next.
func TestFusionOfTwoPorts(t *testing.T) {
	each(t, func(b *bench) {
		var runs atomic.Int64
		var last atomic.Pointer[time.Time]
		w := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
			runs.Add(1)
			if before := last.Swap(new(run.Now())); before != nil && run.Now().Before(*before) {
				return fmt.Errorf("it was %s, and is %s", before, run.Now())
			}
			for _, in := range []port.In[int]{w.In, w.Size} {
				for in.Len() > 0 {
					v, _, err := in.Read()
					if err := errors.Join(err, w.Out.Write(v)); err != nil {
						return err
					}
				}
			}
			return nil
		})
		g := graph.New("row")
		a1, a2, c := graph.Add(g, "a1", &Hop{}), graph.Add(g, "a2", &Hop{}), graph.Add(g, "c", w)
		graph.Connect(graph.Input[int](g, "in"), a1.In)
		graph.Connect(graph.Input[int](g, "size"), a2.In)
		graph.Connect(a1.Out, c.In)
		graph.Connect(a2.Out, c.Size)
		graph.Export(g, "out", c.Out)
		h := b.Start(g)
		s := &rows{Store: b.Store, speculations: map[job.ID]int{}}
		b.serve(func(c *worker.Config) { c.Store = s })
		const n = 40
		for i := range int64(n) {
			b.Check(h.Write(b.Ctx, []string{"in", "size"}[i%2], i))
			b.Until("it came through", func() bool { return b.came(h) > i })
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if got := slices.Collect(maps.Values(s.speculations)); len(got) != 1 || got[0] < n/2 {
			b.Errorf("guesses %v for %d messages", got, n)
		}
		if got := int(runs.Load()); got > n+n/4 { // all others were wrong
			b.Errorf("%d runs for %d messages", got, n)
		}
	})
}

// Among 100 trees of a shard that always have work each gets its share, within a factor of two: in one of
// three attempts, as a machine that does much else at a time ends turns early.
func TestFairness(t *testing.T) {
	t.Parallel()
	const trees, share = 100, 300
	for range 3 {
		counts := newBenchOf(t, redistest.SharedRedis(t), 1).shares(trees, share)
		t.Logf("of %d trees the first has done %d, the last %d messages", len(counts), counts[0], counts[len(counts)-1])
		if len(counts) == trees && counts[0] >= share/2 && counts[len(counts)-1] <= 2*share {
			return
		}
	}
	t.Errorf("no attempt was fair: see above for how far trees got that had to get to %d", share)
}

// shares gives some trees twice their share of work, and returns how far they are when half of
// all is done, in order.
func (b *bench) shares(trees, share int) []int {
	b.Helper()
	var mu sync.Mutex
	done, all := map[job.ID]int{}, 0
	half := make(chan struct{})
	w := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
		v, ok, err := w.In.Read()
		if !ok || err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if all == trees*share {
			close(half)
		}
		if all <= trees*share {
			done[run.ID().Tree()]++
		}
		all++
		return w.Out.Write(v)
	})
	for range trees {
		b.feed(b.Start(row(w)), 2*share)
	}
	defer b.serve().Stop()
	select {
	case <-half:
	case <-time.After(3 * enginetest.Patience):
		b.Fatal("half of the work is still not done")
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Values(done))
}

// What an engine knows of jobs that sleep it forgets when they end.
func TestEndedJobsAreForgotten(t *testing.T) {
	b := onRedis(t)
	e := b.serve().Engine
	h := b.Start(row(&Hop{}))
	b.Check(h.Write(b.Ctx, "in", 1))
	b.Until("all three are known to sleep", func() bool { return worker.SuspendedJobs(e) == 3 })
	b.Check(h.Close(b.Ctx, "in"))
	b.Completed(h, 0)
	b.Until("none is known", func() bool { return worker.SuspendedJobs(e) == 0 })
}

// First writes a number, with which its job ends.
type First struct {
	N   int
	Out port.Out[int]
}

// WorkerOptions implements worker.Configured.
func (*First) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run implements worker.Worker.
func (w *First) Run(context.Context, *worker.Run) error { return w.Out.Write(w.N) }

// A tree whose jobs run once, one after the other, is done in one commit, once it is known that such
// runs are short.
func TestFusionOfNewJobs(t *testing.T) {
	each(t, func(b *bench) {
		s := &rows{Store: b.Store, speculations: map[job.ID]int{}}
		b.serve(func(c *worker.Config) { c.Store, c.Workers = s, append(everything(), &First{}) })
		for n := range 10 {
			g := graph.New("row")
			a, m, z := graph.Add(g, "a", &First{N: n}), graph.Add(g, "m", &Hop{}), graph.Add(g, "z", &Hop{})
			graph.Connect(a.Out, m.In)
			graph.Connect(m.Out, z.In)
			graph.Export(g, "out", z.Out)
			h := b.Start(g)
			b.Completed(h, 0)
			b.same(h, n)
			children, err := h.Children(b.Ctx)
			b.Check(err)
			for name, c := range children {
				b.Completed(c, 1)
				runs, err := c.Runs(b.Ctx, 10)
				b.Check(err)
				if len(runs) != 1 || name != "a" && len(runs[0].Read) != 1 || len(runs[0].Write) != 1 {
					b.Errorf("the log of %s has %+v", name, runs)
				}
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.longest != 3 || len(s.speculations) < 16 {
			b.Errorf("at most %d runs in a commit, and %d jobs ran on a guess", s.longest, len(s.speculations))
		}
	})
}
