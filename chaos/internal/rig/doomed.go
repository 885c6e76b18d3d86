package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"

	"github.com/weirworks/weir/chaos/internal/crew"
)

// doom is a tree that was ended while it worked, and perhaps deleted.
type doom struct {
	name    string
	root    *job.Handle
	last    map[job.ID]*job.Info // as its jobs were when all of them had ended
	ended   bool
	deleted bool
}

// doomed starts a tree, ends it while it works and messages come in, and deletes some.
func (r *rig) doomed(ctx context.Context, p job.Planner) {
	h := r.start(ctx, r.name("doomed"), p)
	if h == nil {
		return
	}
	d := &doom{name: "doomed " + string(h.ID()), root: h}
	r.add(d)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		var l lane
		if i, err := h.Info(sending); err == nil && i.Graph {
			l.send(sending, r, h, time.Hour)
		}
	}()
	pause(ctx, r.between(50*time.Millisecond, 2*time.Second))
	end, cancel := r.toEnd(ctx)
	defer cancel()
	if !r.act(end, crew.Order{What: crew.Terminate, Job: h.ID()}, func(a crew.Answer) bool { return a.Error == "" }) {
		r.bad(trouble, "%s could not be ended", d.name)
		return
	}
	d.await(end, r)
	pause(ctx, time.Second) // messages go on coming in
	stop()
	<-sent
	if d.ended && r.chance() < 0.6 {
		d.remove(end, r)
	}
}

// await waits until all jobs of the tree have ended, and remembers them.
func (d *doom) await(ctx context.Context, r *rig) {
	for pause(ctx, 100*time.Millisecond) {
		if ended, err := d.root.Ended(ctx); err != nil || !ended {
			continue
		}
		tree, err := d.root.Tree(ctx)
		if err != nil {
			continue
		}
		d.last = map[job.ID]*job.Info{}
		for _, i := range tree {
			d.last[i.ID] = i
		}
		d.ended = true
		r.count(terminated, 1)
		return
	}
}

// remove has the tree deleted.
func (d *doom) remove(ctx context.Context, r *rig) {
	d.deleted = r.act(ctx, crew.Order{What: crew.Delete, Job: d.root.ID()}, func(a crew.Answer) bool { return a.Error == "" || a.Gone })
	if d.deleted {
		r.count(deleted, 1)
	} else {
		r.bad(trouble, "%s could not be deleted", d.name)
	}
}

// check implements round.
func (d *doom) check(ctx context.Context, r *rig) error {
	tree, err := d.root.Tree(ctx)
	if errors.Is(err, job.ErrNotFound) {
		if !d.deleted {
			r.bad(lost, "%s is gone, and was not deleted", d.name)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if d.deleted {
		r.bad(resurrected, "%s was deleted, and is there: %s", d.name, tree[0].Status)
		return nil
	}
	for _, i := range tree {
		r.count(jobsSeen, 1)
		before := d.last[i.ID]
		switch {
		case !d.ended && i.Status != statemachine.Terminated:
			r.bad(zombies, "%s was to end: job %s is %s", d.name, i.ID, i.Status)
		case !d.ended:
		case before == nil:
			r.bad(resurrected, "%s has ended, and has a new job %s, which is %s", d.name, i.ID, i.Status)
		case i.Status != statemachine.Terminated, i.Version != before.Version, !i.Ran.Equal(before.Ran):
			r.bad(resurrected, "%s has ended, and then job %s became %s: it ran at %s, version %d; before it was %s, version %d",
				d.name, i.ID, i.Status, i.Ran.Format(time.StampMilli), i.Version, before.Ran.Format(time.StampMilli), before.Version)
		}
	}
	return nil
}

// crowd is a graph of many jobs.
type crowd struct {
	name    string
	root    *job.Handle
	jobs    int
	deleted bool
}

// large has an actor start a graph of many jobs, lets them run, and has it ended and deleted.
func (r *rig) large(ctx context.Context) {
	c := &crowd{name: r.name("large"), jobs: 501 + r.intn(200)}
	end, cancel := r.toEnd(ctx)
	defer cancel()
	var id job.ID
	if !r.act(end, crew.Order{What: crew.StartLarge, Alias: c.name, Jobs: c.jobs}, func(a crew.Answer) bool {
		id = a.Job
		return a.Error == ""
	}) {
		r.bad(trouble, "%s could not be started", c.name)
		return
	}
	r.insist(ctx, "finding "+c.name, func(ctx context.Context) (err error) {
		c.root, err = r.client.Find(ctx, string(id))
		return err
	})
	if c.root == nil {
		return
	}
	r.add(c)
	for limit := time.Now().Add(6 * time.Second); time.Now().Before(limit); {
		if i, err := c.root.Info(ctx); err == nil && i.Status == statemachine.Completed || !pause(ctx, 200*time.Millisecond) {
			break
		}
	}
	if !r.act(end, crew.Order{What: crew.Terminate, Job: id}, func(a crew.Answer) bool { return a.Error == "" }) {
		r.bad(trouble, "%s could not be ended", c.name)
		return
	}
	// Some of it may be at work still: then it is not deleted, and asked again.
	c.deleted = r.act(end, crew.Order{What: crew.Delete, Job: id}, func(a crew.Answer) bool { return a.Error == "" || a.Gone })
	if c.deleted {
		r.count(terminated, 1)
		r.count(deleted, 1)
	} else {
		r.bad(trouble, "%s could not be deleted", c.name)
	}
}

// check implements round.
func (c *crowd) check(ctx context.Context, r *rig) error {
	tree, err := c.root.Tree(ctx)
	switch {
	case errors.Is(err, job.ErrNotFound) && c.deleted:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", c.name, err)
	case c.deleted:
		r.bad(resurrected, "%s was deleted, and is there: %s", c.name, tree[0].Status)
	case len(tree) != c.jobs+1:
		r.bad(lost, "%s has %d jobs instead of %d", c.name, len(tree), c.jobs+1)
	}
	return nil
}
