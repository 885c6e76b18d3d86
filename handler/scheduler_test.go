package handler_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/handler"
)

func TestM25ARareTypeIsPickedSoon(t *testing.T) {
	t.Parallel()
	s := &handler.Scheduler{Batch: func(string) int { return 10 }}
	waiting := map[string]int{"a": 10_000, "b": 1}
	for pick := 1; ; pick++ {
		typ, n := s.Pick(waiting)
		s.Started(typ, n)
		s.Stopped(typ, n)
		if typ == "b" {
			if n != 1 || pick > 2 {
				t.Fatalf("b was picked with %d payloads at pick %d: want its only one among the first two", n, pick)
			}
			return
		}
		waiting[typ] -= n
	}
}

func TestM26NeverFewerThanNone(t *testing.T) {
	t.Parallel()
	s := &handler.Scheduler{}
	s.Started("a", 2)
	s.Stopped("a", 5)
	s.Stopped("b", 1)
	if s.Running("a") != 0 || s.Running("b") != 0 {
		t.Fatalf("running: a %d, b %d", s.Running("a"), s.Running("b"))
	}
	s.Started("a", 1)
	if s.Running("a") != 1 {
		t.Fatalf("running: %d after one more", s.Running("a"))
	}
}

// TestWaitIsBounded lets types of some tenants come and go: none that waits is passed over more often than its bound says.
func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	const batch, names = 8, 9
	rapid.Check(t, func(t *rapid.T) {
		s := &handler.Scheduler{
			Batch:  func(typ string) int { return 1 + int(typ[1])%batch },
			Tenant: func(typ string) string { return typ[:1] },
		}
		types := strings.Fields("a0 a1 a2 b0 b1 b7 c0 c3 c5")
		waiting, passed := map[string]int{}, map[string]int{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			typ := rapid.SampledFrom(types).Draw(t, "type")
			waiting[typ] += rapid.IntRange(0, 40).Draw(t, "more")
			picked, n := s.Pick(waiting)
			if picked == "" {
				continue
			}
			if n < 1 || n > waiting[picked] || n > s.Batch(picked) {
				t.Fatalf("picked %d of %s: %d wait, a batch has %d", n, picked, waiting[picked], s.Batch(picked))
			}
			s.Started(picked, n)
			if rapid.Bool().Draw(t, "stops") {
				s.Stopped(picked, n)
			}
			waiting[picked] -= n
			for name, n := range waiting {
				if passed[name]++; n == 0 || name == picked {
					passed[name] = 0
				}
				if passed[name] > 2*names*batch {
					t.Fatalf("%s waits for %d picks", name, passed[name])
				}
			}
		}
	})
}

func TestTenantsShareEvenly(t *testing.T) {
	t.Parallel()
	s := &handler.Scheduler{Tenant: func(typ string) string { return typ[:1] }}
	waiting, got := map[string]int{"a1": 1e6, "a2": 1e6, "a3": 1e6, "b1": 1e6}, map[string]int{}
	for range 600 {
		typ, n := s.Pick(waiting)
		s.Started(typ, n)
		got[typ] += n
	}
	if got["b1"] != 300 || got["a1"] != 100 || got["a2"] != 100 || got["a3"] != 100 {
		t.Fatalf("got %v: want half for each tenant, and a third of that for each type of a", got)
	}
}
