package delivery

import (
	"context"
	"crypto/rand"
	"errors"
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

// ownPause begins the value of asynq's key of a pause that is Weir's own; behind it is what no other pause has. A tool of asynq
// writes the time.
const ownPause = "weir "

// OwnPauses returns those of some queues that Weir has paused, each with what EndPause needs.
func (b *Broker) OwnPauses(ctx context.Context, queues []string) (map[string]string, error) {
	values := make([]*redis.StringCmd, len(queues))
	_, _ = b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, q := range queues {
			values[i] = p.Get(ctx, asynqKey(b.prefix+q, "paused"))
		}
		return nil
	})
	own := map[string]string{}
	for i, q := range queues {
		if err := values[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("asking whether queue %s is paused: %w", q, err)
		}
		if strings.HasPrefix(values[i].Val(), ownPause) {
			own[q] = values[i].Val()
		}
	}
	return own, nil
}

// endPause removes a key if it has a value.
var endPause = redis.NewScript("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")

// EndPause ends a pause that OwnPauses told of, and no later one of that queue.
func (b *Broker) EndPause(ctx context.Context, name, pause string) error {
	err := endPause.Run(ctx, b.rdb, []string{asynqKey(b.prefix+name, "paused")}, pause).Err()
	if err == nil {
		b.turned(ctx)
	}
	return err
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
	// Another one than any before, also of a queue that is paused: nobody ends it who saw that one.
	err = b.rdb.SetArgs(ctx, asynqKey(b.prefix+name, "paused"), ownPause+rand.Text(), redis.SetArgs{Get: true}).Err()
	if changed = errors.Is(err, redis.Nil); err != nil && !changed {
		return false, err
	}
	b.turned(ctx) // in any case: the client may have sent it twice, and seen the second answer
	return changed, nil
}

// Resume lets servers take wakes of a queue again. It returns false if it was not paused.
func (b *Broker) Resume(ctx context.Context, name string) (changed bool, err error) {
	n, err := b.rdb.Del(ctx, asynqKey(b.prefix+name, "paused")).Result()
	if err != nil {
		return false, err
	}
	b.turned(ctx)
	return n > 0, nil
}

// turned tells all servers that a queue was paused or resumed.
func (b *Broker) turned(ctx context.Context) {
	b.notifier.here(sayTurn)
	b.notifier.publish(ctx, sayTurn)
}

// NoWorker begins the reason of a job whose type no engine has.
const NoWorker = "no worker of type"
