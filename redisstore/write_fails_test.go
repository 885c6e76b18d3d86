package redisstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// quietSlots is freeSlots once nothing is left of what the engine heard before.
func (e *env) quietSlots() {
	e.Helper()
	_, wakes := e.freeSlots("T")
	go func() {
		for {
			select {
			case <-wakes:
			case <-e.Context().Done():
				return
			}
		}
	}()
	e.suspended()
}

func (e *env) inDue(id job.ID) bool {
	return e.Redis.ZScore(e.Context(), e.due(id), string(id)).Err() == nil
}

// A write to a child whose graph has to wait for its key leaves it waiting, also beside an idle engine.
func TestWriteToWhoWaitsForAKey(t *testing.T) {
	each(t, func(e *env) {
		graph := func() job.ID {
			return e.keyed("k", job.Node{Type: "G", Graph: true}, job.Node{Type: "T", Name: "a", Ports: ports(in("in"))})
		}
		first, second := graph(), graph()
		e.end(first.Nth(1), statemachine.Complete)
		e.is(statemachine.Completed, first)
		e.Until("the second has the key", func() bool { e.sweep(); return e.info(second.Nth(1)).Status == statemachine.Queued })
		e.quietSlots()
		e.write(first.Nth(1), "in", "1")
		e.is(statemachine.Waiting, first, first.Nth(1))
		e.equal("it is in due", e.inDue(first.Nth(1)), false)
		e.end(second.Nth(1), statemachine.Complete)
		e.Until("the first has the key", func() bool { e.sweep(); return e.info(first.Nth(1)).Status == statemachine.Queued })
	})
}

// A write that keys which somebody has damaged end leaves the job ready, beside an idle engine, too.
func TestWriteThatDamageEnds(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		redisstore.Hashes(e.Store)
		logged := e.single()
		e.end(logged, statemachine.Suspend)
		graph := e.create(job.Node{Type: "G", Graph: true}, job.Node{Type: "T", Name: "a", Ports: ports(in("in"))},
			job.Node{Type: "T", Name: "b", Ports: ports(in("in"))})
		e.end(graph.Nth(1), statemachine.Complete)
		e.end(graph.Nth(2), statemachine.Suspend)
		log := strings.TrimSuffix(e.due(logged), "due") + "l:" + string(logged)
		for id, key := range map[job.ID]string{logged: log, graph.Nth(1): e.key(graph)} {
			e.quietSlots()
			e.Check(e.Redis.Del(ctx, key).Err())
			e.Check(e.Redis.Set(ctx, key, "x", 0).Err())
			err := e.store.Write(ctx, id, store.Write{Dir: port.Input, Port: "in", Items: raws("1"), Entry: `{"step":0}`})
			if err == nil {
				t.Errorf("%s is damaged, and nobody said so", key)
			}
			e.equal("status", e.Redis.HGet(ctx, e.key(id), "status").Val(), string(statemachine.Queued))
			e.equal("it is in due", e.inDue(id), true)
		}
	})
}

// A write that is sent again after its answer was lost is known to have been made when the memory is full, too.
func TestRepeatedWriteWhenFull(t *testing.T) {
	for _, how := range []string{"scripts", "function that comes too late"} {
		t.Run(how, func(t *testing.T) {
			e, fill := openFull(t, how)
			id := e.single()
			w := store.Write{Dir: port.Input, Port: "in", Items: raws("1"), Once: "x"}
			e.Check(e.store.Write(t.Context(), id, w))
			fill()
			e.Check(e.store.Write(t.Context(), id, w))
			e.memory("0")
			e.equal("messages", e.Redis.LLen(t.Context(), e.key(id)+":i:in").Val(), int64(1))
		})
	}
}

// Who leads again when something is due soon says so at once: others may sweep the sooner when it dies.
func TestLeadsAgainInAHurry(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.begin(id) // its lease ends soon
		lead := func(ctx context.Context, fn func(context.Context)) {
			_, err := e.store.Lead(ctx, fn)
			e.Check(err)
		}
		for range 2 {
			lead(e.Context(), func(ctx context.Context) {
				ctx, stop := context.WithCancel(ctx)
				var watching sync.WaitGroup
				watching.Go(func() { e.store.Watch(ctx, 100*time.Millisecond, func(err error) { e.Error(err) }) })
				for left := time.Hour; left > 600*time.Millisecond; {
					time.Sleep(10 * time.Millisecond)
					left = e.Redis.PTTL(e.Context(), "weir:{"+e.Namespace+"}:sweeper").Val()
					if left > 600*time.Millisecond && left < 1100*time.Millisecond {
						e.Errorf("it leads for %s more: the lock runs down", left)
						break
					}
				}
				stop()
				watching.Wait()
			})
		}
	})
}
