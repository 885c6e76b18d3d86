package embedded

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// client is one of the Redis at an address.
func client(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return redis.NewClient(o)
}

func opened(t *testing.T) (*server, *redis.Client) {
	t.Helper()
	e, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := client(t, e.URL())
	t.Cleanup(func() { _ = c.Close() })
	return e, c
}

func TestTTL(t *testing.T) {
	t.Parallel()
	_, c := opened(t)
	ctx := t.Context()
	const ttl = 150 * time.Millisecond
	start := time.Now()
	if err := c.Set(ctx, "short", 1, ttl).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(ctx, "long", 1, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	for c.Exists(ctx, "short").Val() == 1 {
		if time.Since(start) > 10*time.Second {
			t.Fatal("the key does not expire")
		}
		time.Sleep(time.Millisecond)
	}
	// A tick early is allowed, on a busy machine ticks are longer.
	if lived := time.Since(start); lived < ttl/2 {
		t.Errorf("the key lived %v, not %v", lived, ttl)
	}
	if left := c.PTTL(ctx, "long").Val(); left > time.Hour-ttl/2 || left < time.Hour-time.Minute {
		t.Errorf("of an hour are left %v after %v", left, time.Since(start))
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	e, c := opened(t)
	ctx := t.Context()
	if err := c.Eval(ctx, "return redis.call('SET', KEYS[1], 'v')", []string{"k"}).Err(); err != nil {
		t.Fatal(err)
	}
	host := e.redis.Addr()
	if !strings.HasPrefix(host, "127.0.0.1:") {
		t.Errorf("listens on %s", host)
	}
	for _, raw := range []string{"redis://" + host, "redis://:wrong@" + host} {
		stranger := client(t, raw)
		if got, err := stranger.Get(ctx, "k").Result(); err == nil {
			t.Errorf("%s reads %q", raw, got)
		}
		if err := stranger.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"k"}).Err(); err == nil {
			t.Errorf("%s runs scripts", raw)
		}
		_ = stranger.Close()
	}
}

// Close ends everything, also with clients that wait and that were not closed.
func TestClose(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer goleak.VerifyNone(t, before)

	e, err := start()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, e.URL()+"?max_retries=-1")
	ctx := context.Background()
	sub := c.Subscribe(ctx, "news")
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.XGroupCreateMkStream(ctx, "stream", "group", "$").Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 3)
	go func() { done <- c.BLPop(ctx, 0, "list").Err() }()
	go func() { done <- c.BLPop(ctx, time.Hour, "list").Err() }()
	go func() {
		done <- c.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: "group", Consumer: "me", Streams: []string{"stream", ">"}, Block: time.Hour,
		}).Err()
	}()
	for deadline := time.Now().Add(10 * time.Second); e.redis.CurrentConnectionCount() < 4; {
		if time.Now().After(deadline) {
			t.Fatal("the clients do not come")
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // let them wait
	e.Close()
	for range 3 {
		if err := <-done; err == nil {
			t.Error("a waiting command succeeds")
		}
	}
	_ = sub.Close()
	_ = c.Close()
}
