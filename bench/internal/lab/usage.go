package lab

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what a piece of work took.
type Usage struct {
	Wall     time.Duration
	RedisCPU time.Duration // of redis-server
	OwnCPU   time.Duration // of this process
}

// Measure does some work and tells what it took.
func (l *Lab) Measure(ctx context.Context, work func(context.Context) error) (Usage, error) {
	before, err := l.usage(ctx)
	if err != nil {
		return Usage{}, err
	}
	start := time.Now()
	if err := work(ctx); err != nil {
		return Usage{}, err
	}
	wall := time.Since(start)
	after, err := l.usage(ctx)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Wall: wall, RedisCPU: after.RedisCPU - before.RedisCPU, OwnCPU: after.OwnCPU - before.OwnCPU}, nil
}

func (l *Lab) usage(ctx context.Context) (Usage, error) {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return Usage{}, err
	}
	u := Usage{OwnCPU: time.Duration(own.Utime.Nano() + own.Stime.Nano())}
	if l.Redis == nil {
		return u, nil
	}
	for _, r := range l.Redis.all() {
		info, err := r.section(ctx, "cpu")
		if err != nil {
			return Usage{}, err
		}
		for _, field := range []string{"used_cpu_sys", "used_cpu_user"} {
			s, err := strconv.ParseFloat(info[field], 64)
			if err != nil {
				return Usage{}, fmt.Errorf("INFO cpu: %s: %w", field, err)
			}
			u.RedisCPU += time.Duration(s * float64(time.Second))
		}
	}
	return u, nil
}

// Info returns a section of Redis's INFO.
func (l *Lab) Info(ctx context.Context, section string) (map[string]string, error) {
	return l.Redis.section(ctx, section)
}

func (r *Redis) section(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// Rate is how many of n things there were a second.
func (u Usage) Rate(n int) float64 { return float64(n) / u.Wall.Seconds() }

// Throughput are the figures of a workload that has done n things.
func (u Usage) Throughput(name string, n int, unit string) []Figure {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
	figures := []Figure{
		{Name: name, Value: u.Rate(n), Unit: unit + "/s"},
		{Name: name + ".own_cpu", Value: each(u.OwnCPU), Unit: "µs", Less: true},
	}
	if u.RedisCPU > 0 {
		figures = append(figures, Figure{Name: name + ".redis_cpu", Value: each(u.RedisCPU), Unit: "µs", Less: true})
	}
	return figures
}
