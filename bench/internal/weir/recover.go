package weir

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
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

// drain is how long a victim that is told to end waits for its runs.
const drain = 50 * time.Millisecond

// Victim serves jobs whose runs never end, until ctx does.
func Victim(ctx context.Context, l *lab.Lab, out io.Writer) error {
	_, err := with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		r.drain = drain
		return nil, r.serve(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, &stuck{victim: out})
	})
	return err
}

// recovery kills workers, and tells others to end, and measures how long it takes until each of
// their jobs runs here.
func recovery(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		var killed, stopped lab.Times
		for range l.Size.Kills {
			n := min(l.Size.Stuck, l.Concurrency)
			k, err := r.end(ctx, n, (*lab.Victim).Kill)
			if err != nil {
				return nil, err
			}
			s, err := r.end(ctx, n, (*lab.Victim).Stop)
			if err != nil {
				return nil, err
			}
			killed, stopped = append(killed, k...), append(stopped, s...)
		}
		return append(killed.Figures("recover"), stopped.Figures("recover.sigterm")...), nil
	})
}

// end starts a worker, gives it n jobs, and ends it while another one is there.
func (r *rig) end(ctx context.Context, n int, how func(*lab.Victim)) (lab.Times, error) {
	victim, err := r.lab.StartVictim(System)
	if err != nil {
		return nil, err
	}
	defer victim.Kill()
	handles := make([]*client.Handle, n)
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
		ended := time.Now()
		how(victim)
		for i, h := range handles {
			at, err := ledger.WaitFor(ctx, i)
			if err != nil {
				return err
			}
			times = append(times, at.Sub(ended))
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
