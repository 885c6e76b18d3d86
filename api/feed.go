package api

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/redisstore"
)

// backlog is how many batches of events a listener may lag behind before it is cut off: it comes back with Last-Event-ID.
const backlog = 64

// listener is a stream that a feed serves.
type listener[T any] struct {
	events chan []byte // closed when the listener did not keep up
	wants  T
}

// feed reads once, at intervals, what all its listeners want, while there are any.
type feed[T any] struct {
	mu        sync.Mutex // held while it reads
	listeners map[*listener[T]]bool
	stop      context.CancelFunc
	read      func(ctx context.Context) time.Duration // with mu held; returns when to read again
}

// join adds a listener; begin is called before, while nothing is read, and says if there is none to be. first: there is no other one.
func (f *feed[T]) join(feeds *feeds, wants T, begin func(first bool) error) (*listener[T], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := begin(len(f.listeners) == 0); err != nil {
		return nil, err
	}
	l := &listener[T]{make(chan []byte, backlog), wants}
	if f.listeners == nil {
		f.listeners = map[*listener[T]]bool{}
	}
	f.listeners[l] = true
	if f.stop == nil {
		f.stop = feeds.start(f.run)
	}
	return l, nil
}

func (f *feed[T]) leave(l *listener[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.listeners, l)
	if len(f.listeners) == 0 && f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// size is how many listeners there are.
func (f *feed[T]) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listeners)
}

// offer gives events to a listener; with mu held.
func (f *feed[T]) offer(l *listener[T], events []byte) {
	select {
	case l.events <- events:
	default:
		f.drop(l)
	}
}

// drop lets the stream of a listener end behind what it was offered; with mu held.
func (f *feed[T]) drop(l *listener[T]) {
	if f.listeners[l] {
		close(l.events)
		delete(f.listeners, l)
	}
}

// run reads until its context ends, which is when the last listener has left.
func (f *feed[T]) run(ctx context.Context) {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		f.mu.Lock()
		if ctx.Err() == nil {
			wait = f.read(ctx)
		}
		f.mu.Unlock()
	}
}

// follow sends what a feed offers to a listener until the context ends, or the listener is gone.
func follow[T any](ctx context.Context, f *feed[T], l *listener[T], out *sse, place func() string) {
	defer f.leave(l)
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for ctx.Err() == nil {
		var events []byte
		ok := true
		select {
		case <-ctx.Done():
			return
		case events, ok = <-l.events:
		case <-alive.C:
		}
		behind := ""
		if ok && len(events) == 0 {
			if behind = place(); len(l.events) > 0 { // what leads to that place was not sent yet
				behind = ""
			}
		}
		if !ok || out.write(ctx, events, behind) != nil {
			return
		}
	}
}

// feeds are those of a server, by what they read.
type feeds struct {
	mu    sync.Mutex
	over  bool
	group sync.WaitGroup
	jobs  map[changesOf]*jobFeed
	ports map[*redisstore.Store]*portFeed
	logs  map[logOf]*logFeed

	streams atomic.Int64 // that are open
}

// pace is how long it is from one look to the next: longer when many streams may be sent what is found, and never shorter than least.
func (f *feeds) pace(least time.Duration) time.Duration {
	return max(eventsEvery, least, time.Duration(f.streams.Load())*streamCost)
}

// start runs fn until what it returns is called, or the feeds are closed: then at once.
func (f *feeds) start(fn func(context.Context)) context.CancelFunc {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	if f.over {
		cancel()
		return cancel
	}
	f.group.Go(func() { fn(ctx) })
	return cancel
}

// close waits until nothing is read any more: all listeners leave, as the server ends.
func (f *feeds) close() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.group.Wait()
}
