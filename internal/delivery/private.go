package delivery

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// privatePrefix is what names of private queues begin with.
const privatePrefix = "private/"

// NewPrivateQueue returns the name of a new private queue. The notifications of such a queue stay in the memory
// of the processes that serve it: asynq never hears of it, so that nothing of it is left when they end, however
// they end. Other processes tell those of its notifications on the channel of notifications; what gets lost the sweeper
// brings again.
func NewPrivateQueue() string { return privatePrefix + strings.ToLower(rand.Text()[:12]) }

// IsPrivate tells whether a queue is private.
func IsPrivate(queue string) bool { return strings.HasPrefix(queue, privatePrefix) }

// pending are notifications that asynq does not have, in their order: of private queues, and those that an engine without
// the types has taken.
type pending struct {
	mu            sync.Mutex
	notifications []Notification
	more          chan struct{} // has a value when there may be some
}

func newPending() *pending { return &pending{more: make(chan struct{}, 1)} }

// add appends a notification, unless one of the queue and shard is pending already.
func (p *pending) add(b Notification) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.notifications, func(o Notification) bool { return o.Shard == b.Shard && o.Queue == b.Queue }) {
		p.notifications = append(p.notifications, b)
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// next removes the first notification; ok is false if there is none.
func (p *pending) next() (b Notification, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.notifications) == 0 {
		return Notification{}, false
	}
	b, p.notifications = p.notifications[0], p.notifications[1:]
	return b, true
}

// servePending handles what becomes pending in the server's queues until it is told to stop.
// What cannot be begun now the sweeper brings again.
func (s *server) servePending() {
	for {
		select {
		case <-s.pending.more:
		case <-s.line.quiet:
			return
		}
		for s.handlePending() {
		}
	}
}

// handlePending takes a slot, and then what has become pending until it got it, if anything has; else it returns false.
func (s *server) handlePending() bool {
	select {
	case s.line.slots <- struct{}{}:
	case <-s.line.quiet:
		return false
	}
	notification, ok := s.pending.next()
	if !ok {
		<-s.line.slots
		return false
	}
	return s.goDirect(func() { s.hear(notification) })
}

// hear handles a notification that did not come through asynq; asynq gets it if its queue is paused.
func (s *server) hear(notification Notification) {
	ctx := context.Background()
	if !IsPrivate(notification.Queue) {
		paused, err := s.broker.rdb.Exists(ctx, asynqKey(s.broker.prefix+notification.Queue, "paused")).Result()
		if err != nil || paused == 1 {
			_, _ = s.broker.enqueue(ctx, []Notification{notification}) // else the sweeper does
			return
		}
	}
	notification.Gen = Direct
	_ = s.handle(ctx, notification) // what cannot be begun now the sweeper brings again
}

// goDirect runs fn, which has a slot, unless the server has been told to stop.
func (s *server) goDirect(fn func()) bool {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.over {
		<-s.line.slots
		return false
	}
	s.direct.Go(func() {
		defer func() { <-s.line.slots }()
		fn()
	})
	return true
}

// Forward gives a notification to an engine that runs one of its types, not through asynq: to one of this process, or to
// those of others, of which the first that has a free slot begins.
func (b *Broker) Forward(ctx context.Context, notification Notification) {
	if !b.pend(notification) {
		b.tell(ctx, notification)
	}
}

// tell tells other processes of a notification.
func (b *Broker) tell(ctx context.Context, notification Notification) {
	b.notifier.publish(ctx, sayDirect+" "+notification.text())
}

// text is a notification as other processes are told of it: queue, shard, generation, types.
func (b Notification) text() string {
	return fmt.Sprint(b.Queue, " ", b.Shard, " ", b.Gen, " ", strings.Join(b.Types, " "))
}

// pend notes a notification; ok is false if no server of this process serves its queue and a type. Those who Listen hear of it then.
func (b *Broker) pend(notification Notification) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.live {
		if s.cfg.Queues[notification.Queue] > 0 && s.runs(notification) {
			s.pending.add(notification)
			return true
		}
	}
	b.notifier.here(sayDirect)
	return false
}

// CatchUp notes notifications for what is ready in the queues of the servers of this process. What it cannot ask the sweeper brings.
func (b *Broker) CatchUp(ctx context.Context) {
	if b.FindReady == nil {
		return
	}
	queues := map[string]bool{}
	b.mu.Lock()
	for s := range b.live {
		for queue := range s.cfg.Queues {
			queues[queue] = true
		}
	}
	b.mu.Unlock()
	for queue := range queues {
		notifications, err := b.Ready(ctx, queue)
		if err != nil {
			return
		}
		for _, notification := range notifications {
			b.pend(notification)
		}
	}
}

// offer notes a notification that another process tells of.
func (b *Broker) offer(text string) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return
	}
	shard, err := strconv.Atoi(words[1])
	gen, err2 := strconv.ParseInt(words[2], 10, 64)
	if err == nil && err2 == nil {
		b.pend(Notification{Queue: words[0], Shard: shard, Gen: gen, Types: words[3:]})
	}
}
