package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// What somebody has taken by hand, during the run, from what a record's job reads is missed when that ends.
func TestRecordsMissTheirMessages(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		id := create(record(1))
		tx := completion(e.beginRow(id.Nth(1), "run"))
		e.Check(e.Redis.Del(e.Context(), e.key(id.Nth(1))+":i:in").Err())
		res, err := e.store.Commit(e.Context(), []store.Tx{tx})
		return strings.ReplaceAll(fmt.Sprintf("%+v %v %s", res, err, e.info(id).Status), string(id), "ID")
	})
}

// A job that feeds its own graph has that in its row, as others have.
func TestRowOfRecordsThatFeedTheirGraph(t *testing.T) {
	t.Parallel()
	alike(t, func(e *env, create func(*job.Plan) job.ID) any {
		plan := &job.Plan{Nodes: []job.Node{
			{Type: "G", Graph: true, Ports: ports(fed("in", 1))},
			{Name: "n1", Type: "T", Ports: ports(in("in"), out("out", job.Edge{{Node: 0, Dir: port.Input, Port: "in"}}))},
		}}
		plan.Nodes[1].Ports[0].Initial = numbers(1, 2)
		return len(e.beginRow(create(plan).Nth(1), "run").Row)
	})
}

// A record whose definition somebody has removed while its run went on is as if it was gone, and stays as it was.
func TestRecordsThatLoseTheirDefinitionWhileTheyRun(t *testing.T) {
	t.Parallel()
	e, _ := openFull(t, "scripts")
	id := newID(e)
	e.createRecord(id, 1)
	tx := completion(e.beginRow(id.Nth(1), "run"))
	e.forgetDefinitions()
	record := strings.Replace(e.key(id), ":j:", ":r:", 1)
	before := e.Redis.Get(e.Context(), record).Val()
	res, err := e.store.Commit(e.Context(), []store.Tx{tx})
	e.Check(err)
	if !errors.Is(res[0].Refused, job.ErrNotFound) {
		t.Errorf("the commit says %+v", res[0])
	}
	if now := e.Redis.Get(e.Context(), record).Val(); before == "" || now != before {
		t.Errorf("the record was %q, and is %q", before, now)
	}
}

// answering has a store get an answer of a script that is none of this program's.
type answering struct {
	on  bool
	val any
}

func (*answering) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*answering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *answering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		if cmd, ok := c.(*redis.Cmd); ok && a.on && strings.EqualFold(cmd.Name(), "fcall") {
			cmd.SetVal(a.val)
			return nil
		}
		return next(ctx, c)
	}
}

// An answer of another shape is an error.
func TestCommitsAnsweredByOthers(t *testing.T) {
	t.Parallel()
	for _, val := range []any{"OK", []any{}, []any{[]any{}, []any{}}, []any{"", ""}, int64(3)} {
		e := open(t, redistest.SharedRedis(t))
		snap := e.begin(e.single())
		a := &answering{val: val}
		redisstore.Hook(e.Store, a)
		a.on = true
		if _, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{delta(snap, statemachine.Suspend)}}}); err == nil || !strings.Contains(err.Error(), "unexpected reply") {
			t.Errorf("answered by %v: %v", val, err)
		}
		a.on = false
	}
}
