package delivery

import (
	"context"
	"slices"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
)

// Waiting tells notifications that are queued from those that a server has taken, that are done, and that never were.
func TestWaiting(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		ns := redistest.Namespace(t)
		b, other := opened(t, url, ns), opened(t, url, ns)
		notifications := []Notification{notificationOfT(1, "a"), notificationOfT(2, "b"), {Queue: "a", Shard: 1, Gen: 2}}
		check := func(when string, want ...bool) {
			t.Helper()
			if got, err := b.Waiting(t.Context(), notifications); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v, want %v", when, got, err, want)
			}
		}
		check("before", false, false, false)
		if _, err := b.Enqueue(t.Context(), notifications[:2]); err != nil {
			t.Fatal(err)
		}
		check("in line", true, true, false)

		begun, let := make(chan Notification), make(chan struct{})
		s := serve(t, other, ServeConfig{Queues: map[string]int{"b": 1}, pollInterval: never, Handle: func(_ context.Context, notification Notification) error {
			begun <- notification
			<-let
			return nil
		}})
		<-begun
		check("taken", true, false, false)
		close(let)
		s.Stop()
		check("done", true, false, false)
		if got, err := b.Waiting(t.Context(), nil); err != nil || len(got) > 0 {
			t.Errorf("of none: %v, %v", got, err)
		}
	})
}
