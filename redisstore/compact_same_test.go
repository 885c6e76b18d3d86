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
)

// alike does the same with trees that have hashes and with records: what it returns is to be the same.
func alike(t *testing.T, fn func(e *env, create func(*job.Plan) job.ID) any) {
	t.Helper()
	var said [2]string
	for n := range said {
		e := open(t, redistest.SharedRedis(t))
		shard := newID(t).Shard(shards)
		said[n] = fmt.Sprint(fn(e, func(plan *job.Plan) job.ID {
			id := newID(e)
			for id.Shard(shards) != shard {
				id = newID(e)
			}
			if n == 1 {
				redisstore.Met(e, e.Store, id, plan)
			} else {
				redisstore.Hashes(e.Store)
			}
			_, err := e.store.Create(e.Context(), id, plan, "test")
			e.Check(err)
			return id
		}))
	}
	if said[0] != said[1] {
		t.Errorf("trees with hashes say\n%s\nand records\n%s", said[0], said[1])
	}
}

// completed completes a tree, and leaves nothing in its ports.
func (e *env) completed(id job.ID) {
	e.Helper()
	tx := completion(e.beginRow(id.Nth(1), "run"))
	tx.Deltas[len(tx.Deltas)-1].Writes = nil
	e.commitRow(tx)
}

func TestRecordsKeptForever(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		e.Check(e.store.SetRetention(e.Context(), job.Retention{Ended: 20 * time.Millisecond}))
		id := create(record(1))
		e.completed(id)
		e.Check(e.store.SetRetention(e.Context(), job.Retention{Ended: job.Forever}))
		time.Sleep(30 * time.Millisecond)
		e.sweep()
		e.sweep()
		_, err := e.store.Info(e.Context(), id)
		return fmt.Sprint("retention of the namespace: ", err)
	})
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		plan := record(1)
		plan.Retain = job.Forever
		id := create(plan)
		e.completed(id)
		n, err := e.Store.Purge(e.Context(), id)
		e.Check(err)
		e.sweep()
		_, err = e.store.Info(e.Context(), id)
		return fmt.Sprint(n, " purged: ", err)
	})
}

// A record that is past its retention and holds unread messages stays a record, and goes once they were read.
func TestRecordsKeptUnread(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		plan := record(2)
		plan.Retain = time.Millisecond
		id := create(plan)
		records := e.records()
		e.commitRow(completion(e.beginRow(id.Nth(1), "run")))
		e.sweep()
		e.equal("records", e.records(), records)
		kept := e.info(id).Expires
		e.Check(e.store.Take(e.Context(), id.Nth(2), store.Take{Dir: port.Output, Port: "out", N: 2}, "t"))
		e.sweep()
		_, err := e.store.Info(e.Context(), id)
		return fmt.Sprint(kept.IsZero(), errors.Is(err, job.ErrNotFound))
	})
}

// A sweep leaves ready jobs where they are in their order.
func TestRecordsKeepTheirTurn(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		ids := []job.ID{create(record(1)), create(record(1)), create(record(1))}
		due := e.due(ids[0])
		set := strings.TrimSuffix(due, "due") + "ready:default#T"
		for range 3 {
			e.Check(e.Redis.ZAdd(e.Context(), due, redis.Z{Score: 1, Member: string(ids[0].Nth(1))}).Err())
			e.sweep()
		}
		var scores []float64
		for _, id := range ids {
			scores = append(scores, e.Redis.ZScore(e.Context(), set, string(id.Nth(1))).Val())
		}
		return scores
	})
}

func TestRecordsReader(t *testing.T) {
	t.Parallel()
	s, ns := redistest.Start(t), redistest.Namespace(t)
	e := openAs(t, user(t, s, ns, redisstore.ACL{Role: redisstore.RoleWorker}), ns)
	id := newID(e)
	redisstore.Met(e, e.Store, id, record(1))
	e.createAs(id, record(1).Nodes...)
	e.equal("records", s.Client(t).Exists(t.Context(), strings.TrimSuffix(e.due(id), "due")+"r:"+string(id)).Val(), int64(1))
	r := openAs(t, user(t, s, ns, redisstore.ACL{Role: redisstore.RoleReader}), ns)
	items, _, err := r.store.Peek(r.Context(), id.Nth(1), port.Input, "in", 5)
	e.Check(err)
	e.equal("messages", texts(items), []string{"1", "2"})
	_, _, err = r.store.Peek(r.Context(), id.Nth(1), port.Input, "nope", 5)
	e.fails(err, job.ErrPort)
	_, _, err = r.store.Peek(r.Context(), id.Nth(7), port.Input, "in", 5)
	e.fails(err, job.ErrNotFound)
}

// Plans of which records would not do what is right are none.
func TestRecordsOfOddPlans(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*job.Plan){
		"silent graph": func(p *job.Plan) { p.Nodes[0].Silent = true },
		"closed input": func(p *job.Plan) { p.Nodes[2].Ports[0].Closed = true },
		"feedback":     func(p *job.Plan) { p.Nodes[2].Ports[0].Loops = 1 },
		"child of a job": func(p *job.Plan) {
			p.Nodes[1].Ports[1].Edges, p.Nodes[2].Ports[0].Sources, p.Nodes[2].Parent = nil, 0, 1
		},
		"no graph":          func(p *job.Plan) { p.Nodes[0].Graph = false },
		"output with limit": func(p *job.Plan) { p.Nodes[2].Ports[1].Limit = 1 },
		"closed edge":       func(p *job.Plan) { p.Nodes[1].Ports[1].Closed = true },
		"closed output":     func(p *job.Plan) { p.Nodes[2].Ports[1].Closed = true },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			alike(t, func(e *env, create func(*job.Plan) job.ID) any {
				plan := record(2)
				change(plan)
				e.Check(plan.Validate())
				id := create(plan)
				res, err := e.store.Commit(e.Context(), []store.Tx{completion(e.beginRow(id.Nth(1), "run"))})
				_ = e.store.ClosePort(e.Context(), id, port.Input, "none") // has it get hashes
				return fmt.Sprint(res[0].Applied, res[0].Refused != nil, err, e.info(id).Status, e.info(id.Nth(2)).Status,
					e.Redis.HGet(e.Context(), e.key(id.Nth(2)), "silent").Val())
			})
		})
	}
}

func TestRecordsOfLargeRuns(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		tx := completion(e.beginRow(create(record(1)).Nth(1), "run"))
		for n := range 2 * job.MaxWrites {
			tx.Deltas[0].Set[fmt.Sprint(n)] = json.RawMessage("1")
		}
		res, err := e.store.Commit(e.Context(), []store.Tx{tx})
		e.Check(err)
		return errors.Is(res[0].Refused, job.ErrTooLarge)
	})
}

// What the last job writes to a port of its graph is there, and the graph's port is closed with its own.
func TestRecordsOfGraphsWithPorts(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 2, 3} {
		alike(t, func(e *env, create func(*job.Plan) job.ID) any {
			plan := record(2)
			plan.Nodes[0].Ports = ports(out("total"))
			plan.Nodes[0].Ports[0].Sources, plan.Nodes[0].Ports[0].Limit = 1, limit
			plan.Nodes[2].Ports[1].Edges = []job.Edge{{{Node: 0, Dir: port.Output, Port: "total"}}}
			e.Check(plan.Validate())
			id := create(plan)
			records := e.records()
			res, err := e.store.Commit(e.Context(), []store.Tx{completion(e.beginRow(id.Nth(1), "run"))})
			if limit == 0 || limit > 2 {
				e.equal("records", e.records(), records)
			}
			tree, err2 := e.store.Tree(e.Context(), id)
			logs, err3 := e.store.Logs(e.Context(), id, 9)
			items, _, err4 := e.store.Peek(e.Context(), id, port.Output, "total", 5)
			err5 := e.store.Take(e.Context(), id, store.Take{Dir: port.Output, Port: "total", N: len(items)}, "t")
			err6 := e.store.Take(e.Context(), id, store.Take{Dir: port.Output, Port: "total", Head: 7, N: 1}, "u")
			err7 := e.store.Take(e.Context(), id, store.Take{Dir: port.Output, Port: "total", N: len(items)}, "t")
			if limit == 0 || limit > 2 {
				e.equal("records", e.records(), records)
			}
			err8 := e.store.Take(e.Context(), id, store.Take{Dir: port.Output, Port: "none", N: 1}, "v")
			after := e.info(id)
			all, err := json.Marshal([]any{tree, logs, res[0].Applied, err, err2, err3, texts(items), err4, err5, fmt.Sprint(err6, err7, err8), after})
			e.Check(err)
			return strings.ReplaceAll(clock.ReplaceAllString(string(all), "T"), string(id), "ID")
		})
	}
}

// A definition that somebody has removed harms no other tree, and is made anew.
func TestRecordsWithoutDefinition(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	id := newID(e)
	e.createRecord(id, 1)
	e.forgetDefinitions()
	e.sweep()
	for range 3 {
		e.createAs(newID(e), record(1).Nodes...)
	}
	e.equal("records", e.records() > 1, true)
}
