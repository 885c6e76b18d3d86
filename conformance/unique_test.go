package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// B69: the same key is the same job; the data of a duplicate are merged, or left, until the job has begun.
func TestB69UniqueByKey(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Raw{})
		ask := func(data string, merge bool) *client.Handle {
			return e.create(job.New{Type: "Raw", Args: json.RawMessage(data), Unique: &job.UniqueBy{Key: "b69", Merge: merge}})
		}
		first := ask(`{"a":1,"n":{"A":1}}`, true)
		for _, c := range []struct {
			data  string
			merge bool
			want  string
		}{
			{`{"a":1,"n":{"A":1}}`, true, `{"a":1,"n":{"A":1}}`},
			{`{"b":3}`, false, `{"a":1,"n":{"A":1}}`},
			{`{"b":2,"a":null,"n":{"B":2}}`, true, `{"b":2,"n":{"A":1,"B":2}}`},
		} {
			h := ask(c.data, c.merge)
			if got := string(e.Info(first).Args); h.ID() != first.ID() || h.Created() || got != c.want {
				e.Errorf("%s: job %s, created: %t, args %s; want %s", c.data, h.ID(), h.Created(), got, c.want)
			}
		}
		e.serve(&Raw{})
		e.reach(first, statemachine.Completed)
		if h := ask(`{"new":1}`, true); h.ID() == first.ID() || !h.Created() {
			e.Errorf("job %s again, which has completed", h.ID())
		}
	})
}

// An idempotency key is that of the job that was returned in place of a new one, whatever has become of it, and of the first tree
// whatever the next one is to be.
func TestKeyOfADuplicate(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Raw{})
		n := func(key string) job.New {
			return job.New{Type: "Raw", Args: json.RawMessage(`{}`), Unique: &job.UniqueBy{Key: "u"}, Key: key}
		}
		many := func(key string) *client.Handle {
			all, err := e.Client.CreateMany(e.Ctx, []job.New{n(key)})
			e.Check(err)
			return all[0].Handle
		}
		start := func(key string, args string) *client.Handle {
			h, err := e.Client.Start(e.Ctx, job.Single(&Raw{}, ""), job.Unique(job.UniqueBy{Key: args}), job.Key(key))
			e.Check(err)
			return h
		}
		first := e.create(n(""))
		ways := map[string]func() *client.Handle{
			"create": func() *client.Handle { return e.create(n("a")) }, "many": func() *client.Handle { return many("b") },
			"start": func() *client.Handle { return start("c", "u") },
		}
		for what, ask := range ways {
			if h := ask(); h.ID() != first.ID() || h.Created() {
				e.Errorf("%s: job %s instead of %s", what, h.ID(), first.ID())
			}
		}
		e.Check(first.Terminate(e.Ctx))
		for what, ask := range ways {
			if h := ask(); h.ID() != first.ID() || h.Created() {
				e.Errorf("%s again: job %s instead of %s", what, h.ID(), first.ID())
			}
		}
		other := start("d", "v")
		if h := start("d", "w"); h.ID() != other.ID() || h.Created() {
			e.Errorf("under a key that was used: job %s instead of %s", h.ID(), other.ID())
		}
	})
}

// While engines run jobs with unique keys, and clients ask for them all the time, each creation is one run, and no two jobs of a key
// are unsettled at a time.
func TestUniqueKeysUnderWay(t *testing.T) {
	each(t, func(e *env) {
		const clients, keys, asked = 4, 3, 30
		var runs, created atomic.Int64
		active := make([]atomic.Int64, keys)
		a := does(e.T, func(_ context.Context, _ *worker.Run, w *Do) error {
			if active[w.N].Add(1) > 1 {
				e.Errorf("two jobs of key %d run", w.N)
			}
			runs.Add(1)
			active[w.N].Add(-1)
			return nil
		})
		e.serve(&Do{})
		var group sync.WaitGroup
		for range clients {
			group.Go(func() {
				for n := range asked {
					args := a
					args.N = n % keys
					one := job.New{Type: "Do", Args: args, Unique: &job.UniqueBy{Key: fmt.Sprint("k", n%keys)}}
					if n%2 == 0 {
						h, err := e.Client.Create(e.Ctx, one)
						if err != nil {
							e.Error(err)
						} else if h.Created() {
							created.Add(1)
						}
						continue
					}
					all, err := e.Client.CreateMany(e.Ctx, []job.New{one, one})
					if err != nil {
						e.Error(err)
					}
					for _, s := range all {
						if s.Err == nil && s.Handle.Created() {
							created.Add(1)
						}
					}
				}
			})
		}
		group.Wait()
		e.idle()
		if runs.Load() != created.Load() || runs.Load() < keys {
			e.Errorf("%d runs of %d jobs", runs.Load(), created.Load())
		}
		n, err := e.Store.Count(e.Ctx, job.Filter{Status: []statemachine.Status{statemachine.Completed}})
		e.Check(err)
		if int64(n) != created.Load() {
			e.Errorf("%d jobs have completed of %d", n, created.Load())
		}
	})
}
