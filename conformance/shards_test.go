package conformance_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// elsewhere creates a job in another shard than that of h.
func (e *bench) elsewhere(h *client.Handle, fn act, ports ...port.Spec) *client.Handle {
	e.Helper()
	for {
		o := e.free(fn, ports...)
		if e.shardOf(o) != e.shardOf(h) {
			return o
		}
	}
}

// shardOf returns what the keys of a job begin with.
func (e *bench) shardOf(h *client.Handle) string {
	e.Helper()
	shard, _, _ := strings.Cut(e.keysOf(h)[0], "}")
	return shard
}

func TestAdoptedFromAnotherShardWakesItsParent(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Free{})
		parent := e.free(nil)
		child := e.elsewhere(parent, func(run *worker.Run) error {
			v, err := next(run, "in")
			if v == `"fail"` {
				return errOver
			}
			return err
		}, in("in"), out("out"))
		e.settled(parent, 1)
		e.settled(child, 1)
		e.untouched(func() { e.woken(func() { e.Check(child.Run(e.Ctx)) }, child) }, parent)
		e.Check(parent.Adopt(e.Ctx, child, "child"))
		e.woken(func() { e.Check(child.Run(e.Ctx)) }, parent)
		e.woken(func() { e.Check(child.WriteOut(e.Ctx, "out", 1)) }, parent)
		e.woken(func() { e.Check(child.Write(e.Ctx, "in", "fail")) }, parent)
		e.reach(child, statemachine.Failed)
		e.woken(func() { e.Check(child.Terminate(e.Ctx)) }, parent)
		e.reach(child, statemachine.Terminated)
	})
}

// A process dies between leaving an order in the outbox and delivering it: the sweeper
// delivers it, once.
func TestOrdersOutliveTheirProcess(t *testing.T) {
	onEach(t, func(e *bench) {
		e.register(&Free{})
		heard := e.free(nil, in("in", "/outbox"))
		h := e.elsewhere(heard, nil, kept("out", "/outbox"))
		e.Until("it has subscribed", func() bool { return len(e.subscribers("/outbox")) == 1 })
		outbox := e.shardOf(h) + "}:outbox"
		waiting := func() int64 {
			n, err := e.Redis.XLen(e.Ctx, outbox).Result()
			e.Check(err)
			return n
		}
		e.Check(h.WriteOut(e.Ctx, "out", -1)) // so that the server knows the script
		e.Until("no order waits", func() bool { return waiting() == 0 })
		want := []string{"-1"}
		for i := range 3 {
			e.cut(h, i)
			want = append(want, fmt.Sprint(i))
		}
		e.empties(h, port.Output, "out", want...)
		if n := waiting(); n != 3 {
			e.Errorf("%d orders wait, want 3", n)
		}
		for range 2 { // two sweepers, one after another, as after a change of leaders
			sweeper := e.Open(e.URL)
			e.Until("the outbox is empty", func() bool { _, err := sweeper.Sweep(e.Ctx); e.Check(err); return waiting() == 0 })
		}
		e.arrived(heard, "in", want...)
	})
}

// cut writes to port "out" of a job as a process does that dies when its order is in the
// outbox and not yet delivered.
func (e *bench) cut(h *client.Handle, v int) {
	e.Helper()
	hosts, cluster := strings.CutPrefix(e.URL, "redis+cluster://")
	url, lose := "", func() {}
	if cluster { // a process that may not read outboxes
		url = "redis+cluster://mortal:mortal@" + hosts
		e.Check(e.Redis.(*redis.ClusterClient).ForEachMaster(e.Ctx, func(ctx context.Context, c *redis.Client) error {
			return c.Do(ctx, "ACL", "SETUSER", "mortal", "on", ">mortal", "~*", "&*", "+@all", "-xrange").Err()
		}))
	} else { // a process that never hears that its write was done, and so leaves it at that
		proxy := redistest.StartProxy(e.T, strings.TrimSuffix(strings.TrimPrefix(e.URL, "redis://"), "/0"))
		url, lose = proxy.URL(), func() { proxy.DropReplies(1, "mortal") }
	}
	s, err := redisstore.Open(e.Ctx, redisstore.Config{URL: url, Namespace: e.Namespace})
	e.Check(err)
	dying, err := client.New(s).Find(e.Ctx, string(h.ID()))
	e.Check(err)
	before := e.portOf(h, port.Output, "out").Total
	lose()
	e.Check(dying.WriteOut(job.WithContext(e.Ctx, port.Context{"by": "mortal"}), "out", v))
	e.Check(s.Close())
	if now := e.portOf(h, port.Output, "out").Total; now != before+1 {
		e.Fatalf("%d messages were written, want 1", now-before)
	}
}
