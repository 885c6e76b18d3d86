package client

import (
	"context"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
)

// Retention returns for how long the trees of the namespace are kept that name no retention of their own.
func (c *Client) Retention(ctx context.Context) (job.Retention, error) { return c.store.Retention(ctx) }

// SetRetention says for how long the trees of the namespace are kept that settle from now on and name no retention of their
// own, and the entries of all logs. A zero leaves that one as it is, Forever keeps them.
func (c *Client) SetRetention(ctx context.Context, r job.Retention) error {
	for _, d := range []time.Duration{r.Ended, r.Failed, r.Log} {
		if d == 0 {
			continue
		}
		if err := job.CheckRetention(d); err != nil {
			return fmt.Errorf("setting the retention of a namespace: %w", err)
		}
	}
	return c.store.SetRetention(ctx, r)
}
