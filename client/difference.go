package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Difference is what [Handle.Patch] would change of a graph. Jobs are named by their paths below the graph, and edges like
// "pay/check.out -> bank.in", with an empty path for the graph itself.
type Difference struct {
	// Same: the graph has this definition already, and a patch changes nothing.
	Same                     bool
	Added, Removed, Changed  []NodeDifference
	EdgesAdded, EdgesRemoved []string
}

// NodeDifference is what becomes of one job.
type NodeDifference struct {
	Path, Type string
	// Waiting is how many messages its ports hold. A job that holds some cannot be removed.
	Waiting int64
	Fields  []FieldDifference // of a job that stays
}

// FieldDifference is what becomes of one property of a job, such as its args or the limit of a port. What is not there is null.
type FieldDifference struct {
	Field    string
	From, To json.RawMessage
}

// Diff says what Patch would change, and changes nothing. What can never be patched is refused as by Patch; whether the jobs that go
// are idle and empty is only known when the patch is made.
func (h *Handle) Diff(ctx context.Context, p job.Planner) (*Difference, error) {
	plan, err := planned(p)
	if err != nil {
		return nil, fmt.Errorf("comparing job %s: %w", h.id, err)
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	patch, err := diff(h.id, tree, plan)
	if err != nil {
		return nil, fmt.Errorf("comparing job %s: %w", h.id, err)
	}
	return difference(h.id, tree, patch), nil
}

// difference tells a patch in full.
func difference(root job.ID, tree []*job.Info, p *store.Patch) *Difference {
	d := &Difference{Same: p.From == p.To}
	there := graphPaths(root, tree)
	byID := map[job.ID]string{}
	for path, i := range there {
		byID[i.ID] = path
	}
	paths := make([]string, len(p.Nodes))
	after := map[string]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if i > 0 {
			paths[i] = paths[n.Parent] + "/" + n.Name
		}
	}
	for i := range p.Nodes {
		n, name := &p.Nodes[i], strings.TrimPrefix(paths[i], "/")
		plannedEdges(after, paths, i, n)
		if p.Fresh[i] {
			d.Added = append(d.Added, NodeDifference{Path: name, Type: n.Type})
		} else if fields := append(fieldsOf(there[paths[i]], n), retypedFields(p, there[paths[i]].ID)...); len(fields) > 0 {
			d.Changed = append(d.Changed, NodeDifference{Path: name, Type: n.Type, Fields: fields})
		}
	}
	for _, id := range p.Remove {
		i := there[byID[id]]
		d.Removed = append(d.Removed, NodeDifference{Path: strings.TrimPrefix(byID[id], "/"), Type: i.Type, Waiting: held(i)})
	}
	before := storedEdges(there, byID)
	d.EdgesAdded, d.EdgesRemoved = without(after, before), without(before, after)
	return d
}

// retypedFields are the Go types of messages that change in a job that stays.
func retypedFields(p *store.Patch, id job.ID) (all []FieldDifference) {
	for i := range p.Retyped {
		if r := &p.Retyped[i]; r.Job == id {
			all = append(all, FieldDifference{Field: "type of " + r.Dir.String() + " " + r.Port, From: plainJSON(r.From), To: plainJSON(r.To)})
		}
	}
	return all
}

// held is how many messages wait in the ports of a job.
func held(i *job.Info) (n int64) {
	for _, p := range i.Ports {
		n += p.Waiting
	}
	return n
}

// edgeText is an edge between ports of two jobs.
func edgeText(from, fromPort, to, toPort string) string {
	return strings.TrimPrefix(from, "/") + "." + fromPort + " -> " + strings.TrimPrefix(to, "/") + "." + toPort
}

// plannedEdges are those that a node of a plan has.
func plannedEdges(into map[string]bool, paths []string, at int, n *job.Node) {
	for _, p := range n.Ports {
		for _, edge := range p.Edges {
			for _, to := range edge {
				into[edgeText(paths[at], p.Name, paths[to.Node], to.Port)] = true
			}
		}
	}
}

// storedEdges are those between jobs of a graph as they are.
func storedEdges(there map[string]*job.Info, byID map[job.ID]string) map[string]bool {
	all := map[string]bool{}
	for path, i := range there {
		for _, p := range i.Ports {
			for _, edge := range p.Edges {
				for _, to := range edge {
					if end, ok := byID[to.Job]; ok {
						all[edgeText(path, p.Name, end, to.Port)] = true
					}
				}
			}
		}
	}
	return all
}

// without are those of a that b does not have, sorted.
func without(a, b map[string]bool) (all []string) {
	for _, one := range slices.Sorted(maps.Keys(a)) {
		if !b[one] {
			all = append(all, one)
		}
	}
	return all
}

// fieldsOf are the properties in which a node differs from the job that it becomes.
func fieldsOf(was *job.Info, n *job.Node) (all []FieldDifference) {
	add := func(field string, from, to any) {
		a, b := plainJSON(from), plainJSON(to)
		if !bytes.Equal(a, b) {
			all = append(all, FieldDifference{field, a, b})
		}
	}
	add("args", was.Args, n.Args)
	add("queue", cmp.Or(was.Queue, job.DefaultQueue), cmp.Or(n.Queue, job.DefaultQueue))
	add("on_failure", cmp.Or(was.Policy, job.FailGraph), cmp.Or(n.OnFailure, job.FailGraph))
	if was.Options != nil {
		add("options", optionWords(*was.Options), optionWords(n.Options))
	} else {
		add("options", nil, optionWords(n.Options))
	}
	if n.Priority != nil { // else it is that of the type, or what somebody has set
		priority := job.DefaultPriority
		if was.Priority != nil {
			priority = *was.Priority
		}
		add("priority", priority, *n.Priority)
	}
	open := map[port.Dir]bool{} // directions with ports of any name
	for k := range n.Ports {
		p := &n.Ports[k]
		where := p.Dir.String() + " " + p.Name
		open[p.Dir] = open[p.Dir] || p.Name == port.Any
		old, ok := was.Port(p.Dir, p.Name)
		if !ok {
			if p.Name != port.Any {
				add("port "+where, nil, plainSpec(p.Spec))
			}
			continue
		}
		add("limit of "+where, old.Limit, p.Limit)
		add("default of "+where, old.Default, p.Default)
		add("channels of "+where, nilIfNone(old.Channels), nilIfNone(p.Channels))
	}
	for _, old := range was.Ports {
		if !open[old.Dir] && !slices.ContainsFunc(n.Ports, func(p job.Port) bool { return p.Dir == old.Dir && p.Name == old.Name }) {
			add("port "+old.Dir.String()+" "+old.Name, plainSpec(old.Spec), nil)
		}
	}
	return all
}

// plainSpec is a port without what only Go programs know of it.
func plainSpec(s port.Spec) port.Spec {
	s.Type, s.MessageVersion = "", 0
	return s
}

// optionWords are options of runs as people write them.
func optionWords(o job.RunOptions) map[string]any {
	all := map[string]any{}
	if o.Tries != 0 {
		all["tries"] = o.Tries
	}
	for name, d := range map[string]time.Duration{"backoff": o.Backoff, "max_backoff": o.MaxBackoff, "timeout": o.Timeout} {
		if d != 0 {
			all[name] = d.String()
		}
	}
	return all
}

func nilIfNone[T any](all []T) []T {
	if len(all) == 0 {
		return nil
	}
	return all
}

// plainJSON is a value in one spelling, so that equal values are equal texts.
func plainJSON(v any) json.RawMessage {
	raw, ok := v.(json.RawMessage)
	if !ok {
		raw, _ = json.Marshal(v) // which these always can be
	}
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return raw
	}
	if object, is := value.(map[string]any); is && len(object) == 0 {
		return json.RawMessage("null") // no args are the same as none of them
	}
	plain, _ := json.Marshal(value)
	return plain
}
