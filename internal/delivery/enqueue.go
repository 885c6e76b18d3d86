package delivery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// together is how many wakes go to Redis in one round trip, at most.
const together = 500

// enqueuer is what the asynq client that enqueues has for a Redis client. It puts the commands
// that asynq gives it into the pipeline of their context, if there is one.
type enqueuer struct{ redis.UniversalClient }

// pipelineKey is the key of the pipeline in a context.
type pipelineKey struct{}

// EvalSha gives a command to Redis or, if it goes into a pipeline, answers as Redis will when
// all is well.
func (e enqueuer) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	p, ok := ctx.Value(pipelineKey{}).(redis.Pipeliner)
	if !ok {
		return e.UniversalClient.EvalSha(ctx, sha, keys, args...)
	}
	cmd := p.EvalSha(ctx, sha, keys, args...)
	cmd.SetVal(int64(1))
	return cmd
}

// Deliver delivers wakes: those that a server of this process can handle at once, as it sleeps,
// do not go through asynq. What becomes of them is in the store, as of all: if the process dies, the
// sweeper finds the job.
func (b *Broker) Deliver(ctx context.Context, wakes []Wake) error {
	b.mu.Lock()
	wakes = slices.DeleteFunc(wakes, b.begin)
	b.mu.Unlock()
	_, err := b.Enqueue(ctx, wakes)
	return err
}

// begin has a wake handled by a server of this process that has nothing else to do, if there is one.
func (b *Broker) begin(w Wake) bool {
	for s := range b.live {
		if s.over || s.cfg.Runs == nil || !s.cfg.Runs(w.Type) || !s.line.open()[w.Queue] || !s.line.claim() {
			continue
		}
		s.direct.Go(func() {
			defer func() { <-s.line.slots }()
			if s.handle(context.Background(), w.ID) != nil && !IsPrivate(w.Queue) {
				_, _ = b.Enqueue(context.Background(), []Wake{w}) // else the sweeper does
			}
		})
		return true
	}
	return false
}

// Enqueue gives wakes to asynq, and returns those that it holds already. Those of private queues do
// not go there, nor does any while the memory of Redis is full.
func (b *Broker) Enqueue(ctx context.Context, wakes []Wake) (held []Wake, err error) {
	wakes = b.enqueuePrivate(ctx, wakes)
	for len(wakes) > 0 {
		n := min(len(wakes), together)
		some, err := b.enqueue(ctx, wakes[:n])
		if full(err) {
			b.enqueueWhenFull(ctx, wakes[:n])
		} else if err != nil {
			return nil, fmt.Errorf("enqueueing wakes: %w", err)
		}
		held, wakes = append(held, some...), wakes[n:]
	}
	return held, nil
}

// enqueue delivers wakes, and nudges those that wait for some, in one round trip.
func (b *Broker) enqueue(ctx context.Context, wakes []Wake) (held []Wake, err error) {
	p := b.rdb.Pipeline()
	piped := context.WithValue(ctx, pipelineKey{}, p)
	for _, w := range wakes {
		if _, err := b.enqueueOne(piped, w); err != nil {
			return nil, err
		}
	}
	nudged := b.bell.join(ctx, p)
	cmds, _ := p.Exec(ctx) // each command has its own error
	for i, w := range wakes {
		n, wrong := cmds[i].(*redis.Cmd).Int()
		conflict := n == 0
		if redis.HasErrorPrefix(wrong, "NOSCRIPT") {
			conflict, wrong = b.enqueueOne(ctx, w)
		}
		switch {
		case wrong != nil:
			err = errors.Join(err, wrong)
		case conflict:
			held = append(held, w)
		}
	}
	b.bell.here(ringWake)
	if !nudged {
		b.bell.others(ctx)
	}
	return held, err
}

// enqueueOne gives a wake to asynq, and tells whether it had it already.
func (b *Broker) enqueueOne(ctx context.Context, w Wake) (conflict bool, err error) {
	_, err = b.client.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(w.ID)),
		asynq.TaskID(w.taskID()), asynq.Queue(b.prefix+w.Queue),
		asynq.Timeout(taskTimeout), asynq.MaxRetry(math.MaxInt16))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return true, nil
	}
	return false, err
}
