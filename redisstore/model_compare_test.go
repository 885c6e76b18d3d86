package redisstore_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

func cmpText(a, b string) int { return cmp.Compare(a, b) }

func textMap(m map[string]json.RawMessage) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

func (c *machine) same(what string, got, want any) {
	c.Helper()
	if !reflect.DeepEqual(got, want) {
		c.Fatalf("%s: %+v, the model has %+v", what, got, want)
	}
}

// seen is what Tree tells of a job, of the store as of the model.
type seen struct {
	Parent          job.ID
	Name, Type      string
	Status, Reason  string
	Steps, Version  int64
	Tries           int
	Ports           map[mName]seenPort
	NumberOfTheTree int
}

type seenPort struct {
	Waiting, Total     int64
	Wired, Fed, Closed bool
	Sources            int
}

func (j *mJob) seen() seen {
	s := seen{
		Parent: j.parent, Name: j.node.Name, Type: j.node.Type, Status: string(j.status), Reason: j.reason,
		Steps: j.steps, Version: j.version, Tries: j.tries, Ports: map[mName]seenPort{}, NumberOfTheTree: j.id.Number(),
	}
	for n, p := range j.ports {
		s.Ports[n] = seenPort{
			Waiting: int64(len(p.items)), Total: p.removed + int64(len(p.items)),
			Wired: len(p.edges) > 0, Fed: p.fed, Closed: p.closed, Sources: p.sources,
		}
	}
	return s
}

func seenOf(i *job.Info) seen {
	s := seen{
		Parent: i.Parent, Name: i.Name, Type: i.Type, Status: string(i.Status), Reason: i.Reason,
		Steps: i.Steps, Version: i.Version, Tries: i.Tries, Ports: map[mName]seenPort{}, NumberOfTheTree: i.ID.Number(),
	}
	for _, p := range i.Ports {
		s.Ports[mName{p.Dir, p.Name}] = seenPort{
			Waiting: p.Waiting, Total: p.Total, Wired: p.Wired, Fed: p.Fed, Closed: p.Closed, Sources: p.Sources,
		}
	}
	return s
}

// compare looks at all jobs of the tree and at the messages in their ports.
func (c *machine) compare() {
	if c.gone {
		return
	}
	c.compareSets()
	tree, err := c.e.store.Tree(c.e.Context(), c.root)
	c.ok(err)
	ids := c.ids()
	if len(tree) != len(ids) {
		c.Fatalf("%d jobs, the model has %d", len(tree), len(ids))
	}
	for i, id := range ids {
		j := c.model.jobs[id]
		c.same("job", seenOf(tree[i]), j.seen())
		for n, p := range j.ports {
			if len(p.items) == 0 {
				continue // Tree told so
			}
			items, head, err := c.e.store.Peek(c.e.Context(), id, n.dir, n.name, 1000)
			c.ok(err)
			if head != p.removed || !slices.Equal(texts(items), p.items) {
				c.Fatalf("%s port %s of job %d holds %s from %d, the model has %s from %d",
					n.dir, n.name, id.Number(), texts(items), head, p.items, p.removed)
			}
		}
	}
}

// compareSets looks whether each job is in the sets that it is found by.
func (c *machine) compareSets() {
	shard := strings.TrimSuffix(c.e.due(c.root), "due")
	failed, err := c.e.Redis.ZRange(c.e.Context(), shard+"failures", 0, -1).Result()
	c.ok(err)
	due, err := c.e.Redis.ZRange(c.e.Context(), shard+"due", 0, -1).Result()
	c.ok(err)
	for _, id := range c.ids() {
		j := c.model.jobs[id]
		c.same("is among the failed", slices.Contains(failed, string(id)), j.status == statemachine.Failed)
		if j.status.Active() && !slices.Contains(due, string(id)) {
			c.Fatalf("job %d is %s and not in due", id.Number(), j.status)
		}
	}
	c.compareReady(shard)
}

// compareReady looks whether each job is in its ready set, and the types that have some in that of the queue.
func (c *machine) compareReady(shard string) {
	var all []string
	types, err := c.e.Redis.ZRange(c.e.Context(), shard+"ready:"+c.queue(), 0, -1).Result()
	c.ok(err)
	for _, typ := range []string{"A", "B"} {
		ids, err := c.e.Redis.ZRange(c.e.Context(), shard+"ready:"+c.queue()+"#"+typ, 0, -1).Result()
		c.ok(err)
		c.same("jobs of the type are ready", slices.Contains(types, typ), len(ids) > 0)
		for _, id := range ids {
			c.same("type", c.model.jobs[job.ID(id)].node.Type, typ)
		}
		all = append(all, ids...)
	}
	below := 0
	for _, id := range c.ids() {
		j, there := c.model.jobs[id], slices.Contains(all, string(id))
		if j.ready != maybe && there != (j.ready == listed) {
			c.Fatalf("job %d is %s, in its ready set: %t", id.Number(), j.status, there)
		}
		if there && id != c.root {
			below++
		}
	}
	count, err := c.e.Redis.HGet(c.e.Context(), shard+"t:"+string(c.root), "ready").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		c.Fatal(err)
	}
	c.same("ready jobs below the root, as counted", count, below)
}

// compareAll looks also at what compare leaves out because it changes rarely.
func (c *machine) compareAll() {
	if c.gone {
		return
	}
	ctx := c.e.Context()
	for _, id := range c.ids() {
		j := c.model.jobs[id]
		state, err := c.e.store.State(ctx, id)
		c.ok(err)
		c.same("state", textMap(state), j.state)
		kids, err := c.e.store.Children(ctx, id)
		c.ok(err)
		c.same("children", kids, j.kids)
		fs, err := c.e.store.Failures(ctx, id)
		c.ok(err)
		c.same("failures", len(fs), min(j.failures, 20))
		if len(j.log) == 0 {
			continue // a log lies among those of all jobs of the shard
		}
		entries, err := c.e.store.Logs(ctx, id, 1000)
		c.ok(err)
		var log []string
		for _, e := range entries {
			log = append(log, string(e.Entry))
		}
		c.same("log", log, j.log)
	}
}
