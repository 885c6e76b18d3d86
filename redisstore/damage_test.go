package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// A message, a close or a default on its way to a job that is gone goes nowhere, and the
// run that sent it is whole.
func TestEdgesToAJobThatIsGone(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(
			job.Node{Type: "T"},
			job.Node{Name: "a", Type: "T", Ports: ports(in("in"), out("out", to(2)))},
			job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1))},
		)
		a, b := id.Nth(1), id.Nth(2)
		e.Check(e.store.Apply(e.Context(), b, statemachine.Terminate))
		e.commit(delta(e.begin(b), statemachine.Shutdown))
		e.Check(e.store.Delete(e.Context(), b))

		e.write(a, "in", "1")
		snap := e.begin(a)
		d := delta(snap, statemachine.Complete)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("7")}}
		d.Defaults = []store.Default{{Dir: port.Output, Port: "out", Value: raws("8")[0]}}
		d.Closes = []string{"out"}
		e.commit(d)
		e.is(statemachine.Completed, a)
		for key := range e.dump() {
			if strings.Contains(key, string(b)) {
				e.Errorf("the dead job has the key %s", key)
			}
		}
	})
}

// A job of a graph is not deleted alone: the others are wired to it.
func TestJobsOfAGraphAreNotDeletedAlone(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(job.Node{Type: "g", Graph: true}, job.Node{Name: "a", Type: "T"}, job.Node{Name: "b", Type: "T"})
		e.Check(e.store.Apply(e.Context(), id.Nth(1), statemachine.Terminate))
		e.commit(delta(e.begin(id.Nth(1)), statemachine.Shutdown))
		e.fails(e.store.Delete(e.Context(), id.Nth(1)), job.ErrStatus)
		e.is(statemachine.Terminated, id.Nth(1))
	})
}

// Those that a terminated job of a graph feeds do not wait for it.
func TestTerminatedSourceClosesItsOuts(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(
			job.Node{Type: "g", Graph: true},
			job.Node{Name: "a", Type: "T", Ports: ports(out("out", to(2)))},
			job.Node{Name: "b", Type: "T", Ports: ports(fed("in", 1))},
		)
		e.Check(e.store.Apply(e.Context(), id.Nth(1), statemachine.Terminate))
		e.commit(delta(e.begin(id.Nth(1)), statemachine.Shutdown))
		info, err := e.store.Info(e.Context(), id.Nth(2))
		e.Check(err)
		if p, _ := info.Port(port.Input, "in"); !p.Closed || info.Status != statemachine.Queued {
			e.Errorf("b is %s, its port closed: %v", info.Status, p.Closed)
		}
	})
}

// Ports that are dropped and made again go on counting: a run never trims what it did not read.
func TestDroppedPortsKeepTheirHead(t *testing.T) {
	each(t, func(e *env) {
		spec := []port.Spec{{Name: "p", Dir: port.Input}}
		id := e.create(job.Node{Type: "T", Ports: []job.Port{{Spec: spec[0]}}})
		e.write(id, "p", "1")
		d := delta(e.begin(id), statemachine.Complete)
		d.Takes = []store.Take{{Dir: port.Input, Port: "p", N: 1}}
		e.Check(e.store.SetPorts(e.Context(), id, []port.Spec{}))
		e.Check(e.store.SetPorts(e.Context(), id, spec))
		e.write(id, "p", "2")
		res, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
		e.Check(err)
		e.fails(res[0].Refused, job.ErrMoved)
		items, _, err := e.store.Peek(e.Context(), id, port.Input, "p", 9)
		e.Check(err)
		e.equal("left", texts(items), []string{"2"})
	})
}

// A shard that cannot be swept keeps no other from it; and what a broken script left is
// taken up again.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	for shard := range shards - 1 {
		e.Check(e.Redis.Set(e.Context(), fmt.Sprintf("weir:{%s:%d}:due", e.Namespace, shard), "no zset", 0).Err())
	}
	var id job.ID
	for id = newID(e); id.Shard(shards) != shards-1; id = newID(e) {
	}
	_, err := e.store.Create(e.Context(), id, &job.Plan{Nodes: []job.Node{{Type: "T"}}}, "")
	e.Check(err)
	e.Check(e.Redis.HSet(e.Context(), e.key(id), "status", string(statemachine.Running), "token", "").Err())
	e.Check(e.Redis.ZAdd(e.Context(), e.due(id), redis.Z{Score: 1, Member: string(id)}).Err())
	if _, err = e.store.Sweep(e.Context()); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		e.Errorf("sweep says %v", err)
	}
	e.is(statemachine.Queued, id)
}

// An error of Redis inside a transaction, behind the write to a job that was to run speculatively: that job
// is queued, as the message may be there.
func TestDamagedSpeculationIsQueued(t *testing.T) {
	for name, damage := range map[string]struct {
		key  string
		more []store.Take
	}{
		"before it begins": {":i:side", []store.Take{{Dir: port.Input, Port: "side", N: 1}}},
		"when it ends":     {":s", nil},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				s, c := e.lineWithSide()
				tx := e.row(s, c)
				tx.Deltas[1].Takes = append(tx.Deltas[1].Takes, damage.more...)
				e.Check(e.Redis.Set(e.Context(), e.key(c)+damage.key, "of another type", 0).Err())
				_, err := e.store.Commit(e.Context(), []store.Tx{tx})
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
					e.Errorf("committing says %v", err)
				}
				status, err := e.Redis.HGet(e.Context(), e.key(c), "status").Result()
				e.Check(err)
				e.equal("status", status, string(statemachine.Queued))
				if err := e.Redis.ZScore(e.Context(), e.due(c), string(c)).Err(); err != nil {
					e.Errorf("nobody will look at it: %v", err)
				}
			})
		})
	}
}
