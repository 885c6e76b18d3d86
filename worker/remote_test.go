package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// raws are JSON values.
func raws(texts ...string) (all []json.RawMessage) {
	for _, t := range texts {
		all = append(all, json.RawMessage(t))
	}
	return all
}

// is checks which error a call returned: one that wraps kind and says text; both empty for none.
func (b *bench) is(err, kind error, text string) {
	b.Helper()
	if !errors.Is(err, kind) || err != nil && !strings.Contains(err.Error(), text) {
		b.Errorf("error %v, want %v with %q", err, kind, text)
	}
}

// All that a client's run did is committed at once; saying it again changes nothing.
func TestRemoteCommit(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		b.Check(b.Store.Register(b.Ctx, []job.TypeInfo{{Type: "Count", Queue: job.DefaultQueue}}))
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 1, 2, 3))
		ticket := b.lease(l, "Double").Ticket()
		work := worker.Work{
			Read:  map[string]int{"in": 2},
			Write: []worker.Written{{Port: "out", Messages: raws("10", "20")}, {Port: "out", Messages: raws("30"), Context: port.Context{"lang": "py"}}},
			Set:   map[string]json.RawMessage{"seen": json.RawMessage(`2`)},
			Spawn: []worker.Spawned{{Name: "kid", New: job.New{Type: "Count", Args: map[string]int{"To": 1}}}},
			Log:   raws(`"two are done"`),

			Progress: &job.Progress{Done: 2, Total: 3},
		}
		_, err := l.Refresh(b.Ctx, ticket, time.Minute, &job.Progress{Done: 1, Total: 3})
		b.Check(err)
		if got := b.far(h); got != `"1/3"` {
			b.Errorf("while the run goes on it is at %s", got)
		}
		_, err = l.Refresh(b.Ctx, ticket, time.Minute, &job.Progress{Done: -1})
		b.is(err, job.ErrName, "use numbers from 0 on")
		b.Check(l.Commit(b.Ctx, ticket, work))
		b.Check(l.Commit(b.Ctx, ticket, work))
		if got := b.far(h); got != `"2/3"` {
			b.Errorf("behind the run it is at %s", got)
		}
		if got := b.State(h); got["seen"] != "2" {
			b.Errorf("the state is %v", got)
		}
		out, err := h.Messages(b.Ctx, port.Output, "out", 10)
		b.Check(err)
		if len(out) != 3 || string(out[2].Data) != "30" || out[2].Context["lang"] != "py" || out[2].Context[port.ContextBy] != "job:"+string(h.ID()) {
			b.Errorf("written: %+v", out)
		}
		logs, err := h.Logs(b.Ctx, 10)
		b.Check(err)
		if len(logs) != 1 {
			b.Errorf("logged: %+v", logs)
		}
		b.child(h, "kid")
		// The message that was left makes another run, which sees it alone.
		run := b.lease(l, "Double")
		if box := run.In.Of("in"); box.Head != 2 || len(box.Items) != 1 || string(run.State["seen"]) != "2" || run.Info.Steps != 1 || !run.Info.Started {
			b.Errorf("the next run sees %+v", run.Snapshot)
		}
		b.Check(l.Commit(b.Ctx, run.Ticket(), worker.Work{Read: map[string]int{"in": 1}, End: worker.ErrSuspend}))
		b.Reach(h, 2, statemachine.Suspended)
		runs, err := h.Runs(b.Ctx, 10)
		b.Check(err)
		if len(runs) != 3 || len(runs[1].Read) != 1 || fmt.Sprintf("%s", runs[1].Read[0].Data) != "[1 2]" || len(runs[1].Write) != 2 {
			b.Errorf("the log says %+v", runs)
		}
	})
}

// A run whose lease has ended is refused, whatever it did, and the run after it is not disturbed.
func TestRemoteFenced(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 1))
		runs, err := l.Take(b.Ctx, worker.LeaseRequest{Types: []string{"Double"}, Wait: enginetest.Patience, Lease: 100 * time.Millisecond})
		b.Check(err)
		late := runs[0].Ticket()
		run := b.lease(l, "Double") // the sweeper gives it to somebody else
		b.is(l.Commit(b.Ctx, late, worker.Work{Read: map[string]int{"in": 1}, Write: []worker.Written{{Port: "out", Messages: raws("1")}}}), job.ErrFenced, "")
		b.is(l.Fail(b.Ctx, late, worker.RunFailure{Error: "late"}), job.ErrFenced, "")
		b.is(l.Release(b.Ctx, late), job.ErrFenced, "")
		_, err = l.Refresh(b.Ctx, late, time.Minute, nil)
		b.is(err, job.ErrFenced, "")
		until, err := l.Refresh(b.Ctx, run.Ticket(), time.Minute, nil)
		b.Check(err)
		if left := time.Until(until); left < 50*time.Second || left > time.Minute {
			b.Errorf("the lease lasts for %s", left)
		}
		b.Check(l.Commit(b.Ctx, run.Ticket(), worker.Work{Read: map[string]int{"in": 1}, Write: []worker.Written{{Port: "out", Messages: raws("7")}}}))
		b.Completed(h, 1)
		b.same(h, 7)
	})
}

// What is wrong with a commit is said, nothing of it happens, and the client still has the run.
func TestRemoteRefused(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 1))
		ticket := b.lease(l, "Double").Ticket()
		for _, c := range []struct {
			work worker.Work
			kind error
			text string
		}{
			{worker.Work{Read: map[string]int{"inn": 1}}, job.ErrPort, `did you mean "in"?`},
			{worker.Work{Read: map[string]int{"in": 2}}, job.ErrName, "2 messages were read of port \"in\", of which the run was shown 1"},
			{worker.Work{Read: map[string]int{"in": -1}}, job.ErrName, "-1 messages"},
			{worker.Work{Write: []worker.Written{{Port: "out", Messages: raws("1")}, {Port: "ouch", Messages: raws("1")}}}, job.ErrPort, `no Out port "ouch": use one of: out`},
			{worker.Work{Write: []worker.Written{{Port: "out", Messages: raws("{")}}}, port.ErrEncoding, "out"},
			{worker.Work{Close: []string{"in"}}, job.ErrPort, "no Out port"},
			{worker.Work{Set: map[string]json.RawMessage{"\xff": json.RawMessage("1")}}, port.ErrEncoding, "state"},
			{worker.Work{Spawn: []worker.Spawned{{Name: "kid", New: job.New{Type: "Nobody"}}}}, job.ErrUnknownType, `spawning "kid"`},
		} {
			b.is(l.Commit(b.Ctx, ticket, c.work), c.kind, c.text)
		}
		b.is(l.Commit(b.Ctx, "nonsense", worker.Work{}), job.ErrName, "no run")
		if n := b.Waiting(h, "in"); n != 1 {
			b.Errorf("%d messages wait, want 1", n)
		}
		b.Check(l.Commit(b.Ctx, ticket, worker.Work{Read: map[string]int{"in": 1}, Write: []worker.Written{{Port: "out", Messages: raws("2")}}}))
		b.Completed(h, 1)
		b.same(h, 2)
	})
}

// Who repeats a commit while the first one goes on is told the truth: it is committed. Who commits what has failed, or was handed
// back, is told that it is not.
func TestRemoteRunBatching(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		b.Check(b.Store.Register(b.Ctx, []job.TypeInfo{{Type: "Count", Queue: job.DefaultQueue}}))
		h := b.single(&Double{})
		for n := range 10 {
			b.Check(h.Write(b.Ctx, "in", n))
			ticket := b.lease(l, "Double").Ticket()
			work := worker.Work{
				Read: map[string]int{"in": 1}, Write: []worker.Written{{Port: "out", Messages: raws("1")}},
				Spawn: []worker.Spawned{{Name: fmt.Sprint("kid", n), New: job.New{Type: "Count", Args: map[string]int{"To": 1}}}}, End: worker.ErrSuspend,
			}
			errs := make(chan error, 8)
			for range cap(errs) {
				go func() { errs <- l.Commit(b.Ctx, ticket, work) }()
			}
			for range cap(errs) {
				b.Check(<-errs)
			}
		}
		b.same(h, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
		b.Check(h.Write(b.Ctx, "in", 1))
		work := worker.Work{Read: map[string]int{"in": 1}}
		soon := time.Hour
		run := b.lease(l, "Double")
		b.Check(l.Release(b.Ctx, run.Ticket()))
		b.is(l.Commit(b.Ctx, run.Ticket(), work), job.ErrFenced, "handed back")
		run = b.lease(l, "Double")
		failure := worker.RunFailure{Error: "no", RetryAfter: &soon, Log: raws(`"it was tried"`)}
		b.Check(l.Fail(b.Ctx, run.Ticket(), failure))
		b.Check(l.Fail(b.Ctx, run.Ticket(), failure))
		if logs, err := h.Logs(b.Ctx, 10); err != nil || len(logs) != 1 || string(logs[0].Entry) != `"it was tried"` {
			b.Errorf("logged: %+v, %v", logs, err)
		}
		b.is(l.Commit(b.Ctx, run.Ticket(), work), job.ErrFenced, "has failed")
		if n := b.Waiting(h, "in"); n != 1 {
			b.Errorf("%d messages wait, want 1", n)
		}
	})
}

// A failed run gets another try, or none; what it read stays unread, until a dead letter takes it.
func TestRemoteFail(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		g := graph.New("g")
		graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "d", &Double{}, graph.OnFailure(job.DeadLetter)).In)
		h := b.Start(g)
		b.Check(h.Write(b.Ctx, "in", 1, 2))
		d := b.child(h, "d")
		soon := time.Millisecond
		run := b.lease(l, "Double")
		b.Check(l.Fail(b.Ctx, run.Ticket(), worker.RunFailure{Error: "cannot", Stack: "at line 1", RetryAfter: &soon, Read: map[string]int{"in": 2}}))
		// One of two messages is to blame: each is tried alone.
		run = b.lease(l, "Double")
		if box := run.In.Of("in"); len(box.Items) != 1 || box.Len != 2 {
			b.Fatalf("the run sees %d of %d messages, want 1 of 2", len(box.Items), box.Len)
		}
		b.Check(l.Fail(b.Ctx, run.Ticket(), worker.RunFailure{Error: "cannot 1", RetryAfter: &soon, Read: map[string]int{"in": 1}}))
		run = b.lease(l, "Double")
		if run.Info.Tries != 1 {
			b.Errorf("%d tries failed, want 1", run.Info.Tries)
		}
		b.Check(l.Fail(b.Ctx, run.Ticket(), worker.RunFailure{Error: "cannot 1", Read: map[string]int{"in": 1}}))
		b.Check(l.Fail(b.Ctx, run.Ticket(), worker.RunFailure{Error: "cannot 1", Read: map[string]int{"in": 1}}))
		run = b.lease(l, "Double")
		b.Check(l.Commit(b.Ctx, run.Ticket(), worker.Work{Read: map[string]int{"in": 1}}))
		dead, err := d.Messages(b.Ctx, port.Output, job.ErrorsPort, 10)
		b.Check(err)
		if len(dead) != 1 || !strings.Contains(string(dead[0].Data), `"messages":{"in":1}`) {
			b.Errorf("dead letters: %s", dead)
		}
		failures, err := d.Failures(b.Ctx)
		b.Check(err)
		if len(failures) != 3 || failures[2].Stack != "at line 1" {
			b.Errorf("failures: %+v", failures)
		}
		other := b.single(&Double{})
		b.Check(other.Write(b.Ctx, "in", 1))
		b.Check(l.Fail(b.Ctx, b.lease(l, "Double").Ticket(), worker.RunFailure{Error: "never"}))
		if f := b.Failure(other); f.Error != "never" {
			b.Errorf("it failed with %+v", f)
		}
	})
}

// A run that was shown an open port does not complete its job, though the port is closed by now: the next run sees that.
func TestRemoteSeesTheEnd(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		g := graph.New("g")
		d := graph.Add(g, "d", &Double{})
		graph.Connect(graph.Input[int](g, "in"), d.In)
		graph.Export(g, "out", d.Out)
		h := b.Start(g)
		b.Check(h.Write(b.Ctx, "in", 1))
		run := b.lease(l, "Double")
		b.Check(h.Close(b.Ctx, "in"))
		b.Check(l.Commit(b.Ctx, run.Ticket(), worker.Work{Read: map[string]int{"in": 1}}))
		run = b.lease(l, "Double")
		if p, _ := run.Info.Port(port.Input, "in"); !p.Closed || p.Waiting != 0 {
			b.Errorf("the port is %+v", p)
		}
		b.Check(l.Commit(b.Ctx, run.Ticket(), worker.Work{Write: []worker.Written{{Port: "out", Messages: raws("99")}}}))
		b.Reach(h, 0, statemachine.Completed)
		var sum int
		if ok, err := h.Read(b.Ctx, "out", &sum); !ok || err != nil || sum != 99 {
			b.Errorf("read %d, %v, %v", sum, ok, err)
		}
	})
}

// Messages that somebody else took meanwhile are not committed as read: the job runs again.
func TestRemoteMoved(t *testing.T) {
	each(t, func(b *bench) {
		l := b.leases(b.Store)
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 1, 2))
		run := b.lease(l, "Double")
		_, err := h.Take(b.Ctx, port.Input, "in", 1)
		b.Check(err)
		b.is(l.Commit(b.Ctx, run.Ticket(), worker.Work{Read: map[string]int{"in": 2}}), job.ErrMoved, "the job is run again")
		again := b.lease(l, "Double")
		if box := again.In.Of("in"); box.Head != 1 || len(box.Items) != 1 {
			b.Errorf("it is run on %+v", box)
		}
		b.Check(l.Release(b.Ctx, again.Ticket()))
		b.Check(l.Commit(b.Ctx, b.lease(l, "Double").Ticket(), worker.Work{Read: map[string]int{"in": 1}}))
		b.Completed(h, 1)
	})
}

// Runs of clients count for the limit of a queue, and wait for their turn.
func TestRemoteQueueLimit(t *testing.T) {
	each(t, func(b *bench) {
		b.Check(b.Store.SetQueueLimit(b.Ctx, job.DefaultQueue, 2))
		l := b.leases(b.Store)
		for range 5 {
			b.single(&Double{})
		}
		var all []worker.Leased
		for done := 0; done < 5; {
			runs, err := l.Take(b.Ctx, worker.LeaseRequest{Types: []string{"Double"}, Max: 10, Wait: 100 * time.Millisecond})
			b.Check(err)
			if all = append(all, runs...); len(all) > 2 {
				b.Fatalf("%d runs go on at once, want 2", len(all))
			}
			if len(runs) == 0 && len(all) > 0 {
				b.Check(l.Commit(b.Ctx, all[0].Ticket(), worker.Work{}))
				all = all[1:]
				done++
			}
		}
	})
}
