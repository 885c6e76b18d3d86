package delivery

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
)

// privatePrefix is what names of private queues begin with.
const privatePrefix = "private/"

// NewPrivateQueue returns the name of a new private queue. The wakes of such a queue stay in the memory
// of the processes that serve it: asynq never hears of it, so that nothing of it is left when they end, however
// they end. Other processes tell those of its wakes on the channel of nudges; what gets lost the sweeper
// brings again.
func NewPrivateQueue() string { return privatePrefix + strings.ToLower(rand.Text()[:12]) }

// IsPrivate tells whether a queue is private.
func IsPrivate(queue string) bool { return strings.HasPrefix(queue, privatePrefix) }

// pending are the IDs of jobs that became ready in queues of a server and whose wakes are not in asynq, in their order.
type pending struct {
	mu    sync.Mutex
	ids   []string
	known map[string]bool
	more  chan struct{} // has a value when there may be some
}

// add appends the IDs that are not pending yet.
func (p *pending) add(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if !p.known[id] {
			p.known[id] = true
			p.ids = append(p.ids, id)
		}
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// next removes the first ID; ok is false if there is none.
func (p *pending) next() (id string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ids) == 0 {
		return "", false
	}
	id, p.ids = p.ids[0], p.ids[1:]
	delete(p.known, id)
	return id, true
}

// servePending handles what becomes pending in the server's queues until it is told to stop.
// What cannot be begun now the sweeper brings again.
func (s *Server) servePending() {
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
func (s *Server) handlePending() bool {
	select {
	case s.line.slots <- struct{}{}:
	case <-s.line.quiet:
		return false
	}
	id, ok := s.pending.next()
	if !ok {
		<-s.line.slots
		return false
	}
	return s.goDirect(func() { _ = s.handle(context.Background(), id) })
}

// goDirect runs fn, which has a slot, unless the server has been told to stop.
func (s *Server) goDirect(fn func()) bool {
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

// enqueuePrivate gives wakes of private queues to the servers of this process that serve them, or tells
// other processes of them. It returns the other wakes.
func (b *Broker) enqueuePrivate(ctx context.Context, wakes []Wake) []Wake {
	if !slices.ContainsFunc(wakes, func(w Wake) bool { return IsPrivate(w.Queue) }) {
		return wakes
	}
	var private, others []Wake
	for _, w := range wakes {
		if IsPrivate(w.Queue) {
			private = append(private, w)
		} else {
			others = append(others, w)
		}
	}
	for queue, ids := range byQueue(private) {
		if !b.pend(queue, ids...) {
			b.tell(ctx, queue, ids)
		}
	}
	return others
}

// enqueueWhenFull gives wakes to all who serve their queues, here and in other processes, as asynq has no memory for
// them. What gets lost, and what lies in a paused queue, the sweeper brings again.
func (b *Broker) enqueueWhenFull(ctx context.Context, wakes []Wake) {
	for queue, ids := range byQueue(wakes) {
		if paused, err := b.rdb.Exists(ctx, asynqKey(b.prefix+queue, "paused")).Result(); err == nil && paused == 0 {
			b.pend(queue, ids...)
			b.tell(ctx, queue, ids)
		}
	}
}

// full tells whether asynq could not take wakes as the memory of Redis is full. Of some errors it keeps the text only.
func full(err error) bool { return err != nil && strings.Contains(err.Error(), oom) }

func byQueue(wakes []Wake) map[string][]string {
	ids := map[string][]string{}
	for _, w := range wakes {
		ids[w.Queue] = append(ids[w.Queue], w.ID)
	}
	return ids
}

// tell tells other processes of jobs that became ready in a queue.
func (b *Broker) tell(ctx context.Context, queue string, ids []string) {
	for some := range slices.Chunk(ids, together) {
		b.bell.publish(ctx, ringJobs+" "+queue+" "+strings.Join(some, " "))
	}
}

// pend notes jobs that became ready in a queue; ok is false if no server of this process serves it.
func (b *Broker) pend(queue string, ids ...string) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.live {
		if s.cfg.Queues[queue] > 0 {
			s.pending.add(ids...)
			return true
		}
	}
	return false
}

// heard notes what another process tells of jobs that became ready: a queue and their IDs.
func (b *Broker) heard(text string) {
	if words := strings.Fields(text); len(words) > 1 {
		b.pend(words[0], words[1:]...)
	}
}
