package redisstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// asks is one act of each kind: a script that changes, one that reads, several at once, and
// plain commands.
func (e *env) asks(id job.ID) map[string]func() error {
	return map[string]func() error{
		"write": func() error {
			return e.store.Write(e.Context(), id, store.Write{Dir: 'i', Port: "in", Items: raws("2")})
		},
		"peek":  func() error { _, _, err := e.store.Peek(e.Context(), id, 'i', "in", 1); return err },
		"state": func() error { _, err := e.store.State(e.Context(), id); return err },
		"types": func() error { _, err := e.store.Types(e.Context()); return err },
		"sweep": func() error { _, err := e.store.Sweep(e.Context()); return err },
		"open": func() error {
			s, err := redisstore.Open(e.Context(), redisstore.Config{URL: e.URL, Namespace: e.Namespace})
			if err == nil {
				_ = s.Close()
			}
			return err
		},
	}
}

// Each answer that says that Redis does not do what was asked has its kind and says what to
// do, whatever was asked; nothing is done, and when it is over all goes on.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string
		kind   error
		advice string
	}{
		{"LOADING Redis is loading the dataset in memory", job.ErrUnavailable, "reads its data from disk"},
		{"OOM command not allowed when used memory > 'maxmemory'.", job.ErrUnavailable, "raise maxmemory"},
		{"MISCONF Redis is configured to save RDB snapshots", job.ErrUnavailable, "look at its log"},
		{"READONLY You can't write against a read only replica.", job.ErrUnavailable, "redis+sentinel://"},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", job.ErrUnavailable, "failover"},
		{"NOREPLICAS Not enough good replicas to write.", job.ErrUnavailable, "min-replicas-to-write"},
		{"BUSY Redis is busy running a script.", job.ErrUnavailable, "SCRIPT KILL"},
		{"CLUSTERDOWN The cluster is down", job.ErrUnavailable, "bring its servers back"},
		{"TRYAGAIN Multiple keys request during rehashing of slot", job.ErrUnavailable, "moving"},
		{"ERR Script attempted to access a non local key in a cluster node", job.ErrUnavailable, "moving"},
		{"ERR Function not found", job.ErrUnavailable, "moving"},
		{"ERR max number of clients reached", job.ErrUnavailable, "raise maxclients"},
		{"MOVED 3999 127.0.0.1:1", job.ErrConfig, "redis+cluster://"},
		{"ASK 3999 127.0.0.1:1", job.ErrConfig, "redis+cluster://"},
		{"NOAUTH Authentication required.", job.ErrConfig, "user and password"},
		{"WRONGPASS invalid username-password pair or user is disabled.", job.ErrConfig, "correct user and password"},
		{"NOPERM this user has no permissions", job.ErrConfig, "weir acl"},
		{"ERR unknown command 'fcall'", job.ErrRefused, "unknown command"},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", job.ErrRefused, "WRONGTYPE"},
	} {
		t.Run(c.answer, func(t *testing.T) {
			t.Parallel()
			direct := open(t, redistest.SharedRedis(t))
			id := direct.single()
			direct.write(id, "in", "1")
			host := strings.TrimSuffix(strings.TrimPrefix(direct.URL, "redis://"), "/0")
			proxy := redistest.StartProxy(t, host)
			e := *direct
			e.URL = proxy.URL() + "?max_retries=-1"
			s := enginetest.Open(e, redisstore.Config{URL: e.URL, Namespace: e.Namespace})
			e.store = s
			direct.unchanged(c.answer, func() {
				proxy.Answer(c.answer)
				for name, ask := range e.asks(id) {
					err := ask()
					if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.advice) || strings.Contains(err.Error(), "\n") && name != "sweep" {
						t.Errorf("%s: %v, want %v with %q", name, err, c.kind, c.advice)
					}
				}
			})
			proxy.Answer("")
			for name, ask := range e.asks(id) {
				if err := ask(); err != nil {
					t.Errorf("%s, when it is over: %v", name, err)
				}
			}
			direct.holds(id, 'i', "in", "1", "2")
		})
	}
}

// Real servers give these answers, and take what they refused when it is over.
func TestFaultsOfServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		begin  func(e *env, s *redistest.Server)
		ask    string // empty for write
		answer string // as a regular expression
		end    func(e *env)
	}{
		"replica": {
			begin: func(e *env, _ *redistest.Server) {
				e.Check(e.Redis.Do(e.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
			},
			answer: "READONLY",
			end:    func(e *env) { e.Check(e.Redis.Do(e.Context(), "REPLICAOF", "NO", "ONE").Err()) },
		},
		"lonely replica": {
			args: []string{"--replica-serve-stale-data", "no"},
			begin: func(e *env, _ *redistest.Server) {
				e.Check(e.Redis.Do(e.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
			},
			ask:    "types",
			answer: "MASTERDOWN",
			end:    func(e *env) { e.Check(e.Redis.Do(e.Context(), "REPLICAOF", "NO", "ONE").Err()) },
		},
		"no replicas": {
			begin: func(e *env, _ *redistest.Server) {
				e.Check(e.Redis.ConfigSet(e.Context(), "min-replicas-to-write", "1").Err())
			},
			answer: "NOREPLICAS",
			end:    func(e *env) { e.Check(e.Redis.ConfigSet(e.Context(), "min-replicas-to-write", "0").Err()) },
		},
		"full": {
			begin:  func(e *env, _ *redistest.Server) { e.Check(e.Redis.ConfigSet(e.Context(), "maxmemory", "1").Err()) },
			answer: "OOM",
			end:    func(e *env) { e.Check(e.Redis.ConfigSet(e.Context(), "maxmemory", "0").Err()) },
		},
		"disk": {
			begin: func(e *env, s *redistest.Server) {
				e.Check(os.RemoveAll(s.Dir()))
				e.Check(e.Redis.ConfigSet(e.Context(), "save", "1 1").Err())
				e.Until("the snapshot failed", func() bool {
					_ = e.Redis.Set(e.Context(), "x", "1", 0).Err()
					info, err := e.Redis.Info(e.Context(), "persistence").Result()
					e.Check(err)
					return strings.Contains(info, "rdb_last_bgsave_status:err")
				})
			},
			answer: "MISCONF",
			end:    func(e *env) { e.Check(e.Redis.ConfigSet(e.Context(), "save", "").Err()) },
		},
		"password": {
			begin: func(e *env, _ *redistest.Server) {
				e.Check(e.Redis.ConfigSet(e.Context(), "requirepass", "hush").Err())
				e.Check(e.Redis.Do(e.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
			},
			answer: "NOAUTH|unauthenticated",
			end:    func(e *env) { e.Check(e.Redis.ConfigSet(e.Context(), "requirepass", "").Err()) },
		},
		"clients": {
			begin: func(e *env, _ *redistest.Server) {
				e.Check(e.Redis.ConfigSet(e.Context(), "maxclients", "1").Err())
				e.Check(e.Redis.Do(e.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
			},
			answer: "max number of clients|broken pipe|reset by peer|EOF", // it says so and hangs up
			end:    func(e *env) { e.Check(e.Redis.ConfigSet(e.Context(), "maxclients", "1000").Err()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, c.args...)
			e := open(t, s.URL())
			e.Redis = redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: 1, MaxRetries: -1})
			t.Cleanup(func() { _ = e.Redis.Close() })
			e.Check(e.Redis.Ping(t.Context()).Err())
			id := e.single()
			write := e.asks(id)["write"]
			c.begin(e, s)
			err := e.asks(id)[cmp.Or(c.ask, "write")]()
			if err == nil || !matches(c.answer, err.Error()) || errors.Is(err, job.ErrRefused) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, c.answer)
			}
			c.end(e)
			e.Until("it is over", func() bool { return write() == nil })
			e.holds(id, 'i', "in", "2")
		})
	}
}

// A server that reads its data from disk answers, and is waited for.
func TestFaultLoading(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--key-load-delay", "100", "--loading-process-events-interval-bytes", "1024")
	e := open(t, s.URL())
	id := e.single()
	for n := range 20 {
		fields := []any{}
		for i := range 500 {
			fields = append(fields, fmt.Sprint("junk", n, ".", i), "x")
		}
		e.Check(e.Redis.MSet(t.Context(), fields...).Err())
	}
	e.Check(e.Redis.Do(t.Context(), "BGREWRITEAOF").Err())
	e.Until("the file is rewritten", func() bool {
		info, err := e.Redis.Info(t.Context(), "persistence").Result()
		e.Check(err)
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_last_bgrewrite_status:ok") &&
			!strings.Contains(info, "aof_rewrite_scheduled:1")
	})
	st := enginetest.Open(e, redisstore.Config{URL: s.URL() + "?max_retries=-1", Namespace: e.Namespace})
	s.Kill()
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		s.Restart()
	}()
	loading := 0
	for done := false; !done; {
		err := st.Write(t.Context(), id, store.Write{Dir: 'i', Port: "in", Items: raws("1")})
		switch {
		case err == nil:
			done = true
		case errors.Is(err, job.ErrUnavailable) && strings.Contains(err.Error(), "LOADING"):
			loading++
		case !errors.Is(err, job.ErrUnreachable):
			t.Fatal(err)
		}
	}
	<-ready
	if loading == 0 {
		t.Error("the server was never seen loading")
	}
	e.holds(id, 'i', "in", "1")
}

// While somebody else's script does not end, Redis is busy, and then goes on.
func TestFaultBusy(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--busy-reply-threshold", "50")
	e := open(t, s.URL())
	id := e.single()
	endless := make(chan error, 1)
	go func() {
		endless <- redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: -1, MaxRetries: -1}).
			Eval(context.WithoutCancel(t.Context()), "while true do end", nil).Err()
	}()
	write := e.asks(id)["write"]
	e.Until("it is busy", func() bool { return errors.Is(write(), job.ErrUnavailable) })
	e.Check(e.Redis.ScriptKill(t.Context()).Err())
	if err := <-endless; err == nil {
		t.Error("the script ended by itself")
	}
	e.Until("it is over", func() bool { return write() == nil })
	e.begin(id)
}

// A server that forgets its scripts gets them again.
func TestFaultNoScript(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ns := redistest.Namespace(t)
	e := openAs(t, user(t, s, ns, redisstore.ACL{Role: redisstore.RoleWorker}), ns)
	id := e.single()
	for range 3 {
		e.Check(s.Client(t).ScriptFlush(t.Context()).Err())
		e.Check(s.Client(t).FunctionFlush(t.Context()).Err())
		e.end(id, statemachine.Suspend)
		e.write(id, "in", "1")
	}
	e.holds(id, 'i', "in", "1", "1", "1")
}

// A server that is there and says nothing is not waited for without end.
func TestFaultSilence(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := open(t, s.URL()+"?read_timeout=200ms&max_retries=1")
	id := e.single()
	write := e.asks(id)["write"]
	s.Pause()
	if err := write(); !errors.Is(err, job.ErrUnreachable) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want that it cannot be reached", err)
	}
	s.Resume()
	e.Until("it is over", func() bool { return write() == nil })
}
