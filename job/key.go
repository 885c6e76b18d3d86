package job

import (
	"context"
	"errors"
	"fmt"
)

// Key makes Start idempotent: if a tree was started with the same key in the last OnceFor, that tree is returned, whatever its
// definition, and Created is false. So a caller that does not know whether a Start was carried out, as its process died or no
// answer came, may repeat it. A key is a text of 1 to 128 bytes, one for each tree that is to be started.
func Key(key string) Option { return option(func(o *startOptions) { o.key, o.keyed = key, true }) }

// checkKey refuses what is no key.
func checkKey(of, key string) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("%w: key %.80q of a %s has %d bytes: use 1 to %d", ErrName, key, of, len(key), MaxKey)
	}
	return nil
}

// byKey returns the ID that was made under a key, or remembers the given one. Whoever dies before the job is created leaves an ID without a
// job, which the next call under the key gets.
func (c *Client) byKey(ctx context.Context, of, key string, id ID) (ID, error) {
	if err := checkKey(of, key); err != nil {
		return "", err
	}
	return c.store.Once(ctx, of+" "+key, id)
}

// keyed is byKey, and returns besides the job that is there under the key.
func (c *Client) keyed(ctx context.Context, of, key string, fresh ID, plan *Plan) (id ID, there *Handle, err error) {
	if id, err = c.byKey(ctx, of, key, fresh); err != nil || id == fresh {
		return id, nil, err
	}
	there, err = c.remembered(ctx, of, key, id, plan)
	return id, there, err
}

// remembered returns the job that is there under a key which was used before with an ID: that of the ID, or the one that had the unique key
// of the plan already. It is nil if whoever came first has not made it yet, or died before.
func (c *Client) remembered(ctx context.Context, of, key string, id ID, plan *Plan) (*Handle, error) {
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
	if errors.Is(err, ErrNotFound) {
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
