package redisstore_test

import (
	"encoding/json"
	"errors"
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

// IDs that no job can have are those of none.
func TestRecordsHaveNoOddIDs(t *testing.T) {
	each(t, func(e *env) {
		id := newID(e)
		e.createRecord(id, 1)
		e.unchanged("looking", func() {
			e.nobody(id.Nth(7))
			for _, suffix := range []string{".01", ".x", ".", ".0", ".1e0", ".0x1", ". 1", ".1.2", ".-1", ".99"} {
				e.nobody(id + job.ID(suffix))
			}
		})
		for _, odd := range []job.ID{"", ".", ".1"} {
			e.nobody(odd)
			e.fails(e.store.Terminate(e.Context(), odd), job.ErrNotFound)
			e.fails(e.store.Write(e.Context(), odd, store.Write{Dir: port.Input, Port: "in", Items: raws("1")}), job.ErrNotFound)
			_, err := e.store.Begin(e.Context(), odd, beginning())
			e.fails(err, job.ErrNotFound)
		}
	})
}

// nobody checks that no job has an ID, for all that look.
func (e *env) nobody(id job.ID) {
	e.Helper()
	ctx := e.Context()
	_, err := e.store.Info(ctx, id)
	e.fails(err, job.ErrNotFound)
	_, err = e.store.Tree(ctx, id)
	e.fails(err, job.ErrNotFound)
	_, _, err = e.store.Peek(ctx, id, port.Input, "in", 4)
	e.fails(err, job.ErrNotFound)
	details, err := e.store.Details(ctx, []job.ID{id})
	e.Check(err)
	for _, d := range details {
		e.equal("children of "+string(id), len(d.Children), 0)
	}
}

// Of two plans with one ID in a list the first is created.
func TestRecordsCreatedTwice(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		create(record(1)) // of a kind that was there before, if records
		id, other := newID(e), record(1)
		other.Nodes[0].Type = "Other"
		created, errs := e.Store.CreateMany(e.Context(), []store.Creation{{ID: id, Plan: other, By: "a"}, {ID: id, Plan: record(1), By: "b"}})
		return fmt.Sprint(created, errs, e.info(id).Type, e.info(id).By)
	})
}

// Trees of a list are ready in its order, also if only some of them are records.
func TestRecordsCreatedInOrder(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		first := create(record(1))
		e.begin(first.Nth(1)) // so that none is ready
		order := map[job.ID]int{}
		var list []store.Creation
		for i := range 9 {
			plan := record(1)
			plan.Nodes[0].Type = []string{"New", "G", "Other"}[i%3]
			if i%3 == 2 { // of which no record is made
				plan.Nodes[1].Ports[0].Default = json.RawMessage("1")
			}
			id := newIDIn(e, first)
			list, order[id] = append(list, store.Creation{ID: id, Plan: plan, By: "a"}), i
		}
		_, errs := e.Store.CreateMany(e.Context(), list)
		e.Check(errors.Join(errs...))
		var said []int
		for range order {
			s, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, first.Shard(shards), -1, beginning(), []string{"T"}))
			e.Check(err)
			said = append(said, order[s.Info.ID.Tree()])
		}
		return said
	})
}

// A commit that a full Redis refuses changes nothing.
func TestRecordsRefusedByFullRedis(t *testing.T) {
	t.Parallel()
	e, fill := openFull(t, "function")
	id := newID(e)
	e.createRecord(id, 1)
	whole := completion(e.beginRow(id.Nth(1), "run"))
	other := store.Tx{Deltas: []store.Delta{whole.Deltas[0]}}
	other.Deltas[0].Reason = "which no record has"
	fill()
	for _, tx := range []store.Tx{whole, other} {
		e.unchanged("commit", func() {
			_, err := e.store.Commit(e.Context(), []store.Tx{tx})
			e.fails(err, job.ErrUnavailable)
		})
	}
	e.memory("0")
	e.commitRow(whole)
	e.equal("status", e.info(id).Status, statemachine.Completed)
}

// What a run did to ports that are not there is refused, or is nothing, as elsewhere.
func TestRecordsOfOddPorts(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*store.Delta){
		"takes nothing of none":  func(d *store.Delta) { d.Takes = []store.Take{{Dir: port.Input, Port: "nope"}} },
		"takes of *":             func(d *store.Delta) { d.Takes = []store.Take{{Dir: port.Input, Port: "*"}} },
		"takes of an Out port":   func(d *store.Delta) { d.Takes = []store.Take{{Dir: port.Input, Port: "out"}} },
		"takes of one no name":   func(d *store.Delta) { d.Takes = []store.Take{{Dir: port.Input, N: 2}} },
		"closes one of no name":  func(d *store.Delta) { d.Closes, d.Writes = []string{""}, nil },
		"closes *":               func(d *store.Delta) { d.Closes, d.Writes = []string{"*"}, nil },
		"writes to one no name":  func(d *store.Delta) { d.Closes, d.Writes[0].Port = nil, "" },
		"writes nothing":         func(d *store.Delta) { d.Writes[0].Items = nil },
		"writes to none":         func(d *store.Delta) { d.Closes, d.Writes[0].Port = nil, "nope" },
		"reads less than it has": func(d *store.Delta) { d.Takes[0].N = 1 },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			alike(t, func(e *env, create func(*job.Plan) job.ID) any {
				id := create(record(1))
				tx := completion(e.beginRow(id.Nth(1), "run"))
				change(&tx.Deltas[0])
				res, err := e.store.Commit(e.Context(), []store.Tx{tx})
				return strings.ReplaceAll(fmt.Sprintf("%+v %v %s", res, err, e.info(id).Status), string(id), "ID")
			})
		})
	}
}

// Dead letters of a graph are listed.
func TestRecordsWithDeadLetters(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		plan := record(2)
		plan.Nodes[0].Ports = ports(out(job.ErrorsPort))
		plan.Nodes[0].Ports[0].Sources = 1
		plan.Nodes[2].Ports[1].Edges = []job.Edge{{{Node: 0, Dir: port.Output, Port: job.ErrorsPort}}}
		e.Check(plan.Validate())
		id := create(plan)
		e.commitRow(completion(e.beginRow(id.Nth(1), "run")))
		return e.Redis.ZCard(e.Context(), strings.TrimSuffix(e.due(id), "due")+"dead").Val()
	})
}

// Behind a job with two wired ports no job is in a row.
func TestRecordsInARow(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		plan := record(2)
		plan.Nodes[0].Ports = ports(out("total"))
		plan.Nodes[0].Ports[0].Sources = 1
		plan.Nodes[1].Ports = append(plan.Nodes[1].Ports, out("more", job.Edge{{Node: 0, Dir: port.Output, Port: "total"}}))
		e.Check(plan.Validate())
		return len(e.beginRow(create(plan).Nth(1), "run").Row)
	})
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		plan := record(2)
		plan.Nodes[1].Ports = append(plan.Nodes[1].Ports, out("more", job.Edge{{Node: 2, Dir: port.Input, Port: "more"}}))
		plan.Nodes[2].Ports = append(plan.Nodes[2].Ports, fed("more", 1))
		e.Check(plan.Validate())
		return len(e.beginRow(create(plan).Nth(1), "run").Row)
	})
}

// What weir doctor says of jobs it says of those of records, too.
func TestRecordsExamined(t *testing.T) {
	t.Parallel()
	for _, deep := range []bool{false, true} {
		alike(t, func(e *env, create func(*job.Plan) job.ID) any {
			for range 3 {
				id := create(record(2))
				e.commitRow(completion(e.beginRow(id.Nth(1), string(id))))
			}
			all, err := e.Store.Examine(e.Context(), redisstore.Examination{Deep: deep})
			e.Check(err)
			var said []string
			for _, f := range all {
				if f.Check == "orphans" || f.Check == "ports" || strings.HasPrefix(f.Finding, "looked at") {
					said = append(said, fmt.Sprint(f))
				}
			}
			e.equal("findings", len(said) > 0, true)
			return said
		})
	}
}

// A tree that is created anew, as nobody could read it any more, is the new one once its definition is back.
func TestRecordsCreatedAnew(t *testing.T) {
	t.Parallel()
	e, _ := openFull(t, "scripts") // which keep no definitions from one call to the next
	id := newID(e)
	e.createRecord(id, 1)
	e.forgetDefinitions()
	other := record(1)
	other.Nodes[0].Type = "Other"
	created, err := e.store.Create(e.Context(), id, other, "again")
	e.Check(err)
	e.equal("created", created, true)
	e.createAs(newIDIn(e, id), record(1).Nodes...)
	e.equal("type", e.info(id).Type, "Other")
	_ = e.store.ClosePort(e.Context(), id, port.Input, "none")
	e.equal("type", e.info(id).Type, "Other")
}

// forgetDefinitions removes all definitions of records, as somebody might by hand.
func (e *env) forgetDefinitions() {
	e.Helper()
	for k := range e.dump() {
		if strings.Contains(k, "}:d:") {
			e.Check(e.Redis.Del(e.Context(), k).Err())
		}
	}
}

// Trees of before a definition was lost do not count as users of the one that was made anew.
func TestRecordsOfTwoDefinitions(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	before := newID(e)
	e.createRecord(before, 1)
	e.forgetDefinitions()
	time.Sleep(2 * time.Millisecond)
	e.createRecord(newIDIn(e, before), 1)
	_ = e.store.ClosePort(e.Context(), before, port.Input, "none") // it gets hashes
	e.equal("records", e.records(), 1)
	for k := range e.dump() {
		if strings.Contains(k, "}:d:") {
			e.equal("users", e.Redis.HGet(e.Context(), k, "users").Val(), "1")
			e.equal("the definition stays", e.Redis.PTTL(e.Context(), k).Val() > 24*time.Hour, true)
		}
	}
}

// A record whose log somebody has damaged is removed when its time is over all the same.
func TestRecordsWithDamagedLogs(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	plan := record(1)
	plan.Retain = time.Millisecond
	id := newID(e)
	redisstore.Met(e, e.Store, id, plan)
	_, err := e.store.Create(e.Context(), id, plan, "test")
	e.Check(err)
	tx := completion(e.beginRow(id.Nth(1), "run"))
	tx.Deltas[0].Writes = nil
	e.Check(e.Redis.Set(e.Context(), strings.TrimSuffix(e.due(id), "due")+"l:"+string(id), "x", 0).Err())
	_, err = e.store.Commit(e.Context(), []store.Tx{tx})
	e.fails(err, job.ErrRefused)
	time.Sleep(2 * time.Millisecond)
	e.Check(e.Redis.ZAddXX(e.Context(), e.due(id), redis.Z{Score: 1, Member: "!retain"}).Err())
	e.sweep()
	e.sweep()
	_, err = e.store.Info(e.Context(), id)
	e.equal("gone", errors.Is(err, job.ErrNotFound), true)
}

// A tree whose record somebody has damaged is as if it was gone; all others can be listed, run and removed.
func TestDamagedRecords(t *testing.T) {
	each(t, func(e *env) {
		good, bad := newID(e), newID(e)
		e.createRecord(good, 1)
		e.createRecord(bad, 1)
		record := strings.Replace(e.key(bad), ":j:", ":r:", 1)
		whole := e.Redis.Get(e.Context(), record).Val()
		parts := strings.Split(whole, "\x1e")
		for _, text := range []string{"", "x", "x y", "\x1e", "\x1e\x1e", "x y z\x1e\x1e", parts[0], parts[0] + "\x1e" + parts[1], parts[0] + "\x1e\x1e"} {
			e.Check(e.Redis.Set(e.Context(), record, text, 0).Err())
			all, _, err := e.Store.JobsPage(e.Context(), job.Filter{}, 10)
			e.Check(err)
			e.equal(fmt.Sprintf("jobs beside %q", text), len(all), 1)
			_, err = e.store.Info(e.Context(), bad)
			e.equal("the damaged one is there", !errors.Is(err, job.ErrNotFound), false)
			_, err = e.store.Begin(e.Context(), bad.Nth(1), store.Begin{Token: "bad", Lease: time.Minute})
			e.fails(err, job.ErrNotFound)
			e.sweep()
		}
		e.Check(e.Redis.Set(e.Context(), record, whole, 0).Err())
		for _, id := range []job.ID{good, bad} {
			e.commitRow(completion(e.beginRow(id.Nth(1), string(id))))
			e.is(statemachine.Completed, id)
		}
	})
}

// A ready job that cannot be read is an error of whoever looks at its queue, and no panic.
func TestQueueOfAnUnreadableJob(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	id := e.single()
	e.Check(e.Redis.Del(e.Context(), e.key(id)).Err())
	e.Check(e.Redis.Set(e.Context(), e.key(id), "x", 0).Err())
	_, err := e.Store.Queues(e.Context())
	e.fails(err, job.ErrRefused)
}

// What servers keep of records in memory is what these say, also if somebody brings back what they said before.
func TestRecordsThatComeBack(t *testing.T) {
	each(t, func(e *env) {
		id := newID(e)
		e.createRecord(id, 1)
		record, first := strings.Replace(e.key(id), ":j:", ":r:", 1), id.Nth(1)
		whole := completion(e.beginRow(first, "run"))
		running, err := e.Redis.Get(e.Context(), record).Result()
		e.Check(err)
		for range 2 {
			_, err = e.store.Commit(e.Context(), []store.Tx{whole})
			e.Check(err)
			e.is(statemachine.Completed, first)
			e.Check(e.Redis.Del(e.Context(), e.key(first)+":s", e.key(id)+":o:out", e.key(first)+":o:out").Err())
			e.Check(e.Redis.RPush(e.Context(), e.key(first)+":i:in", "1", "2").Err())
			e.Check(e.Redis.Set(e.Context(), record, running, 0).Err())
			e.is(statemachine.Running, first)
		}
	})
}
