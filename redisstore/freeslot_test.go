package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// freeSlots has an engine of this process sleep that runs jobs of some types. It returns the runs that begin in
// the process's own calls, and the wakes of other jobs.
func (e *env) freeSlots(types ...string) (begun <-chan *store.Snapshot, wakes <-chan job.ID) {
	e.Helper()
	snaps, ids := make(chan *store.Snapshot, 100), make(chan job.ID, 100)
	b := e.store.(*redisstore.Store).Broker().(*delivery.Broker)
	s, err := b.Serve(delivery.ServeConfig{
		Concurrency: 1, Queues: map[string]int{job.DefaultQueue: 1}, Logger: slog.New(slog.DiscardHandler), Closing: func() {},
		Handle: func(ctx context.Context, notification delivery.Notification) error {
			set := fmt.Sprintf("weir:{%s:%d}:ready:%s", e.Namespace, notification.Shard, notification.Queue)
			if len(notification.Types) == 0 { // it comes through asynq
				notification.Types = e.Redis.ZRange(ctx, set, 0, -1).Val()
				// as engines do, which take a job then
				e.Redis.HIncrBy(ctx, fmt.Sprintf("weir:{%s:%d}:bells", e.Namespace, notification.Shard), notification.Queue, 1)
			}
			for _, typ := range notification.Types {
				for _, id := range e.Redis.ZRange(ctx, set+"#"+typ, 0, -1).Val() {
					ids <- job.ID(id)
				}
			}
			return nil
		},
		Next:  func() (store.Begin, []string) { return beginning(), types },
		Begun: func(snap *store.Snapshot, _ time.Time) { snaps <- snap },
	})
	e.Check(err)
	e.Cleanup(s.Stop)
	e.suspended()
	return snaps, ids
}

// suspended waits until the process has an idle engine.
func (e *env) suspended() {
	e.Helper()
	b := e.store.(*redisstore.Store).Broker().(*delivery.Broker)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if freeSlot := b.FreeSlot(); freeSlot != nil {
			freeSlot.Leave()
			return
		}
		if time.Now().After(end) {
			e.Fatal("the engine does not sleep")
		}
	}
}

// A write begins a run of the job that it wakes if an engine of the process is idle and runs such
// jobs; else it wakes it.
func TestWriteBegins(t *testing.T) {
	each(t, func(e *env) {
		root := e.pairs(3)
		source, idle, locked := root.Nth(1), root.Nth(2), root.Nth(4)
		elsewhere := e.create(job.Node{Type: "C", Queue: "elsewhere", Ports: ports(in("in"))})
		e.end(elsewhere, statemachine.Suspend)
		begun, wakes := e.freeSlots("C")
		for range 3 { // the sources, as they were created
			e.end(<-wakes, statemachine.Suspend)
		}
		e.suspended()
		for len(wakes) > 0 { // those that it was told of once more
			<-wakes
		}

		e.write(idle, "in", "1", "2")
		snap := <-begun
		e.equal("job", snap.Info.ID, idle)
		e.equal("messages", texts(snap.In.Of("in").Items), []string{"1", "2"})
		e.is(statemachine.Running, idle)

		e.suspended()
		e.write(idle, "in", "3") // it runs again when the run is over
		d := delta(snap, statemachine.Suspend)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 2}}
		e.commit(d)
		e.equal("wake", <-wakes, idle)
		e.is(statemachine.Queued, idle)
		e.begin(idle)

		e.suspended()
		e.Check(e.store.Write(e.Context(), root.Nth(6), store.Write{Dir: port.Input, Port: "in", Items: raws("1"), NoWake: true}))
		e.is(statemachine.Suspended, root.Nth(6))

		e.Check(e.Redis.Set(e.Context(), e.key(locked)+":lock", "x", time.Hour).Err())
		for _, id := range []job.ID{source, locked} { // of another type, and locked
			e.suspended()
			e.write(id, "in", "1")
			e.equal("wake", <-wakes, id)
			e.is(statemachine.Queued, id)
			if id == source { // else it is queued when the next is told of
				e.begin(id)
			}
		}
		e.suspended()
		e.write(elsewhere, "in", "1")
		e.is(statemachine.Queued, elsewhere)
		e.equal("begun besides", len(begun), 0)
	})
}

// A write to a port that passes messages on begins a run of the job that gets them.
func TestWriteBegins_throughGraph(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(
			job.Node{Type: "g", Graph: true, Ports: ports(job.Port{Spec: port.Spec{Name: "in", Dir: port.Input}, Edges: []job.Edge{to(1)}})},
			job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 1))})
		begun, _ := e.freeSlots("C")
		e.write(id, "in", "1")
		snap := <-begun
		e.equal("job", snap.Info.ID, id.Nth(1))
		e.equal("messages", texts(snap.In.Of("in").Items), []string{"1"})
	})
}

// What others did to a job's keys so that no run can begin does not undo the write.
func TestWriteBegins_damaged(t *testing.T) {
	each(t, func(e *env) {
		id := e.pairs(1).Nth(2)
		begun, _ := e.freeSlots("C")
		e.Check(e.Redis.Set(e.Context(), e.key(id)+":s", "no hash", 0).Err())
		e.write(id, "in", "1")
		e.holds(id, port.Input, "in", "1")
		e.equal("begun", len(begun), 0)
		e.suspended() // the free slot is free again
	})
}

// A run that began for an engine which is to stop by then is handed back at once.
func TestWriteBegins_stopping(t *testing.T) {
	each(t, func(e *env) {
		id := e.pairs(1).Nth(2)
		b := e.store.(*redisstore.Store).Broker().(*delivery.Broker)
		for handed := false; !handed; {
			var s delivery.Server
			begun := make(chan *store.Snapshot, 1)
			var stopping atomic.Bool
			s, err := b.Serve(delivery.ServeConfig{
				Concurrency: 1, Queues: map[string]int{job.DefaultQueue: 1}, Logger: slog.New(slog.DiscardHandler), Closing: func() {},
				Handle: func(context.Context, delivery.Notification) error { return nil },
				Next: func() (store.Begin, []string) {
					if stopping.Load() {
						go s.StopTaking()
					}
					return beginning(), []string{"C"}
				},
				Begun: func(snap *store.Snapshot, _ time.Time) { begun <- snap },
			})
			e.Check(err)
			e.suspended()
			stopping.Store(true)
			e.write(id, "in", "1")
			s.Stop()
			select {
			case snap := <-begun: // the write was faster
				e.commit(delta(snap, statemachine.Suspend))
			default:
				handed = true
				e.is(statemachine.Queued, id)
			}
		}
	})
}

// Tokens of outside writes are kept for a minute, also while another database of the server has a
// namespace of the same name.
func TestTokensOfTwoDatabases(t *testing.T) {
	t.Parallel()
	base, ns := redistest.SharedRedis(t), redistest.Namespace(t)
	at := func(db string) (*env, job.ID) {
		url := strings.Replace(base, "/0", "/"+db, 1)
		e := openBy(t, redisstore.Config{URL: url, Namespace: ns, Shards: 1})
		return e, e.create(job.Node{Type: "S", Ports: ports(in("in"))})
	}
	a, one := at("0")
	b, two := at("1")
	for range 20 {
		for e, id := range map[*env]job.ID{a: one, b: two} {
			e.write(id, "in", "1")
			if ttl := e.Redis.PTTL(t.Context(), "weir:{"+ns+":0}:seen").Val(); ttl < 59*time.Second {
				t.Errorf("tokens of now are kept for %v", ttl)
			}
		}
	}
}
