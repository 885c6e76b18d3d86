package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// called is a worker of a type that it is told.
type called struct {
	In       port.In[int] `port:"in"`
	name     string
	run      func(ctx context.Context) error
	here     int
	together int
}

func (c *called) JobType() string { return c.name }

func (c *called) WorkerOptions() worker.Options {
	return worker.Options{MaxRunningHere: c.here, Together: c.together}
}

func (c *called) Run(ctx context.Context, _ *worker.Run) error {
	for _, err := range c.In.All() {
		if err != nil {
			return err
		}
	}
	if c.run == nil {
		return nil
	}
	return c.run(ctx)
}

func TestAddedTypesRun(t *testing.T) {
	each(t, func(b *bench) {
		s := b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&called{name: "first"}} })
		b.Check(s.Add(t.Context(), &called{name: "second"}, &called{name: "third"}))
		if err := s.Add(t.Context(), &called{name: "first"}); !errors.Is(err, job.ErrExists) {
			t.Errorf("adding a type twice: %v", err)
		}
		for _, name := range []string{"first", "second", "third"} {
			h, err := b.Client.Create(t.Context(), job.New{Type: name})
			b.Check(err)
			b.Reach(h, 1, job.Completed)
		}
		b.Until("the engine tells of its types", func() bool {
			engines, err := b.Store.Engines(t.Context())
			b.Check(err)
			return len(engines) == 1 && len(engines[0].Types) == 3
		})
	})
}

// TestAJobThatWaitedRunsWhenItsTypeIsAdded lets notifications for a type be passed on before anybody has it.
func TestAJobThatWaitedRunsWhenItsTypeIsAdded(t *testing.T) {
	each(t, func(b *bench) {
		other, err := worker.New(worker.Config{Store: b.Store, Workers: []worker.Worker{&called{name: "late"}}})
		b.Check(err)
		b.Check(other.Register(t.Context()))
		s := b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&called{name: "first"}} })
		h, err := b.Client.Create(t.Context(), job.New{Type: "late"})
		b.Check(err)
		b.Check(s.Add(t.Context(), &called{name: "late"}))
		b.Reach(h, 1, job.Completed)
	})
}

// TestMaxRunningHereLeavesRoomForOthers has one type whose runs take indefinitely, and more jobs of it than the engine has slots.
func TestMaxRunningHereLeavesRoomForOthers(t *testing.T) {
	each(t, func(b *bench) {
		free := make(chan struct{})
		slow := &called{name: "slow", here: 2, run: func(ctx context.Context) error {
			select {
			case <-free:
			case <-ctx.Done():
			}
			return ctx.Err()
		}}
		s := b.serve(func(c *worker.Config) {
			c.Workers, c.Concurrency = []worker.Worker{slow, &called{name: "fast"}}, 4
		})
		b.Until("the engine has told of its types", func() bool {
			_, err := b.Store.Type(t.Context(), job.DefaultQueue, "slow")
			return err == nil
		})
		var slows []*client.Handle
		for range 20 {
			h, err := b.Client.Create(t.Context(), job.New{Type: "slow"})
			b.Check(err)
			slows = append(slows, h)
		}
		for range 20 {
			h, err := b.Client.Create(t.Context(), job.New{Type: "fast"})
			b.Check(err)
			b.Reach(h, 1, job.Completed)
		}
		if n := len(s.Running()); n > 2 {
			t.Errorf("%d runs go on, 2 of the type may", n)
		}
		begin := time.Now()
		close(free)
		for _, h := range slows {
			b.Completed(h, 1)
		}
		t.Logf("20 jobs took %s", time.Since(begin))
	})
}
