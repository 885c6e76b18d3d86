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

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// leases starts what gives jobs of a store to clients, until the test ends.
func (b *bench) leases(store worker.Store) *worker.Leases {
	b.Helper()
	l, err := worker.NewLeases(worker.LeaseConfig{Store: store, Logger: slog.New(slog.DiscardHandler)})
	b.Check(err)
	enginetest.Run(b, l.Run)
	return l
}

// lease takes one job, for which it waits.
func (b *bench) lease(l *worker.Leases, types ...string) worker.Leased {
	b.Helper()
	runs, err := l.Take(b.Ctx, worker.LeaseRequest{Types: types, Wait: enginetest.Patience})
	b.Check(err)
	if len(runs) != 1 {
		b.Fatalf("got %d jobs, want 1", len(runs))
	}
	return runs[0]
}

// finish is what a client does that has the code of Double: it commits the run.
func (b *bench) finish(run worker.Leased) error {
	d := store.Delta{Job: run.Info.ID, Token: run.Token, Outcome: statemachine.Complete}
	for _, box := range run.In {
		d.Takes = append(d.Takes, store.Take{Dir: port.Input, Port: box.Port, Head: box.Head, N: len(box.Items)})
		d.Writes = append(d.Writes, store.Write{Dir: port.Output, Port: "out", Items: box.Items})
	}
	results, err := b.Store.Commit(b.Ctx, []store.Tx{{Deltas: []store.Delta{d}}})
	if err == nil && results[0].Applied != 1 {
		err = results[0].Refused
	}
	return err
}

// A client gets jobs of the types and queues that it names, as many as it asks for, with what their runs see.
func TestLeaseWhatIsAskedFor(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 7))
		b.single(&Count{To: 1})
		other := b.Start(job.Single(&Double{}, "elsewhere"))
		for _, req := range []worker.LeaseRequest{{Types: []string{"double*"}}, {Types: []string{"*"}, Queues: []string{"empty"}}} {
			if runs, err := l.Take(b.Ctx, req); len(runs) > 0 || err != nil {
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
		b.Check(b.finish(run))
		b.Completed(h, 1)
		b.same(h, 7)
		runs, err := l.Take(b.Ctx, worker.LeaseRequest{Types: []string{"*"}, Queues: []string{"elsewhere", job.DefaultQueue}, Max: 10})
		b.Check(err)
		if len(runs) != 2 || runs[0].Info.ID != other.ID() || runs[1].Info.Type != "Count" {
			b.Errorf("got %d jobs, want those of both queues, in their order", len(runs))
		}
	})
}

func TestLeaseRequestsThatAreWrong(t *testing.T) {
	b := onRedis(t)
	l := b.leases(b.Store)
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
		_, err := l.Take(b.Ctx, req)
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
		l := b.leases(unswept{b.Open(b.URL)})
		h := b.single(&Double{})
		b.Check(b.finish(b.lease(l, "Double")))
		var took []time.Duration
		for i := range 20 {
			got := make(chan worker.Leased, 1)
			go func() { got <- b.lease(l, "Double") }()
			b.Until("the client waits", func() bool { return worker.WaitingClients(l) == 1 })
			began := time.Now()
			b.Check(h.Write(b.Ctx, "in", i))
			run := <-got
			took = append(took, time.Since(began))
			b.Check(b.finish(run))
			b.Completed(h, int64(i)+2)
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
		l := b.leases(b.Open(b.URL))
		ctx, stop := context.WithCancel(b.Ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		for range 3 {
			group.Go(func() {
				for ctx.Err() == nil {
					runs, err := l.Take(ctx, worker.LeaseRequest{Types: []string{"Dou*"}, Max: 2, Wait: enginetest.Patience})
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
		b.Check(first.Write(b.Ctx, "in", 0))
		b.Completed(first, 1) // there are clients only
		b.serve()
		var all []*client.Handle
		for i := range n {
			h := b.single(&Double{})
			b.Check(h.Write(b.Ctx, "in", i))
			all = append(all, h)
		}
		for i, h := range all {
			info := b.Completed(h, 1)
			if p, _ := info.Port(port.Input, "in"); info.Steps < 1 || p.Waiting != 0 {
				b.Errorf("job %d: %d steps, %d messages wait", i, info.Steps, p.Waiting)
			}
			if got := enginetest.Outs[int](b, h, "out"); len(got) != 1 || got[0] != i && got[0] != 2*i {
				b.Errorf("job %d wrote %v", i, got)
			}
		}
		b.Logf("clients ran %d of %d jobs", clients.Load(), n)
	})
}

// A job whose client is gone is given to another one when its lease is over, and the late commit is refused.
func TestLeaseOfAClientThatIsGone(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 3))
		runs, err := l.Take(b.Ctx, worker.LeaseRequest{Types: []string{"Double"}, Lease: 300 * time.Millisecond})
		b.Check(err)
		again := b.lease(l, "Double")
		if again.Info.ID != h.ID() || len(runs) != 1 || again.Token == runs[0].Token {
			b.Fatalf("got %+v after %d", again.Snapshot, len(runs))
		}
		if err := b.finish(runs[0]); !errors.Is(err, job.ErrFenced) {
			b.Errorf("the late commit: %v", err)
		}
		if err := b.Store.Refresh(b.Ctx, h.ID(), runs[0].Token, time.Second, nil); !errors.Is(err, job.ErrFenced) {
			b.Errorf("the late refresh: %v", err)
		}
		b.Check(b.Store.Refresh(b.Ctx, h.ID(), again.Token, time.Minute, nil))
		b.Check(b.finish(again))
		b.same(h, 3)
	})
}

// hangsUp is a store whose caller is gone when a run has begun.
type hangsUp struct {
	worker.Store
	gone context.CancelFunc
}

func (s *hangsUp) Pop(ctx context.Context, queue string, shard int, gen int64, b store.Begin, types []string) ([]*store.Snapshot, error) {
	begun, err := s.Store.Pop(ctx, queue, shard, gen, b, types)
	if len(begun) > 0 {
		s.gone()
	}
	return begun, err
}

// What began for a client that has hung up meanwhile is handed back at once.
func TestLeaseOfAClientThatHungUp(t *testing.T) {
	each(t, func(b *bench) {
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 3))
		ctx, cancel := context.WithCancel(b.Ctx)
		runs, err := b.leases(&hangsUp{b.Store, cancel}).Take(ctx, worker.LeaseRequest{Types: []string{"*"}, Wait: enginetest.Patience, Lease: time.Hour})
		if len(runs) > 0 || !errors.Is(err, context.Canceled) {
			b.Fatalf("got %d jobs, %v", len(runs), err)
		}
		if run := b.lease(b.leases(b.Store), "*"); run.Info.ID != h.ID() || run.Info.Tries != 0 {
			b.Errorf("got %+v", run.Info)
		}
	})
}

// No job of a paused queue is given to anybody; those who wait get it when the queue goes on.
func TestLeaseOfPausedQueue(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(unswept{b.Open(b.URL)})
		_, err := b.Store.PauseQueue(b.Ctx, job.DefaultQueue)
		b.Check(err)
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 3))
		runs, err := l.Take(b.Ctx, worker.LeaseRequest{Types: []string{"*"}, Wait: 100 * time.Millisecond})
		if len(runs) > 0 || err != nil {
			b.Fatalf("got %d jobs of a paused queue, %v", len(runs), err)
		}
		got := make(chan worker.Leased, 1)
		go func() { got <- b.lease(l, "*") }()
		b.Until("the client waits", func() bool { return worker.WaitingClients(l) == 1 })
		_, err = b.Store.ResumeQueue(b.Ctx, job.DefaultQueue)
		b.Check(err)
		if run := <-got; run.Info.ID != h.ID() {
			b.Errorf("got %s", run.Info.ID)
		}
	})
}

// Clients count as somebody who has a type: a job that is to end waits for them, and is theirs to shut down.
func TestLeaseTypesAreKnown(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Count{}} })
		l := b.leases(b.Store)
		h := b.single(&Double{})
		b.Check(h.Terminate(b.Ctx))
		b.Until("a job that nobody runs says so", func() bool {
			info := b.Info(h)
			return info.Reason != ""
		})
		run := b.lease(l, "Dou*")
		if !run.Shutdown || run.Info.ID != h.ID() {
			b.Errorf("got %+v", run.Snapshot)
		}
		b.Until("the types are known", func() bool {
			engines, err := b.Store.Engines(b.Ctx)
			b.Check(err)
			return slices.ContainsFunc(engines, func(e store.EngineInfo) bool { return e.Takes(job.DefaultQueue, "Double") })
		})
		second := b.single(&Double{})
		b.Check(second.Write(b.Ctx, "in", 1))
		for range 3 { // the sweeper looks at it again and again
			_, err := b.Store.Sweep(b.Ctx)
			b.Check(err)
			time.Sleep(500 * time.Millisecond)
		}
		info := b.Info(second)
		if info.Reason != "" {
			b.Errorf("it is said that %q", info.Reason)
		}
	})
}

// Clients keep to the limit of a type that an engine has: how many of its runs go on at once does not depend on who runs them.
func TestLeaseKeepsToTheLimitOfAType(t *testing.T) {
	each(t, func(b *bench) {
		w := &Narrow{meter: &meter{}, max: 1}
		engine, err := worker.New(worker.Config{Store: b.Store, Workers: []worker.Worker{w}, Logger: slog.New(slog.DiscardHandler)})
		b.Check(err)
		b.Check(engine.Register(b.Ctx))
		var all []*client.Handle
		for range 3 {
			h := b.single(&Narrow{})
			b.Check(h.Write(b.Ctx, "in", 1))
			all = append(all, h)
		}
		l := b.leases(b.Store)
		first := b.lease(l, "*")
		none, err := l.Take(b.Ctx, worker.LeaseRequest{Types: []string{"*"}, Max: 5, Wait: 300 * time.Millisecond})
		b.Check(err)
		if len(none) > 0 {
			t.Fatalf("%d more runs go on at once, at most 1 may", len(none))
		}
		b.Check(b.finish(first))
		b.Check(b.finish(b.lease(l, "*")))
		b.Check(b.finish(b.lease(l, "*")))
		for _, h := range all {
			b.same(h, 1)
		}
	})
}
