package job

import (
	"context"
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
