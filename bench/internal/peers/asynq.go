// Package peers has the cases of other systems at the same work as Weir, and of the bare
// scripts that are the ceiling of what can be had.
package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirworks/weir/bench/internal/lab"
)

// Asynq is what bare asynq is called: each stage is a task that enqueues the next.
const Asynq = "asynq"

// AsynqCases are all that asynq does. Slow ones are among them only if slow is true.
func AsynqCases(slow bool) []lab.Case {
	usual := Asynq + " default"
	cases := []lab.Case{
		{Workload: "chain", System: Asynq, Run: asynqChain},
		{Workload: "hops", System: Asynq, Run: asynqHops},
		{Workload: "stream", System: Asynq, Run: asynqStream},
		{Workload: "fanout", System: Asynq, Run: asynqFanout},
		{Workload: "wake", System: Asynq, Run: asynqWake(asynqPoll)},
		{Workload: "wake", System: usual, Run: asynqWake(asynqDefault)},
		{Workload: "idle", System: Asynq, Run: asynqIdle(asynqPoll)},
		{Workload: "idle", System: usual, Run: asynqIdle(asynqDefault)},
		{Workload: "memory", System: Asynq, Run: asynqMemory},
	}
	if slow {
		cases = append(cases, lab.Case{Workload: "recover", System: Asynq, Run: asynqRecovery})
	}
	return cases
}

// stages are the types of the tasks of a chain.
var stages = []string{"stage:1", "stage:2", "stage:3"}

// asynqPoll is how often an idle server looks for tasks. The default of a second would make
// the chains of an idle system wait a second and more at each stage; this is the least that
// asynq takes as it is meant.
const asynqPoll = time.Millisecond

// asynqServe runs a server for as long as fn does. No queues are the default queue.
func asynqServe(l *lab.Lab, mux *asynq.ServeMux, poll time.Duration, queues map[string]int, fn func() error) error {
	srv := asynq.NewServerFromRedisClient(l.Redis, asynq.Config{
		Concurrency:       l.Concurrency,
		Queues:            queues,
		TaskCheckInterval: poll,
		LogLevel:          asynq.ErrorLevel,
	})
	if err := srv.Start(mux); err != nil {
		return fmt.Errorf("starting asynq: %w", err)
	}
	defer srv.Shutdown()
	return fn()
}

// asynqStages handles the three stages; the last tells the ledger.
func asynqStages(client *asynq.Client, ledger *lab.Ledger) *asynq.ServeMux {
	mux := asynq.NewServeMux()
	for i, stage := range stages {
		mux.HandleFunc(stage, func(ctx context.Context, t *asynq.Task) error {
			if i == len(stages)-1 {
				ledger.Arrived(string(t.Payload()))
				return nil
			}
			_, err := client.EnqueueContext(ctx, asynq.NewTask(stages[i+1], t.Payload()))
			return err
		})
	}
	return mux
}

// enqueue returns a function that enqueues a task of a type for an item.
func enqueue(client *asynq.Client, kind string) func(context.Context, int) error {
	return func(ctx context.Context, i int) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask(kind, []byte(lab.Item(i))))
		return err
	}
}

// asynqChain enqueues a task for each item while the server runs.
func asynqChain(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := l.Size.Chain
	client, ledger := asynq.NewClientFromRedisClient(l.Redis), lab.NewLedger(n, n)
	var used lab.Usage
	err := asynqServe(l, asynqStages(client, ledger), asynqPoll, nil, func() (err error) {
		used, err = l.Flood(ctx, n, ledger, enqueue(client, stages[0]))
		return errors.Join(err, ledger.Once())
	})
	return used.Throughput("chain", n, "items"), err
}

// asynqHops sends items through the chain one at a time.
func asynqHops(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := l.Size.Hops
	client, ledger := asynq.NewClientFromRedisClient(l.Redis), lab.NewLedger(n, n)
	var times lab.Times
	err := asynqServe(l, asynqStages(client, ledger), asynqPoll, nil, func() (err error) {
		times, err = lab.Drip(ctx, n, ledger, lab.NoPause, enqueue(client, stages[0]))
		return errors.Join(err, ledger.Once())
	})
	return times.Figures("hops"), err
}

// asynqStream is the chain with all tasks queued before the clock starts. Asynq keeps no
// order; how many messages of a row arrive behind later ones is a figure.
func asynqStream(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := l.Size.Stream
	row := n / l.Size.Streams
	client, ledger := asynq.NewClientFromRedisClient(l.Redis), lab.NewLedger(n, row)
	add := enqueue(client, stages[0])
	err := l.Produce(ctx, l.Size.Streams, func(ctx context.Context, k int) error {
		for i := range row { // in order within the row
			if err := add(ctx, k*row+i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var used lab.Usage
	err = asynqServe(l, asynqStages(client, ledger), asynqPoll, nil, func() (err error) {
		used, err = l.Measure(ctx, ledger.Wait)
		return errors.Join(err, ledger.Once())
	})
	late := lab.Figure{Name: "stream.late", Value: float64(ledger.Late()), Unit: "messages", Less: true}
	return append(used.Throughput("stream", n, "messages"), late), err
}
