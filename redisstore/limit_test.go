package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// limited is an In port that is full with that many messages.
func limited(p job.Port, limit int) job.Port {
	p.Limit = limit
	return p
}

// passing is an In port of a graph with one source.
func passing(name string, edges ...job.Edge) job.Port {
	p := fed(name, 1)
	p.Edges = edges
	return p
}

// writes is a commit of a run that wrote that many messages to its port out.
func (e *env) writes(id job.ID, outcome statemachine.Event, items ...string) store.Result {
	e.Helper()
	d := delta(e.begin(id), outcome)
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws(items...)}}
	return e.commit(d)
}

// takes is a commit of a run that read that many messages of its port in.
func (e *env) takes(id job.ID, n int) {
	e.Helper()
	d := delta(e.begin(id), statemachine.Suspend)
	d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: e.port(id, port.Input, "in").Total - e.port(id, port.Input, "in").Waiting, N: n}}
	e.commit(d)
}

// blockedOnes checks which jobs a list of the blocked ones has, and their number.
func (e *env) blockedOnes(want ...job.ID) {
	e.Helper()
	f := job.Filter{Blocked: true, All: true}
	var got []job.ID
	for i, err := range e.store.Jobs(e.Context(), f) {
		e.Check(err)
		got = append(got, i.ID)
	}
	count, err := e.store.Count(e.Context(), f)
	e.Check(err)
	e.equal("the blocked jobs", got, want)
	e.equal("their number", count, len(want))
}

// A producer whose consumer is full is suspended, whatever wakes it, and goes on when there is room.
func TestFullPortSuspendsItsProducer(t *testing.T) {
	each(t, func(e *env) {
		root := e.create(
			job.Node{Type: "S", Ports: ports(in("ask"), out("out", to(1)))},
			job.Node{Name: "c", Type: "C", Ports: ports(limited(fed("in", 1), 3))})
		consumer := root.Nth(1)
		e.equal("full", e.writes(root, statemachine.Requeue, "1", "2").Full, false)
		res := e.writes(root, statemachine.Requeue, "3", "4") // a commit is never refused
		e.equal("full", []bool{res.Full, res.Again}, []bool{true, false})
		e.is(statemachine.Suspended, root)
		info := e.info(root)
		if !info.Blocked || info.Reason != "full: port in of job "+string(consumer) {
			e.Errorf("blocked %v, reason %q", info.Blocked, info.Reason)
		}
		e.blockedOnes(root)
		e.write(root, "ask", "1")
		e.is(statemachine.Suspended, root)

		// Whoever writes from outside is told, and nothing is written.
		for id, w := range map[job.ID]store.Write{
			consumer: {Dir: port.Input, Port: "in", Items: raws("9")},
			root:     {Dir: port.Output, Port: "out", Items: raws("9")},
		} {
			e.fails(e.store.Write(e.Context(), id, w), job.ErrFull)
		}

		e.takes(consumer, 1)
		e.is(statemachine.Suspended, root)
		e.holds(consumer, port.Input, "in", "2", "3", "4")
		e.Check(e.store.Apply(e.Context(), consumer, statemachine.Run))
		e.takes(consumer, 1)
		e.is(statemachine.Queued, root)
		info = e.info(root)
		e.equal("blocked and why", []any{info.Blocked, info.Reason}, []any{false, ""})
		e.blockedOnes()
		e.equal("due", e.Redis.ZScore(e.Context(), e.due(root), "!full "+string(root)+" "+string(consumer)+" in").Err(), redis.Nil)
	})
}

// A completed producer that wakes while its consumer is full is suspended, too; every way of making
// room lets it go on.
func TestRoomWakesTheProducer(t *testing.T) {
	each(t, func(e *env) {
		for what, makeRoom := range map[string]func(consumer job.ID){
			"taken from outside": func(c job.ID) {
				e.Check(e.store.Take(e.Context(), c, store.Take{Dir: port.Input, Port: "in", N: 1}, "t"+string(c)))
			},
			"drained": func(c job.ID) {
				_, err := e.store.Connect(e.Context(), c, port.Input, "in", []job.PortRef{{Job: c, Dir: port.Output, Port: "rest"}})
				e.Check(err)
			},
			"the limit is raised": func(c job.ID) {
				e.Check(e.store.SetPorts(e.Context(), c, []port.Spec{{Name: "in", Dir: port.Input, Limit: 9}}))
			},
			"the limit is removed": func(c job.ID) {
				e.Check(e.store.SetPorts(e.Context(), c, []port.Spec{{Name: "in", Dir: port.Input}}))
			},
			"terminated": func(c job.ID) {
				e.Check(e.store.Apply(e.Context(), c, statemachine.Terminate))
				e.end(c, statemachine.Shutdown)
			},
		} {
			root := e.create(
				job.Node{Type: "S", Ports: ports(in("ask"), out("out", to(1)))},
				job.Node{Name: "c", Type: "C", Ports: ports(limited(fed("in", 1), 1), out("rest"))})
			e.writes(root, statemachine.Complete, "1")
			e.is(statemachine.Completed, root)
			e.write(root, "ask", "1")
			e.is(statemachine.Suspended, root)
			makeRoom(root.Nth(1))
			if s := e.info(root).Status; s != statemachine.Queued {
				e.Errorf("%s: the producer is %s", what, s)
			}
		}
	})
}

// diamond is a source that feeds a join at once and by way of another job; the direct way is full.
func (e *env) diamond() (root job.ID) {
	e.Helper()
	root = e.create(
		job.Node{Type: "G", Graph: true},
		job.Node{Name: "source", Type: "S", Ports: ports(out("out", to(3)), out("slow", to(2)))},
		job.Node{Name: "middle", Type: "M", Ports: ports(fed("in", 1), out("out", job.Edge{{Node: 3, Dir: port.Input, Port: "other"}}))},
		job.Node{Name: "join", Type: "J", Ports: ports(limited(fed("in", 1), 2), fed("other", 1))})
	e.equal("full", e.writes(root.Nth(1), statemachine.Requeue, "1", "2").Full, true)
	e.commit(delta(e.begin(root.Nth(3)), statemachine.Suspend)) // it waits for the other port
	return root
}

// soon has the sweeper look now whether suspended jobs wait for each other.
func (e *env) soon(id job.ID) {
	e.Helper()
	e.lookAtFull(id, time.Time{})
	e.sweep()
}

// lookAtFull says when the sweeper looks at the jobs that full ports have suspended.
func (e *env) lookAtFull(id job.ID, at time.Time) {
	e.Helper()
	for _, member := range e.Redis.ZRange(e.Context(), e.due(id), 0, -1).Val() {
		if strings.HasPrefix(member, "!full") {
			e.Check(e.Redis.ZAddXX(e.Context(), e.due(id), redis.Z{Member: member, Score: float64(at.UnixMilli())}).Err())
		}
	}
}

// Jobs that wait for each other because a limit is too small are told apart from those that
// wait for something else: the limit is raised, and the log names them.
func TestDeadlockRaisesTheLimit(t *testing.T) {
	each(t, func(e *env) {
		root := e.diamond()
		source, join := root.Nth(1), root.Nth(3)
		e.soon(root)
		e.is(statemachine.Queued, source)
		e.equal("limit", e.port(join, port.Input, "in").Limit, 4)
		notes, err := e.store.Logs(e.Context(), join, 10)
		e.Check(err)
		if len(notes) != 1 || !strings.Contains(string(notes[0].Entry), `"deadlock":"source -> join -> source"`) {
			e.Errorf("the log says %s", notes)
		}
	})
}

// A graph that has failed where that is ignored does not keep limits from being raised: the other jobs in it go on, and
// messages come to them through its ports.
func TestDeadlockThroughAFailedGraph(t *testing.T) {
	each(t, func(e *env) {
		other := func(node int) job.Edge { return job.Edge{{Node: node, Dir: port.Input, Port: "other"}} }
		root := e.create(
			job.Node{Type: "G", Graph: true},
			job.Node{Name: "source", Type: "S", Ports: ports(out("out", to(4)), out("slow", to(2)))},
			job.Node{Name: "middle", Type: "M", Ports: ports(fed("in", 1), out("out", other(4)))},
			job.Node{Name: "part", Type: "G", Graph: true, OnFailure: job.Ignore},
			job.Node{Name: "inner", Parent: 3, Type: "G", Graph: true, Ports: ports(passing("in", to(5)), passing("other", other(5)))},
			job.Node{Name: "join", Parent: 4, Type: "J", Ports: ports(limited(fed("in", 1), 2), fed("other", 1))},
			job.Node{Name: "bad", Parent: 4, Type: "B"})
		source, join := root.Nth(1), root.Nth(5)
		e.end(root.Nth(6), statemachine.Fail)
		e.is(statemachine.Failed, root.Nth(3), root.Nth(4))
		e.equal("full", e.writes(source, statemachine.Requeue, "1", "2").Full, true)
		e.commit(delta(e.begin(join), statemachine.Suspend)) // it waits for the other port
		e.soon(root)
		e.is(statemachine.Queued, source)
		e.equal("limit", e.port(join, port.Input, "in").Limit, 4)
	})
}

// Nothing is raised while somebody may still act.
func TestNoDeadlock(t *testing.T) {
	each(t, func(e *env) {
		for what, act := range map[string]func(root job.ID){
			"the other branch works": func(root job.ID) {
				e.write(root.Nth(2), "in", "1")
			},
			"the join will wake": func(root job.ID) {
				e.Check(e.store.RunAt(e.Context(), root.Nth(3), time.Time{}, time.Hour))
			},
			"the join failed": func(root job.ID) {
				e.Check(e.store.Apply(e.Context(), root.Nth(3), statemachine.Run))
				e.end(root.Nth(3), statemachine.Fail)
			},
		} {
			root := e.diamond()
			act(root)
			e.soon(root)
			if limit := e.port(root.Nth(3), port.Input, "in").Limit; limit != 2 {
				e.Errorf("%s: the limit became %d", what, limit)
			}
			e.is(statemachine.Suspended, root.Nth(1))
		}
	})
}

// A wish for a run that is to be there unless another one is makes one timer, however often it is made.
func TestTimerUnlessThereIsOne(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		for _, c := range []struct {
			wish   time.Duration
			timers int64
		}{{-time.Hour, 1}, {-2 * time.Hour, 1}, {-time.Minute, 2}, {-time.Hour, 2}, {3 * time.Hour, 3}} {
			d := delta(e.begin(id), statemachine.Suspend)
			d.Wakes = []time.Duration{c.wish}
			e.commit(d)
			n, err := e.Redis.ZCard(e.Context(), e.key(id)+":t").Result()
			e.Check(err)
			e.equal(fmt.Sprint("alarms after a wish for ", c.wish), n, c.timers)
			e.Check(e.store.Apply(e.Context(), id, statemachine.Run))
		}
	})
}
