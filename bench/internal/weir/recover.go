package weir

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"

	"github.com/weirworks/weir/bench/internal/lab"
)

// stuck is a job whose run ends in this process, and never in a victim.
type stuck struct {
	tuned
	Item   string
	ledger *lab.Ledger // of this process
	victim io.Writer   // told that a run begins
}

// Run implements worker.Worker.
func (s *stuck) Run(ctx context.Context, _ *worker.Run) error {
	if s.victim == nil {
		s.ledger.Arrived(s.Item)
		return nil
	}
	if _, err := fmt.Fprintln(s.victim, lab.Begun); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// Victim serves jobs whose runs never end, until ctx does.
func Victim(ctx context.Context, l *lab.Lab, out io.Writer) error {
	_, err := with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		return nil, r.serve(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, &stuck{victim: out})
	})
	return err
}

// recovery kills workers and measures how long it takes until each of their jobs runs here.
func recovery(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var times lab.Times
		for range l.Size.Kills {
			t, err := r.kill(ctx, min(l.Size.Stuck, l.Concurrency))
			if err != nil {
				return nil, err
			}
			times = append(times, t...)
		}
		return times.Figures("recover"), nil
	})
}

// kill starts a worker, gives it n jobs, and kills it while another one is there.
func (r *rig) kill(ctx context.Context, n int) (lab.Times, error) {
	victim, err := r.lab.StartVictim(System)
	if err != nil {
		return nil, err
	}
	defer victim.Kill()
	handles := make([]*job.Handle, n)
	for i := range handles {
		if handles[i], err = r.client.Start(ctx, job.Single(&stuck{Item: lab.Item(i)}, "")); err != nil {
			return nil, err
		}
	}
	if err := victim.Began(n); err != nil {
		return nil, err
	}
	ledger := lab.NewLedger(n, n)
	var times lab.Times
	err = r.serve(ctx, func(ctx context.Context) error {
		if err := lab.Doze(ctx); err != nil {
			return err
		}
		killed := time.Now()
		victim.Kill()
		for i, h := range handles {
			at, err := ledger.WaitFor(ctx, i)
			if err != nil {
				return err
			}
			times = append(times, at.Sub(killed))
			info, err := h.Wait(ctx)
			if err != nil {
				return err
			}
			if info.Steps != 1 {
				return wrong(info, "committed %d runs instead of one", info.Steps)
			}
		}
		return nil
	}, &stuck{ledger: ledger})
	return times, err
}
