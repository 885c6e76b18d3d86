package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// checkKey refuses what is no key.
func checkKey(of, key string) error {
	if len(key) == 0 || len(key) > job.MaxKey {
		return fmt.Errorf("%w: key %.80q of a %s has %d bytes: use 1 to %d", job.ErrName, key, of, len(key), job.MaxKey)
	}
	return nil
}

// byKey returns the ID that was made under a key, or remembers the given one. Whoever dies before the job is created leaves an ID without a
// job, which the next call under the key gets.
func (c *Client) byKey(ctx context.Context, of, key string, id job.ID) (job.ID, error) {
	if err := checkKey(of, key); err != nil {
		return "", err
	}
	return c.store.Once(ctx, of+" "+key, id)
}

// keyed is byKey, and returns besides the job that is there under the key.
func (c *Client) keyed(ctx context.Context, of, key string, fresh job.ID, plan *job.Plan) (id job.ID, there *Handle, err error) {
	if id, err = c.byKey(ctx, of, key, fresh); err != nil || id == fresh {
		return id, nil, err
	}
	there, err = c.remembered(ctx, of, key, id, plan)
	return id, there, err
}

// remembered returns the job that is there under a key which was used before with an ID: that of the ID, or the one that had the unique key
// of the plan already. It is nil if whoever came first has not made it yet, or died before.
func (c *Client) remembered(ctx context.Context, of, key string, id job.ID, plan *job.Plan) (*Handle, error) {
	if plan.Unique != nil {
		other, err := c.store.Once(ctx, of+standingKey+key, id)
		if err != nil {
			return nil, err
		}
		if other != id {
			return c.handle(other), nil
		}
	}
	_, err := c.store.Info(ctx, id)
	if errors.Is(err, job.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return c.handle(id), err
}

// standingKey is between what is done and a key where the job is remembered that had the unique key of one that was not made.
const standingKey = " standing "

// stands remembers under a key, if there is one, the job that had the unique key already.
func (c *Client) stands(ctx context.Context, of, key string, there *Handle) error {
	if key == "" {
		return nil
	}
	_, err := c.store.Once(ctx, of+standingKey+key, there.ID())
	return err
}

// Turn returns the place of the job's tree among those with its job.SequentialKey; its Key is empty if the tree has none.
func (h *Handle) Turn(ctx context.Context) (job.Turn, error) {
	t, err := h.store.Turn(ctx, h.id.Tree())
	if err != nil {
		return t, fmt.Errorf("job %s: %w", h.id, err)
	}
	return t, nil
}

// placed returns the ID of a root with a plan: in the shard of its key, if it has one.
func (c *Client) placed(id job.ID, plan *job.Plan) job.ID {
	home := plan.Home()
	if home == "" {
		return id
	}
	return c.store.Keyed(id, home)
}

// standing returns the tree that is there in place of one that was not created, as err says; nil if it says something else. args are
// merged into its own, if that is asked for.
func (c *Client) standing(ctx context.Context, plan *job.Plan, err error) (*Handle, error) {
	var same *job.DuplicateError
	if !errors.As(err, &same) {
		return nil, err
	}
	h := c.handle(same.ID)
	if root := &plan.Nodes[0]; plan.Unique.Merge && len(root.Args) > 0 {
		h.merged, err = c.store.MergeArgs(ctx, same.ID, store.Merging{Type: root.Type, TypeVersion: root.TypeVersion, Args: root.Args})
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}
