package weir

import (
	"context"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// listener tells the ledger of what it hears.
type listener struct {
	tuned
	In     port.In[string]
	ledger *lab.Ledger
}

// Run implements worker.Worker.
func (s *listener) Run(context.Context, *worker.Run) error {
	for item, err := range s.In.All() {
		if err != nil {
			return err
		}
		s.ledger.Arrived(item)
	}
	return nil
}

// wake writes to a job that sleeps, again and again, while nothing else happens.
func wake(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		n := l.Size.Wakes
		ledger := lab.NewLedger(n, n)
		var times lab.Times
		err := r.serve(ctx, func(ctx context.Context) error {
			h, err := r.client.Start(ctx, job.Single(&listener{}, ""))
			if err != nil {
				return err
			}
			pause := func(ctx context.Context) error {
				if err := suspended(ctx, h); err != nil {
					return err
				}
				return lab.Doze(ctx)
			}
			times, err = lab.Drip(ctx, n, ledger, pause, func(ctx context.Context, i int) error {
				return h.Write(ctx, "in", lab.Item(i))
			})
			if err != nil {
				return err
			}
			return consumed(ctx, h, n)
		}, &listener{ledger: ledger})
		return times.Figures("wake"), err
	})
}

// suspended waits until a job without input has ended its run.
func suspended(ctx context.Context, h *client.Handle) error {
	return lab.Until(ctx, func(ctx context.Context) error {
		info, err := h.Info(ctx)
		if err == nil && info.Status != statemachine.Completed {
			err = wrong(info, "does not sleep")
		}
		return err
	})
}

// consumed waits until a job has taken n messages from its port.
func consumed(ctx context.Context, h *client.Handle, n int) error {
	return lab.Until(ctx, func(ctx context.Context) error {
		info, err := h.Info(ctx)
		if err != nil {
			return err
		}
		if p, _ := info.Port(port.Input, "in"); p.Waiting != 0 || p.Total != int64(n) {
			return wrong(info, "%d messages passed its port and %d wait, and %d were sent", p.Total, p.Waiting, n)
		}
		return nil
	})
}

// idle looks at an engine that has nothing to do.
func idle(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var figures []lab.Figure
		err := r.serveQueues(ctx, lab.Queues(), func(ctx context.Context) (err error) {
			figures, err = l.Rest(ctx)
			return err
		}, &listener{})
		return figures, err
	})
}
