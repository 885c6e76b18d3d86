package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Start creates all jobs of a plan in one step and queues those that have something
// to do. It returns a handle of the root.
func (c *Client) Start(ctx context.Context, p job.Planner, opts ...job.Option) (*Handle, error) {
	o := job.Choose(opts)
	plan, err := c.plan(ctx, p, o)
	if err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	plan = plan.Traced(c.trace.in(ctx))
	id, err := o.NewID()
	if err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	id = c.placed(id, plan)
	if o.Keyed {
		var there *Handle
		if id, there, err = c.keyed(ctx, "start", o.Key, id, plan); err != nil {
			return nil, fmt.Errorf("starting a tree: %w", err)
		}
		if there != nil {
			return there, nil
		}
	}
	if o.Aliased {
		// The alias is bound before the tree exists. If this process dies in between,
		// the next Start under the alias creates the tree under the same ID.
		if id, err = c.store.Claim(ctx, o.Alias, id); err != nil {
			return nil, fmt.Errorf("starting tree %q: %w", o.Alias, err)
		}
	}
	h := c.handle(id)
	h.created, err = c.store.Create(ctx, id, plan, o.By)
	if err != nil {
		var there *Handle
		if there, err = c.standing(ctx, plan, err); err == nil {
			return there, c.stands(ctx, "start", o.Key, there)
		}
		return nil, fmt.Errorf("starting tree %s: %w", id, err)
	}
	if !h.created && !o.Keyed && o.ID == nil {
		if err := h.meet(ctx, plan, o); err != nil {
			return nil, fmt.Errorf("starting tree %q: %w", o.Alias, err)
		}
	}
	if root := &plan.Nodes[0]; !root.Graph { // which is all that is to be known of it
		h.seen = &job.Info{ID: id, Type: root.Type, Queue: cmp.Or(root.Queue, job.DefaultQueue)}
	}
	return h, nil
}

// plan returns what is to be created.
func (c *Client) plan(ctx context.Context, p job.Planner, o *job.Choices) (*job.Plan, error) {
	plan, err := o.Plan(p)
	if err != nil || o.Later {
		return plan, err
	}
	if err := c.types.checkQueues(ctx, plan); errors.Is(err, job.ErrUnknownType) {
		return nil, &AdvisedError{Err: err, Advice: "; if its engine is started later, pass job.EnginesLater()"}
	} else if err != nil {
		return nil, err
	}
	return plan, nil
}

// meet makes sure that a tree that was there already is what a plan describes, or does what is
// asked for if it is not.
func (h *Handle) meet(ctx context.Context, plan *job.Plan, how *job.Choices) error {
	if how.Take {
		return nil
	}
	digest := plan.Digest()
	before := ""
	var refused error
	for {
		info, err := h.Info(ctx)
		if err != nil {
			return err
		}
		other := differs(info, plan, digest)
		switch {
		case other == "":
			return nil
		case !how.Patch || !info.Graph || over(info.Status):
			return h.unlike(info, &plan.Nodes[0], other)
		case refused != nil && info.Definition == before:
			return refused // not because somebody else changed the graph, too
		}
		before = info.Definition
		if refused = h.patch(ctx, plan); !errors.Is(refused, job.ErrStatus) {
			return refused
		}
	}
}

// over tells whether a tree with that status of its root has come to its end, or is about to.
func over(s statemachine.Status) bool {
	return s.Settled() || s == statemachine.Terminating
}

// unlike is the error about a tree that is not what a plan describes.
func (h *Handle) unlike(there *job.Info, n *job.Node, other string) error {
	var advice string
	remedy := ": choose another alias"
	switch {
	case there.Status == statemachine.Completed: // which is not to be deleted
		other += fmt.Sprintf(" and is %s", there.Status)
		remedy += ", terminate it with all jobs in it and delete it"
	case over(there.Status):
		other += fmt.Sprintf(" and is %s", there.Status)
		remedy += ", delete it"
	case there.Graph && n.Graph && there.Type == n.Type:
		remedy, advice = "", ": change it into this one with job.PatchExisting() or Handle.Patch"
	}
	return &AdvisedError{
		Err:      fmt.Errorf("%w: job %s has this alias and %s%s", job.ErrExists, h.id, other, remedy),
		Advice:   advice + ", or take it as it is with job.TakeExisting()",
		Existing: true, Patch: advice != "",
	}
}

// differs says in what a tree is not what a plan describes, by their first jobs; empty: in nothing.
func differs(there *job.Info, plan *job.Plan, digest string) string {
	n := &plan.Nodes[0]
	switch {
	case there.Graph != n.Graph || there.Type != n.Type:
		return fmt.Sprintf("is a %s", there.Type)
	case n.Graph && there.Definition != digest:
		return "has another definition"
	case n.Graph:
		return ""
	case there.Queue != cmp.Or(n.Queue, job.DefaultQueue):
		return fmt.Sprintf("is in queue %q", there.Queue)
	case !sameArgs(there.Args, n.Args):
		return "has other parameters"
	case !there.Repeat.Like(plan.Repeat):
		return "repeats in another way"
	}
	return ""
}

// sameArgs tells whether the parameters of two workers are the same. One that is missing has its
// zero value.
func sameArgs(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	for _, one := range []map[string]json.RawMessage{x, y} {
		for name := range one {
			if same := bytes.Equal(x[name], y[name]) || isZero(x[name]) && isZero(y[name]); !same {
				return false
			}
		}
	}
	return true
}

func isZero(value json.RawMessage) bool {
	switch string(value) {
	case "", "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}
