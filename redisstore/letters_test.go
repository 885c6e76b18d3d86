package redisstore_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// letters puts n dead letters into the port for errors of a job, each of the message of its number.
func (e *env) letters(id job.ID, n int) {
	e.Helper()
	for i := range n {
		e.Check(e.store.Write(e.Context(), id, store.Write{Dir: port.Output, Port: job.ErrorsPort, Items: raws(letter(id, i))}))
	}
}

func letter(id job.ID, i int) string {
	at := time.Unix(int64(i), 0).UTC().Format(time.RFC3339)
	return fmt.Sprintf(`{"job":"%s","error":"no %d","at":"%s","messages":{"in":%d}}`, id, i%3, at, i)
}

// fussy is a job with an In port and one for errors.
func (e *env) fussy() job.ID {
	e.Helper()
	return e.create(job.Node{Type: "T", OnFailure: job.DeadLetter, Ports: ports(in("in"), out("out"), out(job.ErrorsPort))})
}

// dead lists dead letters, as their errors and messages.
func (e *env) dead(f client.LetterFilter) (texts []string, all []*client.StoredLetter) {
	e.Helper()
	for l, err := range client.New(e.store).DeadLetters(e.Context(), f) {
		e.Check(err)
		texts, all = append(texts, fmt.Sprintf("%s: %s", l.Error, l.Messages["in"])), append(all, l)
	}
	return texts, all
}

func TestPoint6RequeueFromTheMiddle(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		a, b, idle := e.fussy(), e.fussy(), e.fussy()
		e.letters(a, 6)
		e.letters(b, 1)
		for _, id := range []job.ID{a, idle} {
			e.end(id, statemachine.Suspend)
		}
		all, _ := e.dead(client.LetterFilter{})
		e.equal("all", all, []string{"no 0: 0", "no 0: 0", "no 1: 1", "no 2: 2", "no 0: 3", "no 1: 4", "no 2: 5"})
		n, err := c.RequeueAll(e.Context(), client.LetterFilter{Job: a, Error: "no 1"}, nil)
		e.Check(err)
		e.equal("requeued", n, 2)
		e.holds(a, port.Input, "in", "1", "4")
		e.is(statemachine.Queued, a)
		left, some := e.dead(client.LetterFilter{Job: a})
		e.equal("left", left, []string{"no 0: 0", "no 2: 2", "no 0: 3", "no 2: 5"})
		e.equal("number of the last", some[3].Number, int64(5))
		for _, l := range some { // each of them by itself, though the others move meanwhile
			n, err := c.Requeue(e.Context(), l)
			e.Check(err)
			e.equal("requeued", n, 1)
		}
		e.holds(a, port.Input, "in", "1", "4", "0", "2", "3", "5")
		left, _ = e.dead(client.LetterFilter{})
		e.equal("left", left, []string{"no 0: 0"})
		_, err = c.Requeue(e.Context(), some[1])
		e.fails(err, job.ErrNotFound)
		trace, err := c.At(a).Trace(e.Context(), port.Input, "in", 5)
		e.Check(err)
		e.equal("where it came from", []any{len(trace), trace[0].Read[0].Port, trace[0].Read[0].From}, []any{1, job.ErrorsPort, int64(5)})
		e.healthy()
	})
}

func TestPoint6EditAndDiscard(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		a := e.fussy()
		e.letters(a, 3)
		_, all := e.dead(client.LetterFilter{})
		_, stale := e.dead(client.LetterFilter{})
		all[0].Messages["in"] = []byte(`"better"`)
		e.Check(c.Edit(e.Context(), all[0]))
		now, edited := e.dead(client.LetterFilter{})
		e.equal("behind the others", now, []string{"no 1: 1", "no 2: 2", `no 0: "better"`})
		e.equal("ID", edited[2].ID, all[0].ID)
		_, err := c.Requeue(e.Context(), stale[0])
		e.fails(err, job.ErrMoved)
		e.holds(a, port.Input, "in")
		n, err := c.Discard(e.Context(), stale[1], stale[2])
		e.Check(err)
		e.equal("discarded", n, 2)
		edited[2].Messages["in"] = []byte(`7`)
		n, err = c.Requeue(e.Context(), edited[2])
		e.Check(err)
		e.equal("requeued", n, 1)
		e.holds(a, port.Input, "in", "7")
		e.holds(a, port.Output, job.ErrorsPort)
	})
}

// What cannot be requeued stays, and does not keep the others.
func TestPoint6RequeueRefused(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		closed, gone := e.fussy(), newID(e)
		small := e.create(job.Node{Type: "T", Ports: ports(in("in"), out(job.ErrorsPort))})
		e.letters(small, 2)
		for _, l := range []string{letter(closed, 2), letter(gone, 3), `{"job":"` + string(small) + `","error":"x","at":"2026-01-01T00:00:00Z","messages":{"none":1}}`, `"no letter"`} {
			e.Check(e.store.Write(e.Context(), small, store.Write{Dir: port.Output, Port: job.ErrorsPort, Items: raws(l)}))
		}
		e.Check(e.store.ClosePort(e.Context(), closed, port.Input, "in"))
		n, err := c.RequeueAll(e.Context(), client.LetterFilter{}, nil)
		e.equal("requeued", n, 2)
		for _, kind := range []error{job.ErrClosed, job.ErrNotFound, job.ErrPort} {
			if !errors.Is(err, kind) {
				e.Errorf("error %v, want one that is: %v", err, kind)
			}
		}
		e.holds(small, port.Input, "in", "0", "1")
		left, _ := e.dead(client.LetterFilter{})
		e.equal("left", len(left), 3)
		e.equal("in the port", len(e.peek(small, port.Output, job.ErrorsPort)), 4)
	})
}

// The same call again changes nothing, and one with another head is refused.
func TestPoint6SettleTwice(t *testing.T) {
	each(t, func(e *env) {
		a := e.fussy()
		e.letters(a, 4)
		from := job.PortRef{Job: a, Dir: port.Output, Port: job.ErrorsPort}
		s := store.Settlement{Token: rand.Text(), Letters: []store.SettledLetter{
			{Index: 0}, {Index: 2, Ports: []job.PortRef{{Job: a, Dir: port.Input, Port: "in"}}, Items: raws("2")},
		}}
		for range 2 {
			_, err := e.store.Settle(e.Context(), from, s)
			e.Check(err)
			e.holds(a, port.Input, "in", "2")
			e.holds(a, port.Output, job.ErrorsPort, letter(a, 1), letter(a, 3))
		}
		s.Token = rand.Text()
		e.unchanged("a letter of another head", func() {
			_, err := e.store.Settle(e.Context(), from, s)
			e.fails(err, job.ErrMoved)
		})
		s.Head, s.Token = 2, rand.Text()
		e.unchanged("a letter that is not there", func() {
			_, err := e.store.Settle(e.Context(), from, s)
			e.fails(err, job.ErrMoved)
		})
	})
}

// Many letters are requeued in pieces, and a deleted job leaves nothing behind.
func TestPoint6RequeueMany(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		a, other := e.fussy(), e.fussy()
		items := raws()
		for i := range 1050 {
			items = append(items, raws(letter(a, i))...)
		}
		e.Check(e.store.Write(e.Context(), a, store.Write{Dir: port.Output, Port: job.ErrorsPort, Items: items}))
		e.letters(other, 1)
		n, err := c.RequeueAll(e.Context(), client.LetterFilter{Job: a}, func(l *client.StoredLetter) bool { return l.Error != "no 1" })
		e.Check(err)
		e.equal("requeued", n, 700)
		e.equal("in the port", len(e.peek(a, port.Input, "in")), 700)
		n, err = c.DiscardAll(e.Context(), client.LetterFilter{Job: a}, nil)
		e.Check(err)
		e.equal("discarded", n, 350)
		e.Check(e.store.Terminate(e.Context(), other))
		e.end(other, statemachine.Shutdown)
		e.Check(e.store.Delete(e.Context(), other))
		for shard := range shards {
			e.equal("jobs with dead letters", e.Redis.ZCard(e.Context(), fmt.Sprintf("weir:{%s:%d}:dead", e.Namespace, shard)).Val(), int64(0))
		}
	})
}
