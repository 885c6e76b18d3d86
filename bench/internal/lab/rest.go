package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// settling is how long a worker has after its start before it is taken to be idle.
const settling = 2 * time.Second

// Doze waits for some tens of milliseconds: long enough for a system without work to be idle,
// and never in step with what it does at regular times.
func Doze(ctx context.Context) error {
	return Sleep(ctx, time.Duration(20+rand.IntN(40))*time.Millisecond)
}

// Sleep waits for so long, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Queues are those that an idle worker serves, with their weights.
func Queues() map[string]int {
	return map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}
}

// Rest looks at a worker in this process that has nothing to do: at the commands that it
// sends, those inside of scripts counted, and at the CPU time that it and Redis use.
func (l *Lab) Rest(ctx context.Context) ([]Figure, error) {
	time.Sleep(min(settling, l.Size.Idle))
	var before, after int64
	used, err := l.Measure(ctx, func(ctx context.Context) (err error) {
		if before, err = l.commands(ctx); err != nil {
			return err
		}
		time.Sleep(l.Size.Idle)
		after, err = l.commands(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	a := func(d time.Duration) float64 { return d.Seconds() / used.Wall.Seconds() * 1000 }
	return []Figure{
		{Name: "idle.commands", Value: float64(after-before) / used.Wall.Seconds(), Unit: "/s", Less: true},
		{Name: "idle.own_cpu", Value: a(used.OwnCPU), Unit: "ms/s", Less: true},
		{Name: "idle.redis_cpu", Value: a(used.RedisCPU), Unit: "ms/s", Less: true},
	}, nil
}

// commands counts the commands that Redis has executed, but for INFO, which only the bench
// sends.
func (l *Lab) commands(ctx context.Context) (int64, error) {
	stats, err := l.Info(ctx, "commandstats")
	if err != nil {
		return 0, err
	}
	var all int64
	for name, stat := range stats {
		if name == "cmdstat_info" {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO commandstats: %s: %w", name, err)
		}
		all += n
	}
	return all, nil
}

// Weigh calls more with each number of jobs of the lab's size, for it to see to it that there
// are about that many, and tells how many bytes of Redis each takes. more returns how many
// there are. What is there before the first call is not counted.
func (l *Lab) Weigh(ctx context.Context, name string, more func(ctx context.Context, n int) (int, error)) ([]Figure, error) {
	empty, err := l.memory(ctx)
	if err != nil {
		return nil, err
	}
	var figures []Figure
	for _, n := range l.Size.Weighed {
		have, err := more(ctx, n)
		if err != nil {
			return nil, err
		}
		full, err := l.memory(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, Figure{
			Name: fmt.Sprintf("%s.%d", name, n), Value: (full - empty) / float64(have), Unit: "bytes", Less: true,
		})
	}
	return figures, nil
}

// memory is how many bytes Redis uses. Some hundred thousand come and go with what is in the
// buffers of connections: too much to weigh few jobs.
func (l *Lab) memory(ctx context.Context) (float64, error) {
	info, err := l.Info(ctx, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["used_memory"], 64)
}
