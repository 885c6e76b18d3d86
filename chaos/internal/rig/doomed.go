package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// doom is a tree that was ended while it worked, and perhaps deleted.
type doom struct {
	name  string
	root  *client.Handle
	last  map[job.ID]*job.Info // as its jobs were when all of them had ended
	ended bool
	deletion
}

// deletion is what is known of one: it was begun, and perhaps done.
type deletion struct{ begun, done bool }

// deleteTime is how long it is tried to delete a tree. Who died while deleting one has marked it,
// which keeps others from it for a minute: it is then either all there or all gone.
const deleteTime = 5 * time.Second

// remove has a tree deleted.
func (d *deletion) remove(ctx context.Context, r *rig, h *client.Handle) {
	ctx, cancel := context.WithTimeout(ctx, deleteTime)
	defer cancel()
	d.begun = true
	d.done = r.act(ctx, crew.Order{What: crew.Delete, Job: h.ID()}, func(a crew.Answer) bool { return a.Error == "" || a.Gone })
	if d.done {
		r.count(deleted, 1)
	}
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
		d.remove(end, r, h)
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

// check implements round.
func (d *doom) check(ctx context.Context, r *rig) error {
	tree, err := d.root.Tree(ctx)
	if errors.Is(err, job.ErrNotFound) {
		if !d.begun {
			r.bad(lost, "%s is gone, and was not deleted", d.name)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if d.done {
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
	name string
	root *client.Handle
	jobs int
	deletion
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
	for pause(end, 100*time.Millisecond) {
		if ended, err := c.root.Ended(end); err == nil && ended {
			r.count(terminated, 1)
			c.remove(end, r, c.root)
			return
		}
	}
}

// check implements round.
func (c *crowd) check(ctx context.Context, r *rig) error {
	tree, err := c.root.Tree(ctx)
	switch {
	case errors.Is(err, job.ErrNotFound) && c.begun:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", c.name, err)
	case c.done:
		r.bad(resurrected, "%s was deleted, and is there: %s", c.name, tree[0].Status)
	case len(tree) != c.jobs+1:
		r.bad(lost, "%s has %d jobs instead of %d", c.name, len(tree), c.jobs+1)
	}
	return nil
}
