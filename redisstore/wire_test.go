package redisstore_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// wire is one call whose reply gets lost, in a small world made by full: a job in a run
// with messages, and a second tree of a source and its consumer.
type wire struct {
	name  string
	match string // in the request, in no other
	call  func(e *env, w *world) any
	late  bool // call itself says when
}

// world is what a call acts on. IDs and tokens are the same in every world.
type world struct {
	run   store.Delta // of a run that has begun and can commit
	other job.ID      // of type S, queued; its output goes to other.Nth(1), of type C
}

const (
	wireRun   = "018f4e2a-0000-7000-8000-000000000001"
	wireOther = "018f4e2a-0000-7000-8000-000000000002"
	wireNew   = "018f4e2a-0000-7000-8000-000000000003"
)

func (e *env) world() *world {
	e.Helper()
	e.createAs(wireRun, job.Node{Type: "T", Ports: ports(in("in"), out("out"), out("done"))})
	e.write(wireRun, "in", "1", "2", "3")
	b := beginning()
	b.Token = "runtoken"
	_, err := e.store.Begin(e.Context(), wireRun, b)
	e.Check(err)
	e.createAs(wireOther,
		job.Node{Type: "S", Ports: ports(in("wirein"), out("out", to(1)))},
		job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 1))})
	return &world{other: wireOther, run: store.Delta{
		Job: wireRun, Token: "runtoken", Outcome: statemachine.Complete,
		Takes:  []store.Take{{Dir: port.Input, Port: "in", N: 2}},
		Writes: []store.Write{{Dir: port.Output, Port: "out", Items: raws("4", "5")}, {Dir: port.Input, Port: "in", Items: raws("6")}},
		Set:    map[string]json.RawMessage{"k": json.RawMessage("1")},
		Spawns: []store.Spawn{{Base: 1, Plan: &job.Plan{Nodes: []job.Node{{Name: "kid", Type: "K"}}}}},
		Closes: []string{"done"},
		Log:    []string{`"x"`},
	}}
}

func (e *env) apply(id job.ID, event statemachine.Event) any {
	e.Helper()
	e.Check(e.store.Apply(e.Context(), id, event))
	return nil
}

// beginsByWrite writes, the reply being lost, and returns what run the write began in this process.
func (e *env) beginsByWrite(id job.ID, w store.Write) any {
	e.Helper()
	begun, _ := e.freeSlots("C")
	e.lose()
	e.Check(e.store.Write(e.Context(), id, w))
	select {
	case snap := <-begun:
		return fmt.Sprint(snap.Info.ID, snap.Info.Status, snap.In)
	case <-time.After(10 * time.Second):
		e.Fatal("no run begins in this process")
		return nil
	}
}

func wires() []wire {
	return []wire{
		{name: "create", match: "wireby", call: func(e *env, _ *world) any {
			created, err := e.store.Create(e.Context(), wireNew, &job.Plan{Nodes: tree()}, "wireby")
			e.Check(err)
			return created
		}},
		{name: "create as a record", match: "wireby", call: func(e *env, _ *world) any {
			redisstore.Met(e, e.Store, wireNew, record(2))
			created, err := e.store.Create(e.Context(), wireNew, record(2), "wireby")
			e.Check(err)
			e.equal("records", e.records(), 1)
			return created
		}},
		{name: "begin of a record", match: "wiretoken", late: true, call: func(e *env, _ *world) any {
			e.createRecord(wireNew, 2)
			e.lose()
			return about(e.beginRow(job.ID(wireNew).Nth(1), "wiretoken"))
		}},
		{name: "commit of a record", match: string(wireNew), late: true, call: func(e *env, _ *world) any {
			e.createRecord(wireNew, 2)
			tx := completion(e.beginRow(job.ID(wireNew).Nth(1), "wiretoken"))
			e.lose()
			res, err := e.store.Commit(e.Context(), []store.Tx{tx})
			e.Check(err)
			e.equal("records", e.records(), 1)
			return res
		}},
		{name: "step of a record", match: "steptoken", late: true, call: func(e *env, _ *world) any {
			e.createRecord(wireNew, 2)
			tx, b := completion(e.beginRow(job.ID(wireNew).Nth(1), "wiretoken")), beginning()
			b.Token = "steptoken"
			e.lose()
			res, snap, err := step(e.Context(), e.store, tx, b, []string{"C", "S"})
			e.Check(err)
			e.equal("records", e.records(), 1)
			return fmt.Sprint(res, about(snap))
		}},
		{name: "create with a unique key", match: "wireby", call: func(e *env, _ *world) any {
			plan := &job.Plan{Nodes: tree(), Unique: &job.UniqueBy{Key: "k"}}
			created, err := e.store.Create(e.Context(), e.store.Keyed(wireNew, "k"), plan, "wireby")
			e.Check(err)
			return created
		}},
		{name: "merge args", match: "wiremerge", call: func(e *env, w *world) any {
			merged, err := e.store.MergeArgs(e.Context(), w.other, store.Merging{Type: e.info(w.other).Type, Args: raws(`{"a":"wiremerge"}`)[0]})
			e.Check(err)
			return fmt.Sprint(merged, string(e.info(w.other).Args))
		}},
		{name: "begin", match: "wiretoken", call: func(e *env, w *world) any {
			b := beginning()
			b.Token = "wiretoken"
			snap, err := e.store.Begin(e.Context(), w.other, b)
			e.Check(err)
			return snap.Info.Steps
		}},
		{name: "commit", match: "runtoken", call: func(e *env, w *world) any { return e.commit(w.run) }},
		{name: "failure", match: "runtoken", call: func(e *env, w *world) any {
			d := store.Delta{Job: wireRun, Token: "runtoken", Outcome: statemachine.Backoff, Delay: time.Hour, Failure: &job.Failure{Error: "x"}}
			return e.commit(d)
		}},
		{name: "checkpoint", match: "runtoken", call: func(e *env, w *world) any {
			w.run.Outcome, w.run.Next, w.run.Lease = store.Checkpoint, "nexttoken", time.Hour
			return e.commit(w.run)
		}},
		{name: "step to another job", match: "wiretoken", call: func(e *env, w *world) any {
			d := delta(e.begin(w.other), statemachine.Complete)
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
			b := beginning()
			b.Token = "wiretoken"
			res, snap := e.step(d, b, "C", "S")
			return fmt.Sprint(known(res), snap.Info.ID, snap.In, snap.Token)
		}},
		{name: "step to the same job", match: "wiretoken", call: func(e *env, w *world) any {
			b := beginning()
			b.Token = "wiretoken"
			res, snap := e.step(w.run, b, "T")
			return fmt.Sprint(known(res), snap.Info.ID, snap.In, snap.Token)
		}},
		{name: "step to nothing", match: "wiretoken", call: func(e *env, w *world) any {
			b := beginning()
			b.Token = "wiretoken"
			res, snap := e.step(w.run, b, "X")
			return fmt.Sprint(known(res), snap)
		}},
		{name: "write", match: `"wire message"`, call: func(e *env, w *world) any {
			e.write(w.other, "wirein", `"wire message"`, "2")
			return nil
		}},
		{name: "write that begins a run", match: `"wire message"`, late: true, call: func(e *env, w *world) any {
			begun, _ := e.freeSlots("C")
			e.lose()
			e.write(w.other.Nth(1), "in", `"wire message"`)
			snap := <-begun
			return fmt.Sprint(snap.Info.ID, snap.Info.Status, snap.In)
		}},
		{name: "write to a graph's port that begins a run", match: `"wire message"`, late: true, call: func(e *env, _ *world) any {
			inner := job.Port{Spec: port.Spec{Name: "in", Dir: port.Input}, Edges: []job.Edge{to(2)}}
			e.createAs(wireNew,
				job.Node{Type: "g", Graph: true, Ports: ports(job.Port{Spec: port.Spec{Name: "in", Dir: port.Input}, Edges: []job.Edge{to(1)}})},
				job.Node{Name: "h", Type: "h", Graph: true, Parent: 0, Ports: ports(inner)},
				job.Node{Name: "c", Type: "C", Parent: 1, Ports: ports(fed("in", 1))})
			return e.beginsByWrite(wireNew, store.Write{Dir: port.Input, Port: "in", Items: raws(`"wire message"`)})
		}},
		{name: "write to an Out port that begins a run", match: `"wire message"`, late: true, call: func(e *env, w *world) any {
			return e.beginsByWrite(w.other, store.Write{Dir: port.Output, Port: "out", Items: raws(`"wire message"`)})
		}},
		{name: "take", match: "wiretoken", call: func(e *env, _ *world) any {
			e.Check(e.store.Take(e.Context(), wireRun, store.Take{Dir: port.Input, Port: "in", N: 2}, "wiretoken"))
			return nil
		}},
		{name: "close", match: "wirein", call: func(e *env, w *world) any {
			e.Check(e.store.ClosePort(e.Context(), w.other, port.Input, "wirein"))
			return nil
		}},
		{name: "refresh", match: "runtoken", call: func(e *env, _ *world) any {
			e.Check(e.store.Refresh(e.Context(), wireRun, "runtoken", time.Hour, nil))
			return nil
		}},
		{name: "claim", match: "wirealias", call: func(e *env, w *world) any {
			id, err := e.store.Claim(e.Context(), "wirealias", w.other)
			e.Check(err)
			return id
		}},
		{name: "run", match: wireOther + ".1", call: func(e *env, w *world) any { return e.apply(w.other.Nth(1), statemachine.Run) }},
		{name: "terminate", match: wireOther, call: func(e *env, w *world) any { return e.apply(w.other, statemachine.Terminate) }},
		{name: "retry", match: wireOther, late: true, call: func(e *env, w *world) any {
			e.end(w.other, statemachine.Fail)
			e.lose()
			return e.apply(w.other, statemachine.Retry)
		}},
		{name: "delete", match: "\r\ndelete\r\n", late: true, call: func(e *env, w *world) any {
			for _, id := range []job.ID{w.other, w.other.Nth(1)} {
				e.apply(id, statemachine.Terminate)
				e.end(id, statemachine.Shutdown)
			}
			e.lose()
			e.Check(e.store.Delete(e.Context(), w.other))
			return nil
		}},
		{name: "unclaim", match: "\r\nremove\r\n", late: true, call: func(e *env, w *world) any {
			_, err := e.store.Claim(e.Context(), "wirealias", w.other)
			e.Check(err)
			e.lose()
			e.Check(e.store.Unclaim(e.Context(), "wirealias", w.other))
			return nil
		}},
		{name: "unlock", match: "wirelock", late: true, call: func(e *env, w *world) any {
			e.Check(e.Redis.Set(e.Context(), e.key(w.other)+":lock", "wirelock", time.Hour).Err())
			e.lose()
			e.Check(e.store.Unlock(e.Context(), w.other, "wirelock"))
			return nil
		}},
	}
}

// A call whose reply is lost is repeated by the driver. What follows, answer and state,
// is what would have followed without the loss.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	addr := strings.TrimSuffix(strings.TrimPrefix(redistest.SharedRedis(t), "redis://"), "/0")
	for _, w := range wires() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			calm := open(t, redistest.SharedRedis(t)) // it also makes Redis know the scripts
			want := w.call(calm, calm.world())
			for _, lost := range []int{1, 2} {
				p := redistest.StartProxy(t, addr)
				e := open(t, p.URL())
				world := e.world()
				e.lose = func() { p.DropReplies(lost, w.match) }
				if !w.late {
					e.lose()
				}
				e.equal("answer", known(w.call(e, world)), known(want))
				e.equal("replies lost", p.Dropped(), lost)
				e.equal("state", e.still(), calm.still())
			}
		})
	}
}

// A number that is reserved twice leaves a gap and is given to nobody else.
func TestLostReplyOfReserve(t *testing.T) {
	t.Parallel()
	addr := strings.TrimSuffix(strings.TrimPrefix(redistest.SharedRedis(t), "redis://"), "/0")
	p := redistest.StartProxy(t, addr)
	e := open(t, p.URL())
	e.world()
	_, err := e.store.Reserve(e.Context(), wireRun, 1) // Redis knows the script now
	e.Check(err)
	p.DropReplies(1, wireOther)
	a, err := e.store.Reserve(e.Context(), wireOther, 3)
	e.Check(err)
	b, err := e.store.Reserve(e.Context(), wireOther, 1)
	e.Check(err)
	e.equal("numbers", []int{p.Dropped(), a, b}, []int{1, 5, 8})
}

var (
	moments = regexp.MustCompile(`(\b|x1f)1[6-9]\d{11}(\d{3})?\b|\b1\.\d+e\+1[25]\b`)
	minutes = regexp.MustCompile(`"rate":"\d+:`)
	tokens  = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
)

// still is a dump without the moments, minutes and random tokens in it.
func (e *env) still() string {
	e.Helper()
	var b strings.Builder
	all := e.dump()
	keys := make([]string, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		line := minutes.ReplaceAllString(strings.ReplaceAll(k+" "+all[k], e.Namespace, "NS"), `"rate":"M:`)
		b.WriteString(tokens.ReplaceAllString(moments.ReplaceAllString(line, "T"), "X") + "\n")
	}
	return b.String()
}
