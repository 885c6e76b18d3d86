package crew

import (
	"context"
	"errors"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Handed fails for good until somebody retries it by hand with other args. Then it says its number, once.
type Handed struct {
	acting
	N      int
	Mended bool
	Out    port.Out[int]
}

// Run implements worker.Worker.
func (w *Handed) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	var done int
	if _, err := run.State().Get(CountKey, &done); err != nil {
		return err
	}
	think()
	if !w.Mended {
		return worker.Permanent(errors.New("it waits for a hand"))
	}
	return errors.Join(w.Out.Write(w.N), run.State().Set(CountKey, done+1))
}

// repair retries a Handed with the args that it wants.
func (o Order) repair(ctx context.Context, h *client.Handle) error {
	return h.Retry(ctx, client.RetryArgs(map[string]any{"N": o.N, "Mended": true}), client.RetryPriority(o.N%1000))
}

// startUnique starts a tree, or finds the one that has its unique key.
func (o Order) startUnique(ctx context.Context, c *client.Client) (job.ID, error) {
	h, err := c.Start(ctx, job.Single(&Serial{Key: o.Key, N: o.N, Fails: o.N%4 == 0}, ""), job.Unique(job.UniqueBy{Key: o.Key}), job.EnginesLater())
	if err != nil {
		return "", err
	}
	return h.ID(), nil
}
