package rig

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// narrows are jobs of which few run at once.
type narrows struct {
	mu  sync.Mutex
	all []*client.Handle
}

// narrowed is how many jobs of the kind are started at a time.
const narrowed = 8

// start starts some, and waits until they are done, or will not be done soon.
func (n *narrows) start(ctx context.Context, r *rig) {
	var some []*client.Handle
	for range narrowed {
		if h := r.start(ctx, r.name("narrow"), job.Single(&crew.Narrow{}, "")); h != nil {
			some = append(some, h)
		}
	}
	n.mu.Lock()
	n.all = append(n.all, some...)
	n.mu.Unlock()
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, h := range some {
		for pause(limit, 50*time.Millisecond) {
			if i, err := h.Info(limit); err == nil && i.Status == statemachine.Completed {
				break
			}
		}
	}
}

// moment is when a run began, or was committed, by the clock of the Redis.
type moment struct {
	at    time.Time
	began bool
}

// check implements round: each has said its number once, never more than NarrowMost held their jobs, and within NarrowPer never more
// than NarrowRuns of those began that were committed.
func (n *narrows) check(ctx context.Context, r *rig) error {
	var moments []moment
	var began []time.Time
	for _, h := range n.all {
		i, err := h.Info(ctx)
		if err != nil {
			return err
		}
		name := "narrow " + string(h.ID())
		r.settled(name, i, true)
		got, err := drain[crew.Message](ctx, h, "out")
		if err != nil {
			return err
		}
		r.numbers(name, got, []int{1})
		log, err := h.Runs(ctx, 10)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(log, func(e job.RunEntry) bool { return len(e.Write) > 0 })
		if at < 0 {
			r.bad(wrongState, "%s: its log does not tell of its run", name)
			continue
		}
		moments = append(moments, moment{i.Ran, true}, moment{log[at].At, false})
		began = append(began, i.Ran)
	}
	slices.SortStableFunc(moments, func(a, b moment) int {
		if c := a.at.Compare(b.at); c != 0 || a.began == b.began {
			return c
		} else if a.began {
			return 1 // a place is given back before it is given to another one
		}
		return -1
	})
	slices.SortFunc(began, time.Time.Compare)
	for n := crew.NarrowRuns; n < len(began); n++ {
		if took := began[n].Sub(began[n-crew.NarrowRuns]); took < crew.NarrowPer {
			r.bad(overLimit, "%d runs began within %s until %s, at most %d may within %s",
				crew.NarrowRuns+1, took, began[n].Format(time.StampMilli), crew.NarrowRuns, crew.NarrowPer)
		}
	}
	now := 0
	for _, m := range moments {
		if !m.began {
			now--
		} else if now++; now > crew.NarrowMost {
			r.bad(overLimit, "%d runs go on at %s, at most %d may", now, m.at.Format(time.StampMilli), crew.NarrowMost)
		}
	}
	return nil
}

// limiting limits the queue that all work is in, changes that, and ends it.
func (r *rig) limiting(ctx context.Context) {
	if !pause(ctx, r.between(2*time.Second, 6*time.Second)) {
		return
	}
	for _, places := range []int{1 + r.intn(4), 4 + r.intn(8), 0} {
		r.insist(ctx, "limiting a queue", func(ctx context.Context) error {
			return r.store.SetQueueLimit(ctx, job.DefaultQueue, places)
		})
		r.fault("queue_limit")
		pause(ctx, r.between(50*time.Millisecond, 2*time.Second))
	}
}
