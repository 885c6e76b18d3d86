package lab

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Produce calls fn for each number below n, as many at a time as there are producers.
func (l *Lab) Produce(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for p := range l.Concurrency {
		g.Go(func() error {
			for i := p; i < n; i += l.Concurrency {
				if err := fn(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// Flood adds n items, as many at a time as there are producers, and waits until all have
// arrived.
func (l *Lab) Flood(ctx context.Context, n int, ledger *Ledger, add func(ctx context.Context, i int) error) (Usage, error) {
	return l.Measure(ctx, func(ctx context.Context) error {
		if err := l.Produce(ctx, n, add); err != nil {
			return err
		}
		return ledger.Wait(ctx)
	})
}

// Drip adds n items one after another, each a moment after the one before has arrived and
// pause has returned, and tells how long each took.
func Drip(ctx context.Context, n int, ledger *Ledger, pause func(context.Context) error, add func(ctx context.Context, i int) error) (Times, error) {
	var times Times
	for i := range n {
		if err := pause(ctx); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := add(ctx, i); err != nil {
			return nil, err
		}
		end, err := ledger.WaitFor(ctx, i)
		if err != nil {
			return nil, err
		}
		times = append(times, end.Sub(start))
	}
	return times, nil
}

// NoPause lets Drip go on at once.
func NoPause(context.Context) error { return nil }
