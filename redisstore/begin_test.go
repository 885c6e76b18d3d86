package redisstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// reach makes a job of a status. No contract leads to waiting yet, so that one is forced.
func (e *env) reach(status statemachine.Status) job.ID {
	e.Helper()
	ctx := e.Context()
	if status == statemachine.Scheduled {
		return e.create(job.Node{Type: "T", At: time.Now().Add(time.Hour)})
	}
	redisstore.Hashes(e.Store)
	id := e.single()
	switch status {
	case statemachine.Queued:
	case statemachine.Waiting:
		e.Check(e.Redis.HSet(ctx, e.key(id), "status", string(status)).Err())
		e.Check(e.Redis.ZRem(ctx, e.due(id), string(id)).Err())
	case statemachine.Running:
		e.begin(id)
	case statemachine.Suspended:
		e.end(id, statemachine.Suspend)
	case statemachine.Completed:
		e.end(id, statemachine.Complete)
	case statemachine.Failed:
		e.end(id, statemachine.Fail)
	case statemachine.Terminating, statemachine.Terminated:
		e.Check(e.store.Apply(ctx, id, statemachine.Terminate))
		if status == statemachine.Terminated {
			e.end(id, statemachine.Shutdown)
		}
	default:
		e.Fatalf("no way to %s", status)
	}
	e.is(status, id)
	return id
}

// key is the hash of a job, as docs/redis.md says.
func (e *env) key(id job.ID) string {
	return fmt.Sprintf("weir:{%s:%d}:j:%s", e.Namespace, id.Shard(shards), id)
}

// due is the set of the jobs of a shard that the sweeper will look at.
func (e *env) due(id job.ID) string {
	return fmt.Sprintf("weir:{%s:%d}:due", e.Namespace, id.Shard(shards))
}

func TestBeginNeedsAReadyJob(t *testing.T) {
	each(t, func(e *env) {
		for _, status := range statemachine.Statuses() {
			id := e.reach(status)
			if status == statemachine.Queued || status == statemachine.Terminating {
				snap := e.begin(id)
				e.equal("shutdown", snap.Shutdown, status == statemachine.Terminating)
				continue
			}
			e.unchanged("begin of a job that is "+string(status), func() {
				_, err := e.store.Begin(e.Context(), id, beginning())
				e.fails(err, job.ErrStatus)
			})
		}
		_, err := e.store.Begin(e.Context(), newID(e), beginning())
		e.fails(err, job.ErrNotFound)
	})
}

func TestBeginTwice(t *testing.T) {
	each(t, func(e *env) {
		for _, status := range []statemachine.Status{statemachine.Queued, statemachine.Terminating} {
			id := e.reach(status)
			e.write(id, "in", "1", "2")
			b := beginning()
			first, err := e.store.Begin(e.Context(), id, b)
			e.Check(err)
			e.unchanged("begin under the same token", func() {
				again, err := e.store.Begin(e.Context(), id, b)
				e.Check(err)
				e.equal("repeated begin", again, first)
			})
			e.unchanged("begin under a second token", func() {
				_, err := e.store.Begin(e.Context(), id, beginning())
				e.fails(err, job.ErrStatus)
			})
		}
	})
}

func TestBeginRace(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, err := e.store.Begin(e.Context(), id, beginning()); err == nil {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		e.equal("runs begun", won.Load(), int32(1))
	})
}

func TestSnapshotIsBounded(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(job.Node{Type: "T", Ports: ports(in("many"), in("big"), in("none"))})
		e.Check(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "many", Items: numbers(1, 300)}))
		big := `"` + strings.Repeat("x", 998) + `"`
		for range 20 {
			e.write(id, "big", big)
		}
		b := beginning()
		b.Batch, b.Bytes = 120, 5500
		snap, err := e.store.Begin(e.Context(), id, b)
		e.Check(err)
		e.equal("ports with messages", len(snap.In), 2)
		many, large := snap.In.Of("many"), snap.In.Of("big")
		e.equal("by count", many.Items, numbers(1, 120))
		e.equal("length", []int{many.Len, large.Len}, []int{300, 20})
		e.equal("by bytes", len(large.Items), 6) // the one that crosses the bound is the last

		// The rest comes by page, with the same bounds.
		got := many.Items
		for len(got) < many.Len {
			items, head, err := e.store.Page(e.Context(), id, port.Input, "many", len(got), 70, 1<<20)
			e.Check(err)
			e.equal("head", head, many.Head)
			got = append(got, items...)
		}
		e.equal("all", got, numbers(1, 300))
		items, _, err := e.store.Page(e.Context(), id, port.Input, "big", 18, 10, 1500)
		e.Check(err)
		e.equal("page by bytes", len(items), 2)
		items, _, err = e.store.Page(e.Context(), id, port.Input, "big", 20, 10, 1500)
		e.Check(err)
		e.equal("page behind the end", len(items), 0)
	})
}

func TestSnapshotSaysWhetherStateIsWhole(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		for _, keys := range []int{0, 1, 64, 65} {
			snap := e.begin(id)
			d := delta(snap, statemachine.Requeue)
			d.Set = map[string]json.RawMessage{}
			for i := range keys {
				d.Set[fmt.Sprint("k", i)] = json.RawMessage(fmt.Sprint(i))
			}
			e.commit(d)
			snap = e.begin(id)
			e.equal("whole", snap.Whole, keys <= 64)
			if snap.Whole {
				e.equal("state", len(snap.State), keys)
			}
			all, err := e.store.State(e.Context(), id)
			e.Check(err)
			e.equal("all state", len(all), keys)
			some, err := e.store.State(e.Context(), id, "k0", "none")
			e.Check(err)
			e.equal("some state", len(some), min(keys, 1))
			e.commit(delta(snap, statemachine.Requeue))
		}
	})
}

// A state of few keys with many bytes does not come with the snapshot.
func TestSnapshotLeavesLargeStateBehind(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		large := json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)
		for keys, whole := range map[int]bool{1: true, 5: true, 6: false} {
			d := delta(e.begin(id), statemachine.Requeue)
			d.Set, d.Unset = map[string]json.RawMessage{}, []string{"k0", "k1", "k2", "k3", "k4", "k5"}[keys:]
			for i := range keys {
				d.Set[fmt.Sprint("k", i)] = large
			}
			e.commit(d)
			snap := e.begin(id)
			e.equal(fmt.Sprint("whole with ", keys), snap.Whole, whole)
			e.commit(delta(snap, statemachine.Requeue))
		}
	})
}

func TestBeginOfALockedJob(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.Check(e.Redis.Set(e.Context(), e.key(id)+":lock", "me", 300*time.Millisecond).Err())
		_, err := e.store.Begin(e.Context(), id, beginning())
		e.fails(err, job.ErrLocked)
		e.is(statemachine.Queued, id)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if _, err = e.store.Begin(e.Context(), id, beginning()); err == nil {
				break
			}
			e.fails(err, job.ErrLocked)
			if time.Now().After(deadline) {
				e.Fatal("the lock does not end")
			}
		}
		e.is(statemachine.Running, id)
	})
}

// A beginning whose answer was lost and that is sent again tells of more than at first: what came meanwhile, and was read, is no
// reason for another run of a job that all its sources have left, unless a child woke it that no run was told of.
func TestBeginAgainSeesMore(t *testing.T) {
	each(t, func(e *env) {
		for _, read := range []int{2, 1, 0} {
			s, c := e.line()
			d := delta(e.begin(s), statemachine.Requeue)
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
			e.commit(d)
			b := beginning()
			_, err := e.store.Begin(e.Context(), c, b)
			e.Check(err)
			d = delta(e.begin(s), statemachine.Complete)
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("2")}}
			d.Closes = []string{"out"}
			e.commit(d)
			snap, err := e.store.Begin(e.Context(), c, b)
			e.Check(err)
			e.equal("inbox", snap.In.Of("in").Len, 2)
			want := map[int]statemachine.Status{2: statemachine.Completed, 1: statemachine.Queued, 0: statemachine.Queued}[read]
			if read == 0 { // all is read, but a child woke it
				e.Check(e.Redis.ZAdd(e.Context(), e.key(c)+":w", redis.Z{Score: 1, Member: "child"}).Err())
				read = 2
			}
			d = delta(snap, statemachine.Complete)
			d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: read}}
			e.commit(d)
			e.is(want, c)
		}
	})
}

// lastRun is a run of a job that has seen the only message and the end of its source.
func (e *env) lastRun() (*store.Snapshot, job.ID) {
	e.Helper()
	s, c := e.lineWithSide()
	d := delta(e.begin(s), statemachine.Complete)
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
	d.Closes = []string{"out"}
	e.commit(d)
	return e.begin(c), c
}

// What else asks for a run during the last one of a job gets it: a user, a default, a timer.
func TestLastRunIsFollowedByOthers(t *testing.T) {
	for name, ask := range map[string]func(e *env, c job.ID){
		"user": func(e *env, c job.ID) { e.Check(e.store.Apply(e.Context(), c, statemachine.Run)) },
		"default": func(e *env, c job.ID) {
			e.Check(e.store.SetDefault(e.Context(), c, store.Default{Dir: port.Input, Port: "side", Value: raws("7")[0]}))
		},
		"timer": func(e *env, c job.ID) {
			at := redis.Z{Score: 1, Member: "1"}
			e.Check(e.Redis.ZAdd(e.Context(), e.key(c)+":t", at).Err())
			e.Check(e.Redis.ZAdd(e.Context(), e.due(c), redis.Z{Score: 1, Member: "@" + string(c)}).Err())
			_, err := e.store.Sweep(e.Context())
			e.Check(err)
		},
		"message aside": func(e *env, c job.ID) { e.write(c, "side", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				s, c := e.lastRun()
				ask(e, c)
				d := delta(s, statemachine.Complete)
				d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
				e.commit(d)
				e.is(statemachine.Queued, c)
			})
		})
	}
}
