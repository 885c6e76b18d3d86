package redisstore_test

import (
	"testing"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

func TestQueues(t *testing.T) {
	each(t, func(e *env) {
		s, ctx := e.store.(*redisstore.Store), e.Context()
		queues := func() []redisstore.QueueInfo {
			e.Helper()
			all, err := s.Queues(ctx)
			e.Check(err)
			return all
		}
		e.equal("queues of a new namespace", queues(), []redisstore.QueueInfo{})

		e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "B", Queue: "mail"}, {Type: "A", Queue: "mail"}}))
		for _, id := range []string{"1", "2"} {
			e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: id, Concurrency: 4, Queues: map[string]int{"mail": 1, "idle": 1}}))
		}
		e.single()
		e.single()
		all := queues()
		e.equal("names", []string{all[0].Name, all[1].Name, all[2].Name}, []string{"default", "idle", "mail"})
		if all[0].Latency <= 0 {
			e.Errorf("latency %s while two jobs wait", all[0].Latency)
		}
		if ready := all[0].Ready; len(ready) != 1 || ready[0].Type != "T" || ready[0].Jobs != 2 || ready[0].Oldest != all[0].Latency {
			e.Errorf("ready: %+v", ready)
		}
		all[0].Latency, all[0].Ready = 0, nil
		e.equal("queues", all, []redisstore.QueueInfo{
			{Name: "default", Pending: 2, Types: []string{}},
			{Name: "idle", Types: []string{}, Engines: 2, Slots: 8},
			{Name: "mail", Types: []string{"A", "B"}, Engines: 2, Slots: 8},
		})

		_, err := s.PauseQueue(ctx, "no such\nname")
		e.fails(err, job.ErrName)
		changed, err := s.PauseQueue(ctx, "new")
		e.Check(err)
		e.equal("changed", changed, true)
		e.equal("queues", len(queues()), 4)
		e.equal("paused before anybody knew it", queues()[3], redisstore.QueueInfo{Name: "new", Paused: true, Types: []string{}})
		changed, err = s.ResumeQueue(ctx, "new")
		e.Check(err)
		e.equal("changed", changed, true)
		changed, err = s.ResumeQueue(ctx, "never")
		e.Check(err)
		e.equal("changed", changed, false)
	})
}

// A private queue is known while an engine serves it, and leaves no types behind; it cannot be paused, as that
// would stay in asynq.
func TestPrivateQueueIsForgotten(t *testing.T) {
	each(t, func(e *env) {
		s, ctx, queue := e.store.(*redisstore.Store), e.Context(), delivery.NewPrivateQueue()
		e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "A", Queue: queue}}))
		types, err := e.store.Types(ctx)
		e.Check(err)
		e.equal("types", types, []job.TypeInfo{})
		_, err = s.PauseQueue(ctx, queue)
		e.fails(err, job.ErrName)
		e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "1", Concurrency: 4, Queues: map[string]int{queue: 1}}))
		all, err := s.Queues(ctx)
		e.Check(err)
		e.equal("queues while it is served", all, []redisstore.QueueInfo{{Name: queue, Types: []string{}, Engines: 1, Slots: 4}})
		e.Check(e.store.Leave(ctx, "1"))
		all, err = s.Queues(ctx)
		e.Check(err)
		e.equal("queues", all, []redisstore.QueueInfo{})
	})
}

// A queue stays paused until it is resumed, whatever becomes of asynq's keys.
func TestPauseHoldsWithoutKeysOfAsynq(t *testing.T) {
	each(t, func(e *env) {
		ctx, store := e.Context(), e.store.(*redisstore.Store)
		paused := func(queue string) bool {
			e.Helper()
			open, err := store.Broker().Open(ctx, []string{queue})
			e.Check(err)
			return len(open) == 0
		}
		lose := func(queue string) { e.Check(e.Redis.Del(ctx, "asynq:{weir:"+e.Namespace+":"+queue+"}:paused").Err()) }
		for _, queue := range []string{"a", "b"} {
			changed, err := store.PauseQueue(ctx, queue)
			e.Check(err)
			e.equal("changed", changed, true)
			lose(queue)
			e.equal("paused without the key", paused(queue), false)
		}
		_, err := store.ResumeQueue(ctx, "b")
		e.Check(err)
		_, err = store.Sweep(ctx)
		e.Check(err)
		e.equal("what is paused after a sweep", []bool{paused("a"), paused("b")}, []bool{true, false})
		changed, err := store.ResumeQueue(ctx, "a")
		e.Check(err)
		e.equal("changed by resuming", changed, true)
		_, err = store.Sweep(ctx)
		e.Check(err)
		e.equal("paused after it was resumed", paused("a"), false)
	})
}

// Who pauses or resumes a queue may die halfway, also a sweeper that is about to pause one that is resumed meanwhile: the next one puts
// that right. What a tool of asynq has paused is not Weir's to resume.
func TestPauseHalfway(t *testing.T) {
	each(t, func(e *env) {
		ctx, store := e.Context(), e.store.(*redisstore.Store)
		for _, queue := range []string{"late", "half", "tool", "set"} {
			_, err := store.PauseQueue(ctx, queue)
			e.Check(err)
		}
		paused := "weir:{" + e.Namespace + "}:paused"
		key := func(queue string) string { return "asynq:{weir:" + e.Namespace + ":" + queue + "}:paused" }
		e.Check(e.Redis.SRem(ctx, paused, "late", "half", "tool").Err())
		e.Check(e.Redis.Set(ctx, key("tool"), "1700000000", 0).Err())
		_, err := store.Sweep(ctx)
		e.Check(err)
		open, err := store.Broker().Open(ctx, []string{"late", "half", "tool", "set", "never"})
		e.Check(err)
		e.equal("queues that are not paused after a sweep", open, []string{"late", "half", "never"})
		changed, err := store.ResumeQueue(ctx, "tool")
		e.Check(err)
		e.equal("changed by resuming what a tool has paused", changed, true)
	})
}

// A sweeper that is about to end a pause that was left over, and comes late, ends no pause that somebody asked for meanwhile.
func TestLateEndOfAPause(t *testing.T) {
	each(t, func(e *env) {
		ctx, store := e.Context(), e.store.(*redisstore.Store)
		broker := store.Broker().(*delivery.Broker)
		pause := func() {
			e.Helper()
			_, err := store.PauseQueue(ctx, "q")
			e.Check(err)
		}
		seen := func() string {
			e.Helper()
			own, err := broker.OwnPauses(ctx, []string{"q", "never"})
			e.Check(err)
			return own["q"]
		}
		is := func(what string, paused bool) {
			e.Helper()
			open, err := broker.Open(ctx, []string{"q"})
			e.Check(err)
			e.equal("paused "+what, len(open) == 0, paused)
		}
		pause()
		first := seen()
		pause() // without an end between the two
		e.Check(broker.EndPause(ctx, "q", first))
		is("again", true)
		second := seen()
		_, err := store.ResumeQueue(ctx, "q")
		e.Check(err)
		e.equal("own pauses of an open queue", seen(), "")
		pause()
		e.Check(broker.EndPause(ctx, "q", second))
		is("anew", true)
		e.Check(broker.EndPause(ctx, "q", seen()))
		is("no longer", false)
	})
}
