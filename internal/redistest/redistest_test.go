package redistest_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

func TestServerKillRestart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Client(t)
	check(t, c.Set(ctx, "k", "v", 0).Err())

	s.Kill()
	s.Kill()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Fatal("a killed server answers")
	}
	s.Restart()
	if got := c.Get(ctx, "k").Val(); got != "v" {
		t.Fatalf("after restart with appendonly: k = %q, want v", got)
	}
}

func TestServerPauseResume(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true})
	defer c.Close()
	check(t, c.Ping(t.Context()).Err())

	s.Pause()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(short).Err(); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	check(t, c.Ping(t.Context()).Err())
}

func TestClusterTakesKeysOnAllNodes(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	c := cluster.Client(t)
	for i := range 100 {
		check(t, c.Set(t.Context(), fmt.Sprint("key", i), i, 0).Err())
	}
	for i, n := range cluster.Nodes {
		if size := n.Client(t).DBSize(t.Context()).Val(); size < 10 {
			t.Errorf("node %d holds %d of 100 keys", i, size)
		}
	}
}

func TestMiniExpiresKeys(t *testing.T) {
	t.Parallel()
	m := redistest.StartMini(t)
	c := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer c.Close()
	check(t, c.Set(t.Context(), "k", "v", 50*time.Millisecond).Err())
	for start := time.Now(); c.Exists(t.Context(), "k").Val() == 1; time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("key with a TTL of 50ms still there after 10s")
		}
	}
}

// The counter ends at 2 after one call: the reply was lost after execution.
func TestProxyDropsReplyAfterExecution(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	opts, err := redis.ParseURL(p.URL())
	check(t, err)
	c := redis.NewClient(opts)
	defer c.Close()

	p.DropReplies(1, "InCr")
	if got, err := c.Incr(t.Context(), "n").Result(); err != nil || got != 2 {
		t.Errorf("INCR with a lost reply = %d, %v; want 2, as the client repeats it", got, err)
	}
	if p.Dropped() != 1 {
		t.Errorf("Dropped() = %d, want 1", p.Dropped())
	}
	if got := c.Incr(t.Context(), "n").Val(); got != 3 {
		t.Errorf("INCR after the drop = %d, want 3", got)
	}
	p.Cut()
	check(t, c.Ping(t.Context()).Err())
}

func TestEachSharesInstances(t *testing.T) {
	urls := map[string]bool{}
	for range 2 {
		redistest.Each(t, func(t *testing.T, url string) {
			if !strings.Contains(t.Name(), "miniredis") { // one for each test
				urls[url] = true
			}
		})
	}
	if len(urls) != 2 || !urls[redistest.SharedRedis(t)] {
		t.Errorf("Each gave %v, want two instances, SharedRedis among them", urls)
	}
}

func TestNamespace(t *testing.T) {
	t.Parallel()
	a, b := redistest.Namespace(t), redistest.Namespace(t)
	if a == b || !regexp.MustCompile(`^[a-z0-9]{2,12}$`).MatchString(a) {
		t.Errorf("Namespace gave %q and %q", a, b)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
