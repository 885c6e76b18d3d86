package delivery

import (
	"slices"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
)

// Wakes for which asynq has no memory reach servers of this process and of others that serve their queues, unless they
// are paused; what was queued before, and what comes when there is memory again, comes through asynq.
func TestNotificationsWhenFull(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	ns := redistest.Namespace(t)
	memory := func(most string) {
		if err := client(t, r.URL()).ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	first, second, outside := opened(t, r.URL(), ns), opened(t, r.URL(), ns), opened(t, r.URL(), ns)
	var here, there taken
	serves := func(b *Broker, k *taken, queue string) *server {
		return serve(t, b, ServeConfig{Queues: map[string]int{queue: 1, "still": 1}, Handle: k.handle, Runs: runsT})
	}
	s, o := serves(first, &here, "a"), serves(second, &there, "b")
	defer s.Stop()
	defer o.Stop()
	if changed, err := outside.Pause(t.Context(), "still"); err != nil || !changed {
		t.Fatalf("pausing: %t, error %v", changed, err)
	}
	memory("1mb")
	for n, from := range []*Broker{first, second, outside} {
		ring(t, from, n, "a")
		ring(t, from, 10+n, "b")
		ring(t, from, 20+n, "still")
	}
	if got, want := here.wait(t, 3), []string{"shard000", "shard001", "shard002"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := there.wait(t, 3), []string{"shard010", "shard011", "shard012"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	memory("0")
	ring(t, outside, 3, "a")
	if got, want := here.wait(t, 4), []string{"shard000", "shard001", "shard002", "shard003"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	ring(t, outside, 2, "a") // asynq did not get it before
	if got, want := here.wait(t, 5), []string{"shard000", "shard001", "shard002", "shard002", "shard003"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
