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
// somebody who has put one in line nudges them: in this process directly, in others through
// a Redis channel. A nudge is a hint that may get lost: nobody sleeps for long.
const (
	// troubled is how long a server waits after an error.
	troubled = 100 * time.Millisecond
	// calm is how long a process waits from one nudge of others to the next.
	calm = time.Millisecond
)

// What a nudge says.
const (
	ringWake = "wake" // there are bells in line
	ringDue  = "due"  // something will be due that the sweeper may not know of: behind it, the shard and the time in ms
	ringTurn = "turn" // a queue was paused or resumed
	ringBell = "bell" // one that asynq does not have: behind it, as text() writes it
)

// nudges wakes those who sleep.
type nudges struct {
	rdb     redis.UniversalClient
	channel string
	name    string                // tells own nudges from those of others
	told    func(text string)     // is given what comes behind ringBell
	joined  func(context.Context) // is called when it hears other processes from now on
	dues    *dues
	turns   atomic.Int64 // counts what may have paused a queue, as far as heard
	hears   atomic.Int32 // other processes: by how many connections

	mu    sync.Mutex
	ears  map[chan struct{}]bool // whether it hears of bells, too, that asynq does not have
	last  time.Time
	later *time.Timer // a nudge of others that is still to come
}

func newNudges(rdb redis.UniversalClient, channel string) *nudges {
	return &nudges{rdb: rdb, channel: channel, name: rand.Text(), ears: map[chan struct{}]bool{}, dues: newDues()}
}

// ear returns what gets a value at each nudge, until it is given back: with bells, also when there is a bell that asynq does not have.
func (b *nudges) ear(bells bool) (ear chan struct{}, giveBack func()) {
	ear = make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ears[ear] = bells
	return ear, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.ears, ear)
	}
}

// here nudges those who sleep in this process.
func (b *nudges) here(what string) {
	if text, ok := strings.CutPrefix(what, ringDue); ok {
		b.dues.tell(strings.TrimSpace(text))
		return
	}
	if what == ringTurn {
		b.turns.Add(1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for ear, bells := range b.ears {
		if what == ringBell && !bells {
			continue
		}
		select {
		case ear <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// join adds a nudge of other processes to a pipeline that puts wakes in line, if it is time for
// one.
func (b *nudges) join(ctx context.Context, p redis.Pipeliner) bool {
	if _, cluster := b.rdb.(*redis.ClusterClient); cluster {
		return false // it goes to another server, and could be heard before the wakes are in line
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.later != nil || time.Since(b.last) < calm {
		return false
	}
	b.last = time.Now()
	p.Publish(ctx, b.channel, b.name+" "+ringWake)
	return true
}

// others nudges other processes, after wakes were put in line. Nudges that follow each other
// closely reach them as one.
func (b *nudges) others(ctx context.Context) {
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
	b.publish(ctx, ringWake)
}

// flush gives the nudge that is still to come, if any.
func (b *nudges) flush(ctx context.Context) {
	b.mu.Lock()
	waiting := b.later != nil
	if waiting {
		b.later.Stop()
		b.later, b.last = nil, time.Now()
	}
	b.mu.Unlock()
	if waiting {
		b.publish(ctx, ringWake)
	}
}

func (b *nudges) publish(ctx context.Context, what string) {
	_ = b.rdb.Publish(ctx, b.channel, b.name+" "+what).Err() // if it is lost they wake by themselves
}

// listen passes nudges of other processes on until ctx ends.
func (b *nudges) listen(ctx context.Context) {
	for ctx.Err() == nil {
		b.hear(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(troubled):
		}
	}
}

// hear does so until the connection fails.
func (b *nudges) hear(ctx context.Context) {
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
			b.here(ringTurn) // what came before is not known
			if !hears {
				hears = true
				b.hears.Add(1)
			}
			b.here(ringDue)
			b.joined(ctx)
		case *redis.Message:
			if name, what, _ := strings.Cut(m.Payload, " "); name != b.name {
				if text, some := strings.CutPrefix(what, ringBell+" "); some {
					b.told(text)
				} else {
					b.here(what)
				}
			}
		}
	}
}
