package delivery

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// Slots that are reserved are nobody else's until they are given back; no more are than are free.
func TestReserve(t *testing.T) {
	t.Parallel()
	b := opened(t, redistest.SharedRedis(t), redistest.Namespace(t))
	queue := NewPrivateQueue()
	var k taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{queue: 1}, Handle: k.handle, Runs: runsT, pollInterval: never})
	stop := sync.OnceFunc(s.Stop)
	defer stop()
	reserved := s.Reserve(3)
	for end := time.Now().Add(30 * time.Second); reserved < 4 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		reserved += s.Reserve(3) // asynq may be looking for tasks in one
	}
	if more := s.Reserve(1); reserved != 4 || more != 0 {
		t.Fatalf("reserved %d and %d of 4 slots", reserved, more)
	}
	ring(t, b, 7, queue)
	k.mu.Lock()
	if len(k.ids) > 0 {
		t.Errorf("%v was handled in a slot that is reserved", k.ids)
	}
	k.mu.Unlock()
	s.Release(1)
	if got := k.wait(t, 1); !slices.Equal(got, []string{"shard007"}) {
		t.Errorf("got %v", got)
	}
	s.Release(3)
}

// Who has room again hears of what is ready in as many shards as he asks for, the most urgent first, but of nothing that he cannot begin:
// of other types, of queues that are paused, or that others serve.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	b := opened(t, redistest.SharedRedis(t), redistest.Namespace(t))
	urgent := func(shard int, queue string) Notification {
		n := notificationOfT(shard, queue)
		n.Priorities = []int{900}
		return n
	}
	own, paused, others := NewPrivateQueue(), "paused", NewPrivateQueue()
	ready := map[string][]Notification{
		own:    {notificationOfT(1, own), urgent(2, own), notificationOfT(3, own), {Queue: own, Shard: 4, Types: []string{"other"}}},
		paused: {urgent(5, paused)},
		others: {urgent(6, others)},
	}
	b.FindReady = func(_ context.Context, queue string) ([]Notification, error) { return ready[queue], nil }
	if _, err := b.Pause(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	var k, strange taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{own: 1, paused: 1}, Handle: k.handle, Runs: runsT, pollInterval: never})
	o := serve(t, b, ServeConfig{Queues: map[string]int{others: 1}, Handle: strange.handle, Runs: runsT, pollInterval: never})
	defer o.Stop()
	stop := sync.OnceFunc(s.Stop)
	defer stop()
	if !s.CatchUp(t.Context(), runsT, 1) {
		t.Error("there are no more")
	}
	if got := k.wait(t, 1); !slices.Equal(got, []string{"shard002"}) {
		t.Errorf("got %v", got)
	}
	if s.CatchUp(t.Context(), runsT, 3) {
		t.Error("there are more")
	}
	if got := k.wait(t, 4); !slices.Equal(got, []string{"shard001", "shard002", "shard002", "shard003"}) {
		t.Errorf("got %v", got)
	}
	if got := strange.wait(t, 0); len(got) > 0 {
		t.Errorf("the other server got %v", got)
	}
}

// What was found ready, and nobody was told of yet, is not looked for again: each shard is told of once. That there are no more is said
// after a look only.
func TestCatchUpOnWhatWasFound(t *testing.T) {
	t.Parallel()
	b := opened(t, redistest.SharedRedis(t), redistest.Namespace(t))
	queue, looks := NewPrivateQueue(), 0
	b.FindReady = func(context.Context, string) (all []Notification, err error) {
		looks++
		for shard := range 6 {
			all = append(all, notificationOfT(shard, queue))
		}
		return all, nil
	}
	var k taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{queue: 1}, Handle: k.handle, Runs: runsT, pollInterval: never})
	defer s.Stop()
	s.foundAt = time.Now().Add(time.Hour) // else a slow machine looks anew
	for n := 1; n <= 3; n++ {
		if !s.CatchUp(t.Context(), runsT, 2) {
			t.Errorf("call %d: there are no more", n)
		}
		k.wait(t, 2*n)
		s.foundAt = time.Now().Add(time.Hour)
	}
	if got := k.wait(t, 6); len(slices.Compact(got)) != 6 || looks != 1 {
		t.Errorf("got %v with %d looks", got, looks)
	}
	if more := s.CatchUp(t.Context(), runsT, 6); more || looks != 2 {
		t.Errorf("%d looks, once all are told of; there are more: %v", looks, more)
	}
	k.wait(t, 12)
}

// What asynq was given lately it is not given again, unless somebody has heard it since, or it has become more urgent.
func TestRingOnce(t *testing.T) {
	t.Parallel()
	b := opened(t, redistest.SharedRedis(t), redistest.Namespace(t))
	ring := func(gen int64, priority int) int {
		n := Notification{Queue: "default", Shard: 3, Gen: gen, Types: []string{"T"}, Priorities: []int{priority}}
		if err := b.Ring(t.Context(), []Notification{n}); err != nil {
			t.Fatal(err)
		}
		pending := inLine(t, b, "default")
		keys, err := b.rdb.Keys(t.Context(), asynqKey(b.prefix+"default", "*")).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys { // asynq loses it
			b.rdb.Del(t.Context(), k)
		}
		return pending
	}
	for _, c := range []struct {
		gen            int64
		priority, want int
	}{{1, 500, 1}, {1, 500, 0}, {1, 400, 0}, {1, 501, 1}, {1, 501, 0}, {2, 500, 1}, {2, 500, 0}, {1, 500, 1}} {
		if got := ring(c.gen, c.priority); got != c.want {
			t.Errorf("generation %d, priority %d: asynq has %d notifications, want %d", c.gen, c.priority, got, c.want)
		}
	}
	b.rung.last[queueShard{"default", 3}] = given{gen: 1, priority: 500, at: time.Now().Add(-rungFor)}
	if got := ring(1, 500); got != 1 {
		t.Errorf("after a time asynq has %d notifications, want 1", got)
	}
}
