package runner

import (
	"testing"
	"time"

	"github.com/weirworks/weir/handler"
)

// A batch has fewer payloads where they take long, so that several processes, and other engines, have some.
func TestBatchesOfLongPayloads(t *testing.T) {
	t.Parallel()
	l := &lane{queues: map[string][]*task{}, took: map[string]time.Duration{}}
	stored := &handler.Stored{Version: 1}
	for range 300 {
		l.queues["T"] = append(l.queues["T"], &task{handler: stored, options: handler.Options{Batch: 100}})
	}
	for _, step := range []struct {
		took time.Duration // of a payload
		n    int
		want int
	}{{0, 0, 4}, {time.Millisecond, 4, 100}, {39 * time.Millisecond, 100, 50}, {10 * time.Second, 50, 1}, {0, 1, 1}, {0, 1, 1}} {
		if step.n > 0 {
			l.timed("T", step.took*time.Duration(step.n), step.n)
		}
		if got := l.batch("T"); got != step.want {
			t.Errorf("%d payloads of %s: the next batch has %d, not %d", step.n, step.took, got, step.want)
		}
	}
	for range 20 {
		l.timed("T", time.Millisecond, 1)
	}
	if got := l.batch("T"); got != 100 {
		t.Errorf("once they take a millisecond again a batch has %d", got)
	}
}
