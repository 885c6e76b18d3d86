package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// together is how many notifications go to Redis in one round trip, at most.
const together = 500

// enqueuer is what the asynq client that enqueues has for a Redis client. In place of asynq's script it runs place, in
// the pipeline of the context if there is one.
type enqueuer struct{ redis.UniversalClient }

// placingKey is the key of a placing in a context.
type placingKey struct{}

// placing is how a notification is to be enqueued.
type placing struct {
	p        redis.Pipeliner // nil: at once
	priority int
	tasks    string // what begins the keys of the tasks of its queue
}

// EvalSha gives a command to Redis or, if it goes into a pipeline, answers as Redis will when
// all is well.
func (e enqueuer) EvalSha(ctx context.Context, _ string, keys []string, args ...any) *redis.Cmd {
	how, _ := ctx.Value(placingKey{}).(placing)
	keys, args = []string{keys[1], keys[0]}, append([]any{job.DefaultPriority, how.tasks, how.priority}, args...)
	if how.p == nil {
		return place.Run(ctx, e.UniversalClient, keys, args...)
	}
	cmd := how.p.EvalSha(ctx, place.Hash(), keys, args...)
	cmd.SetVal(int64(1))
	return cmd
}

// Ring sends notifications: those that a server of this process can handle at once, as it sleeps, do not go through asynq.
// If the process dies before, the sweeper finds the jobs.
func (b *Broker) Ring(ctx context.Context, notifications []Notification) error {
	for i, n := range notifications {
		if b.serves(n) {
			notifications[i], _ = b.PassOn(ctx, n, func(typ string) bool { return b.serves(Notification{Queue: n.Queue, Types: []string{typ}}) })
		}
	}
	b.mu.Lock()
	notifications = slices.DeleteFunc(notifications, b.begin)
	b.mu.Unlock()
	_, err := b.Enqueue(ctx, b.rung.fresh(notifications))
	return err
}

// rung are the notifications that asynq was given lately: it keeps each until somebody hears it, who gives the next one of its
// shard another generation. It is safe for concurrent use.
type rung struct {
	mu   sync.Mutex
	last map[queueShard]given
}

// queueShard is what a notification is of.
type queueShard struct {
	queue string
	shard int
}

func (b Notification) at() queueShard { return queueShard{b.Queue, b.Shard} }

// given is a notification that asynq was given.
type given struct {
	gen      int64
	priority int
	at       time.Time
}

// rungFor is for how long asynq is not asked again whether it still has a notification.
const rungFor = time.Second

// mostRung is how many notifications are remembered before those are forgotten that are older.
const mostRung = 1000

// fresh returns the notifications that asynq was not given lately, or with a lower priority.
func (r *rung) fresh(notifications []Notification) []Notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(notifications, func(n Notification) bool {
		g, ok := r.last[n.at()]
		return ok && g.gen == n.Gen && g.priority >= n.Priority() && time.Since(g.at) < rungFor
	})
}

// note notes that asynq was given notifications.
func (r *rung) note(notifications []Notification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if len(r.last) > mostRung {
		maps.DeleteFunc(r.last, func(_ queueShard, g given) bool { return now.Sub(g.at) >= rungFor })
	}
	for _, n := range notifications {
		r.last[n.at()] = given{gen: n.Gen, priority: n.Priority(), at: now}
	}
}

// serves tells whether a server of this process may handle a notification.
func (b *Broker) serves(notification Notification) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.live {
		if !s.over && s.cfg.Queues[notification.Queue] > 0 && s.runs(notification) {
			return true
		}
	}
	return false
}

// begin has a notification handled by a server of this process that has nothing else to do, if there is one.
func (b *Broker) begin(notification Notification) bool {
	for s := range b.live {
		if s.over || !s.runs(notification) || !s.line.open()[notification.Queue] || !s.line.claim() {
			continue
		}
		s.direct.Go(func() {
			defer func() { <-s.line.slots }()
			direct := notification
			direct.Gen = Direct
			if s.handle(context.Background(), direct) != nil && !IsPrivate(notification.Queue) {
				_, _ = b.Enqueue(context.Background(), []Notification{notification}) // else the sweeper does
			}
		})
		return true
	}
	return false
}

// runs tells whether a server runs jobs of one of the types of a notification.
func (s *server) runs(notification Notification) bool {
	return slices.ContainsFunc(notification.Types, s.runsType)
}

func (s *server) runsType(typ string) bool {
	return s.cfg.Runs != nil && (typ == AnyType || s.cfg.Runs(typ))
}

// Enqueue gives notifications to asynq, and returns those that it holds already. Those of private queues do
// not go there, nor does any while the memory of Redis is full.
func (b *Broker) Enqueue(ctx context.Context, notifications []Notification) (held []Notification, err error) {
	var public []Notification
	for _, notification := range notifications {
		if IsPrivate(notification.Queue) {
			b.Forward(ctx, notification)
		} else {
			public = append(public, notification)
		}
	}
	for some := range slices.Chunk(public, together) {
		had, err := b.enqueue(ctx, some)
		if full(err) {
			b.enqueueWhenFull(ctx, some)
		} else if err != nil {
			return nil, fmt.Errorf("sending notifications: %w", err)
		} else {
			b.rung.note(some)
		}
		held = append(held, had...)
	}
	return held, nil
}

// enqueueWhenFull gives notifications to all who serve their queues, here and in other processes, as asynq has no memory for
// them. What gets lost the sweeper brings again.
func (b *Broker) enqueueWhenFull(ctx context.Context, notifications []Notification) {
	for _, notification := range notifications {
		b.pend(notification)
		b.tell(ctx, notification)
	}
}

// full tells whether asynq could not take notifications as the memory of Redis is full. Of some errors it keeps the text only.
func full(err error) bool { return err != nil && strings.Contains(err.Error(), oom) }

// enqueue gives notifications to asynq, and notifies those that wait for some, in one round trip.
func (b *Broker) enqueue(ctx context.Context, notifications []Notification) (held []Notification, err error) {
	p := b.rdb.Pipeline()
	for _, l := range notifications {
		if _, err := b.enqueueOne(ctx, l, p); err != nil {
			return nil, err
		}
	}
	notified := b.notifier.join(ctx, p)
	cmds, _ := p.Exec(ctx) // each command has its own error
	for i, l := range notifications {
		n, wrong := cmds[i].(*redis.Cmd).Int()
		conflict := n == 0
		if redis.HasErrorPrefix(wrong, "NOSCRIPT") {
			conflict, wrong = b.enqueueOne(ctx, l, nil)
		}
		switch {
		case wrong != nil:
			err = errors.Join(err, wrong)
		case conflict:
			held = append(held, l)
		}
	}
	b.notifier.here(sayWake)
	if !notified {
		b.notifier.others(ctx)
	}
	return held, err
}

// enqueueOne gives a notification to asynq, and tells whether it had it already: in a pipeline, if one is given.
func (b *Broker) enqueueOne(ctx context.Context, l Notification, p redis.Pipeliner) (conflict bool, err error) {
	queue := b.prefix + l.Queue
	ctx = context.WithValue(ctx, placingKey{}, placing{p: p, priority: l.Priority(), tasks: asynqKey(queue, "t:")})
	_, err = b.client.EnqueueContext(ctx, taskOf(l),
		asynq.TaskID(l.taskID()), asynq.Queue(queue),
		asynq.Timeout(taskTimeout), asynq.MaxRetry(math.MaxInt16))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return true, nil
	}
	return false, err
}
