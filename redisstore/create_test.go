package redisstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// tree is a graph of a source and two consumers, one of them under a graph of its own.
func tree() []job.Node {
	inner := in("in")
	inner.Sources, inner.Edges = 1, []job.Edge{to(4)}
	width := in("width")
	width.Default, width.Limit = json.RawMessage("640"), 7
	return []job.Node{
		{Type: "album", Graph: true},
		{Name: "list", Type: "List", Queue: "slow", Args: json.RawMessage(`{"dir":"x"}`), Ports: ports(out("out", to(2), to(3)))},
		{Name: "resize", Type: "Resize", Ports: ports(fed("in", 1), width)},
		{Name: "deep", Type: "sub", Graph: true, Ports: ports(inner)},
		{Name: "leaf", Parent: 3, Type: "Leaf", Ports: ports(fed("in", 1))},
	}
}

func TestCreate(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(tree()...)
		all, err := e.store.Tree(e.Context(), id.Nth(2))
		e.Check(err)
		e.equal("jobs", len(all), 5)
		for i, want := range []struct {
			parent job.ID
			status statemachine.Status
		}{
			{"", statemachine.Suspended},
			{id, statemachine.Queued},
			{id, statemachine.Suspended},
			{id, statemachine.Suspended},
			{id.Nth(3), statemachine.Suspended},
		} {
			n, got := tree()[i], all[i]
			e.equal("status of "+n.Name, got.Status, want.status)
			e.equal("parent of "+n.Name, got.Parent, want.parent)
			e.equal("id", got.ID, id.Nth(i))
			e.equal("name, type, graph", []any{got.Name, got.Type, got.Graph}, []any{n.Name, n.Type, n.Graph})
			e.equal("args", string(got.Args), string(n.Args))
			e.equal("by", got.By, "test")
			if age := time.Since(got.Created); age > time.Minute || age < -time.Minute {
				e.Errorf("created %v ago", age)
			}
		}
		e.equal("queue", all[1].Queue, "slow")
		e.equal("default queue", all[2].Queue, job.DefaultQueue)
		e.equal("limit", e.port(id.Nth(2), port.Input, "width").Limit, 7)
		p := e.port(id.Nth(2), port.Input, "in")
		e.equal("fed port", []any{p.Sources, p.Fed, p.Wired, p.Closed}, []any{1, true, false, false})
		e.equal("wired", e.port(id.Nth(1), port.Output, "out").Wired, true)
		kids, err := e.store.Children(e.Context(), id)
		e.Check(err)
		e.equal("children", kids, map[string]job.ID{"list": id.Nth(1), "resize": id.Nth(2), "deep": id.Nth(3)})

		e.write(id.Nth(2), "in", "1")
		e.equal("defaults", e.begin(id.Nth(2)).Defaults, map[string]json.RawMessage{"width": json.RawMessage("640")})

		e.unchanged("creating again", func() {
			created, err := e.store.Create(e.Context(), id, &job.Plan{Nodes: []job.Node{{Type: "Other"}}}, "me")
			e.Check(err)
			e.equal("created", created, false)
		})
		_, err = e.store.Tree(e.Context(), newID(e))
		e.fails(err, job.ErrNotFound)
		_, err = e.store.Info(e.Context(), id.Nth(5))
		e.fails(err, job.ErrNotFound)
	})
}

// Whoever looks sees no tree or all of it; of many creators one created it.
func TestCreateIsAtOnce(t *testing.T) {
	each(t, func(e *env) {
		nodes := []job.Node{{Type: "g", Graph: true}}
		for i := range 400 {
			nodes = append(nodes, job.Node{Name: fmt.Sprint("n", i), Type: "T", Ports: ports(fed("in", 1))})
		}
		id := newID(e)
		var made atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				created, err := e.store.Create(e.Context(), id, &job.Plan{Nodes: nodes}, "")
				if err != nil {
					e.Error(err)
				}
				if created {
					made.Add(1)
				}
			})
			wg.Go(func() {
				for range 20 {
					all, err := e.store.Tree(e.Context(), id)
					if err != nil && !errors.Is(err, job.ErrNotFound) || err == nil && len(all) != len(nodes) {
						e.Errorf("a tree of %d jobs, %v", len(all), err)
					}
				}
			})
		}
		wg.Wait()
		e.equal("creators", made.Load(), int32(1))
	})
}

func TestCreateLarge(t *testing.T) {
	each(t, func(e *env) {
		largest := job.MaxNodes
		if strings.Contains(e.Name(), "miniredis") {
			largest = 5000 // its scripts are slow
		}
		// A chain of jobs in graphs of 50: one has something to do, the others wait.
		nodes := []job.Node{{Type: "g", Graph: true}}
		for last := 0; len(nodes) < largest; {
			n := len(nodes)
			if n%50 == 1 {
				nodes = append(nodes, job.Node{Name: fmt.Sprint("g", n), Type: "g", Graph: true})
				continue
			}
			worker := job.Node{Name: fmt.Sprint("w", n), Type: "T", Parent: n - (n-1)%50, Ports: ports(fed("in", 1), out("out"))}
			if last == 0 {
				worker.Ports[0].Sources = 0
			} else {
				nodes[last].Ports[1].Edges = []job.Edge{to(n)}
			}
			last = n
			nodes = append(nodes, worker)
		}
		id := e.create(nodes...)
		all, err := e.store.Tree(e.Context(), id)
		e.Check(err)
		e.equal("jobs", len(all), largest)
		count := map[statemachine.Status]int{}
		for i, info := range all {
			if info.Name != nodes[i].Name {
				e.Fatalf("job %d is named %q, want %q", i, info.Name, nodes[i].Name)
			}
			count[info.Status]++
		}
		if want := map[statemachine.Status]int{"queued": 1, "suspended": largest - 1}; !maps.Equal(count, want) {
			e.Errorf("statuses %v, want %v", count, want)
		}
		first, err := e.store.Reserve(e.Context(), id, 1)
		e.Check(err)
		e.equal("next number", first, largest)
	})
}

func TestCreateLater(t *testing.T) {
	each(t, func(e *env) {
		later := e.create(job.Node{Type: "T", At: time.Now().Add(time.Hour)})
		soon := e.create(job.Node{Type: "T", At: time.Now().Add(500 * time.Millisecond)})
		past := e.create(job.Node{Type: "T", At: time.Now().Add(-time.Second)})
		e.is(statemachine.Scheduled, later, soon)
		e.is(statemachine.Queued, past)
		_, err := e.store.Begin(e.Context(), soon, beginning())
		e.fails(err, job.ErrStatus)
		time.Sleep(600 * time.Millisecond)
		e.sweep()
		e.is(statemachine.Scheduled, later)
		e.is(statemachine.Queued, soon)
	})
}

func TestAlias(t *testing.T) {
	each(t, func(e *env) {
		a, b := newID(e), newID(e)
		_, err := e.store.Resolve(e.Context(), "x")
		e.fails(err, job.ErrNotFound)
		for _, id := range []job.ID{a, b, a} {
			got, err := e.store.Claim(e.Context(), "x", id)
			e.Check(err)
			e.equal("claimed", got, a)
		}
		got, err := e.store.Resolve(e.Context(), "x")
		e.Check(err)
		e.equal("resolved", got, a)

		// Starting under one alias from many sides makes one tree.
		client := client.New(e.store)
		var made atomic.Int32
		ids := make([]job.ID, 8)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				h, err := client.Start(e.Context(), planner(tree()), job.Alias("album"))
				if err != nil {
					e.Error(err)
					return
				}
				ids[i] = h.ID()
				if h.Created() {
					made.Add(1)
				}
			})
		}
		wg.Wait()
		e.equal("created", made.Load(), int32(1))
		for _, id := range ids {
			e.equal("tree", id, ids[0])
		}
		h, err := client.Find(e.Context(), "album")
		e.Check(err)
		e.equal("found", h.ID(), ids[0])
	})
}

type planner []job.Node

func (p planner) Plan() (*job.Plan, error) { return &job.Plan{Nodes: p}, nil }

func TestReserve(t *testing.T) {
	each(t, func(e *env) {
		id := e.create(tree()...)
		var mu sync.Mutex
		taken := map[int]bool{}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				first, err := e.store.Reserve(e.Context(), id.Nth(i), 3)
				mu.Lock()
				defer mu.Unlock()
				for n := first; n < first+3; n++ {
					if err != nil || n < 5 || taken[n] {
						e.Errorf("reserved %d to %d, %v", first, first+2, err)
					}
					taken[n] = true
				}
			})
		}
		wg.Wait()
		// Numbers that no job has yet are no jobs.
		all, err := e.store.Tree(e.Context(), id)
		e.Check(err)
		e.equal("jobs", len(all), 5)
	})
}

func TestBadNamesAreRefused(t *testing.T) {
	each(t, func(e *env) {
		client := client.New(e.store)
		anything := in(port.Any)
		id := e.create(job.Node{Type: "T", Ports: ports(in("in"), anything, out(port.Any))})
		snap := e.begin(id)
		for _, bad := range []string{"", "a b", "a\x00b", "a\nb", "\xff", "ä", "a,1i.in", string(make([]byte, 200))} {
			e.unchanged(fmt.Sprintf("the name %q", bad), func() {
				for _, n := range []job.Node{
					{Type: bad},
					{Type: "T", Ports: ports(in(bad))},
					{Type: "T", Ports: ports(out(bad))},
				} {
					if _, err := client.Start(e.Context(), planner{n}); err == nil {
						e.Errorf("started a job with the name %q", bad)
					}
				}
				if _, err := client.Start(e.Context(), planner{{Type: "g", Graph: true}, {Type: "T", Name: bad}}); !errors.Is(err, job.ErrName) {
					e.Errorf("a child named %q: %v", bad, err)
				}
				if bad != "" { // the empty alias is none
					_, err := client.Start(e.Context(), planner{{Type: "T"}}, job.Alias(bad))
					e.fails(err, job.ErrName)
				}
				e.badPort(id, bad, snap)
			})
		}
		e.badPort(id, port.Any, snap)
	})
}

// badPort wants a port name to be refused everywhere, also where `*` admits new names.
func (e *env) badPort(id job.ID, bad string, snap *store.Snapshot) {
	e.Helper()
	ctx := e.Context()
	e.fails(e.store.Write(ctx, id, store.Write{Dir: port.Input, Port: bad, Items: raws("1")}), job.ErrPort)
	e.fails(e.store.ClosePort(ctx, id, port.Input, bad), job.ErrPort)
	e.fails(e.store.Take(ctx, id, store.Take{Dir: port.Input, Port: bad, N: 1}, "token"), job.ErrPort)
	_, _, err := e.store.Peek(ctx, id, port.Input, bad, 1)
	e.fails(err, job.ErrPort)
	for _, d := range []store.Delta{
		{Writes: []store.Write{{Dir: port.Output, Port: bad, Items: raws("1")}}},
		{Takes: []store.Take{{Dir: port.Input, Port: bad}}},
		{Closes: []string{bad}},
	} {
		d.Job, d.Token, d.Outcome = id, snap.Token, statemachine.Complete
		e.fails(e.try(d).Refused, job.ErrPort)
	}
}

// A Redis that lost its last writes gives numbers out again: a job that is there already is never
// overwritten, whoever comes with its number.
func TestNumbersGivenOutTwice(t *testing.T) {
	each(t, func(e *env) {
		client := client.New(e.store)
		ctx := e.Context()
		e.Check(e.store.Register(ctx, []job.TypeInfo{{Type: "K", Queue: job.DefaultQueue}}))
		root := e.create(job.Node{Type: "T"})
		snap := e.begin(root)
		again := func() int {
			e.Helper()
			base, err := e.store.Reserve(ctx, root, 2)
			e.Check(err)
			e.Check(e.Redis.HIncrBy(ctx, strings.Replace(e.key(root), "}:j:", "}:t:", 1), "seq", -2).Err())
			return base
		}
		spawning := func(name string) store.Delta {
			d := delta(snap, statemachine.Suspend)
			plan := &job.Plan{Nodes: []job.Node{{Name: name, Type: "g", Graph: true}, {Name: "k", Type: "K"}}}
			d.Spawns = []store.Spawn{{Base: again(), Plan: plan}}
			return d
		}
		first, second := spawning("a"), spawning("b")
		e.equal("numbers", first.Spawns[0].Base, second.Spawns[0].Base)
		first.Outcome = statemachine.Requeue
		e.commit(first)
		snap = e.begin(root)
		second.Token = snap.Token
		e.unchanged("a spawn of numbers that are taken", func() {
			if res := e.try(second); res.Applied != 0 || !errors.Is(res.Refused, job.ErrMoved) {
				e.Errorf("result %+v", res)
			}
		})
		e.equal("name", e.info(root.Nth(1)).Name, "a")
		second.Spawns = []store.Spawn{
			{Base: 3, Plan: &job.Plan{Nodes: []job.Node{{Name: "c", Type: "K"}}}},
			{Base: 3, Plan: &job.Plan{Nodes: []job.Node{{Name: "d", Type: "K"}}}},
		}
		e.unchanged("two spawns of one number", func() {
			if res := e.try(second); res.Applied != 0 || !errors.Is(res.Refused, job.ErrMoved) {
				e.Errorf("result %+v", res)
			}
		})

		h, err := client.Create(ctx, job.New{Type: "K", Parent: root, Name: "c"})
		e.Check(err)
		e.equal("number", h.ID().Number(), 3)
		all, err := e.store.Tree(ctx, root)
		e.Check(err)
		e.equal("jobs", len(all), 4)

		plan := &job.Plan{Nodes: []job.Node{{Type: "g", Graph: true}, {Name: "a", Type: "K"}}}
		g := e.create(plan.Nodes...)
		patch := &store.Patch{From: plan.Digest(), To: "other", Nodes: slices.Clone(plan.Nodes), Numbers: []int{0, 1}, Fresh: []bool{false, true}}
		patch.Nodes[1].Name = "b"
		e.unchanged("a patch with a number that is taken", func() {
			e.fails(e.store.Patch(ctx, g, patch), job.ErrStatus)
		})
	})
}

// A tree of one job has no counters until somebody asks for the number of a child; they go with its last job.
func TestLoneTree(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		lone, parent := e.single(), e.single()
		counters := func(id job.ID) map[string]string {
			all, err := e.Redis.HGetAll(ctx, strings.Replace(e.key(id), "}:j:", "}:t:", 1)).Result()
			e.Check(err)
			return all
		}
		e.equal("counters", counters(lone), map[string]string{})
		_, err := e.store.Reserve(ctx, newID(e), 1)
		e.fails(err, job.ErrNotFound)
		n, err := e.store.Reserve(ctx, parent, 1)
		e.Check(err)
		e.equal("number", n, 1)
		plan := &job.Plan{Nodes: []job.Node{{Name: "kid", Type: "K"}}, Parent: parent}
		created, err := e.store.Create(ctx, parent.Nth(1), plan, "")
		e.Check(err)
		e.equal("created", created, true)
		e.equal("counters", counters(parent), map[string]string{"seq": "1", "jobs": "2", "ready": "1"})
		for _, id := range []job.ID{lone, parent} {
			e.Check(e.store.Terminate(ctx, id))
			e.sweep()
			e.end(id, statemachine.Shutdown)
			if id == parent {
				e.end(id.Nth(1), statemachine.Shutdown)
			}
			e.Check(e.store.Delete(ctx, id))
			e.sweep()
			e.equal("counters", counters(id), map[string]string{})
		}
	})
}

// A queue that no engine serves is an error of Start, as of Create, if another one has the type.
func TestStartUnknownQueue(t *testing.T) {
	each(t, func(e *env) {
		e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "Base", Queue: "default"}}))
		c := client.New(e.store)
		start := func(p planner, opts ...job.Option) error {
			_, err := c.Start(e.Context(), p, opts...)
			return err
		}
		lone := planner{{Type: "Base", Queue: "defalt"}}
		g := planner{{Name: "g", Type: "g", Graph: true}, {Name: "a", Type: "Base"}, {Name: "b", Type: "Base", Queue: "defalt"}}
		for _, p := range []planner{lone, g} {
			err := start(p, job.Alias("typo"))
			const says = `queue "defalt" has no worker of type "Base", but queue default has`
			if !errors.Is(err, job.ErrUnknownType) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "job.EnginesLater()") {
				e.Errorf("got %v, want %s", err, says)
			}
			if _, err := c.Find(e.Context(), "typo"); !errors.Is(err, job.ErrNotFound) {
				e.Errorf("it was stored: %v", err)
			}
		}
		e.Check(start(lone, job.EnginesLater()))
		e.Check(start(planner{{Type: "Base"}}))
		e.Check(start(planner{{Type: "New", Queue: "defalt"}})) // whose engine may come
		e.Check(e.store.Register(e.Context(), []job.TypeInfo{{Type: "Base", Queue: "defalt"}}))
		e.Check(start(g))
	})
}

// A tree is started with options for the runs of those jobs that have none, and a memo, which its root keeps; a memo that is not JSON is
// refused, and stores nothing.
func TestStartOptionsAndMemo(t *testing.T) {
	each(t, func(e *env) {
		c := client.New(e.store)
		own := job.RunOptions{Tries: 7}
		p := planner{{Name: "g", Type: "g", Graph: true}, {Name: "a", Type: "Base"}, {Name: "b", Type: "Base", Options: own}}
		all := job.RunOptions{Tries: 3, Backoff: time.Second, MaxBackoff: time.Second, Timeout: time.Minute}
		h, err := c.Start(e.Context(), p, job.WithRunOptions(all), job.Memo(json.RawMessage(`{"for": "me"}`)))
		e.Check(err)
		tree, err := h.Tree(e.Context())
		e.Check(err)
		if tree[0].Options != nil || *tree[1].Options != all || *tree[2].Options != own || string(tree[0].Memo) != `{"for": "me"}` || tree[1].Memo != nil {
			e.Errorf("options %v, %v, %v, memos %s, %s", tree[0].Options, tree[1].Options, tree[2].Options, tree[0].Memo, tree[1].Memo)
		}
		for _, bad := range []job.Option{job.Memo(json.RawMessage(`{`)), job.WithRunOptions(job.RunOptions{Tries: -1})} {
			if _, err := c.Start(e.Context(), p, bad); err == nil {
				e.Error("it was started")
			}
		}
		n, err := c.Count(e.Context(), job.Filter{})
		if e.Check(err); n != 1 {
			e.Errorf("%d trees", n)
		}
	})
}
