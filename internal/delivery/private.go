package delivery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	mrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirworks/weir/job"
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

// pending are notifications that asynq does not have, the highest priority first and then in their order: of private queues,
// and those that an engine without the types has taken.
type pending struct {
	mu            sync.Mutex
	notifications []Notification
	more          chan struct{} // has a value when there may be some
}

func newPending() *pending { return &pending{more: make(chan struct{}, 1)} }

// add gives a notification its place, unless one of the queue and shard is pending already that comes as early.
func (p *pending) add(b Notification) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := slices.IndexFunc(p.notifications, func(o Notification) bool { return o.at() == b.at() })
	if same >= 0 && p.notifications[same].Priority() < b.Priority() {
		p.notifications, same = slices.Delete(p.notifications, same, same+1), -1
	}
	if same < 0 {
		at := slices.IndexFunc(p.notifications, func(o Notification) bool { return o.Priority() < b.Priority() })
		if at < 0 {
			at = len(p.notifications)
		}
		p.notifications = slices.Insert(p.notifications, at, b)
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// first returns the first notification of a kind; ok is false if there is none. With take it is removed.
func (p *pending) first(take bool, of func(Notification) bool) (b Notification, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.notifications, of)
	if at < 0 {
		return b, false
	}
	b = p.notifications[at]
	if take {
		p.notifications = slices.Delete(p.notifications, at, at+1)
	}
	return b, true
}

// next removes the first notification, or the last, of those that do not give way now; ok is false if there is none.
func (p *pending) next(last bool) (b Notification, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, now := -1, time.Now()
	for i, one := range p.notifications {
		if one.rests.Before(now) && (last || at < 0) {
			at = i
		}
	}
	if at < 0 {
		return Notification{}, false
	}
	b = p.notifications[at]
	p.notifications = slices.Delete(p.notifications, at, at+1)
	return b, true
}

// giveWay adds a notification that no slot is to look for, unless it looks at what asynq has, too, for a time.
func (p *pending) giveWay(b Notification) {
	b.rests = time.Now().Add(giveWay)
	p.add(b)
	time.AfterFunc(giveWay+time.Millisecond, func() {
		select {
		case p.more <- struct{}{}:
		default:
		}
	})
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
	lowest := s.cfg.Lowest != nil && s.cfg.Lowest()
	notification, ok := s.pending.next(lowest)
	if !ok {
		<-s.line.slots
		return false
	}
	return s.goDirect(func() { s.hear(notification, lowest) })
}

// giveWay is how long a notification waits for slots to take more urgent ones from asynq.
const giveWay = 20 * time.Millisecond

// hurry has a pending notification handled in a slot that is held, in place of the next task of a list of asynq's: one of a higher priority
// than that task, or of a high one of another list; ok is false if there is none.
func (s *server) hurry(ctx context.Context, list string) (ok bool) {
	next := 0
	here := func(b Notification) bool { return list == asynqKey(s.broker.prefix+b.Queue, "pending") }
	if first, some := s.pending.first(false, here); some {
		var err error
		if next, err = s.ahead(ctx, first.Queue); err != nil {
			return false
		}
	}
	now := time.Now()
	same := false
	notification, ok := s.pending.first(true, func(b Notification) bool {
		if same = here(b); same {
			return next != isPaused && b.Priority() > next
		}
		return b.Priority() > job.DefaultPriority && b.rests.Before(now)
	})
	if ok { // who takes it gives the slot back if the server is to stop
		s.goDirect(func() {
			if same {
				s.begin(notification)
			} else {
				s.hear(notification, false)
			}
		})
	}
	return ok
}

// ahead returns the priority of the task of a queue that asynq takes next, 0 if there is none, isPaused if the queue is.
func (s *server) ahead(ctx context.Context, queue string) (int, error) {
	stem := asynqKey(s.broker.prefix+queue, "")
	return ahead.Run(ctx, s.broker.rdb, []string{stem + "pending", stem + "paused"}, job.DefaultPriority, stem+"t:").Int()
}

// hear handles a notification that did not come through asynq. If its queue is paused asynq gets it; if asynq has a more urgent one of
// the queue it gives way, unless it is to be handled first.
func (s *server) hear(notification Notification, first bool) {
	ctx := context.Background()
	if !IsPrivate(notification.Queue) {
		switch next, err := s.ahead(ctx, notification.Queue); {
		case err != nil || next == isPaused:
			_, _ = s.broker.enqueue(ctx, []Notification{notification}) // else the sweeper does
			return
		case next > notification.Priority() && !first:
			s.pending.giveWay(notification)
			return
		}
	}
	s.begin(notification)
}

// begin handles a notification that is the next of its queue.
func (s *server) begin(notification Notification) {
	notification.Gen, notification.Heard, notification.rests = Direct, true, time.Time{}
	_ = s.handle(context.Background(), notification) // what cannot be begun now the sweeper brings again
}

// goDirect runs fn, which has a slot, unless the server has been told to stop.
func (s *server) goDirect(fn func()) bool {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.over {
		<-s.line.slots
		return false
	}
	s.do(func() {
		defer func() { <-s.line.slots }()
		fn()
	})
	return true
}

// do has a goroutine do something, one that has done so before if any waits: its stack has grown already, which takes longer than
// many a run. No more of them wait than there are slots.
func (s *server) do(fn func()) {
	select {
	case s.next <- fn:
		return
	default:
	}
	s.direct.Go(func() {
		for {
			fn()
			if s.idle.Add(1) > int64(cap(s.line.slots)) {
				s.idle.Add(-1)
				return
			}
			select {
			case fn = <-s.next:
				s.idle.Add(-1)
			case <-s.line.quiet:
				return
			}
		}
	})
}

// Forward gives a notification to an engine that runs one of its types, not through asynq: to one of this process, or to
// those of others, of which the first that has a free slot begins.
func (b *Broker) Forward(ctx context.Context, notification Notification) {
	if !b.pend(notification) {
		b.tell(ctx, notification)
	}
}

// PassOn returns a notification for those of its types that own says. It forwards the rest if there are none of these, or if
// that is more urgent: this notification does not get a better place for it, else who does not run such jobs would hear of the shard again and again.
func (b *Broker) PassOn(ctx context.Context, notification Notification, own func(typ string) bool) (mine Notification, some bool) {
	mine, some = notification.Only(own)
	others, more := notification.Only(func(typ string) bool { return !own(typ) })
	if more && (!some || others.Priority() > mine.Priority()) {
		b.Forward(ctx, others)
	}
	return mine, some
}

// tell tells other processes of a notification.
func (b *Broker) tell(ctx context.Context, notification Notification) {
	b.notifier.publish(ctx, sayDirect+" "+notification.text())
}

// priorityMark begins the word for a notification's priority: programs that know of none take it for a type that nobody has.
const priorityMark = "!"

// text is a notification as other processes are told of it: queue, shard, generation, priority, types.
func (b Notification) text() string {
	return fmt.Sprint(b.Queue, " ", b.Shard, " ", b.Gen, " ", priorityMark, b.Priority(), " ", strings.Join(b.Types, " "))
}

// notificationFrom reads it.
func notificationFrom(text string) (b Notification, ok bool) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return b, false
	}
	shard, err := strconv.Atoi(words[1])
	gen, err2 := strconv.ParseInt(words[2], 10, 64)
	b = Notification{Queue: words[0], Shard: shard, Gen: gen}
	for _, word := range words[3:] {
		if text, is := strings.CutPrefix(word, priorityMark); is {
			if n, err := strconv.Atoi(text); err == nil {
				b.Priorities = slices.Repeat([]int{n}, len(words)-4)
			}
		} else {
			b.Types = append(b.Types, word)
		}
	}
	return b, err == nil && err2 == nil
}

// pend notes a notification; ok is false if no server of this process serves its queue and a type. Those who Listen hear of it then.
func (b *Broker) pend(notification Notification) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.live {
		if !s.over && s.cfg.Queues[notification.Queue] > 0 && s.runs(notification) {
			s.pending.add(notification)
			return true
		}
	}
	b.notifier.here(sayDirect)
	return false
}

// CatchUp sends notifications for what is ready in the queues of the servers of this process. What it cannot ask the sweeper brings.
func (b *Broker) CatchUp(ctx context.Context) {
	if b.SendReady == nil {
		return
	}
	b.mu.Lock()
	live := slices.Collect(maps.Keys(b.live))
	b.mu.Unlock()
	for _, s := range live {
		for queue := range s.cfg.Queues {
			if b.SendReady(ctx, queue, s.runsType) != nil {
				return
			}
		}
	}
}

// CatchUp implements Server.
func (s *server) CatchUp(ctx context.Context, types func(typ string) bool, shards int) (more bool) {
	open, err := s.broker.Open(ctx, slices.Collect(maps.Keys(s.cfg.Queues)))
	s.catching.Lock()
	defer s.catching.Unlock()
	ready, looked := s.found(open, types), false
	if len(ready) < shards || time.Since(s.foundAt) > foundFor {
		s.ready, s.foundAt, looked = nil, time.Now(), true
		for _, queue := range open {
			all, failed := s.broker.FindReady(ctx, queue)
			s.ready, err = append(s.ready, all...), errors.Join(err, failed)
		}
		mrand.Shuffle(len(s.ready), func(i, k int) { s.ready[i], s.ready[k] = s.ready[k], s.ready[i] })
		ready = s.found(open, types)
	}
	slices.SortStableFunc(ready, func(one, other Notification) int { return other.Priority() - one.Priority() })
	for _, one := range ready[:min(shards, len(ready))] {
		s.pending.add(one)
		s.ready = slices.DeleteFunc(s.ready, func(o Notification) bool { return o.at() == one.at() })
	}
	return err != nil || len(ready) > shards || !looked // what has become ready since the last look is not among these
}

// foundFor is for how long servers go by what they have found ready, and not told of yet.
const foundFor = 100 * time.Millisecond

// found returns what was found ready of some types in queues.
func (s *server) found(queues []string, types func(typ string) bool) (ready []Notification) {
	for _, one := range s.ready {
		if own, some := one.Only(types); some && slices.Contains(queues, one.Queue) {
			ready = append(ready, own)
		}
	}
	return ready
}

// offer notes a notification that another process tells of.
func (b *Broker) offer(text string) {
	if notification, ok := notificationFrom(text); ok {
		b.pend(notification)
	}
}
