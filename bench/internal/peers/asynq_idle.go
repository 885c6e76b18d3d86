package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirworks/weir/bench/internal/lab"
)

// asynqDefault is how often an idle server looks for tasks unless it is told otherwise.
const asynqDefault = time.Second

const (
	taskListen = "listen"
	taskStuck  = "stuck"
)

// listening handles tasks by telling a ledger.
func listening(kind string, ledger *lab.Ledger) *asynq.ServeMux {
	mux := asynq.NewServeMux()
	mux.HandleFunc(kind, func(_ context.Context, t *asynq.Task) error {
		ledger.Arrived(string(t.Payload()))
		return nil
	})
	return mux
}

// asynqWake enqueues a task, again and again, while nothing else happens.
func asynqWake(poll time.Duration) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		n := l.Size.Wakes
		if poll == asynqDefault {
			n = max(n/10, 1) // each takes most of a second
		}
		client, ledger := asynq.NewClientFromRedisClient(l.Redis), lab.NewLedger(n, n)
		var times lab.Times
		err := asynqServe(l, listening(taskListen, ledger), poll, nil, func() (err error) {
			times, err = lab.Drip(ctx, n, ledger, lab.Doze, enqueue(client, taskListen))
			return errors.Join(err, ledger.Once())
		})
		return times.Figures("wake"), err
	}
}

// asynqIdle looks at a server that has nothing to do.
func asynqIdle(poll time.Duration) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		var figures []lab.Figure
		err := asynqServe(l, asynq.NewServeMux(), poll, lab.Queues(), func() (err error) {
			figures, err = l.Rest(ctx)
			return err
		})
		return figures, err
	}
}

// asynqMemory is what tasks weigh that are to be done tomorrow.
func asynqMemory(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	client := asynq.NewClientFromRedisClient(l.Redis)
	add := func(ctx context.Context, _ int) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask(taskListen, nil), asynq.ProcessIn(24*time.Hour))
		return err
	}
	if err := l.Produce(ctx, l.Concurrency, add); err != nil {
		return nil, err
	}
	have := 0
	return l.Weigh(ctx, "memory.lone", func(ctx context.Context, n int) (int, error) {
		err := l.Produce(ctx, n-have, add)
		have = n
		return n, err
	})
}

// AsynqVictim serves tasks whose handlers never return, until ctx ends.
func AsynqVictim(ctx context.Context, l *lab.Lab, out io.Writer) error {
	mux := asynq.NewServeMux()
	mux.HandleFunc(taskStuck, func(ctx context.Context, _ *asynq.Task) error {
		if _, err := fmt.Fprintln(out, lab.Begun); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	return asynqServe(l, mux, asynqPoll, nil, func() error {
		<-ctx.Done()
		return nil
	})
}

// asynqRecovery kills a worker and measures how long it takes until each of its tasks runs
// here. Once is enough: it takes minutes.
func asynqRecovery(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := min(l.Size.Stuck, l.Concurrency)
	client, ledger := asynq.NewClientFromRedisClient(l.Redis), lab.NewLedger(n, n)
	victim, err := l.StartVictim(Asynq)
	if err != nil {
		return nil, err
	}
	defer victim.Kill()
	if err := l.Produce(ctx, n, enqueue(client, taskStuck)); err != nil {
		return nil, err
	}
	if err := victim.Began(n); err != nil {
		return nil, err
	}
	var times lab.Times
	err = asynqServe(l, listening(taskStuck, ledger), asynqPoll, nil, func() error {
		if err := lab.Doze(ctx); err != nil {
			return err
		}
		killed := time.Now()
		victim.Kill()
		for i := range n {
			at, err := ledger.WaitFor(ctx, i)
			if err != nil {
				return err
			}
			times = append(times, at.Sub(killed))
		}
		return ledger.Once()
	})
	return times.Figures("recover"), err
}
