package delivery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// never is a poll interval that only a notification ends before the test does.
const never = time.Hour

// notificationOfT is the notification of a shard, sent for jobs of type T.
func notificationOfT(shard int, queue string) Notification {
	return Notification{Queue: queue, Shard: shard, Gen: 1, Types: []string{"T"}}
}

func shardName(shard int) string { return fmt.Sprintf("shard%03d", shard) }

// taken collects the shards whose notifications servers heard.
type taken struct {
	mu  sync.Mutex
	ids []string
}

func (k *taken) handle(_ context.Context, notification Notification) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ids = append(k.ids, shardName(notification.Shard))
	return nil
}

// wait waits until that many were handed, and returns them sorted.
func (k *taken) wait(t *testing.T, n int) []string {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		k.mu.Lock()
		ids := slices.Sorted(slices.Values(k.ids))
		k.mu.Unlock()
		if len(ids) >= n {
			return ids
		}
		if time.Now().After(end) {
			t.Fatalf("got %d wakes, want %d", len(ids), n)
		}
	}
}

// client is the client of a process of its own.
func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// opened is the broker of a process of its own.
func opened(t *testing.T, url, ns string) *Broker {
	t.Helper()
	if hosts, ok := strings.CutPrefix(url, "redis+cluster://"); ok {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(hosts, ",")})
		t.Cleanup(func() { _ = rdb.Close() })
		return New(rdb, ns)
	}
	return New(client(t, url), ns)
}

// serve starts a server in a process of its own and waits until it hears the others.
func serve(t *testing.T, b *Broker, cfg ServeConfig) *server {
	t.Helper()
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 4)
	cfg.Drain, cfg.Logger, cfg.Closing = time.Second, slog.New(slog.DiscardHandler), func() {}
	served, err := b.Serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := served.(*server)
	t.Cleanup(func() { // of a test that has failed: asynq panics if its client is closed first
		select {
		case <-s.stopped:
		default:
			s.Stop()
		}
	})
	for end := time.Now().Add(30 * time.Second); b.notifier.hears.Load() == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	return s
}

// ring has asynq send one notification, and returns its shard's name.
func ring(t *testing.T, b *Broker, n int, queue string) string {
	t.Helper()
	if _, err := b.Enqueue(t.Context(), []Notification{notificationOfT(n, queue)}); err != nil {
		t.Fatal(err)
	}
	return shardName(n)
}

// Servers that would sleep indefinitely wake up when this process, or another one, queues a wake
// of any of their queues; each wake is handed to one of them.
func TestNotification(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		ns := redistest.Namespace(t)
		open := func() *Broker { return opened(t, url, ns) }
		var k taken
		queues := map[string]int{"a": 1, "b": 9, "c": 3}
		first, second, outside := open(), open(), open()
		for _, b := range []*Broker{first, second} {
			s := serve(t, b, ServeConfig{Queues: queues, Handle: k.handle, pollInterval: never})
			defer s.Stop()
		}
		var want []string
		for n := range 60 {
			from := []*Broker{first, second, outside}[n%3]
			want = append(want, ring(t, from, n, string("abc"[n/3%3])))
			if n%20 < 15 { // and some in a row
				k.wait(t, n+1)
			}
		}
		if got := k.wait(t, len(want)); !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})
}

// Many wakes go in one round trip, or some; those that asynq has are told apart from those that
// it has not, also by a server that has forgotten its scripts.
func TestManyNotifications(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		b := opened(t, url, redistest.Namespace(t))
		all := make([]Notification, 2*together+together/2)
		for n := range all {
			all[n] = notificationOfT(n, string("ab"[n%2]))
		}
		held, err := b.Enqueue(t.Context(), all[:together/2])
		if err != nil || len(held) > 0 {
			t.Fatalf("of the first, held %v, error %v", held, err)
		}
		if err := b.rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		held, err = b.Enqueue(t.Context(), all)
		if err != nil || len(held) != together/2 || held[0].Shard != 0 || held[together/2-1].Shard != together/2-1 {
			t.Errorf("of all, held %v, error %v", held, err)
		}
		var k taken
		s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1, "b": 1}, Handle: k.handle})
		defer s.Stop()
		got := k.wait(t, len(all))
		if slices.Sort(got); len(slices.Compact(got)) != len(all) {
			t.Fatalf("got %d bells of %d", len(got), len(all))
		}
	})
}

// Wakes that did not reach Redis are no success, whatever asynq was told before they went.
func TestEnqueueWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := opened(t, server.URL(), redistest.Namespace(t))
	ring(t, b, 0, "a")
	server.Kill()
	all := []Notification{notificationOfT(1, "a"), notificationOfT(2, "a")}
	if held, err := b.Enqueue(t.Context(), all); err == nil || len(held) > 0 {
		t.Errorf("held %v, error %v", held, err)
	}
}

// A notification that is lost costs a poll interval, no more.
func TestLostNotification(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b, mute := New(client(t, url), ns), New(client(t, url), ns)
	mute.notifier.channel = "nobody listens"
	var k taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1}, Handle: k.handle, pollInterval: 50 * time.Millisecond})
	defer s.Stop()
	for n := range 5 {
		ring(t, mute, n, "a")
		k.wait(t, n+1)
	}
}

// A server that may not listen to others still takes their wakes.
func TestDeafServer(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	if err := client(t, url).Do(t.Context(), "ACL", "SETUSER", ns, "on", ">secret", "~*", "resetchannels", "&asynq:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	b, other := New(client(t, strings.Replace(url, "redis://", "redis://"+ns+":secret@", 1)), ns), New(client(t, url), ns)
	var k taken
	cfg := ServeConfig{
		Queues: map[string]int{"a": 1}, Handle: k.handle, pollInterval: never,
		Concurrency: 1, Drain: time.Second, Logger: slog.New(slog.DiscardHandler), Closing: func() {},
	}
	s, err := b.Serve(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	for n := range 3 {
		ring(t, other, n, "a")
		k.wait(t, n+1)
	}
}

// A paused queue keeps its wakes until it is resumed.
func TestPausedQueue(t *testing.T) {
	t.Parallel()
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b := New(client(t, url), ns)
	var k taken
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1, "b": 1}, Handle: k.handle, pollInterval: 50 * time.Millisecond})
	defer s.Stop()
	ring(t, b, 0, "a")
	k.wait(t, 1)
	if err := b.inspect.PauseQueue(b.prefix + "a"); err != nil {
		t.Fatal(err)
	}
	ring(t, b, 1, "a")
	ring(t, b, 2, "b")
	if got := k.wait(t, 2); !slices.Equal(got, []string{"shard000", "shard002"}) {
		t.Errorf("while paused got %v", got)
	}
	if err := b.inspect.UnpauseQueue(b.prefix + "a"); err != nil {
		t.Fatal(err)
	}
	k.wait(t, 3)
}

// A server that sleeps stops at once, and nothing of it stays.
func TestStopIdleServer(t *testing.T) {
	url, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	b := New(client(t, url), ns)
	s := serve(t, b, ServeConfig{Queues: map[string]int{"a": 1}, Handle: (&taken{}).handle, pollInterval: never})
	s.StopTaking()
	s.Stop()
	if len(b.notifier.subscriptions) != 0 || b.notifier.hears.Load() != 0 {
		t.Error("the server still listens")
	}
	b.AskedDue()
	for _, at := range []int64{7, 5, 6} {
		b.Due(t.Context(), 3, at)
	}
	<-b.MoreDue()
	for _, want := range []map[int]int64{{3: 5}, {}} { // once
		if first, all := b.AskedDue(); !maps.Equal(first, want) || all {
			t.Errorf("AskedDue tells %v, %v, want %v", first, all, want)
		}
	}
	b.Close()
}
