package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

func one(typ string) planned { return planned{{Type: typ, Ports: ports(in("in"))}} }

// trips counts round trips of the store.
func trips(e *env) int64 {
	if s, ok := e.store.(*redisstore.Store); ok {
		return s.Traffic().RoundTrips
	}
	return 0
}

// TestStartMany: many trees start in a few round trips; what is wrong with one concerns no other one; a repetition under keys starts nothing.
func TestStartMany(t *testing.T) {
	each(t, func(e *env) {
		c, ctx := client.New(e.store), e.Context()
		e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "A", Queue: job.DefaultQueue, Ports: []port.Spec{{Name: "in", Dir: port.Input}}}}))
		_, err := c.StartMany(ctx, []client.Starting{{Plan: one("A")}}) // the scripts are loaded, and the catalogue is read
		e.Check(err)
		var all []client.Starting
		for i := range 300 {
			all = append(all, client.Starting{Plan: one("A"), Options: []job.Option{job.Key(fmt.Sprint("k", i)), job.Label("n", fmt.Sprint(i))}})
		}
		all[7].Options = []job.Option{job.Key(strings.Repeat("x", 200))}
		all[8].Options = []job.Option{job.Alias("eight")}
		all[9].Options = []job.Option{job.Alias("eight")}
		all[10].Options = []job.Option{job.Key("k11")}
		before := trips(e)
		started, err := c.StartMany(ctx, all)
		if n := trips(e) - before; n > 40 { // with notifications, and a look at the tree that is there
			t.Errorf("%d round trips", n)
		}
		var many *client.ManyError
		if !errors.As(err, &many) || !errors.Is(err, job.ErrName) || many.Failed != 1 || many.First != 7 || many.Errs[8] != nil {
			t.Fatalf("error %v", err)
		}
		if started[7].Handle != nil || !errors.Is(started[7].Err, job.ErrName) {
			t.Errorf("number 7: %+v", started[7])
		}
		if started[9].Handle.ID() != started[8].Handle.ID() || started[9].Handle.Created() || !started[8].Handle.Created() {
			t.Errorf("two trees of one alias: %v, %v", started[8].Handle.ID(), started[9].Handle.ID())
		}
		if started[11].Handle.ID() != started[10].Handle.ID() {
			t.Error("two trees of one key")
		}
		info, err := started[299].Handle.Info(ctx)
		e.Check(err)
		e.equal("label", info.Labels["n"], "299")
		again, err := c.StartMany(ctx, all)
		if many = nil; !errors.As(err, &many) || many.Failed != 1 {
			t.Fatalf("again: %v", err)
		}
		for i := range again {
			if i != 7 && (again[i].Handle.ID() != started[i].Handle.ID() || again[i].Handle.Created()) {
				t.Fatalf("number %d was started twice", i)
			}
		}
		n, err := c.Count(ctx, job.Filter{})
		e.Check(err)
		e.equal("trees", n, 1+300-3)
	})
}

// TestStartManyLarge: a tree that is too large for one call is started beside small ones.
func TestStartManyLarge(t *testing.T) {
	each(t, func(e *env) {
		g := planned{{Type: "large", Graph: true}}
		for i := range 700 {
			g = append(g, job.Node{Name: fmt.Sprint("n", i), Type: "A", Ports: ports(in("in"))})
		}
		started, err := client.New(e.store).StartMany(e.Context(), []client.Starting{{Plan: one("A")}, {Plan: g}, {Plan: one("A")}})
		e.Check(err)
		tree, err := started[1].Handle.Tree(e.Context())
		e.Check(err)
		e.equal("jobs", len(tree), 701)
	})
}

// TestWriteMany: many writes go in a few round trips, in order for each port; a refused one concerns no other one, and a repetition under keys
// writes nothing.
func TestWriteMany(t *testing.T) {
	each(t, func(e *env) {
		c, ctx := client.New(e.store), e.Context()
		e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "A", Queue: job.DefaultQueue, Ports: []port.Spec{{Name: "in", Dir: port.Input}}}}))
		var starts []client.Starting
		for range 20 {
			starts = append(starts, client.Starting{Plan: one("A")})
		}
		started, err := c.StartMany(ctx, starts)
		e.Check(err)
		var all []client.Writing
		for i := range 200 {
			all = append(all, client.Writing{To: started[i%20].Handle, In: "in", Messages: []any{i, -i}, Key: fmt.Sprint("k", i)})
		}
		all[5].In = "nowhere"
		all[6].To = nil
		all[7].Messages = []any{func() {}}
		before := trips(e)
		err = c.WriteMany(ctx, all)
		if n := trips(e) - before; n > 30 { // with notifications
			t.Errorf("%d round trips", n)
		}
		for range 2 { // the second time nothing more is written
			var many *client.ManyError
			if !errors.As(err, &many) || many.Failed != 3 || many.First != 5 {
				t.Fatalf("error %v", err)
			}
			if !errors.Is(many.Errs[5], job.ErrPort) || !errors.Is(many.Errs[6], job.ErrName) || !errors.Is(many.Errs[7], port.ErrEncoding) {
				t.Errorf("errors %v, %v, %v", many.Errs[5], many.Errs[6], many.Errs[7])
			}
			for i, s := range started {
				var got, want []string
				messages, err := s.Handle.Messages(ctx, port.Input, "in", 1000)
				e.Check(err)
				for _, m := range messages {
					got = append(got, string(m.Data))
				}
				for n := i; n < 200; n += 20 {
					if n != 5 && n != 6 && n != 7 {
						want = append(want, fmt.Sprint(n), fmt.Sprint(-n))
					}
				}
				e.equal(fmt.Sprint("messages of ", i), got, want)
			}
			err = c.WriteMany(ctx, all)
		}
	})
}
