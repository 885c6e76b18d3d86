package redisstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// memory sets the most memory that Redis may use; 1mb is less than an empty server has.
func (e *env) memory(most string) {
	e.Helper()
	e.Check(e.Redis.ConfigSet(e.Context(), "maxmemory", most).Err())
}

// openFull opens a namespace in one of the ways in which scripts reach a server, and returns what fills its memory.
func openFull(t *testing.T, how string) (e *env, fill func()) {
	t.Helper()
	srv := redistest.Start(t)
	e = open(t, srv.URL())
	fill = func() { e.memory("1mb") }
	switch how {
	case "scripts":
		e.Check(e.Redis.Do(t.Context(), "ACL", "SETUSER", "old", "on", ">secret", "~*", "&*", "+@all", "-function", "-fcall").Err())
		rdb := e.Redis
		e = openAs(t, strings.Replace(srv.URL(), "redis://", "redis://old:secret@", 1), e.Namespace)
		e.Redis = rdb
	case "function that comes too late":
		fill = func() {
			e.memory("1mb")
			e.Check(e.Redis.FunctionFlush(t.Context()).Err())
		}
	}
	return e, fill
}

// When the memory of Redis is full, what frees some goes on: jobs end and are deleted with all below them, and messages
// are taken. All else is refused whole, says why, and goes on when there is room again.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"function", "scripts", "function that comes too late"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e, fill := openFull(t, how)
			ctx := t.Context()
			full := e.create(job.Node{Type: "T", Ports: ports(in("in"), out("out"))})
			tree := e.create(
				job.Node{Type: "G", Graph: true},
				job.Node{Name: "a", Type: "T", Ports: ports(heard("in", "/news"))}, job.Node{Name: "b", Type: "T"},
				job.Node{Name: "g", Type: "G", Graph: true}, job.Node{Name: "c", Type: "T", Parent: 3, Ports: ports(out("out"))},
			)
			ready, busy, locked := e.single(), e.begin(e.single()), e.single()
			lock, err := e.store.Lock(ctx, locked, "test", time.Hour, time.Second)
			e.Check(err)
			_, err = e.store.Claim(ctx, "other", full)
			e.Check(err)
			running := e.begin(tree.Nth(2))
			e.Until("it has subscribed", func() bool { return e.Redis.SCard(ctx, "weir:{"+e.Namespace+"}:ch:/news").Val() == 1 })
			write := func() error {
				return e.store.Write(ctx, full, store.Write{Dir: port.Output, Port: "out", Items: raws(`"` + strings.Repeat("x", 10_000) + `"`)})
			}
			for range 50 {
				e.Check(write())
			}
			fill()

			commit := func(d store.Delta) func() error {
				return func() error { _, err := e.store.Commit(ctx, []store.Tx{{Deltas: []store.Delta{d}}}); return err }
			}
			refused := map[string]func() error{
				"write":   write,
				"begin":   func() error { _, err := e.store.Begin(ctx, ready, beginning()); return err },
				"commit":  commit(delta(busy, statemachine.Complete)),
				"publish": func() error { return e.store.Publish(ctx, "/news", raws("1")) },
				"create": func() error {
					_, err := e.store.Create(ctx, newID(t), &job.Plan{Nodes: []job.Node{{Type: "T"}}}, "")
					return err
				},
				"alias": func() error { _, err := e.store.Claim(ctx, "new", full); return err },
			}
			refuses := func() {
				t.Helper()
				for name, ask := range refused {
					e.unchanged(name, func() {
						err := ask()
						e.fails(err, job.ErrUnavailable)
						if text := err.Error(); !strings.Contains(text, "memory is full") || !strings.Contains(text, "weir delete") {
							t.Errorf("%s: %v", name, err)
						}
					})
				}
			}
			refuses()

			e.Check(e.store.Terminate(ctx, tree))
			point := delta(running, store.Checkpoint)
			point.Next, point.Lease = "next", time.Hour
			refused = map[string]func() error{"checkpoint of a job that is to end": commit(point)}
			refuses()
			last := delta(running, statemachine.Suspend)
			last.Set = map[string]json.RawMessage{"k": raws("1")[0]}
			e.commit(last) // of a run that began before
			for _, n := range []int{1, 2, 4} {
				snap := e.begin(tree.Nth(n))
				e.equal("shutdown", snap.Shutdown, true)
				d := delta(snap, statemachine.Shutdown)
				if n == 4 {
					d.Writes = []store.Write{{Job: snap.Info.ID, Dir: port.Output, Port: "out", Items: raws(`"the end"`)}}
				}
				e.commit(d)
			}
			for _, n := range []int{0, 1, 2, 3, 4} {
				e.is(statemachine.Terminated, nth(tree, n))
			}
			e.Check(e.store.Delete(ctx, tree))
			for key := range e.dump() {
				if strings.Contains(key, string(tree)) && !strings.HasSuffix(key, ":erased") {
					t.Errorf("%s is left", key)
				}
			}
			e.Until("the subscription is gone", func() bool { return e.Redis.Exists(ctx, "weir:{"+e.Namespace+"}:ch:/news").Val() == 0 })
			items, head, err := e.store.Peek(ctx, full, port.Output, "out", 40)
			e.Check(err)
			e.Check(e.store.Take(ctx, full, store.Take{Dir: port.Output, Port: "out", Head: head, N: len(items)}, "take"))
			e.equal("messages", fmt.Sprint(e.port(full, port.Output, "out").Waiting), "10")
			e.Check(e.store.Refresh(ctx, busy.Info.ID, busy.Token, time.Hour, nil))
			e.Check(e.store.Unlock(ctx, locked, lock.Token()))
			e.Check(e.store.Unclaim(ctx, "other", full))
			e.Check(e.store.(*redisstore.Store).Heartbeat(ctx, store.EngineInfo{ID: "engine"}))
			others, err := e.store.(*redisstore.Store).Lead(ctx, func(ctx context.Context) { _, err = e.store.Sweep(ctx) })
			e.Check(err)
			e.equal("nobody else sweeps", others, time.Duration(0))

			e.memory("0")
			e.Check(write())
			e.commit(delta(busy, statemachine.Complete))
			e.end(ready, statemachine.Complete)
			e.end(locked, statemachine.Complete)
		})
	}
}

func nth(root job.ID, n int) job.ID {
	if n == 0 {
		return root
	}
	return root.Nth(n)
}

// Work that needs memory is put off while it is full, and keeps no other from being done.
func TestFullRedisPutsOff(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	for range 150 {
		e.create(job.Node{Type: "T", Ports: ports(heard("in", "/news"))})
	}
	hub := "weir:{" + e.Namespace + "}:"
	e.Until("all have subscribed", func() bool { return e.Redis.SCard(t.Context(), hub+"ch:/news").Val() == 150 })
	e.hinder("chore_run", 1, func() { e.Check(e.store.Publish(t.Context(), "/news", numbers(1, 10))) })
	e.Check(e.Redis.ZAddXX(t.Context(), hub+"due", past("!chores")).Err())
	e.memory("1mb")
	_, err := e.store.Sweep(t.Context())
	e.Check(err)
	e.equal("chores", e.Redis.LRange(t.Context(), hub+"chores", 0, -1).Val(), []string{"spread -"})
	e.equal("subscribers that wait", e.Redis.SCard(t.Context(), hub+"spread:1").Val(), int64(150))
	e.memory("0")
	e.Check(e.Redis.ZAddXX(t.Context(), hub+"due", past("!chores")).Err())
	e.sweep()
	e.Until("all is spread", func() bool { return e.Redis.Exists(t.Context(), hub+"spread", hub+"chores").Val() == 0 })
}

// past is a member of due that is past.
func past(member string) redis.Z { return redis.Z{Score: 1, Member: member} }

// An order that multiplies large messages waits for memory, and those behind it to the same shard with it: they come
// once and in order when there is room. It does not hold up orders to other shards, which end and delete jobs there.
func TestFullRedisPassesOrders(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	ctx := t.Context()
	const listeners = 10
	var ids []job.ID
	for range listeners {
		ids = append(ids, e.create(job.Node{Type: "T", Ports: ports(heard("in", "/news"))}))
	}
	hub := "weir:{" + e.Namespace + "}:"
	e.Until("all have subscribed", func() bool { return e.Redis.SCard(ctx, hub+"ch:/news").Val() == listeners })
	speaker := out("news")
	speaker.Channels = []string{"/news"}
	parent, child := e.create(job.Node{Type: "T", Ports: ports(speaker)}), e.single()
	for parent.Shard(shards) == child.Shard(shards) {
		child = e.single()
	}
	e.Check(e.store.Adopt(ctx, parent, child, "kid"))
	snap, big := e.begin(parent), strings.Repeat("x", 20_000)
	d, want := delta(snap, statemachine.Suspend), []string(nil)
	for i := range 3 {
		want = append(want, fmt.Sprintf(`"%d%s"`, i, big))
		d.Writes = append(d.Writes, store.Write{Job: parent, Dir: port.Output, Port: "news", Items: raws(want[i])})
	}
	e.hinder("mail_read", 1, func() { e.commit(d) }) // the process dies before it delivers
	e.memory("1mb")
	e.Check(e.store.Terminate(ctx, parent))
	e.end(parent, statemachine.Shutdown)
	e.end(child, statemachine.Shutdown)
	e.Check(e.store.Delete(ctx, parent))
	e.Until("the child is gone", func() bool { return e.Redis.Exists(ctx, e.key(child)).Val() == 0 })
	e.Check(e.Redis.Eval(ctx, "#!lua flags=allow-oom\nreturn redis.call('ZADD', KEYS[1], 'XX', 1, '!mail')", []string{e.due(parent)}).Err())
	_, err := e.store.Sweep(ctx)
	e.Check(err)
	for _, id := range ids {
		e.holds(id, port.Input, "in")
	}
	e.memory("0")
	e.Check(e.Redis.ZAddXX(ctx, e.due(parent), past("!mail")).Err())
	e.sweep()
	for _, id := range ids {
		e.gets(id, port.Input, "in", want)
	}
}
