package rig

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// serialTrees is how many trees of one sequential key are started at a time.
const serialTrees = 20

// chronicle is what the trees of all sequential keys have told, in the order of their commits.
type chronicle struct {
	once         sync.Once
	subscription *client.Handle
	steps        map[string][]crew.Step // by key; nil before they are read
}

// listens starts the job that keeps what such trees tell.
func (c *chronicle) listens(ctx context.Context, r *rig) bool {
	c.once.Do(func() {
		subscription := r.start(ctx, r.name("chronicle"), job.Single(&crew.SerialEar{}, ""))
		set := "weir:{" + namespace + "}:ch:" + crew.SerialChannel
		if subscription != nil && r.insist(ctx, "subscribing "+set, func(ctx context.Context) error {
			n, err := r.rdb.SCard(ctx, set).Result()
			if err == nil && n == 0 {
				err = fmt.Errorf("nobody has subscribed")
			}
			return err
		}) {
			c.subscription = subscription
		}
	})
	return c.subscription != nil
}

// of returns what the trees of a key have told.
func (c *chronicle) of(ctx context.Context, key string) ([]crew.Step, error) {
	if c.steps == nil {
		all, err := drain[crew.Step](ctx, c.subscription, "all")
		if err != nil {
			return nil, err
		}
		c.steps = map[string][]crew.Step{}
		for _, s := range all {
			c.steps[s.Key] = append(c.steps[s.Key], s)
		}
	}
	return c.steps[key], nil
}

// sequence is some trees with one sequential key.
type sequence struct {
	key      string
	trees    []*client.Handle
	anyOrder bool         // one begins after the other, but not in that of their numbers
	ended    map[int]bool // those that were told to end
	fails    map[int]bool
}

// serial starts trees with one sequential key, of which some fail and some are ended, and waits until all are over.
func (r *rig) serial(ctx context.Context) {
	if !r.told.listens(ctx, r) {
		pause(ctx, time.Second)
		return
	}
	s := &sequence{key: r.name("serial"), ended: map[int]bool{}, fails: map[int]bool{}}
	for n := range serialTrees {
		s.fails[n] = r.intn(4) == 0
		h := r.start(ctx, fmt.Sprintf("%s_%d", s.key, n), job.Single(&crew.Serial{Key: s.key, N: n, Fails: s.fails[n]}, ""), job.SequentialKey(s.key))
		if h == nil {
			break
		}
		s.trees = append(s.trees, h)
		if r.intn(8) == 0 { // it, or one that waits
			one := r.intn(n + 1)
			s.ended[one] = true
			r.act(ctx, crew.Order{What: crew.Terminate, Job: s.trees[one].ID()}, func(a crew.Answer) bool { return a.Error == "" })
		}
	}
	r.add(s)
	end, cancel := r.toEnd(ctx)
	defer cancel()
	for pause(end, 200*time.Millisecond) {
		if len(s.trees) == 0 {
			return
		}
		if i, err := s.trees[len(s.trees)-1].Info(end); err == nil && (i.Status.Settled() || i.Status == job.Failed) {
			return
		}
	}
}

// check implements round.
func (s *sequence) check(ctx context.Context, r *rig) error {
	steps, err := r.told.of(ctx, s.key)
	if err != nil {
		return err
	}
	for n, h := range s.trees {
		i, err := h.Info(ctx)
		if err != nil {
			return fmt.Errorf("tree %d of key %s: %w", n, s.key, err)
		}
		r.count(jobsSeen, 1)
		r.count(serialTreesSeen, 1)
		switch want := map[bool]job.Status{false: job.Completed, true: job.Failed}[s.fails[n]]; {
		case i.Status == job.Waiting:
			r.bad(leftWaiting, "tree %d of key %s still waits: %s", n, s.key, h.ID())
		case i.Status != want && (!s.ended[n] || i.Status != job.Terminated):
			r.bad(stuck, "tree %d of key %s is %s: %s", n, s.key, i.Status, h.ID())
		}
	}
	s.inOrder(r, steps)
	return nil
}

// inOrder looks whether one tree began after the other, in the order of their creation, and not before the last one was about to end.
func (s *sequence) inOrder(r *rig, steps []crew.Step) {
	open, last, told := -1, -1, map[crew.Step]bool{}
	for _, step := range steps {
		switch {
		case told[step]:
			r.bad(duplicated, "tree %d of key %s told twice: %+v", step.N, s.key, step)
		case step.End && open != step.N:
			r.bad(twoActive, "tree %d of key %s ended, and tree %d was active", step.N, s.key, open)
		case step.End:
			open = -1
		case open >= 0 && !s.ended[open]:
			r.bad(twoActive, "tree %d of key %s began, and tree %d was active", step.N, s.key, open)
		case step.N < last && !s.anyOrder:
			r.bad(keyOrder, "tree %d of key %s began after tree %d", step.N, s.key, last)
		}
		if told[step] = true; !step.End {
			open, last = step.N, step.N
		}
	}
	for n := range s.trees {
		for _, end := range []bool{false, true} {
			if step := (crew.Step{Key: s.key, N: n, End: end}); !told[step] && !s.ended[n] {
				r.bad(lost, "tree %d of key %s did not tell %+v", n, s.key, step)
			}
		}
	}
}
