package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// shoal is a run of type S and many ready jobs of type C in one tree.
func (e *env) shoal(n int, more ...job.Node) (first *store.Snapshot, g job.ID) {
	e.Helper()
	nodes := []job.Node{{Type: "g", Graph: true}, {Name: "s", Type: "S", Ports: ports(in("in"))}}
	for i := range n {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("c", i), Type: "C", Ports: ports(in("in"))})
	}
	g = e.create(append(nodes, more...)...)
	return e.begin(g.Nth(1)), g
}

// severally is how many jobs of type C are to begin at once.
func severally(n int) store.Begin {
	b := beginning()
	b.Token += "b1" // by the ends of some tokens another type comes first, see line.order
	b.Several = func(typ string) int {
		if typ == "C" {
			return n
		}
		return 1
	}
	return b
}

// stepAll commits a run, and returns the jobs that began behind it, and what they see.
func (e *env) stepAll(d store.Delta, b store.Begin, types ...string) (ids []job.ID, begun []*store.Snapshot) {
	e.Helper()
	res, begun, err := e.store.Step(e.Context(), []store.Tx{{Deltas: []store.Delta{d}}}, b, types)
	e.Check(err)
	e.equal("applied", res[0].Applied, 1)
	for _, s := range begun {
		ids = append(ids, s.Info.ID)
	}
	return ids, begun
}

func TestStepBeginsSeveral(t *testing.T) {
	each(t, func(e *env) {
		first, g := e.shoal(6, job.Node{Name: "b", Type: "B", Ports: ports(in("in"))})
		d, b := delta(first, statemachine.Complete), severally(4)
		ids, begun := e.stepAll(d, b, "B", "C")
		e.equal("begun", ids, []job.ID{g.Nth(2), g.Nth(3), g.Nth(4), g.Nth(5)})
		tokens := map[string]bool{}
		for n, s := range begun {
			e.is(statemachine.Running, s.Info.ID)
			tokens[s.Token] = true
			e.equal("the first has the token", s.Token == b.Token, n == 0)
		}
		e.equal("tokens", len(tokens), 4)
		e.unchanged("the same step again", func() {
			_, second := e.stepAll(d, b, "B", "C")
			e.equal("snapshots", second, begun)
		})
		// The others are where they were, and those that began may be committed together.
		var txs []store.Tx
		for _, s := range begun {
			txs = append(txs, store.Tx{Deltas: []store.Delta{delta(s, statemachine.Complete)}})
		}
		res, rest, err := e.store.Step(e.Context(), txs, severally(9), []string{"B", "C"})
		e.Check(err)
		for _, r := range res {
			e.equal("applied", r.Applied, 1)
		}
		e.equal("rest", len(rest), 2)
		for _, id := range ids {
			e.is(statemachine.Completed, id)
		}
		e.equal("ready", e.pop(g.Shard(shards), "B", "C"), g.Nth(8))
		e.equal("ready", e.pop(g.Shard(shards), "B", "C"), job.ID(""))
	})
}

// What one call begins is of one type and priority.
func TestStepBeginsSeveralAlike(t *testing.T) {
	each(t, func(e *env) {
		low := 300
		first, g := e.shoal(2, job.Node{Name: "b", Type: "B", Ports: ports(in("in"))}, job.Node{Name: "l", Type: "C", Priority: &low, Ports: ports(in("in"))})
		b := severally(9)
		ids, _ := e.stepAll(delta(first, statemachine.Complete), b, "B", "C")
		slices.Sort(ids)
		if !slices.Equal(ids, []job.ID{g.Nth(2), g.Nth(3)}) && !slices.Equal(ids, []job.ID{g.Nth(4)}) {
			e.Errorf("began %v: more than those of one type and priority", ids)
		}
	})
}

func TestStepBeginsOneOfALimit(t *testing.T) {
	each(t, func(e *env) {
		for range 500 { // until the tree lies in the shard of the limit, where its jobs get their places at once
			first, _ := e.shoal(5)
			b := severally(9)
			b.Running = []store.RunLimit{{Type: "C", Max: 4}}
			if ids, _ := e.stepAll(delta(first, statemachine.Complete), b, "C"); len(ids) > 0 {
				e.equal("begun under a limit", len(ids), 1)
				return
			}
		}
		e.Error("none began")
	})
}

// What they see has a bound.
func TestStepBeginsSeveralUpToABound(t *testing.T) {
	each(t, func(e *env) {
		first, g := e.shoal(5)
		e.write(g.Nth(3), "in", `"`+strings.Repeat("x", 1<<16)+`"`)
		ids, begun := e.stepAll(delta(first, statemachine.Complete), severally(9), "C")
		e.equal("begun up to the large one", ids, []job.ID{g.Nth(2), g.Nth(3)})
		ids, _ = e.stepAll(delta(begun[1], statemachine.Complete), severally(9), "C")
		e.equal("behind it", ids, []job.ID{g.Nth(4), g.Nth(5), g.Nth(6)})
	})
}

func TestStepBeginsSeveralButADamagedOne(t *testing.T) {
	each(t, func(e *env) {
		first, g := e.shoal(5)
		e.Check(e.Redis.Set(e.Context(), e.key(g.Nth(4))+":i:in", "damaged", 0).Err())
		ids, begun := e.stepAll(delta(first, statemachine.Complete), severally(9), "C")
		e.equal("begun before the damaged one", ids, []job.ID{g.Nth(2), g.Nth(3)})
		ids, _ = e.stepAll(delta(begun[0], statemachine.Complete), severally(9), "C")
		e.equal("behind it", ids, []job.ID{g.Nth(5), g.Nth(6)})
		e.commit(delta(begun[1], statemachine.Complete))
	})
}

// Who reads what several others go on writing to comes behind those that are ready in its tree.
func TestStepPutsReadersBehindWriters(t *testing.T) {
	each(t, func(e *env) {
		for sources, want := range map[int]int{1: 2, 2: 4} {
			nodes := []job.Node{{Type: "g", Graph: true}, {Name: "s", Type: "S", Ports: ports(in("in"), out("out", to(2)))}}
			nodes = append(nodes, job.Node{Name: "c", Type: "C", Ports: ports(fed("in", sources))})
			nodes = append(nodes, job.Node{Name: "t", Type: "S", Ports: ports(in("in"), out("out", to(2)))}, job.Node{Name: "u", Type: "S", Ports: ports(in("in"))})
			if sources == 1 {
				nodes[3].Ports = ports(in("in"))
			}
			g := e.create(nodes...)
			e.begin(g.Nth(3))
			d := delta(e.begin(g.Nth(1)), statemachine.Suspend)
			d.Writes = spoke(&store.Snapshot{Info: job.Info{ID: g.Nth(1)}}, "1").Writes
			ids, _ := e.stepAll(d, severally(1), "S", "C")
			e.equal(fmt.Sprint("begun with sources: ", sources), ids, []job.ID{g.Nth(want)})
			e.pop(g.Shard(shards), "S", "C")
		}
	})
}

// An engine that now and then takes a job of the lowest priority takes one.
func TestStepBeginsOneOfTheLowest(t *testing.T) {
	each(t, func(e *env) {
		low := 100
		var more []job.Node
		for i := range 4 {
			more = append(more, job.Node{Name: fmt.Sprint("l", i), Type: "C", Priority: &low, Ports: ports(in("in"))})
		}
		first, _ := e.shoal(4, more...)
		b := severally(16)
		b.Lowest = true
		ids, _ := e.stepAll(delta(first, statemachine.Complete), b, "C")
		e.equal("begun", len(ids), 1)
	})
}

// dies has the lease of a run end, and puts its job back into its ready set.
func (e *env) dies(id job.ID) {
	e.Helper()
	for range 2 { // the lease, and what the job waits for then
		e.Check(e.Redis.ZAdd(e.Context(), e.due(id), redis.Z{Score: 1, Member: string(id)}).Err())
		_, err := e.store.Sweep(e.Context())
		e.Check(err)
	}
}

// Jobs whose run died begin one by one: one of them may have killed the process with all that had begun there.
func TestStepBeginsOneThatDied(t *testing.T) {
	each(t, func(e *env) {
		first, _ := e.shoal(4)
		ids, _ := e.stepAll(delta(first, statemachine.Complete), severally(16), "C")
		e.equal("begun", len(ids), 4)
		for _, id := range ids {
			e.dies(id)
		}
		snap, err := popped(e.store.Pop(e.Context(), job.DefaultQueue, ids[0].Shard(shards), -1, beginning(), []string{"C"}))
		e.Check(err)
		e.equal("runs that died", snap.Info.Crashes, 1)
		next, _ := e.stepAll(delta(snap, statemachine.Suspend), severally(16), "C")
		e.equal("begun", len(next), 1)
	})
}

// What cannot be decoded is left to others, and says why; those beside it are told of.
func TestStepBeginsSeveralButAnOddOne(t *testing.T) {
	each(t, func(e *env) {
		for _, field := range []string{"created", "labels", "step"} {
			first, g := e.shoal(5)
			e.Check(e.Redis.HSet(e.Context(), e.key(g.Nth(3)), field, "damaged").Err())
			ids, _ := e.stepAll(delta(first, statemachine.Complete), severally(9), "C")
			e.equal("begun", ids, []job.ID{g.Nth(2), g.Nth(4), g.Nth(5), g.Nth(6)})
			status, err := e.Redis.HMGet(e.Context(), e.key(g.Nth(3)), "status", "reason").Result()
			e.Check(err)
			if status[0] == string(statemachine.Running) || status[1] == "" {
				e.Errorf("the job with a damaged field %s is %v", field, status)
			}
		}
	})
}

// The jobs in a row behind those that begin count, too.
func TestRowsOfSeveralAreBounded(t *testing.T) {
	each(t, func(e *env) {
		const n = 16
		nodes := []job.Node{{Type: "g", Graph: true}, {Name: "s", Type: "S", Ports: ports(in("in"))}}
		for i := range n {
			nodes = append(nodes, job.Node{Name: fmt.Sprint("c", i), Type: "C", Ports: ports(in("in"), out("out", to(2+n)))})
		}
		args := []byte(`"` + strings.Repeat("x", 15000) + `"`)
		for i, sources := range []int{n, 1, 1, 1} {
			nodes = append(nodes, job.Node{Name: fmt.Sprint("d", i), Type: "D", Args: args, Ports: ports(fed("in", sources), out("out", to(3+n+i)))})
		}
		g := e.create(append(nodes, job.Node{Name: "z", Type: "D", Ports: ports(fed("in", 1))})...)
		b := severally(16)
		b.Row = 15
		ids, _ := e.stepAll(delta(e.begin(g.Nth(1)), statemachine.Complete), b, "C")
		if len(ids) != 2 {
			e.Errorf("%d began, each with 60 KB of jobs behind it", len(ids))
		}
	})
}

// A step that is sent again tells of all runs that go on: also if that of the first does not, or the job that was committed last has
// run since.
func TestRepeatedStepTellsOfOthers(t *testing.T) {
	each(t, func(e *env) {
		first, _ := e.shoal(6)
		d, b := delta(first, statemachine.Complete), severally(4)
		ids, begun := e.stepAll(d, b, "C")
		e.dies(ids[0])
		again, second := e.stepAll(d, b, "C")
		e.equal("jobs", again, ids[1:])
		for n := range second {
			e.equal("token", second[n].Token, begun[n+1].Token)
		}
	})
}

func TestRepeatedStepOfOneThatRanAgain(t *testing.T) {
	each(t, func(e *env) {
		_, g := e.shoal(8)
		l := delta(e.begin(g.Nth(2)), statemachine.Suspend)
		b := severally(4)
		ids, _ := e.stepAll(l, b, "C")
		e.write(g.Nth(2), "in", "1")
		e.commit(delta(e.begin(g.Nth(2)), statemachine.Suspend))
		res, again, err := e.store.Step(e.Context(), []store.Tx{{Deltas: []store.Delta{l}}}, b, []string{"C"})
		e.Check(err)
		e.equal("applied", res[0].Applied, 0)
		e.equal("told of", len(again), len(ids))
	})
}
