package redisstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Jobs that run in the order of time come in that of their priorities, then of when they were due, then of their IDs, whatever their types
// and whichever token their runs get; of those of one priority alone if that is asked for.
func TestInTime(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := enginetest.Open(t, redisstore.Config{URL: url, Namespace: redistest.Namespace(t), Shards: shards})
		now, err := s.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var want []job.ID
		shard := 0
		for n := range 24 {
			id, err := s.NewIDIn("in time")
			if err != nil {
				t.Fatal(err)
			}
			priority := 250 + n%2*500
			node := job.Node{
				Type: []string{"C", "A", "B"}[n%3], Queue: "q", InTime: true, Priority: &priority, At: now.Add(-time.Duration(n/6) * time.Hour),
			}
			if _, err := s.Create(t.Context(), id, &job.Plan{Nodes: []job.Node{node}}, ""); err != nil {
				t.Fatal(err)
			}
			want, shard = append(want, id), id.Shard(s.Shards())
		}
		slices.SortFunc(want, func(a, b job.ID) int { return order(t, s, a, b) })
		low := slices.DeleteFunc(slices.Clone(want), func(id job.ID) bool { return priorityOf(t, s, id) != 250 })
		take := func(only *int) job.ID {
			t.Helper()
			token := "x" + string(rune('a'+len(want))) + string(rune('b'+len(low))) // which the lot would be drawn from
			snap, err := popped(s.Pop(t.Context(), "q", shard, delivery.Direct, store.Begin{Token: token, Lease: time.Minute, Priority: only}, []string{"A", "B", "C"}))
			if err != nil || snap == nil {
				t.Fatalf("%v, %v", snap, err)
			}
			return snap.Info.ID
		}
		for range 3 {
			if got := take(new(250)); got != low[0] {
				t.Errorf("of priority 250: got %s, want %s", got, low[0])
			}
			want = slices.DeleteFunc(want, func(id job.ID) bool { return id == low[0] })
			low = low[1:]
		}
		for len(want) > 0 {
			if got := take(nil); got != want[0] {
				t.Errorf("got %s, want %s", got, want[0])
			}
			want = want[1:]
		}
	})
}

func order(t *testing.T, s store.Inspector, a, b job.ID) int {
	t.Helper()
	if by := priorityOf(t, s, b) - priorityOf(t, s, a); by != 0 {
		return by
	}
	if by := infoOf(t, s, a).Due.Compare(infoOf(t, s, b).Due); by != 0 {
		return by
	}
	return a.Compare(b)
}

func priorityOf(t *testing.T, s store.Inspector, id job.ID) int {
	t.Helper()
	return *infoOf(t, s, id).Priority
}

func infoOf(t *testing.T, s store.Inspector, id job.ID) *job.Info {
	t.Helper()
	i, err := s.Info(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}
