package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirworks/weir/job"
)

// Create creates one job by the name of its type. Nothing is stored when the type is
// unknown, has no such arguments or none of such values, the parent is gone or ended, or the name or alias is taken.
func (c *Client) Create(ctx context.Context, n job.New) (*Handle, error) {
	h, err := c.create(ctx, n)
	for errors.Is(err, job.ErrMoved) { // the number that the child was to have
		h, err = c.create(ctx, n)
	}
	if err != nil {
		return nil, fmt.Errorf("creating a job of type %q: %w", n.Type, err)
	}
	return h, nil
}

func (c *Client) create(ctx context.Context, n job.New) (*Handle, error) {
	plan, err := c.PlanNew(ctx, n)
	if err != nil {
		return nil, err
	}
	plan = plan.Traced(c.trace.in(ctx))
	id, err := c.newID(ctx, n.Parent)
	if err != nil {
		return nil, err
	}
	id = c.placed(id, plan)
	if n.Key != "" {
		var there *Handle
		if id, there, err = c.keyed(ctx, "create", n.Key, id, plan); err != nil || there != nil {
			return there, err
		}
	}
	if n.Alias != "" {
		if err := job.CheckAlias(n.Alias); err != nil {
			return nil, err
		}
		holder, err := c.store.Claim(ctx, n.Alias, id)
		if err != nil {
			return nil, err
		}
		if holder != id {
			return nil, fmt.Errorf("%w: job %s has the alias %q", job.ErrExists, holder, n.Alias)
		}
	}
	created, err := c.store.Create(ctx, id, plan, n.By)
	if err != nil && n.Alias != "" {
		return nil, errors.Join(err, c.store.Unclaim(context.WithoutCancel(ctx), n.Alias, id))
	}
	if err != nil {
		there, err := c.standing(ctx, plan, err)
		if err != nil {
			return nil, err
		}
		return there, c.stands(ctx, "create", n.Key, there)
	}
	h := c.handle(id)
	h.created = created
	return h, nil
}

func (c *Client) newID(ctx context.Context, parent job.ID) (job.ID, error) {
	if parent == "" {
		return job.NewID()
	}
	if _, err := c.store.Info(ctx, parent); err != nil {
		return "", fmt.Errorf("parent: %w", err)
	}
	n, err := c.store.Reserve(ctx, parent.Tree(), 1)
	return parent.Nth(n), err
}

// PlanNew returns what Create would create, and creates nothing.
func (c *Client) PlanNew(ctx context.Context, n job.New) (*job.Plan, error) {
	return job.PlanNew(ctx, c.store.Type, n)
}
