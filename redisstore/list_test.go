package redisstore_test

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// assembly is jobs to list, of all statuses, alone and in trees.
type assembly struct {
	*env
	ids     []job.ID // all, also of those that were deleted
	infos   map[job.ID]*job.Info
	aliases map[job.ID][]string
	now     time.Time
}

// aged is an ID that was made some minutes ago.
func (c *assembly) aged(minutes int) job.ID {
	ms := c.now.Add(-time.Duration(minutes) * time.Minute).UnixMilli()
	return job.ID(fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff) + string(newID(c))[13:])
}

// add creates a tree some minutes ago and returns its root.
func (c *assembly) add(minutes int, nodes ...job.Node) job.ID {
	c.Helper()
	root := c.aged(minutes)
	c.createAs(root, nodes...)
	for n := range nodes {
		c.ids = append(c.ids, root.Nth(n))
	}
	return root
}

// lone creates a job without children.
func (c *assembly) lone(minutes int, typ, queue string, labels map[string]string) job.ID {
	c.Helper()
	return c.add(minutes, job.Node{Type: typ, Queue: queue, Labels: labels, Ports: ports(in("in"))})
}

func assemble(e *env) *assembly {
	e.Helper()
	c := &assembly{env: e, infos: map[job.ID]*job.Info{}, aliases: map[job.ID][]string{}, now: time.Now()}
	for n := range 330 { // more than a page of them, and than a chunk of a shard
		c.lone(1000+n, "Many", "default", nil)
	}
	for n, outcome := range []statemachine.Event{
		statemachine.Complete, statemachine.Complete, statemachine.Suspend, statemachine.Fail, statemachine.Fail,
		statemachine.Fail, statemachine.Backoff, statemachine.Requeue, statemachine.Terminate, statemachine.Shutdown, "",
	} {
		labels := map[string]string{"n": fmt.Sprint(n), "customer": []string{"7", "8"}[n%2]}
		id := c.lone(5*n, []string{"A", "B"}[n%2], []string{"q", "r", "s"}[n%3], labels)
		c.aliases[id] = []string{fmt.Sprintf("a-%d", n), fmt.Sprintf("b/%d", n)}
		c.end1(id, outcome)
	}
	for _, minutes := range []int{7, 500} {
		g := c.add(minutes,
			job.Node{Type: "G", Graph: true},
			job.Node{Name: "one", Type: "A", Labels: map[string]string{"customer": "7"}},
			job.Node{Name: "two", Type: "B"},
			job.Node{Name: "inner", Type: "G", Graph: true},
			job.Node{Name: "three", Type: "A", Parent: 3},
		)
		c.end1(g.Nth(1), statemachine.Fail)
		c.end1(g.Nth(4), statemachine.Complete)
	}
	many := []job.Node{{Type: "G", Graph: true}}
	for n := range 160 { // more than a chunk, and numbers of several digits
		many = append(many, job.Node{Name: fmt.Sprint("n", n), Type: "A"})
	}
	g := c.add(12, many...)
	for n := range 80 {
		c.end1(g.Nth(2*n+1), statemachine.Fail)
	}
	parent := c.add(9, job.Node{Type: "P"}, job.Node{Name: "kid", Type: "A"})
	orphan := c.add(600, job.Node{Type: "O"}, job.Node{Name: "kid", Type: "A"})
	c.Check(c.store.Disown(c.Context(), orphan, orphan.Nth(1)))
	adopted := c.add(8, job.Node{Type: "B"}, job.Node{Name: "kid", Type: "B"})
	c.Check(c.store.Adopt(c.Context(), parent.Nth(1), adopted, "found"))
	c.end1(adopted.Nth(1), statemachine.Fail)
	gone := c.lone(3, "A", "q", nil)
	c.end1(gone, statemachine.Fail)
	c.Check(c.store.Apply(c.Context(), gone, statemachine.Terminate))
	c.end(gone, statemachine.Shutdown)
	c.Check(c.store.Delete(c.Context(), gone))
	for id, names := range c.aliases {
		for _, name := range names {
			_, err := c.store.Claim(c.Context(), name, id)
			c.Check(err)
		}
	}
	for _, id := range c.ids {
		if id != gone {
			c.infos[id] = c.info(id)
		}
	}
	return c
}

// end1 gives a job a run that ends so: begun only, if the outcome is empty.
func (c *assembly) end1(id job.ID, outcome statemachine.Event) {
	c.Helper()
	snap := c.begin(id)
	switch outcome {
	case "":
	case statemachine.Terminate, statemachine.Shutdown:
		c.Check(c.store.Apply(c.Context(), id, statemachine.Terminate))
		if outcome == statemachine.Shutdown {
			c.commit(delta(snap, outcome))
		}
	case statemachine.Backoff:
		d := delta(snap, outcome)
		d.Delay = time.Hour
		c.commit(d)
	default:
		c.commit(delta(snap, outcome))
	}
}

// naive lists the jobs that pass a filter in its order by looking at each.
func (c *assembly) naive(f job.Filter) []job.ID {
	c.Helper()
	inSet := []statemachine.Status{
		statemachine.Failed, statemachine.Queued, statemachine.Scheduled, statemachine.Running, statemachine.Terminating,
	}
	walked := f.Alias == "" && (len(f.Status) == 0 || slices.ContainsFunc(f.Status, func(s statemachine.Status) bool {
		return !slices.Contains(inSet, s)
	}))
	var list []*job.Info
	top := map[job.ID]job.ID{}
	for id, i := range c.infos {
		named := slices.ContainsFunc(c.aliases[id], func(a string) bool {
			ok, err := path.Match(f.Alias, strings.ReplaceAll(a, "/", "-"))
			c.Check(err)
			return ok
		})
		if f.Match(i) && (f.Alias == "" || named) {
			list = append(list, i)
		}
		top[id] = id // jobs of adopted trees come with the tree that adopted them
		for up := i; walked && up.Parent != ""; top[id] = up.ID {
			up = c.infos[up.Parent]
		}
	}
	slices.SortFunc(list, func(a, b *job.Info) int {
		age := cmp.Or(top[a.ID].Compare(top[b.ID]), a.ID.Compare(b.ID))
		switch f.Order {
		case job.Oldest:
			return age
		case job.FirstRan:
			return cmp.Or(a.Ran.Compare(b.Ran), b.ID.Compare(a.ID))
		case job.LastRan:
			return cmp.Or(b.Ran.Compare(a.Ran), b.ID.Compare(a.ID))
		case job.ByType:
			return cmp.Or(strings.Compare(a.Type, b.Type), b.ID.Compare(a.ID))
		case job.ByStatus:
			all := statemachine.Statuses()
			return cmp.Or(cmp.Compare(slices.Index(all, a.Status), slices.Index(all, b.Status)), b.ID.Compare(a.ID))
		default:
			return -age
		}
	})
	ids := make([]job.ID, len(list))
	for n, i := range list {
		ids[n] = i.ID
	}
	return ids
}

func (c *assembly) list(f job.Filter, limit int) (ids []job.ID) {
	c.Helper()
	for i, err := range c.store.Jobs(c.Context(), f) {
		c.Check(err)
		if ids = append(ids, i.ID); len(ids) == limit {
			break
		}
	}
	return ids
}

func assemblyFilters(now time.Time) []job.Filter {
	filters := []job.Filter{
		{},
		{Type: "A"},
		{Type: "Nobody"},
		{Queue: "q"},
		{Queue: "q", Type: "B"},
		{Labels: map[string]string{"customer": "7"}},
		{Labels: map[string]string{"customer": "7", "n": "4"}},
		{Keys: []string{"n"}},
		{Keys: []string{"n", "none"}},
		{Without: []string{"n"}},
		{Without: []string{"none", "customer"}, Type: "A"},
		{Alias: "a-*"},
		{Alias: "b?[1-3]"},
		{Alias: "a-1"},
		{Alias: "nobody"},
		{Alias: "*", Type: "A"},
		{Status: []statemachine.Status{statemachine.Completed, statemachine.Failed}},
		{Status: []statemachine.Status{statemachine.Running, statemachine.Failed}},
		{Status: []statemachine.Status{statemachine.Failed}, Type: "A", Since: now.Add(-22 * time.Minute)},
	}
	for _, s := range statemachine.Statuses() {
		filters = append(filters, job.Filter{Status: []statemachine.Status{s}})
	}
	for _, minutes := range []time.Duration{5, 550, 1100} {
		filters = append(filters,
			job.Filter{Since: now.Add(-minutes * time.Minute)}, job.Filter{Until: now.Add(-minutes * time.Minute)},
			job.Filter{Since: now.Add(-1200 * time.Minute), Until: now.Add(-minutes*time.Minute - 1)})
	}
	return filters
}

// Every list is the one that looking at all jobs gives, in every order, whole and in pages.
func TestJobs(t *testing.T) {
	each(t, func(e *env) {
		c := assemble(e)
		for n, f := range assemblyFilters(c.now) {
			orders := job.Orders()
			if n > 12 { // the others make no difference to these
				orders = orders[:2]
			}
			for _, f.All = range []bool{false, true} {
				f.After = ""
				count, err := e.store.Count(e.Context(), f)
				e.Check(err)
				for _, f.Order = range orders {
					f.After = ""
					what := fmt.Sprintf("%+v", f)
					want := c.naive(f)
					e.equal("count of "+what, count, len(want))
					if got := c.list(f, 0); !slices.Equal(got, want) {
						e.Fatalf("%s: got\n%v, want\n%v", what, got, want)
					}
					if len(want) == 0 {
						continue
					}
					f.After = want[len(want)/2]
					pages, size := slices.Clone(want[:len(want)/2+1]), 1+len(want)/4
					for page := c.list(f, size); len(page) > 0; page = c.list(f, size) {
						pages = append(pages, page...)
						f.After = page[len(page)-1]
					}
					if !slices.Equal(pages, want) {
						e.Fatalf("in pages of %d, %s: got\n%v, want\n%v", size, what, pages, want)
					}
				}
			}
		}
		failed := job.Filter{Status: []statemachine.Status{statemachine.Failed}}
		e.equal("failed", len(c.list(failed, 0)), 6)
		failed.All = true
		e.equal("failed, also below others", len(c.list(failed, 0)), 89)
	})
}

// What follows a job that is gone is known as long as IDs alone decide on the order.
func TestJobsAfterOneThatIsGone(t *testing.T) {
	each(t, func(e *env) {
		c := &assembly{env: e, now: time.Now()}
		first, last := c.lone(2, "A", "q", nil), c.lone(1, "A", "q", nil)
		gone := c.aged(0)
		e.equal("the older", c.list(job.Filter{After: gone}, 0), []job.ID{last, first})
		e.equal("the newer", c.list(job.Filter{After: first, Order: job.Oldest}, 0), []job.ID{last})
		for _, f := range []job.Filter{{After: gone, Order: job.ByType}, {After: gone, All: true}} {
			for _, err := range e.store.Jobs(e.Context(), f) {
				e.fails(err, job.ErrNotFound)
			}
			_, err := e.store.Count(e.Context(), f)
			e.fails(err, job.ErrNotFound)
		}
	})
}

// Labels, times and what else an Info says come with the list; the rest comes as details.
func TestJobsSayAll(t *testing.T) {
	each(t, func(e *env) {
		labels := map[string]string{"customer": "7", "a/b.c-d_e": "<ä> \"=\"", "empty": ""}
		root := e.create(job.Node{Type: "T", Labels: labels, Ports: ports(in("in"))}, job.Node{Name: "kid", Type: "K"})
		e.write(root, "in", "1")
		d := delta(e.begin(root), statemachine.Fail)
		d.Failure = &job.Failure{Error: "broken", At: time.Now()}
		e.commit(d)
		for _, alias := range []string{"b", "a"} {
			_, err := e.store.Claim(e.Context(), alias, root)
			e.Check(err)
		}
		for i, err := range e.store.Jobs(e.Context(), job.Filter{}) {
			e.Check(err)
			e.equal("job", i, e.info(root))
			e.equal("labels", i.Labels, labels)
		}
		all, err := e.store.Details(e.Context(), []job.ID{root, root.Nth(9)})
		e.Check(err)
		e.equal("failures", len(all[0].Failures), 1)
		e.equal("failure", all[0].Failures[0].Error, "broken")
		all[0].Failures = nil
		e.equal("details", all[0], job.Details{Aliases: []string{"a", "b"}, Children: map[string]job.ID{"kid": root.Nth(1)}})
		e.equal("of nobody", all[1], job.Details{Children: map[string]job.ID{}})
	})
}

// A list tells what keeps it from being read; what is damaged does not make it panic.
func TestJobsUnreadable(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	id := e.single()
	fails := func(f job.Filter) {
		e.Helper()
		n := 0
		for i, err := range e.store.Jobs(e.Context(), f) {
			if n++; i != nil || err == nil || n > 1 {
				e.Errorf("%+v: got %+v, %v", f, i, err)
			}
		}
		if _, err := e.store.Count(e.Context(), job.Filter{Keys: []string{"k"}}); err == nil {
			e.Error("counted")
		}
	}
	e.Check(e.Redis.HSet(e.Context(), e.key(id), "labels", "{").Err())
	fails(job.Filter{})
	fails(job.Filter{Keys: []string{"k"}, Order: job.ByType})
	e.Check(e.Redis.HSet(e.Context(), e.key(id), "labels", "{}", "ran", "x").Err())
	fails(job.Filter{Type: "T"})
	e.Check(e.Redis.Del(e.Context(), e.key(id)).Err())
	e.Check(e.Redis.Set(e.Context(), e.key(id), "no hash", 0).Err())
	fails(job.Filter{})
	fails(job.Filter{All: true, Type: "T"})
}

// planned is the jobs of a plan.
type planned []job.Node

// Plan implements job.Planner.
func (p planned) Plan() (*job.Plan, error) { return &job.Plan{Nodes: p}, nil }

// The set of failed jobs has no member that is gone, however it went.
func TestFailuresForgetJobs(t *testing.T) {
	each(t, func(e *env) {
		failures := func() (n int64) {
			for shard := range shards {
				n += e.Redis.ZCard(e.Context(), fmt.Sprintf("weir:{%s:%d}:failures", e.Namespace, shard)).Val()
			}
			return n
		}
		nodes := []job.Node{{Type: "G", Graph: true}, {Name: "a", Type: "A"}, {Name: "b", Type: "B"}}
		graph := e.create(nodes...)
		e.end(graph.Nth(2), statemachine.Fail)
		e.equal("failed with their graph", failures(), int64(2))
		h, err := client.New(e.store).Find(e.Context(), string(graph))
		e.Check(err)
		e.Check(h.Patch(e.Context(), planned(nodes[:2])))
		e.equal("failed, without the job that was taken out", failures(), int64(0))

		lone := e.single()
		e.end(lone, statemachine.Fail)
		e.equal("failed", failures(), int64(1))
		e.Check(e.store.Apply(e.Context(), lone, statemachine.Retry))
		e.equal("failed after a retry", failures(), int64(0))
		e.end(lone, statemachine.Fail)
		e.terminated(lone)
		e.Check(e.store.Delete(e.Context(), lone))
		e.equal("failed after a delete", failures(), int64(0))
	})
}
