package delivery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// Wakes of a private queue reach the process that serves it, and no other, whoever sends them, and nothing of the
// queue is in Redis, neither while it is served nor afterwards.
func TestPrivateQueue(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		ns, queue := redistest.Namespace(t), NewPrivateQueue()
		own, other := opened(t, url, ns), opened(t, url, ns)
		var k, strange taken
		s := serve(t, own, ServeConfig{Queues: map[string]int{queue: 1}, Handle: k.handle, Runs: runsT, pollInterval: never})
		o := serve(t, other, ServeConfig{Queues: map[string]int{"a": 1, NewPrivateQueue(): 1}, Handle: strange.handle, Runs: runsT, pollInterval: never})
		defer o.Stop()
		stop := sync.OnceFunc(s.Stop)
		defer stop()
		var want []string
		for n := range 3 * together {
			from := []*Broker{own, other}[n%2]
			want = append(want, ring(t, from, n, queue))
		}
		many := make([]Notification, 2*together+1)
		for n := range many {
			many[n] = notificationOfT(10_000+n, queue)
			want = append(want, shardName(many[n].Shard))
		}
		if held, err := other.Enqueue(t.Context(), append(many, notificationOfT(1, "a"))); err != nil || len(held) > 0 {
			t.Errorf("held %v, error %v", held, err)
		}
		slices.Sort(want)
		if got := k.wait(t, len(want)); !slices.Equal(got, want) {
			t.Errorf("got %d wakes, want %d", len(got), len(want))
		}
		if got := strange.wait(t, 1); !slices.Equal(got, []string{"shard001"}) {
			t.Errorf("the other process got %v", got)
		}
		traceless(t, own, queue)
		stop()
		ring(t, other, 1, queue) // for nobody
		traceless(t, own, queue)
	})
}

// traceless wants no key and no member of asynq's sets that names a queue.
func traceless(t *testing.T, b *Broker, queue string) {
	t.Helper()
	keys, err := b.rdb.Keys(t.Context(), "*"+queue+"*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("keys %v, error %v", keys, err)
	}
	names, err := b.rdb.SMembers(t.Context(), allQueues).Result()
	if err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, queue) }) {
		t.Errorf("asynq lists %v, error %v", names, err)
	}
}

// A wake that comes several times while it is pending is handled once, and one that could not be begun is left to the
// sweeper.
func TestPrivateNotificationIsPendingOnce(t *testing.T) {
	t.Parallel()
	queue := NewPrivateQueue()
	b := opened(t, redistest.SharedRedis(t), redistest.Namespace(t))
	release := make(chan struct{})
	var k taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{queue: 1}, Runs: runsT, pollInterval: never, Handle: func(ctx context.Context, notification Notification) error {
		_ = k.handle(ctx, notification)
		<-release
		return errors.New("not now")
	}})
	stop := sync.OnceFunc(s.Stop)
	defer stop()
	for n := range 4 { // as many as it has slots
		ring(t, b, n, queue)
	}
	k.wait(t, 4)
	for range 3 {
		ring(t, b, 9, queue)
	}
	close(release)
	k.wait(t, 5)
	stop()
	if got := k.wait(t, 5); len(got) != 5 {
		t.Errorf("got %v", got)
	}
}

// A server of a private queue stops at once while its slots are taken, and drops what is pending.
func TestStopWithPrivatePending(t *testing.T) {
	t.Parallel()
	queue := NewPrivateQueue()
	b := opened(t, redistest.SharedRedis(t), redistest.Namespace(t))
	release := make(chan struct{})
	var k taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{queue: 1}, Runs: runsT, pollInterval: never, Handle: func(ctx context.Context, notification Notification) error {
		defer func() { <-release }()
		return k.handle(ctx, notification)
	}})
	for n := range 9 {
		ring(t, b, n, queue)
	}
	k.wait(t, 4)
	s.StopTaking()
	close(release)
	stopped := make(chan struct{})
	go func() { s.Stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Fatal("it does not stop")
	}
	if got := k.wait(t, 4); len(got) != 4 {
		t.Errorf("after the stop got %v", got)
	}
}
