package redisstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// merging starts a job with the key, or merges args into those of the one that is there.
func (e *env) merging(key, args string, opts ...job.Option) job.ID {
	e.Helper()
	h, err := client.New(e.store).Start(e.Context(), solo(args), append(opts, job.Unique(job.UniqueBy{Key: key, Merge: true}))...)
	e.Check(err)
	return h.ID()
}

// args wants a job to have these.
func (e *env) args(id job.ID, want string) {
	e.Helper()
	e.equal("args", string(e.info(id).Args), want)
}

// B69: the same key is the same job, whatever its data; these are merged as a JSON merge patch, or left as they are.
func TestB69UniqueMerges(t *testing.T) {
	each(t, func(e *env) {
		first := `{"a":1,"n":{"A":1}}`
		id := e.merging("k", first)
		e.equal("again", e.merging("k", first), id)
		e.args(id, first)
		e.same(id, job.UniqueBy{Key: "k"}) // without args
		h, err := client.New(e.store).Start(e.Context(), solo(`{"z":1}`), job.Unique(job.UniqueBy{Key: "k"}))
		e.Check(err)
		e.equal("not to be merged", h.ID(), id)
		e.args(id, first)
		e.equal("other data", e.merging("k", `{"b":2,"a":null,"n":{"B":2}}`), id)
		e.args(id, `{"b":2,"n":{"A":1,"B":2}}`)
		e.equal("what its run sees", string(e.begin(id).Info.Args), `{"b":2,"n":{"A":1,"B":2}}`)
	})
}

// What has begun its first run keeps its args: whether that goes on, died, failed or ended.
func TestB69WhatHasBegunKeepsItsArgs(t *testing.T) {
	each(t, func(e *env) {
		const before = `{"a":1}`
		for name, begin := range map[string]func(job.ID){
			"running": func(id job.ID) { e.begin(id) },
			"died":    e.die,
			"failed": func(id job.ID) {
				d := delta(e.begin(id), statemachine.Backoff)
				d.Delay, d.Failure = time.Hour, &job.Failure{Error: "no"}
				e.commit(d)
			},
			"taken away": func(id job.ID) {
				e.begin(id)
				e.Check(e.typed(id).Retry(e.Context(), client.RetryRunning(), client.RetryAfter(time.Minute)))
			},
			"failed by hand": func(id job.ID) {
				e.begin(id)
				e.Check(e.typed(id).Fail(e.Context(), ""))
				e.Check(e.typed(id).Retry(e.Context(), client.RetryAfter(time.Minute)))
			},
			"suspended":   func(id job.ID) { e.end(id, statemachine.Suspend) },
			"terminating": func(id job.ID) { e.Check(e.store.Terminate(e.Context(), id)) },
		} {
			id := e.merging(name, before)
			begin(id)
			e.equal(name, e.merging(name, `{"b":2}`), id)
			e.args(id, before)
		}
		id := e.fresh(job.UniqueBy{Key: "over"})
		e.end(id, statemachine.Complete)
		h, err := client.New(e.store).Start(e.Context(), solo(before), job.Unique(job.UniqueBy{Key: "over", For: time.Hour, Merge: true}))
		e.Check(err)
		e.equal("within the window", h.ID(), id)
		e.args(id, "")
	})
}

// Jobs that wait for their time, for a sequential key or for their next repetition have not begun.
func TestB69WhatWaitsTakesArgs(t *testing.T) {
	each(t, func(e *env) {
		const merged = `{"a":1,"b":2}`
		later := solo(`{"a":1}`)
		later.Nodes[0].At = time.Now().Add(time.Hour)
		h, err := client.New(e.store).Start(e.Context(), later, job.Unique(job.UniqueBy{Key: "later"}))
		e.Check(err)
		e.equal("later", e.merging("later", `{"b":2}`), h.ID())
		e.is(job.Scheduled, h.ID())
		e.args(h.ID(), merged)

		holder := e.keyed("s")
		waits := e.merging("waits", `{"a":1}`, job.SequentialKey("s"))
		e.is(job.Waiting, waits)
		e.equal("waiting", e.merging("waits", `{"b":2}`, job.SequentialKey("s")), waits)
		e.args(waits, merged)
		e.end(holder, statemachine.Complete)
		e.equal("its run", string(e.begin(waits).Info.Args), merged)

		again := e.merging("repeats", `{"a":1}`, job.Repeat(job.RepeatRule{Schedule: "FINISHED, +1 HOUR"}))
		snap := e.begin(again)
		e.equal("repeats", e.merging("repeats", `{"c":3}`), again)
		e.args(again, `{"a":1}`)
		d := delta(snap, statemachine.Reschedule)
		next, ok := snap.Info.Repeat.After(&snap.Info, snap.Info.Ran)
		e.equal("a further time", ok, true)
		next.Scheduled = time.Now().Add(time.Hour).Truncate(time.Millisecond).UTC()
		d.Repeat = next
		e.commit(d)
		e.is(job.Scheduled, again)
		e.equal("between repetitions", e.merging("repeats", `{"b":2}`), again)
		e.args(again, merged)
	})
}

// Args of another type, or of another version of it, are not merged; what makes them too large, or is for no single job with a key, is refused.
func TestB69MergeRefused(t *testing.T) {
	each(t, func(e *env) {
		client := client.New(e.store)
		by := job.Unique(job.UniqueBy{Key: "k", Merge: true})
		id := e.merging("k", `{"a":1}`)
		other, newer := solo(`{"b":2}`), solo(`{"b":2}`)
		other.Nodes[0].Type, newer.Nodes[0].TypeVersion = "U", 2
		for _, plan := range []*job.Plan{other, newer} {
			h, err := client.Start(e.Context(), plan, by)
			e.Check(err)
			e.equal("job", h.ID(), id)
			e.args(id, `{"a":1}`)
		}
		half := `"` + strings.Repeat("x", job.MaxMessage*2/3) + `"`
		e.merging("k", `{"x":`+half+`}`)
		_, err := client.Start(e.Context(), solo(`{"y":`+half+`}`), by)
		e.fails(err, job.ErrTooLarge)
		_, err = client.Start(e.Context(), solo(""), job.Unique(job.UniqueBy{Merge: true}))
		e.fails(err, job.ErrValue)
		_, err = client.Start(e.Context(), &job.Plan{Nodes: []job.Node{{Type: "G", Graph: true}}}, by)
		e.fails(err, job.ErrValue)
		merged, err := e.store.MergeArgs(e.Context(), newID(e), store.Merging{Type: "T", Args: json.RawMessage(`{}`)})
		e.Check(err)
		e.equal("merged into nothing", merged, false)
	})
}

// Of any number of callers at once, while a run begins, each has merged its args, or they came too late: the run sees just those that
// were merged.
func TestB69MergesAtOnce(t *testing.T) {
	each(t, func(e *env) {
		const callers = 8
		id := e.merging("k", "")
		var mu sync.Mutex
		merged := map[string]int{}
		var group sync.WaitGroup
		for c := range callers {
			group.Go(func() {
				name := fmt.Sprint("c", c)
				is, err := e.store.MergeArgs(e.Context(), id, store.Merging{Type: "T", Args: json.RawMessage(fmt.Sprintf(`{%q:%d}`, name, c))})
				if err != nil {
					e.Error(err)
				}
				if mu.Lock(); is {
					merged[name] = c
				}
				mu.Unlock()
			})
		}
		snap := e.begin(id)
		group.Wait()
		seen := map[string]int{}
		if len(snap.Info.Args) > 0 {
			e.Check(json.Unmarshal(snap.Info.Args, &seen))
		}
		e.equal("args of the run", seen, merged)
	})
}
