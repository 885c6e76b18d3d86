package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

func TestExamineServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args         []string
		harm         func(t *testing.T, s *redistest.Server)
		check        string
		level        redisstore.Level
		finding, fix string
	}{
		"evicts": {
			[]string{"--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb"},
			nil,
			"eviction", redisstore.Problem, "allkeys-lru: .*throws jobs away", "maxmemory-policy noeviction",
		},
		"keeps nothing": {
			nil, nil,
			"persistence", redisstore.Problem, "^nothing is written to disk", "appendonly yes",
		},
		"snapshots": {
			[]string{"--save", "900 1"},
			nil,
			"persistence", redisstore.Warning, "only snapshots", "appendonly yes",
		},
		"never syncs": {
			[]string{"--appendonly", "yes", "--appendfsync", "no"},
			nil,
			"persistence", redisstore.Warning, "^appendfsync is no", "appendfsync everysec",
		},
		"always syncs": {
			[]string{"--appendonly", "yes", "--appendfsync", "always"},
			nil,
			"persistence", redisstore.OK, "synced with each change", "",
		},
		"loads what is torn": {
			[]string{"--appendonly", "yes", "--aof-load-truncated", "yes"},
			nil,
			"persistence", redisstore.Warning, "^aof-load-truncated is yes", "redis-check-aof --fix",
		},
		"cannot save": {
			[]string{"--appendonly", "yes", "--enable-protected-configs", "yes"},
			func(t *testing.T, s *redistest.Server) {
				c := s.Client(t)
				dir, err := c.ConfigGet(t.Context(), "dir").Result()
				if err == nil {
					err = errors.Join(os.Mkdir(filepath.Join(dir["dir"], "taken"), 0o700), c.ConfigSet(t.Context(), "dbfilename", "taken").Err(), c.Set(t.Context(), "x", "y", 0).Err())
				}
				if err == nil {
					err = c.BgSave(t.Context()).Err()
				}
				for deadline := time.Now().Add(time.Minute); err == nil; time.Sleep(20 * time.Millisecond) {
					var info string
					if info, err = c.Info(t.Context(), "persistence").Result(); strings.Contains(info, "rdb_last_bgsave_status:err") {
						return
					}
					if time.Now().After(deadline) {
						err = errors.New("the snapshot does not fail")
					}
				}
				t.Fatal(err)
			},
			"persistence", redisstore.Problem, "^the last write to disk failed: rdb_last_bgsave_status$", "its disk",
		},
		"nearly full": {
			[]string{"--maxmemory", "20mb"},
			fill(17 << 20),
			"memory", redisstore.Warning, `^1\d of 20 MiB are used, [89]\d % of maxmemory$`, "raise maxmemory",
		},
		"full": {
			[]string{"--maxmemory", "20mb"},
			fill(30 << 20),
			"memory", redisstore.Problem, "when it is full, all is refused but what ends, reads and deletes$", "raise maxmemory",
		},
		"lacks replicas": {
			[]string{"--min-replicas-to-write", "2"},
			nil,
			"replication", redisstore.Problem, "^0 replicas connected, min-replicas-to-write is 2", "lower min-replicas-to-write",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, c.args...)
			if c.harm != nil {
				c.harm(t, s)
			}
			look(t, redisstore.Config{URL: s.URL()}, false).has(t, c.check, c.level, c.finding, c.fix)
		})
	}
}

// fill writes that many bytes, as far as they fit.
func fill(bytes int) func(*testing.T, *redistest.Server) {
	return func(t *testing.T, s *redistest.Server) {
		c := s.Client(t)
		value := strings.Repeat("x", 1<<17-64)
		for i := range bytes >> 17 {
			if err := c.Set(t.Context(), fmt.Sprint("filler", i), value, 0).Err(); err != nil {
				return // it is full
			}
		}
	}
}

func TestExamineReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, "--appendonly", "yes", "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	found := func(s *redistest.Server) examined { return look(t, redisstore.Config{URL: s.URL()}, false) }
	found(replica).has(t, "replication", redisstore.Problem, "is a replica", "redis\\+sentinel://")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		info, err := master.Client(t).Info(t.Context(), "replication").Result()
		if err == nil && strings.Contains(info, "state=online") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the replica does not come", err)
		}
	}
	found(master).has(t, "replication", redisstore.Warning, "^1 replica, but min-replicas-to-write is 0", "min-replicas-to-write 1")
	if err := master.Client(t).ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
		t.Fatal(err)
	}
	found(master).has(t, "replication", redisstore.OK, "^1 replica$", "")
}

// A server of a cluster whose URL says nothing of one.
func TestExamineHiddenCluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--cluster-enabled", "yes")
	look(t, redisstore.Config{URL: s.URL()}, false).has(t, "cluster", redisstore.Problem, "part of a cluster", "redis\\+cluster://")
}

func TestExamineWithoutRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Kill()
	found := look(t, redisstore.Config{URL: s.URL()}, false)
	if len(found) != 1 {
		t.Errorf("%+v", found)
	}
	found.has(t, "connection", redisstore.Problem, "^cannot reach Redis at", "start Redis")
	_, err := redisstore.Examine(t.Context(), redisstore.Config{URL: "redis//"}, redisstore.Examination{})
	if !errors.Is(err, job.ErrConfig) {
		t.Errorf("a wrong URL: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := redisstore.Examine(ctx, redisstore.Config{URL: s.URL()}, redisstore.Examination{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled look: %v", err)
	}
}

// A clock that goes wrong and a line that is slow.
func TestExamineTime(t *testing.T) {
	t.Parallel()
	mini := redistest.StartMini(t)
	for direction, d := range map[string]time.Duration{"ahead of": time.Hour, "behind": -time.Hour} {
		mini.Redis.SetTime(time.Now().Add(d))
		look(t, redisstore.Config{URL: mini.URL()}, false).has(t, "clock", redisstore.Warning, `^Redis's clock is (1h|59m59)\S+ `+direction+" this machine's", "time server")
	}
	s := redistest.Start(t)
	look(t, redisstore.Config{URL: "redis://" + slow(t, s.Addr())}, false).has(t, "latency", redisstore.Warning, "^half of 20 PINGs took", "near their Redis")
}

// slow passes a connection on, and answers late.
func slow(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go func() {
				defer near.Close()
				buf := make([]byte, 1<<16)
				for {
					n, err := far.Read(buf)
					time.Sleep(15 * time.Millisecond)
					if _, bad := near.Write(buf[:n]); err != nil || bad != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
