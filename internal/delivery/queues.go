package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// allQueues is asynq's set of the queues that it tells of: those that ever had a task.
const allQueues = asynqKeys + "queues"

// Queue is what asynq has of a queue.
type Queue struct {
	Paused    bool
	Pending   int           // wakes queued
	Scheduled int           // wakes for later
	Retry     int           // wakes whose server could not begin the run
	Archived  int           // wakes that were given up
	Latency   time.Duration // since when the first one is queued
}

// QueueNames returns the queues of the namespace that asynq knows, sorted.
func (b *Broker) QueueNames() ([]string, error) {
	all, err := b.inspect.Queues()
	if err != nil {
		return nil, fmt.Errorf("listing queues: %w", err)
	}
	var names []string
	for _, q := range all {
		if name, ours := strings.CutPrefix(q, b.prefix); ours {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Queue returns what asynq has of a queue: nothing of one that it does not know.
func (b *Broker) Queue(ctx context.Context, name string) (Queue, error) {
	known, err := b.rdb.SIsMember(ctx, allQueues, b.prefix+name).Result()
	if err == nil && !known {
		return Queue{}, nil
	}
	var i *asynq.QueueInfo
	if err == nil {
		i, err = b.inspect.GetQueueInfo(b.prefix + name)
	}
	if err != nil {
		return Queue{}, fmt.Errorf("looking at queue %s: %w", name, err)
	}
	return Queue{
		Paused: i.Paused, Pending: i.Pending, Scheduled: i.Scheduled, Retry: i.Retry, Archived: i.Archived, Latency: max(i.Latency, 0),
	}, nil
}

// Open returns those of some queues that are not paused.
func (b *Broker) Open(ctx context.Context, queues []string) ([]string, error) {
	open, err := openOf(ctx, b.rdb, b.prefix, queues)
	if err != nil {
		return nil, fmt.Errorf("asking which queues are paused: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(queues), func(q string) bool { return !open[q] }), nil
}

// openOf tells which of some queues are not paused.
func openOf(ctx context.Context, rdb redis.UniversalClient, prefix string, queues []string) (map[string]bool, error) {
	p := rdb.Pipeline()
	paused := make([]*redis.IntCmd, len(queues))
	for i, q := range queues {
		paused[i] = p.Exists(ctx, asynqKey(prefix+q, "paused"))
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, err
	}
	open := make(map[string]bool, len(queues))
	for i, q := range queues {
		open[q] = paused[i].Val() == 0
	}
	return open, nil
}

// Pause keeps servers from taking wakes of a queue until it is resumed. It returns false
// if the queue was paused already.
func (b *Broker) Pause(ctx context.Context, name string) (changed bool, err error) {
	// Else asynq would not tell of a queue that had no wake yet.
	if err := b.rdb.SAdd(ctx, allQueues, b.prefix+name).Err(); err != nil {
		return false, err
	}
	return b.turn(ctx, name, true, b.inspect.PauseQueue)
}

// Resume lets servers take wakes of a queue again. It returns false if it was not paused.
func (b *Broker) Resume(ctx context.Context, name string) (changed bool, err error) {
	return b.turn(ctx, name, false, b.inspect.UnpauseQueue)
}

// turn calls fn unless the queue is as wanted, or has become so meanwhile.
func (b *Broker) turn(ctx context.Context, name string, paused bool, fn func(queue string) error) (bool, error) {
	q, err := b.Queue(ctx, name)
	if err != nil || q.Paused == paused {
		return false, err
	}
	if err := fn(b.prefix + name); err != nil {
		if q, again := b.Queue(ctx, name); again == nil && q.Paused == paused {
			return false, nil // somebody was faster: asynq has no error of its own for that
		}
		return false, err
	}
	b.notifier.here(sayTurn)
	b.notifier.publish(ctx, sayTurn)
	return true, nil
}

// NoWorker begins the reason of a job whose type no engine has.
const NoWorker = "no worker of type"
