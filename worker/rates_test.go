package worker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// Calling is a worker that calls something that takes only so many calls within a time.
type Calling struct {
	Customer string `json:"customer"`
	In       port.In[int]
	options  worker.Options
	calls    *calls
}

// calls are the times at which runs began, by customer and of all.
type calls struct {
	mu  sync.Mutex
	all map[string][]time.Time
}

func (c *Calling) WorkerOptions() worker.Options { return c.options }

func (c *Calling) Run(_ context.Context, run *worker.Run) error {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	for _, who := range []string{"", c.Customer} {
		c.calls.all[who] = append(c.calls.all[who], run.Now())
	}
	_, _, err := c.In.Read()
	return err
}

// callAll has jobs of two customers run 24 times in all, on two engines, and returns when these began.
func callAll(b *bench, options worker.Options) map[string][]time.Time {
	b.Helper()
	w := &Calling{options: options, calls: &calls{all: map[string][]time.Time{}}}
	for range 2 {
		b.serve(func(c *worker.Config) { c.Workers, c.Concurrency = []worker.Worker{w}, 10 })
	}
	var all []*client.Handle
	for n := range 12 {
		h := b.single(&Calling{Customer: []string{"ann", "bob"}[n%2]})
		b.Check(h.Write(b.Ctx, "in", 1, 2))
		all = append(all, h)
	}
	for _, h := range all {
		b.Until("both messages were read", func() bool { return b.Waiting(h, "in") == 0 })
	}
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	return w.calls.all
}

// crowded returns the first time of which more than n lie within less than a span.
func crowded(all []time.Time, n int, span time.Duration) (time.Time, bool) {
	slices.SortFunc(all, time.Time.Compare)
	for i := n; i < len(all); i++ {
		if all[i].Sub(all[i-n]) < span {
			return all[i-n], true
		}
	}
	return time.Time{}, false
}

// TestMaxRuns: within any time of that length at most so many runs of a type begin, over all engines; all get their turn, and
// no faster than there is need to be slow.
func TestMaxRuns(t *testing.T) {
	each(t, func(b *bench) {
		const n, per = 5, 400 * time.Millisecond
		began := callAll(b, worker.Options{MaxRuns: n, MaxRunsPer: per, Pure: true})
		if at, bad := crowded(began[""], n, per); bad || len(began[""]) < 24 {
			b.Errorf("more than %d of %d runs began within %s of %s: %v", n, len(began[""]), per, at, began[""])
		}
	})
}

// TestMaxRunsBy: each value of an argument has a rate of its own; a limit of runs at once holds besides.
func TestMaxRunsBy(t *testing.T) {
	each(t, func(b *bench) {
		const n, per = 3, 400 * time.Millisecond
		began := callAll(b, worker.Options{MaxRuns: n, MaxRunsPer: per, MaxRunsBy: "customer", MaxRunning: 2})
		for _, who := range []string{"ann", "bob"} {
			if at, bad := crowded(began[who], n, per); bad || len(began[who]) < 12 {
				b.Errorf("%s: more than %d of %d runs began within %s of %s: %v", who, n, len(began[who]), per, at, began[who])
			}
		}
		if _, both := crowded(began[""], n, per); !both {
			b.Errorf("the customers shared one rate: %v", began[""])
		}
	})
}

// TestWrongRate: options that make no sense are refused, with what is wrong.
func TestWrongRate(t *testing.T) {
	t.Parallel()
	for _, o := range []worker.Options{
		{MaxRuns: -1, MaxRunsPer: time.Second},
		{MaxRuns: 1_000_000, MaxRunsPer: time.Second},
		{MaxRuns: 5},
		{MaxRunsPer: time.Second},
		{MaxRunsBy: "customer"},
		{MaxRuns: 5, MaxRunsPer: time.Microsecond},
		{MaxRuns: 5, MaxRunsPer: -time.Second},
		{MaxRuns: 5, MaxRunsPer: 1000 * 24 * time.Hour},
		{MaxRuns: 5, MaxRunsPer: time.Second, MaxRunsBy: "a b"},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	_, err := worker.New(worker.Config{Store: &redisstore.Store{}, Workers: []worker.Worker{&Calling{options: worker.Options{MaxRunning: 1, MaxRunningBy: "custmer"}}}})
	if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), `did you mean "customer"?`) {
		t.Errorf("a limit by what is no argument: %v", err)
	}
	if err := (worker.Options{MaxRuns: 50, MaxRunsPer: time.Second, MaxRunsBy: "customer"}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestRateThatAnotherDeclares: an engine keeps to the rate that was registered last for a type of its own, as during a deployment.
func TestRateThatAnotherDeclares(t *testing.T) {
	each(t, func(b *bench) {
		w := &Calling{calls: &calls{all: map[string][]time.Time{}}, options: worker.Options{Pure: true}}
		b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{w} })
		var types []job.TypeInfo
		b.Until("the engine registers its type", func() bool {
			var err error
			types, err = b.Store.Types(b.Ctx)
			b.Check(err)
			return len(types) > 0
		})
		for i := range types {
			types[i].MaxRuns, types[i].MaxRunsPer = 1, time.Hour
		}
		b.Check(b.Store.Register(b.Ctx, types))
		b.Until("a job waits for its turn", func() bool {
			h := b.single(&Calling{Customer: "ann"})
			b.Check(h.Write(b.Ctx, "in", 1))
			time.Sleep(200 * time.Millisecond)
			return strings.HasPrefix(b.Info(h).Reason, "limit: rate:Calling")
		})
	})
}
