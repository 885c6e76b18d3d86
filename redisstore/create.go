package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Create implements job.Creator.
func (s *Store) Create(ctx context.Context, root job.ID, plan *job.Plan, by string) (bool, error) {
	args := append([]any{string(root), rand.Text(), len(plan.Nodes)}, planArgs(plan, root, 0, "", by)...)
	reply, err := s.run(ctx, scriptCreate, s.keys.dueOf(root), args...)
	if err != nil {
		return false, err
	}
	var d decoder
	l := d.list(reply)
	created := d.int(d.at(l, 0)) == 1
	return created, s.deliver(ctx, &d, d.at(l, 1))
}

// planArgs encodes the jobs of a plan as born() in lib.lua reads them. The plan's root
// gets number base of the tree, the others those after it.
func planArgs(plan *job.Plan, tree job.ID, base int, parent job.ID, by string) []any {
	children := make([]int, len(plan.Nodes))
	for i := 1; i < len(plan.Nodes); i++ {
		children[plan.Nodes[i].Parent]++
	}
	var args []any
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		up, inGraph := parent, false
		if i > 0 {
			up, inGraph = tree.Nth(base+n.Parent), plan.Nodes[n.Parent].Graph
		}
		event, at := creation(n)
		args = append(args, string(tree.Nth(base+i)), string(event), at, string(up), n.Name)
		fields, defaults := nodeFields(n, base)
		fields = append(fields, "parent", string(up), "by", by)
		if inGraph {
			fields = append(fields, "pgraph", "1")
		}
		if n.Graph {
			fields = append(fields, "graph", "1", "open", children[i], "broken", 0)
		}
		if base+i == 0 {
			fields = append(fields, "seq", len(plan.Nodes)-1)
		}
		args = append(append(args, len(fields)), fields...)
		args = append(append(args, len(defaults)), defaults...)
	}
	return args
}

// creation says how a planned job enters its life: jobs that are fed by others, and
// graphs, begin asleep.
func creation(n *job.Node) (event statemachine.Event, at string) {
	switch {
	case n.Graph || n.Wired():
		return statemachine.CreateIdle, ""
	case !n.At.IsZero():
		return statemachine.CreateLater, strconv.FormatInt(n.At.UnixMilli(), 10)
	}
	return statemachine.Create, ""
}

func nodeFields(n *job.Node, base int) (fields, defaults []any) {
	queue := n.Queue
	if queue == "" {
		queue = job.DefaultQueue
	}
	fields = []any{"type", n.Type, "queue", queue, "name", n.Name}
	if n.Args != nil {
		fields = append(fields, "args", []byte(n.Args))
	}
	for i := range n.Ports {
		p := &n.Ports[i]
		name := string(byte(p.Dir)) + "." + p.Name
		fields = append(fields, name, descriptor(p, base))
		if p.Sources > 0 {
			fields = append(fields, "n."+name, p.Sources)
		}
		if p.Default != nil && p.Dir == port.Input {
			defaults = append(defaults, p.Name, []byte(p.Default))
		}
	}
	return fields, defaults
}

// descriptor is what the job's hash says of a port: its limit, then its edges, with a
// space before each; an edge is its ends, like "3i.words,4i.words".
func descriptor(p *job.Port, base int) string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(p.Limit))
	for _, e := range p.Edges {
		for i, t := range e {
			b.WriteByte(" ,"[min(i, 1)])
			b.WriteString(strconv.Itoa(base + t.Node))
			b.WriteByte(byte(t.Dir))
			b.WriteByte('.')
			b.WriteString(t.Port)
		}
	}
	return b.String()
}

// Claim implements job.Creator.
func (s *Store) Claim(ctx context.Context, alias string, id job.ID) (job.ID, error) {
	key := s.keys.aliases()
	if err := s.rdb.HSetNX(ctx, key, alias, string(id)).Err(); err != nil {
		return "", s.explain(err)
	}
	// What is stored counts, also when the command was repeated after a lost reply.
	return s.Resolve(ctx, alias)
}

// Resolve implements job.Creator.
func (s *Store) Resolve(ctx context.Context, alias string) (job.ID, error) {
	id, err := s.rdb.HGet(ctx, s.keys.aliases(), alias).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("%w: no job has the alias %q", job.ErrNotFound, alias)
	}
	if err != nil {
		return "", s.explain(err)
	}
	return job.ParseID(id)
}
