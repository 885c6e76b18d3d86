package delivery

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
)

// line returns the shards whose notifications asynq has queued, the first to be taken first.
func line(t *testing.T, b *Broker, queue string) []int {
	t.Helper()
	ids, err := b.rdb.LRange(t.Context(), asynqKey(b.prefix+queue, "pending"), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(ids)
	shards := make([]int, len(ids))
	for i, id := range ids {
		n, err := notificationOf(queue, asynq.NewTask(taskType, []byte(id)))
		if err != nil {
			t.Fatal(err)
		}
		shards[i] = n.Shard
	}
	return shards
}

func enqueue(t *testing.T, b *Broker, shard, priority int) (held bool) {
	t.Helper()
	n := notificationOfT(shard, "q")
	if priority != job.DefaultPriority {
		n.Priorities = []int{priority}
	}
	had, err := b.Enqueue(t.Context(), []Notification{n})
	if err != nil {
		t.Fatal(err)
	}
	return len(had) > 0
}

// Notifications lie in the order of priorities, and of one priority in that in which they came; one that comes again with a higher
// priority moves. Aging raises the oldest of the lowest.
func TestPlaces(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) {
			b := opened(t, url, redistest.Namespace(t))
			type place struct{ shard, priority, came int }
			var want []place
			sorted := func() (shards []int) {
				slices.SortFunc(want, func(a, b place) int { return cmp.Or(b.priority-a.priority, a.came-b.came) })
				for _, p := range want {
					shards = append(shards, p.shard)
				}
				return shards
			}
			var raised []int // they stay where they were put
			for came := range rapid.IntRange(1, 30).Draw(r, "steps") {
				shard, priority := rapid.IntRange(0, 11).Draw(r, "shard"), rapid.SampledFrom([]int{0, 100, 500, 501, 900, 1001}).Draw(r, "priority")
				at := slices.IndexFunc(want, func(p place) bool { return p.shard == shard })
				if held := enqueue(t, b, shard, priority); held != (at >= 0) {
					r.Fatalf("shard %d: held %t, want %t", shard, held, at >= 0)
				}
				if at < 0 {
					want = append(want, place{shard, priority, came})
				} else if want[at].priority < priority {
					want[at].priority, want[at].came = priority, came
				}
				if got := line(t, b, "q"); !slices.Equal(got, sorted()) {
					r.Fatalf("in line %v, want %v", got, want)
				}
			}
			list := asynqKey(b.prefix+"q", "pending")
			if err := raise.Run(t.Context(), b.rdb, []string{list, asynqKey(b.prefix+"q", "paused")}, job.DefaultPriority, asynqKey(b.prefix+"q", "t:")).Err(); err != nil && !errors.Is(err, redis.Nil) {
				r.Fatal(err)
			}
			lowest := want[len(want)-1].priority
			first := slices.IndexFunc(want, func(p place) bool { return p.priority == lowest })
			raised = append(raised, want[first].shard)
			want = slices.Delete(want, first, first+1)
			if got := line(t, b, "q"); !slices.Equal(got, append(raised, sorted()...)) {
				r.Fatalf("after it was raised: %v, want %v and %v", got, raised, want)
			}
		})
	})
}

// One that a server has taken moves no more, and the tasks are as asynq's own client writes them.
func TestPlaceOfTaken(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		b := opened(t, url, redistest.Namespace(t))
		begun, let := make(chan Notification), make(chan struct{})
		for shard := range 3 {
			enqueue(t, b, shard, 500+shard)
		}
		enqueue(t, b, 3, 1)
		for _, task := range []string{"2#1", "3#1"} {
			i, err := b.inspect.GetTaskInfo(b.prefix+"q", task)
			if err != nil || i.State != asynq.TaskStatePending || string(i.Payload) != task || i.Type != taskType || i.Timeout != taskTimeout {
				t.Errorf("asynq tells of %s: %+v, %v", task, i, err)
			}
		}
		s := serve(t, b, ServeConfig{Queues: map[string]int{"q": 1}, Concurrency: 1, Handle: func(_ context.Context, n Notification) error {
			begun <- n
			<-let
			return nil
		}})
		if n := <-begun; n.Shard != 2 {
			t.Errorf("took %d first", n.Shard)
		}
		if !enqueue(t, b, 2, 1000) {
			t.Error("it has one that is taken twice")
		}
		if got := line(t, b, "q"); !slices.Equal(got, []int{1, 0, 3}) {
			t.Errorf("in line %v", got)
		}
		close(let)
		for _, want := range []int{1, 0, 3} {
			if n := <-begun; n.Shard != want {
				t.Errorf("took %d, want %d", n.Shard, want)
			}
		}
		s.Stop()
	})
}

// A list in disorder, as asynq may leave it, loses none.
func TestPlaceInDisorder(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		b := opened(t, url, redistest.Namespace(t))
		list, all := asynqKey(b.prefix+"q", "pending"), []int{}
		for shard := range 20 {
			enqueue(t, b, shard, shard*97%1000)
			if shard%3 == 0 { // as a server that stops does
				if err := b.rdb.RPopLPush(t.Context(), list, list).Err(); err != nil {
					t.Fatal(err)
				}
			}
			all = append(all, shard)
		}
		enqueue(t, b, 0, 999)
		if got := line(t, b, "q"); got[0] != 0 || !slices.Equal(slices.Sorted(slices.Values(got)), all) {
			t.Errorf("in line %v", got)
		}
	})
}

// Notifications of private queues, too, have their turns by priority.
func TestPending(t *testing.T) {
	t.Parallel()
	p := newPending()
	for i, priority := range []int{500, 900, 100, 500, 901, 100} {
		p.add(Notification{Shard: i, Priorities: []int{priority}, Types: []string{"T"}})
	}
	p.add(Notification{Shard: 3, Priorities: []int{950}})
	p.add(Notification{Shard: 1, Priorities: []int{1}}) // it stays
	var got []int
	for n := range 7 {
		if b, ok := p.next(n == 1); ok {
			got = append(got, b.Shard)
		}
	}
	if want := []int{3, 5, 4, 1, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is told to other processes comes back, and those that know no priorities read it as before.
func TestNotificationText(t *testing.T) {
	t.Parallel()
	for _, n := range []Notification{
		{Queue: "q", Shard: 3, Gen: 17, Types: []string{"A", "b@2!x"}, Priorities: []int{900, 900}},
		{Queue: "q", Shard: 0, Gen: 0, Types: []string{"*"}, Priorities: []int{500}},
	} {
		got, ok := notificationFrom(n.text())
		if !ok || got.Queue != n.Queue || got.Shard != n.Shard || got.Gen != n.Gen || !slices.Equal(got.Types, n.Types) || !slices.Equal(got.Priorities, n.Priorities) {
			t.Errorf("%q: %+v, %t, want %+v", n.text(), got, ok, n)
		}
	}
	old, ok := notificationFrom("q 3 17 A B")
	if !ok || !slices.Equal(old.Types, []string{"A", "B"}) || old.Priority() != job.DefaultPriority {
		t.Errorf("of a program of before: %+v, %t", old, ok)
	}
	for _, bad := range []string{"", "q", "q x 1 T", "q 1 x T"} {
		if n, ok := notificationFrom(bad); ok {
			t.Errorf("%q: %+v", bad, n)
		}
	}
	if n, _ := notificationFrom("q 1 1 !900"); n.Priority() != job.DefaultPriority {
		t.Errorf("without types: %s", strconv.Itoa(n.Priority()))
	}
}

// Only keeps types with their priorities.
func TestOnly(t *testing.T) {
	t.Parallel()
	n := Notification{Queue: "q", Types: []string{"A", "B"}, Priorities: []int{900, 300}}
	if b, ok := n.Only(func(typ string) bool { return typ == "B" }); !ok || b.Priority() != 300 || !slices.Equal(b.Types, []string{"B"}) {
		t.Errorf("%+v, %t", b, ok)
	}
	if b, ok := n.Only(func(string) bool { return false }); ok {
		t.Errorf("%+v", b)
	}
}

// What asynq puts to the left end although it has a high priority, as it does with a task that is tried again, is put in its place, and
// spoils no other.
func TestPlaceAfterARetry(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		b := opened(t, url, redistest.Namespace(t))
		for shard := range 6 {
			enqueue(t, b, shard, 100)
		}
		enqueue(t, b, 10, 900)
		list := asynqKey(b.prefix+"q", "pending")
		if err := errors.Join(b.rdb.RPop(t.Context(), list).Err(), b.rdb.LPush(t.Context(), list, "10#1").Err()); err != nil {
			t.Fatal(err)
		}
		enqueue(t, b, 11, 900)
		enqueue(t, b, 12, 500)
		if got, want := line(t, b, "q"), []int{10, 11, 12, 0, 1, 2, 3, 4, 5}; !slices.Equal(got, want) {
			t.Errorf("in line %v, want %v", got, want)
		}
	})
}

// A task whose key somebody has damaged keeps no other from its place.
func TestPlaceBesideDamage(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		for what, damage := range map[string]func(b *Broker, key string) error{
			"type": func(b *Broker, key string) error {
				return errors.Join(b.rdb.Del(t.Context(), key).Err(), b.rdb.Set(t.Context(), key, "x", 0).Err())
			},
			"number": func(b *Broker, key string) error { return b.rdb.HSet(t.Context(), key, "priority", "x").Err() },
			"gone":   func(b *Broker, key string) error { return b.rdb.Del(t.Context(), key).Err() },
		} {
			b := opened(t, url, redistest.Namespace(t))
			for shard := range 3 {
				enqueue(t, b, shard, 100)
			}
			if err := damage(b, asynqKey(b.prefix+"q", "t:1#1")); err != nil {
				t.Fatal(err)
			}
			enqueue(t, b, 7, 700)
			enqueue(t, b, 2, 600)
			if got := line(t, b, "q"); !slices.Equal(got[:2], []int{7, 2}) || len(got) != 4 {
				t.Errorf("%s: in line %v", what, got)
			}
		}
	})
}

// While a queue is paused nothing is raised there: nobody takes it.
func TestRaiseWhilePaused(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		b := opened(t, url, redistest.Namespace(t))
		enqueue(t, b, 1, 100)
		enqueue(t, b, 2, 900)
		if _, err := b.Pause(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		keys := []string{asynqKey(b.prefix+"q", "pending"), asynqKey(b.prefix+"q", "paused")}
		for _, want := range [][]int{{2, 1}, {1, 2}} {
			if err := raise.Run(t.Context(), b.rdb, keys, job.DefaultPriority, asynqKey(b.prefix+"q", "t:")).Err(); err != nil && !errors.Is(err, redis.Nil) {
				t.Fatal(err)
			}
			if got := line(t, b, "q"); !slices.Equal(got, want) {
				t.Errorf("in line %v, want %v", got, want)
			}
			if _, err := b.Resume(t.Context(), "q"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What is passed on goes to no server that takes no more, and has its turn by priority, beside what asynq has.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b, other := opened(t, url, ns), opened(t, url, ns)
	c := func(typ string) bool { return typ == "c" }
	stopping := serve(t, b, ServeConfig{Queues: map[string]int{"q": 1}, Runs: c, Handle: func(context.Context, Notification) error { return nil }})
	stopping.StopTaking()
	begun, let := make(chan Notification), make(chan struct{})
	s := serve(t, other, ServeConfig{Queues: map[string]int{"q": 1}, Concurrency: 1, Runs: c, Handle: func(_ context.Context, n Notification) error {
		begun <- n
		<-let
		return nil
	}})
	own := func(typ string) bool { return typ == "b" }
	pass := func(shard, priority int) {
		mine, some := b.PassOn(t.Context(), Notification{Queue: "q", Shard: shard, Types: []string{"b", "c"}, Priorities: []int{50, priority}}, own)
		if !some || mine.Priority() != 50 || !slices.Equal(mine.Types, []string{"b"}) {
			t.Errorf("own: %+v, %t", mine, some)
		}
	}
	pass(0, 500)
	if n := <-begun; n.Shard != 0 {
		t.Errorf("heard %+v", n)
	}
	for shard, priority := range []int{0, 100, 800, 300} {
		if shard > 0 {
			pass(shard, priority)
		}
	}
	for end := time.Now().Add(30 * time.Second); s.pending.size() < 3 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	enqueue(t, b, 4, 500)
	enqueue(t, b, 5, 200)
	var got []int
	for passed := 3; len(got) < 5; {
		let <- struct{}{}
		n := <-begun
		if got = append(got, n.Shard); n.Shard < 4 {
			passed--
		}
		for end := time.Now().Add(30 * time.Second); s.pending.size() < passed && time.Now().Before(end); { // one may have given way for a time
			time.Sleep(time.Millisecond)
		}
	}
	close(let)
	if want := []int{2, 4, 3, 5, 1}; !slices.Equal(got, want) {
		t.Errorf("heard %v, want %v", got, want)
	}
	s.Stop()
}

func (p *pending) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.notifications)
}
