package delivery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
)

// suspended waits until a server sleeps and knows of its queues.
func resting(t *testing.T, s *server) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if l := s.line.suspended.Load(); l != nil && l.turns == s.broker.notifier.turns.Load() {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the server does not sleep")
		}
	}
}

// freeSlotOf takes a free slot of a server that sleeps but for the moment after a notification of before.
func freeSlotOf(t *testing.T, s *server) *FreeSlot {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		resting(t, s)
		if freeSlot := s.broker.FreeSlot(); freeSlot != nil {
			return freeSlot
		}
	}
	t.Fatal("there is no seat")
	return nil
}

// deliver delivers a wake of a job of type T.
func deliver(t *testing.T, b *Broker, n int, queue string) string {
	t.Helper()
	if err := b.Ring(t.Context(), []Notification{notificationOfT(n, queue)}); err != nil {
		t.Fatal(err)
	}
	return shardName(n)
}

func runsT(typ string) bool { return typ == "T" }

// inLine returns how many wakes asynq has queued.
func inLine(t *testing.T, b *Broker, queue string) int {
	t.Helper()
	q, err := b.Queue(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}
	return q.Pending
}

// A server that sleeps handles wakes of its process without asynq; what it does not run, or
// serve, goes through asynq, and so does all when another process delivers it.
func TestDirectly(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		ns := redistest.Namespace(t)
		b, other := opened(t, url, ns), opened(t, url, ns)
		var k taken
		s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1, "b": 1}, Handle: k.handle, Runs: runsT, pollInterval: never})
		defer s.Stop()
		known := func() []string {
			all, err := b.QueueNames()
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		var want []string
		for n := range 6 {
			resting(t, s)
			want = append(want, deliver(t, b, n, string("ab"[n%2])))
			k.wait(t, n+1)
		}
		if all := known(); len(all) > 0 {
			t.Errorf("asynq has had wakes of %v", all)
		}

		if err := b.Ring(t.Context(), []Notification{{Queue: "a", Shard: 6, Gen: 1, Types: []string{"Foreign"}}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, "shard006", deliver(t, other, 7, "b"))
		if got := k.wait(t, len(want)); !slices.Equal(got, want) {
			t.Errorf("handled %v, want %v", got, want)
		}
		deliver(t, b, 8, "c")
		if all := known(); !slices.Equal(all, []string{"a", "b", "c"}) || inLine(t, b, "c") != 1 {
			t.Errorf("asynq has had wakes of %v", all)
		}
	})
}

// Wakes that come directly and those that come through asynq share a server's slots.
func TestDirectSlots(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b := New(client(t, url), ns)
	var k taken
	var now, most atomic.Int64
	gate := make(chan struct{})
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1}, Runs: runsT, pollInterval: never, Handle: func(ctx context.Context, notification Notification) error {
		for n := now.Add(1); ; {
			if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		defer now.Add(-1)
		<-gate
		return k.handle(ctx, notification)
	}})
	defer s.Stop()
	for n := range 20 {
		if n < 3 {
			resting(t, s)
		}
		deliver(t, b, n, "a")
	}
	for end := time.Now().Add(30 * time.Second); now.Load() < 4 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // for one too many
	close(gate)
	k.wait(t, 20)
	resting(t, s) // so it holds none itself
	for end := time.Now().Add(30 * time.Second); len(s.line.slots) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // handlers give theirs back when they are done
	}
	if most.Load() != 4 || len(s.line.slots) > 0 {
		t.Errorf("%d at a time, want 4; %d slots are taken", most.Load(), len(s.line.slots))
	}
}

// A paused queue gets no wakes directly either, whichever process paused it, once that is heard.
func TestDirectPause(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b, other := New(client(t, url), ns), New(client(t, url), ns)
	var k taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1, "b": 1}, Handle: k.handle, Runs: runsT, pollInterval: never})
	defer s.Stop()
	n := 0
	for _, by := range []*Broker{b, other} {
		resting(t, s)
		heard := b.notifier.turns.Load()
		turn := func(fn func(context.Context, string) (bool, error)) {
			if changed, err := fn(t.Context(), "a"); err != nil || !changed {
				t.Fatalf("changed %t, %v", changed, err)
			}
			for end := time.Now().Add(30 * time.Second); b.notifier.turns.Load() == heard && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			heard = b.notifier.turns.Load()
			resting(t, s)
		}
		turn(by.Pause)
		deliver(t, b, n+1, "a")
		deliver(t, b, n, "b")
		if got := k.wait(t, n+1); len(got) != n+1 || inLine(t, b, "a") != 1 {
			t.Errorf("while paused got %v, and %d are in line", got, inLine(t, b, "a"))
		}
		turn(by.Resume)
		n += 2
		k.wait(t, n)
	}
}

// A wake that could not be handled comes again, through asynq.
func TestDirectFails(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b := New(client(t, url), ns)
	var k taken
	var once sync.Once
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1}, Runs: runsT, pollInterval: never, Handle: func(ctx context.Context, notification Notification) (err error) {
		once.Do(func() { err = errors.New("not now") })
		if err != nil {
			return err
		}
		return k.handle(ctx, notification)
	}})
	defer s.Stop()
	resting(t, s)
	deliver(t, b, 0, "a")
	k.wait(t, 1)
	if all, err := b.QueueNames(); err != nil || !slices.Equal(all, []string{"a"}) {
		t.Errorf("asynq has had wakes of %v, %v", all, err)
	}
}

// A server that stops waits for what it handles, and takes nothing more, directly or not, also while
// it waits for a slot.
func TestDirectStop(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b := New(client(t, url), ns)
	var k taken
	begun, gate := make(chan struct{}), make(chan struct{})
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1}, Runs: runsT, pollInterval: never, Handle: func(ctx context.Context, notification Notification) error {
		begun <- struct{}{}
		<-gate
		return k.handle(ctx, notification)
	}})
	for n := range 4 {
		resting(t, s)
		deliver(t, b, n, "a")
		<-begun
	}
	deliver(t, b, 4, "a")
	for end := time.Now().Add(30 * time.Second); s.line.suspended.Load() != nil && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // until it wants a slot for that one
	}
	s.StopTaking()
	deliver(t, b, 5, "a")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Stop()
	}()
	select {
	case <-stopped:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(gate)
	<-stopped
	if got := k.wait(t, 4); len(got) != 4 || inLine(t, b, "a") != 2 {
		t.Errorf("handled %v, in line %d", got, inLine(t, b, "a"))
	}
}

// A server that may not know which queues are paused takes nothing directly: when something has
// turned that it has not looked at yet, or it does not hear other processes.
func TestDirectUnsure(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b := New(client(t, url), ns)
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1}, Handle: (&taken{}).handle, Runs: runsT, pollInterval: never})
	defer s.Stop()
	resting(t, s)
	b.notifier.turns.Add(1)
	if s.line.open()["a"] || b.FreeSlot() != nil {
		t.Error("it takes some before it looked")
	}
	b.notifier.turns.Add(-1)
	b.notifier.hears.Store(0)
	if s.line.open()["a"] || b.FreeSlot() != nil {
		t.Error("it takes some though it is deaf")
	}
	b.notifier.hears.Store(1)
	if !s.line.open()["a"] {
		t.Error("it takes none")
	}
}

// A free slot is a slot of a server that sleeps, in the queues that are not paused. What runs in it is
// waited for.
func TestFreeSlot(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b := New(client(t, url), ns)
	begun, gate := make(chan *store.Snapshot), make(chan struct{})
	if changed, err := b.Pause(t.Context(), "a"); err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	before := time.Now()
	s := serve(t, b, ServeConfig{
		Queues: map[string]int{"a": 1, "b": 1}, Handle: (&taken{}).handle, pollInterval: never,
		Next: func() (store.Begin, []string) { return store.Begin{Token: "token"}, []string{"T"} },
		Begun: func(snap *store.Snapshot, since time.Time) {
			if since.Before(before) || since.After(time.Now()) {
				t.Errorf("since %s", since)
			}
			begun <- snap
			<-gate
		},
	})
	if early := b.FreeSlot(); early != nil { // only once it knows which queues are paused
		if !slices.Equal(early.Queues, []string{"b"}) {
			t.Errorf("a seat in %q", early.Queues)
		}
		early.Leave()
	}
	resting(t, s)
	var freeSlots []*FreeSlot
	for range 4 {
		freeSlots = append(freeSlots, freeSlotOf(t, s))
	}
	first := freeSlots[0]
	if first.Begin.Token != "token" || !slices.Equal(first.Types, []string{"T"}) || !slices.Equal(first.Queues, []string{"b"}) {
		t.Fatalf("seat %+v", first)
	}
	if fifth := b.FreeSlot(); fifth != nil {
		t.Errorf("a fifth seat %v", fifth)
	}
	snap := &store.Snapshot{}
	if !first.Run(snap) {
		t.Error("it does not run")
	}
	for _, freeSlot := range freeSlots {
		freeSlot.Leave()
		freeSlot.Leave()
	}
	if got := <-begun; got != snap || len(s.line.slots) != 1 {
		t.Errorf("began %v, and %d slots are taken", got, len(s.line.slots))
	}

	late := freeSlotOf(t, s)
	s.StopTaking()
	if late.Run(snap) {
		t.Error("something runs that came when the server was to stop")
	}
	if freeSlot := b.FreeSlot(); freeSlot != nil {
		t.Errorf("a seat of a server that stops: %v", freeSlot)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Stop()
	}()
	select {
	case <-stopped:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(gate)
	<-stopped
}
