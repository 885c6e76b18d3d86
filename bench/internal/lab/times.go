package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Times are how long the repetitions of something took.
type Times []time.Duration

// Percentile returns the time that p per cent of the repetitions took at most.
func (t Times) Percentile(p int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min((len(sorted)*p+99)/100, len(sorted))-1]
}

// Figures are the median and the 99th percentile, in milliseconds.
func (t Times) Figures(name string) []Figure {
	ms := func(p int) float64 { return float64(t.Percentile(p)) / float64(time.Millisecond) }
	return []Figure{
		{Name: name + ".p50", Value: ms(50), Unit: "ms", Less: true},
		{Name: name + ".p99", Value: ms(99), Unit: "ms", Less: true},
	}
}

const (
	untilEvery = 20 * time.Millisecond
	untilLimit = 30 * time.Second
)

// Until repeats look until it returns nil: for what comes about soon after the clock has
// stopped. When that takes too long it returns look's last error.
func Until(ctx context.Context, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, untilLimit)
	defer cancel()
	var last error
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("this did not come right: %w", last), context.Cause(ctx))
		case <-time.After(untilEvery):
		}
	}
}

// Reached returns when a counter has reached n.
func Reached(ctx context.Context, counter *atomic.Int64, n int) error {
	tick := time.NewTicker(untilEvery)
	defer tick.Stop()
	for counter.Load() < int64(n) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d are done: %w", counter.Load(), n, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}
