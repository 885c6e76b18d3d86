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

// NewPrivateQueue returns the name of a new private queue. The bells of such a queue stay in the memory
// of the processes that serve it: asynq never hears of it, so that nothing of it is left when they end, however
// they end. Other processes tell those of its bells on the channel of nudges; what gets lost the sweeper
// brings again.
func NewPrivateQueue() string { return privatePrefix + strings.ToLower(rand.Text()[:12]) }

// IsPrivate tells whether a queue is private.
func IsPrivate(queue string) bool { return strings.HasPrefix(queue, privatePrefix) }

// pending are bells that asynq does not have, in their order: of private queues, and those that an engine without
// the types has taken.
type pending struct {
	mu    sync.Mutex
	bells []Bell
	more  chan struct{} // has a value when there may be some
}

func newPending() *pending { return &pending{more: make(chan struct{}, 1)} }

// add appends a bell, unless one of the queue and shard is pending already.
func (p *pending) add(b Bell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.bells, func(o Bell) bool { return o.Shard == b.Shard && o.Queue == b.Queue }) {
		p.bells = append(p.bells, b)
	}
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// next removes the first bell; ok is false if there is none.
func (p *pending) next() (b Bell, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.bells) == 0 {
		return Bell{}, false
	}
	b, p.bells = p.bells[0], p.bells[1:]
	return b, true
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
	bell, ok := s.pending.next()
	if !ok {
		<-s.line.slots
		return false
	}
	return s.goDirect(func() { s.hear(bell) })
}

// hear handles a bell that did not come through asynq; asynq gets it if its queue is paused.
func (s *Server) hear(bell Bell) {
	ctx := context.Background()
	if !IsPrivate(bell.Queue) {
		paused, err := s.broker.rdb.Exists(ctx, asynqKey(s.broker.prefix+bell.Queue, "paused")).Result()
		if err != nil || paused == 1 {
			_, _ = s.broker.enqueue(ctx, []Bell{bell}) // else the sweeper does
			return
		}
	}
	bell.Gen = Direct
	_ = s.handle(ctx, bell) // what cannot be begun now the sweeper brings again
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

// Forward gives a bell to an engine that runs one of its types, not through asynq: to one of this process, or to
// those of others, of which the first that has a free slot begins.
func (b *Broker) Forward(ctx context.Context, bell Bell) {
	if !b.pend(bell) {
		b.tell(ctx, bell)
	}
}

// tell tells other processes of a bell.
func (b *Broker) tell(ctx context.Context, bell Bell) { b.bell.publish(ctx, ringBell+" "+bell.text()) }

// text is a bell as other processes are told of it: queue, shard, generation, types.
func (b Bell) text() string {
	return fmt.Sprint(b.Queue, " ", b.Shard, " ", b.Gen, " ", strings.Join(b.Types, " "))
}

// pend notes a bell; ok is false if no server of this process serves its queue and a type. Those who Listen hear of it then.
func (b *Broker) pend(bell Bell) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.live {
		if s.cfg.Queues[bell.Queue] > 0 && s.runs(bell) {
			s.pending.add(bell)
			return true
		}
	}
	b.bell.here(ringBell)
	return false
}

// CatchUp notes bells for what is ready in the queues of the servers of this process. What it cannot ask the sweeper brings.
func (b *Broker) CatchUp(ctx context.Context) {
	if b.Ready == nil {
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
		bells, err := b.Ready(ctx, queue)
		if err != nil {
			return
		}
		for _, bell := range bells {
			b.pend(bell)
		}
	}
}

// offer notes a bell that another process tells of.
func (b *Broker) offer(text string) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return
	}
	shard, err := strconv.Atoi(words[1])
	gen, err2 := strconv.ParseInt(words[2], 10, 64)
	if err == nil && err2 == nil {
		b.pend(Bell{Queue: words[0], Shard: shard, Gen: gen, Types: words[3:]})
	}
}
