package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// said lists entries as <number of the job>:<what>, roots of other trees as x.
func said(root job.ID, entries []job.Entry) []string {
	var out []string
	for _, e := range entries {
		who := fmt.Sprint(e.Job.Number())
		if e.Job.Tree() != root.Tree() {
			who = "x"
		}
		what := string(e.Note)
		if e.Run != nil {
			what = "run"
			if len(e.Run.Write) > 0 {
				what = string(e.Run.Write[0].Data[0])
			}
		}
		out = append(out, who+":"+what)
	}
	return out
}

// A reader of a log gives what is there, then what comes: of a job alone, or of all below it.
func TestLogReader(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		client := job.NewClient(e.store)
		root := e.create(
			job.Node{Type: "R", Ports: ports(in("in"))},
			job.Node{Name: "kid", Type: "K", Ports: ports(in("in"))},
			job.Node{Name: "grandchild", Type: "K", Parent: 1, Ports: ports(in("in"))})
		other := e.single()
		e.ok(e.store.Adopt(ctx, root.Nth(1), other, "adopted"))
		write := func(id job.ID, n int) {
			e.Helper()
			h, err := client.Find(ctx, string(id))
			e.ok(err)
			e.ok(h.Write(ctx, "in", n))
		}
		open := func(id job.ID, below bool) *job.LogReader {
			e.Helper()
			h, err := client.Find(ctx, string(id))
			e.ok(err)
			r, err := h.OpenLog(ctx, below)
			e.ok(err)
			return r
		}
		check := func(what string, got []job.Entry, err error, want ...string) {
			e.Helper()
			e.ok(err)
			if got := said(root, got); !slices.Equal(got, want) {
				e.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		all := []string{}
		for n := range 3 {
			for _, id := range []job.ID{root, root.Nth(1), root.Nth(2), other} {
				write(id, n)
				time.Sleep(2 * time.Millisecond) // entries of several trees are told apart by their time
			}
			all = append(all, fmt.Sprint("0:", n), fmt.Sprint("1:", n), fmt.Sprint("2:", n), fmt.Sprint("x:", n))
		}
		snap := e.begin(root.Nth(2))
		d := delta(snap, statemachine.Suspend)
		d.Log = []string{`"note"`}
		e.commit(d)

		whole, alone, kid, none := open(root, true), open(root, false), open(root.Nth(1), true), open(root.Nth(1), true)
		got, err := whole.Last(ctx, 100, time.Time{})
		check("all", got, err, append(all, `2:"note"`)...)
		got, err = alone.Last(ctx, 2, time.Time{})
		check("the last two of one", got, err, "0:1", "0:2")
		got, err = kid.Last(ctx, 4, time.Time{})
		check("below a child", got, err, "1:2", "2:2", "x:2", `2:"note"`)
		got, err = none.Last(ctx, 0, time.Time{})
		check("none", got, err)
		got, err = open(root, true).Last(ctx, 100, time.Now().Add(time.Hour))
		check("of the future", got, err)

		got, err = whole.Next(ctx)
		check("nothing new", got, err)
		write(root, 7)
		write(root.Nth(2), 8)
		got, err = alone.Next(ctx)
		check("new of one", got, err, "0:7")
		got, err = kid.Next(ctx)
		check("new below a child", got, err, "2:8")
		n, err := e.store.Reserve(ctx, root, 1)
		e.ok(err)
		plan := &job.Plan{Nodes: []job.Node{{Name: "late", Type: "K", Ports: ports(in("in"))}}, Parent: root.Nth(1)}
		_, err = e.store.Create(ctx, root.Nth(n), plan, "test")
		e.ok(err)
		write(root.Nth(n), 9)
		got, err = kid.Next(ctx)
		check("of a job that is new", got, err, fmt.Sprint(n, ":9"))
		got, err = none.Next(ctx)
		check("all new", got, err, "2:8", fmt.Sprint(n, ":9"))
	})
}

// Long logs are read in parts, and none is left out.
func TestLongLog(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		const all = 1234
		for i := range all {
			w := job.Write{Dir: port.Input, Port: "in", Items: raws("1"), Entry: fmt.Sprintf(`{"step":%d}`, i)}
			e.ok(e.store.Write(e.Context(), id, w))
		}
		h, err := job.NewClient(e.store).Find(e.Context(), string(id))
		e.ok(err)
		for _, first := range []int{0, 3, 600, all} {
			r, err := h.OpenLog(e.Context(), true)
			e.ok(err)
			got, err := r.Last(e.Context(), first, time.Time{})
			e.ok(err)
			e.equal("entries", len(got), first)
			for n, one := range got {
				e.equal("step", one.Run.Step, int64(all-first+n))
			}
		}
		entries, err := e.store.Log(e.Context(), id, "", 2000)
		e.ok(err)
		e.equal("all entries", len(entries), all)
		rest, err := e.store.Log(e.Context(), id, entries[all-3].Position, 2000)
		e.ok(err)
		e.equal("the rest", len(rest), 2)
	})
}

// The newest jobs come first, those that are gone do not come.
func TestNewest(t *testing.T) {
	each(t, func(e *env) {
		var ids []job.ID
		for range 12 {
			ids = append(ids, e.single())
		}
		slices.Reverse(ids)
		for _, n := range []int{1, 5, 20} {
			got, err := job.NewClient(e.store).Newest(e.Context(), n)
			e.ok(err)
			var names []job.ID
			for _, i := range got {
				names = append(names, i.ID)
			}
			e.equal("newest", names, ids[:min(n, 12)])
		}
	})
}

// Engines are counted by the queues that they serve, in this namespace.
func TestEngines(t *testing.T) {
	each(t, func(e *env) {
		count := func(queue string, want int) {
			e.Helper()
			n, err := job.NewClient(e.store).Engines(e.Context(), queue)
			e.ok(err)
			e.equal("engines of "+queue, n, want)
		}
		count("default", 0)
		s, err := redisstore.Open(e.Context(), redisstore.Config{URL: e.url, Namespace: e.ns, Shards: shards})
		e.ok(err)
		e.Cleanup(func() { _ = s.Close() })
		server, err := s.Broker().Serve(delivery.ServeConfig{
			Concurrency: 1, Queues: map[string]int{"default": 1, "slow": 2}, Drain: time.Second, Logger: slog.New(slog.DiscardHandler),
			Handle: func(context.Context, string) error { return nil },
		})
		e.ok(err)
		for n := 0; n == 0; {
			n, err = s.Engines(e.Context(), "slow") // it is known some milliseconds after its start
			e.ok(err)
		}
		count("default", 1)
		count("fast", 0)
		server.Stop()
		count("default", 0)
	})
}
