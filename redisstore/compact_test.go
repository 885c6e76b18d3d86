package redisstore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// record is the plan of a graph of n jobs in a row, of which the first has something to read.
func record(n int) *job.Plan {
	nodes := []job.Node{{Type: "G", Graph: true}}
	for i := 1; i <= n; i++ {
		input, output := in("in"), out("out")
		if i > 1 {
			input = fed("in", 1)
		} else {
			input.Initial = numbers(1, 2)
		}
		if i < n {
			output = out("out", to(i+1))
		}
		nodes = append(nodes, job.Node{Name: fmt.Sprintf("n%d", i), Type: "T", Ports: ports(input, output)})
	}
	return &job.Plan{Nodes: nodes}
}

// createRecord creates such a tree as a record.
func (e *env) createRecord(id job.ID, n int) {
	e.Helper()
	before := e.records()
	redisstore.Met(e, e.Store, id, record(n))
	e.createAs(id, record(n).Nodes...)
	e.equal("records", e.records(), before+1)
}

// records is how many trees are records.
func (e *env) records() int {
	n := 0
	for k := range e.dump() {
		if strings.Contains(k, "}:r:") {
			n++
		}
	}
	return n
}

// beginRow begins the run of a job with those in a row behind it.
func (e *env) beginRow(id job.ID, token string) *store.Snapshot {
	e.Helper()
	b := beginning()
	b.Token, b.Row, b.Limits = token, 8, map[string]int{"": -1000}
	snap, err := e.store.Begin(e.Context(), id, b)
	e.Check(err)
	return snap
}

// completion is a transaction that completes the job of a run, and those in a row behind it, each of which passes on what it reads.
func completion(s *store.Snapshot) store.Tx {
	d := store.Delta{Job: s.Info.ID, Token: s.Token, Outcome: statemachine.Complete, Entry: `{"step":0}`}
	items := s.In[0].Items
	d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: len(items)}}
	tx := store.Tx{}
	for n := 0; ; n++ {
		d.Writes, d.Closes = []store.Write{{Dir: port.Output, Port: "out", Items: items}}, []string{"out"}
		d.Set = map[string]json.RawMessage{"done": json.RawMessage("true")}
		if tx.Deltas = append(tx.Deltas, d); n == len(s.Row) {
			return tx
		}
		d = store.Delta{
			Job: s.Row[n].Info.ID, Token: fmt.Sprintf("%s-%d", s.Token, n), Outcome: statemachine.Complete, Entry: `{"step":1}`,
			Takes:       []store.Take{{Dir: port.Input, Port: "in", N: len(items)}},
			Speculation: &store.Speculation{Port: "in", Seen: len(items), Limit: -1000, Closed: true},
		}
	}
}

// A small tree of a kind that was there before is one key, and so it stays as it begins, completes, is read, and is removed.
func TestRecords(t *testing.T) {
	each(t, func(e *env) {
		plan := record(3)
		var ids []job.ID
		for range 3 {
			id := newID(e)
			e.createAs(id, plan.Nodes...)
			ids = append(ids, id)
		}
		e.equal("the first has hashes", e.records(), 2)
		for _, id := range ids[1:] {
			snap := e.beginRow(id.Nth(1), string(id))
			e.equal("row", len(snap.Row), 2)
			e.equal("applied", e.commitRow(completion(snap)).Applied, 3)
			for n := range 4 {
				e.is(statemachine.Completed, nth(id, n))
			}
			state, err := e.store.State(e.Context(), id.Nth(2))
			e.Check(err)
			e.equal("state", string(state["done"]), "true")
			e.equal("what is left in the last port", e.port(id.Nth(3), port.Output, "out").Waiting, int64(2))
		}
		e.equal("records", e.records(), 2)
		e.write(ids[1].Nth(1), "in", "9")
		e.equal("records, once one comes to life", e.records(), 1)
		e.is(statemachine.Queued, ids[1].Nth(1))
		e.is(statemachine.Suspended, ids[1])
	})
}

// A record goes when its time is over, and its definition some time after the last that uses it.
func TestRecordsExpire(t *testing.T) {
	each(t, func(e *env) {
		id, plan := newID(e), record(1)
		plan.Retain = time.Millisecond
		redisstore.Met(e, e.Store, id, plan)
		_, err := e.store.Create(e.Context(), id, plan, "") // by nobody
		e.Check(err)
		e.equal("created", time.Since(e.info(id.Nth(1)).Created) < time.Minute, true)
		tx := completion(e.beginRow(id.Nth(1), "run"))
		tx.Deltas[0].Writes = nil
		e.commitRow(tx)
		e.equal("records", e.records(), 1)
		var keys []string
		for k := range e.dump() {
			if strings.Contains(k, "}:d:") {
				keys = append(keys, k)
			}
		}
		e.equal("definitions", len(keys), 1)
		e.equal("it stays", e.Redis.PTTL(e.Context(), keys[0]).Val() > 24*time.Hour, true)
		e.sweep()
		e.vanished(id)
		e.equal("records", e.records(), 0)
		e.equal("it goes", e.Redis.PTTL(e.Context(), keys[0]).Val() <= time.Hour, true)
	})
}

// Trees that get hashes while they are read are there all the time.
func TestRecordsReadMeanwhile(t *testing.T) {
	each(t, func(e *env) {
		const n = 100
		ids := make([]job.ID, n)
		for i := range ids {
			ids[i] = newID(e)
			e.createRecord(ids[i], 2)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, id := range ids {
				_ = e.store.ClosePort(e.Context(), id, port.Input, "none") // there is no such port
			}
		}()
		for going := true; going; {
			select {
			case <-done:
				going = false
			default:
			}
			count, err := e.store.Count(e.Context(), job.Filter{All: true})
			e.Check(err)
			e.equal("jobs", count, 3*n)
			for _, id := range ids[n-10:] {
				children, err := e.store.Children(e.Context(), id)
				e.Check(err)
				e.equal("children", len(children), 2)
				_, err = e.store.Info(e.Context(), id.Nth(1))
				e.Check(err)
			}
		}
		e.equal("records left", e.records(), 0)
	})
}

// A record whose notification was lost, or whose run died, goes on as other jobs do.
func TestRecordsSwept(t *testing.T) {
	each(t, func(e *env) {
		id := newID(e)
		e.createRecord(id, 2)
		first, due := id.Nth(1), e.due(id)
		look := func() {
			e.Helper()
			e.Check(e.Redis.ZAdd(e.Context(), due, redis.Z{Score: 1, Member: string(first)}).Err())
			e.sweep()
		}
		look()
		e.equal("records", e.records(), 1)
		e.is(statemachine.Queued, first)
		e.equal("looked at again later", e.Redis.ZScore(e.Context(), due, string(first)).Val() > 1, true)
		lost := completion(e.beginRow(first, "lost"))
		look()
		e.equal("records, once a run died", e.records(), 0)
		e.is(statemachine.Queued, first)
		e.fails(e.commitRow(lost).Refused, job.ErrFenced)
		snap := e.beginRow(first, "run")
		e.equal("messages", len(snap.In[0].Items), 2)
		e.equal("applied", e.commitRow(completion(snap)).Applied, 2)
		e.is(statemachine.Completed, id)
	})
}
