package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// leases starts what gives jobs of a store to clients, until the test ends.
func (b *bench) leases(store worker.Store) *worker.Leases {
	b.Helper()
	l, err := worker.NewLeases(worker.LeaseConfig{Store: store, Logger: slog.New(slog.DiscardHandler)})
	b.check(err)
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		b.check(<-done)
	})
	return l
}

// lease takes one job, for which it waits.
func (b *bench) lease(l *worker.Leases, types ...string) worker.Leased {
	b.Helper()
	runs, err := l.Take(b.ctx, worker.LeaseRequest{Types: types, Wait: patience})
	b.check(err)
	if len(runs) != 1 {
		b.Fatalf("got %d jobs, want 1", len(runs))
	}
	return runs[0]
}

// finish is what a client does that has the code of Double: it commits the run.
func (b *bench) finish(run worker.Leased) error {
	d := job.Delta{Job: run.Info.ID, Token: run.Token, Outcome: statemachine.Complete}
	for _, box := range run.In {
		d.Takes = append(d.Takes, job.Take{Dir: port.Input, Port: box.Port, Head: box.Head, N: len(box.Items)})
		d.Writes = append(d.Writes, job.Write{Dir: port.Output, Port: "out", Items: box.Items})
	}
	results, err := b.store.Commit(b.ctx, []job.Tx{{Deltas: []job.Delta{d}}})
	if err == nil && results[0].Applied != 1 {
		err = results[0].Refused
	}
	return err
}

// A client gets jobs of the types and queues that it names, as many as it asks for, with what their runs see.
func TestLeaseWhatIsAskedFor(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.store)
		h := b.single(&Double{})
		b.check(h.Write(b.ctx, "in", 7))
		b.single(&Count{To: 1})
		other := b.start(job.Single(&Double{}, "elsewhere"))
		for _, req := range []worker.LeaseRequest{{Types: []string{"double*"}}, {Types: []string{"*"}, Queues: []string{"empty"}}} {
			if runs, err := l.Take(b.ctx, req); len(runs) > 0 || err != nil {
				b.Fatalf("%v gives %d jobs, %v", req, len(runs), err)
			}
		}
		run := b.lease(l, "D*uble", "none")
		if run.Info.ID != h.ID() || run.Info.Type != "Double" || run.Token == "" || len(run.In) != 1 || string(run.In[0].Items[0]) != "7" {
			b.Errorf("got %+v", run.Snapshot)
		}
		if left := time.Until(run.Expires); left < worker.DefaultClientLease/2 || left > worker.DefaultClientLease*2 {
			b.Errorf("its lease ends in %s", left)
		}
		b.check(b.finish(run))
		b.completed(h, 1)
		b.same(h, 7)
		runs, err := l.Take(b.ctx, worker.LeaseRequest{Types: []string{"*"}, Queues: []string{"elsewhere", job.DefaultQueue}, Max: 10})
		b.check(err)
		if len(runs) != 2 || runs[0].Info.ID != other.ID() || runs[1].Info.Type != "Count" {
			b.Errorf("got %d jobs, want those of both queues, in their order", len(runs))
		}
	})
}

func TestLeaseRequestsThatAreWrong(t *testing.T) {
	b := onRedis(t)
	l := b.leases(b.store)
	for text, req := range map[string]worker.LeaseRequest{
		"Types is empty":   {},
		"Max 101":          {Types: []string{"T"}, Max: 101},
		"Wait -1s":         {Types: []string{"T"}, Wait: -time.Second},
		"Lease 1ms":        {Types: []string{"T"}, Lease: time.Millisecond},
		"pattern \"[\"":    {Types: []string{"["}},
		"queue \"a b\"":    {Types: []string{"T"}, Queues: []string{"a b"}},
		"21 queues":        {Types: []string{"T"}, Queues: slices.Repeat([]string{"q"}, 21)},
		"101 types":        {Types: slices.Repeat([]string{"T"}, 101)},
		"Store is missing": {},
	} {
		_, err := l.Take(b.ctx, req)
		if text == "Store is missing" {
			_, err = worker.NewLeases(worker.LeaseConfig{})
		}
		if err == nil || !errors.Is(err, job.ErrConfig) && !errors.Is(err, job.ErrName) || !strings.Contains(err.Error(), text) {
			b.Errorf("error %v, want one with %q", err, text)
		}
	}
}

// A client that waits is told of a job at once, whoever makes it ready, while no engine serves its queue, and no sweeper helps.
func TestLeaseWakesAtOnce(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(unswept{b.open(b.url)})
		h := b.single(&Double{})
		b.check(b.finish(b.lease(l, "Double")))
		var took []time.Duration
		for i := range 20 {
			got := make(chan worker.Leased, 1)
			go func() { got <- b.lease(l, "Double") }()
			b.until("the client waits", func() bool { return worker.WaitingClients(l) == 1 })
			began := time.Now()
			b.check(h.Write(b.ctx, "in", i))
			run := <-got
			took = append(took, time.Since(began))
			b.check(b.finish(run))
			b.completed(h, int64(i)+2)
		}
		slices.Sort(took)
		b.Logf("median %s, longest %s", took[10], took[19])
		if took[10] > time.Second { // nobody looks by himself before 2.5 s
			b.Errorf("half of them were told after %s", took[10])
		}
	})
}

// Clients and an engine take from the same sets: each job runs once.
func TestLeaseBesideAnEngine(t *testing.T) {
	each(t, func(b *bench) {
		const n = 200
		var clients atomic.Int64
		l := b.leases(b.open(b.url))
		ctx, stop := context.WithCancel(b.ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		for range 3 {
			group.Go(func() {
				for ctx.Err() == nil {
					runs, err := l.Take(ctx, worker.LeaseRequest{Types: []string{"Dou*"}, Max: 2, Wait: patience})
					if err != nil && ctx.Err() == nil {
						b.Error(err)
					}
					for _, run := range runs {
						if err := b.finish(run); err != nil {
							b.Error(err)
						}
						clients.Add(1)
					}
				}
			})
		}
		first := b.single(&Double{})
		b.check(first.Write(b.ctx, "in", 0))
		b.completed(first, 1) // there are clients only
		b.serve()
		var all []*job.Handle
		for i := range n {
			h := b.single(&Double{})
			b.check(h.Write(b.ctx, "in", i))
			all = append(all, h)
		}
		for i, h := range all {
			info := b.completed(h, 1)
			if p, _ := info.Port(port.Input, "in"); info.Steps < 1 || p.Waiting != 0 {
				b.Errorf("job %d: %d steps, %d messages wait", i, info.Steps, p.Waiting)
			}
			if got := outs[int](b, h, "out"); len(got) != 1 || got[0] != i && got[0] != 2*i {
				b.Errorf("job %d wrote %v", i, got)
			}
		}
		b.Logf("clients ran %d of %d jobs", clients.Load(), n)
	})
}

// A job whose client is gone is given to another one when its lease is over, and the late commit is refused.
func TestLeaseOfAClientThatIsGone(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.store)
		h := b.single(&Double{})
		b.check(h.Write(b.ctx, "in", 3))
		runs, err := l.Take(b.ctx, worker.LeaseRequest{Types: []string{"Double"}, Lease: 300 * time.Millisecond})
		b.check(err)
		again := b.lease(l, "Double")
		if again.Info.ID != h.ID() || len(runs) != 1 || again.Token == runs[0].Token {
			b.Fatalf("got %+v after %d", again.Snapshot, len(runs))
		}
		if err := b.finish(runs[0]); !errors.Is(err, job.ErrFenced) {
			b.Errorf("the late commit: %v", err)
		}
		if err := b.store.Refresh(b.ctx, h.ID(), runs[0].Token, time.Second, nil); !errors.Is(err, job.ErrFenced) {
			b.Errorf("the late refresh: %v", err)
		}
		b.check(b.store.Refresh(b.ctx, h.ID(), again.Token, time.Minute, nil))
		b.check(b.finish(again))
		b.same(h, 3)
	})
}

// hangsUp is a store whose caller is gone when a run has begun.
type hangsUp struct {
	worker.Store
	gone context.CancelFunc
}

func (s *hangsUp) Pop(ctx context.Context, queue string, shard int, gen int64, b job.Begin, types []string) (*job.Snapshot, error) {
	snap, err := s.Store.Pop(ctx, queue, shard, gen, b, types)
	if snap != nil {
		s.gone()
	}
	return snap, err
}

// What began for a client that has hung up meanwhile is handed back at once.
func TestLeaseOfAClientThatHungUp(t *testing.T) {
	each(t, func(b *bench) {
		h := b.single(&Double{})
		b.check(h.Write(b.ctx, "in", 3))
		ctx, cancel := context.WithCancel(b.ctx)
		runs, err := b.leases(&hangsUp{b.store, cancel}).Take(ctx, worker.LeaseRequest{Types: []string{"*"}, Wait: patience, Lease: time.Hour})
		if len(runs) > 0 || !errors.Is(err, context.Canceled) {
			b.Fatalf("got %d jobs, %v", len(runs), err)
		}
		if run := b.lease(b.leases(b.store), "*"); run.Info.ID != h.ID() || run.Info.Tries != 0 {
			b.Errorf("got %+v", run.Info)
		}
	})
}

// No job of a paused queue is given to anybody; those who wait get it when the queue goes on.
func TestLeaseOfPausedQueue(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(unswept{b.open(b.url)})
		_, err := b.store.PauseQueue(b.ctx, job.DefaultQueue)
		b.check(err)
		h := b.single(&Double{})
		b.check(h.Write(b.ctx, "in", 3))
		runs, err := l.Take(b.ctx, worker.LeaseRequest{Types: []string{"*"}, Wait: 100 * time.Millisecond})
		if len(runs) > 0 || err != nil {
			b.Fatalf("got %d jobs of a paused queue, %v", len(runs), err)
		}
		got := make(chan worker.Leased, 1)
		go func() { got <- b.lease(l, "*") }()
		b.until("the client waits", func() bool { return worker.WaitingClients(l) == 1 })
		_, err = b.store.ResumeQueue(b.ctx, job.DefaultQueue)
		b.check(err)
		if run := <-got; run.Info.ID != h.ID() {
			b.Errorf("got %s", run.Info.ID)
		}
	})
}

// Clients count as somebody who has a type: a job that is to end waits for them, and is theirs to shut down.
func TestLeaseTypesAreKnown(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Count{}} })
		l := b.leases(b.store)
		h := b.single(&Double{})
		b.check(h.Terminate(b.ctx))
		b.until("a job that nobody runs says so", func() bool {
			info, err := h.Info(b.ctx)
			b.check(err)
			return info.Reason != ""
		})
		run := b.lease(l, "Dou*")
		if !run.Shutdown || run.Info.ID != h.ID() {
			b.Errorf("got %+v", run.Snapshot)
		}
		b.until("the types are known", func() bool {
			engines, err := b.store.Engines(b.ctx)
			b.check(err)
			return slices.ContainsFunc(engines, func(e job.EngineInfo) bool { return e.Takes(job.DefaultQueue, "Double") })
		})
		second := b.single(&Double{})
		b.check(second.Write(b.ctx, "in", 1))
		for range 3 { // the sweeper looks at it again and again
			_, err := b.store.Sweep(b.ctx)
			b.check(err)
			time.Sleep(500 * time.Millisecond)
		}
		info, err := second.Info(b.ctx)
		b.check(err)
		if info.Reason != "" {
			b.Errorf("it is said that %q", info.Reason)
		}
	})
}

// Clients keep to the limit of a type that an engine has: how many of its runs go on at once does not depend on who runs them.
func TestLeaseKeepsToTheLimitOfAType(t *testing.T) {
	each(t, func(b *bench) {
		w := &Narrow{meter: &meter{}, max: 1}
		engine, err := worker.New(worker.Config{Store: b.store, Workers: []worker.Worker{w}, Logger: slog.New(slog.DiscardHandler)})
		b.check(err)
		b.check(engine.Register(b.ctx))
		var all []*job.Handle
		for range 3 {
			h := b.single(&Narrow{})
			b.check(h.Write(b.ctx, "in", 1))
			all = append(all, h)
		}
		l := b.leases(b.store)
		first := b.lease(l, "*")
		none, err := l.Take(b.ctx, worker.LeaseRequest{Types: []string{"*"}, Max: 5, Wait: 300 * time.Millisecond})
		b.check(err)
		if len(none) > 0 {
			t.Fatalf("%d more runs go on at once, at most 1 may", len(none))
		}
		b.check(b.finish(first))
		b.check(b.finish(b.lease(l, "*")))
		b.check(b.finish(b.lease(l, "*")))
		for _, h := range all {
			b.same(h, 1)
		}
	})
}
