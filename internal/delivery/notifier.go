package delivery

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// asynq asks for wakes again and again. Servers here sleep instead when there are none, until
// somebody who has put one in the queue notifies them: in this process directly, in others through
// a Redis channel. A notification is a hint that may get lost: nobody sleeps for long.
const (
	// troubled is how long a server waits after an error.
	troubled = 100 * time.Millisecond
	// calm is how long a process waits from one notification of others to the next.
	calm = time.Millisecond
)

// What a notification says.
const (
	sayWake   = "wake" // there are notifications queued
	sayDue    = "due"  // something will be due that the sweeper may not know of: behind it, the shard and the time in ms
	sayTurn   = "turn" // a queue was paused or resumed
	sayDirect = "bell" // one that asynq does not have: behind it, as text() writes it
)

// notifier wakes those who sleep.
type notifier struct {
	rdb     redis.UniversalClient
	channel string
	name    string                // tells own notifications from those of others
	told    func(text string)     // is given what comes behind sayDirect
	joined  func(context.Context) // is called when it hears other processes from now on
	dues    *dues
	turns   atomic.Int64 // counts what may have paused a queue, as far as heard
	hears   atomic.Int32 // other processes: by how many connections

	mu            sync.Mutex
	subscriptions map[chan struct{}]bool // whether it hears of notifications, too, that asynq does not have
	last          time.Time
	later         *time.Timer // a notification of others that is still to come
}

func newNotifier(rdb redis.UniversalClient, channel string) *notifier {
	return &notifier{rdb: rdb, channel: channel, name: rand.Text(), subscriptions: map[chan struct{}]bool{}, dues: newDues()}
}

// subscription returns what gets a value at each notification, until it is given back; with all, also at those that asynq does not have.
func (b *notifier) subscription(all bool) (subscription chan struct{}, giveBack func()) {
	subscription = make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscriptions[subscription] = all
	return subscription, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscriptions, subscription)
	}
}

// here notifies those who sleep in this process.
func (b *notifier) here(what string) {
	if text, ok := strings.CutPrefix(what, sayDue); ok {
		b.dues.tell(strings.TrimSpace(text))
		return
	}
	if what == sayTurn {
		b.turns.Add(1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for subscription, notifications := range b.subscriptions {
		if what == sayDirect && !notifications {
			continue
		}
		select {
		case subscription <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// join adds a notification of other processes to a pipeline that puts wakes in the queue, if it is time for
// one.
func (b *notifier) join(ctx context.Context, p redis.Pipeliner) bool {
	if _, cluster := b.rdb.(*redis.ClusterClient); cluster {
		return false // it goes to another server, and could be heard before the wakes are queued
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.later != nil || time.Since(b.last) < calm {
		return false
	}
	b.last = time.Now()
	p.Publish(ctx, b.channel, b.name+" "+sayWake)
	return true
}

// others notifies other processes, after wakes were queued. Notifications that follow each other
// closely reach them as one.
func (b *notifier) others(ctx context.Context) {
	b.mu.Lock()
	if b.later != nil {
		b.mu.Unlock()
		return
	}
	if wait := calm - time.Since(b.last); wait > 0 {
		b.later = time.AfterFunc(wait, func() { b.flush(context.WithoutCancel(ctx)) })
		b.mu.Unlock()
		return
	}
	b.last = time.Now()
	b.mu.Unlock()
	b.publish(ctx, sayWake)
}

// flush gives the notification that is still to come, if any.
func (b *notifier) flush(ctx context.Context) {
	b.mu.Lock()
	waiting := b.later != nil
	if waiting {
		b.later.Stop()
		b.later, b.last = nil, time.Now()
	}
	b.mu.Unlock()
	if waiting {
		b.publish(ctx, sayWake)
	}
}

func (b *notifier) publish(ctx context.Context, what string) {
	_ = b.rdb.Publish(ctx, b.channel, b.name+" "+what).Err() // if it is lost they wake by themselves
}

// listen passes notifications of other processes on until ctx ends.
func (b *notifier) listen(ctx context.Context) {
	for ctx.Err() == nil {
		b.hear(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(troubled):
		}
	}
}

// hear does so until the connection fails.
func (b *notifier) hear(ctx context.Context) {
	sub := b.rdb.Subscribe(ctx, b.channel)
	defer sub.Close()
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })() // ctx alone does not end Receive
	hears := false
	defer func() {
		if hears {
			b.hears.Add(-1)
		}
	}()
	for {
		m, err := sub.Receive(ctx)
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *redis.Subscription:
			b.here(sayTurn) // what came before is not known
			if !hears {
				hears = true
				b.hears.Add(1)
			}
			b.here(sayDue)
			b.joined(ctx)
		case *redis.Message:
			if name, what, _ := strings.Cut(m.Payload, " "); name != b.name {
				if text, some := strings.CutPrefix(what, sayDirect+" "); some {
					b.told(text)
				} else {
					b.here(what)
				}
			}
		}
	}
}
