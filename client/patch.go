package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Patch changes a running graph into another one of the same name, in one step: jobs with the
// same path of names stay as they are, with their messages and state, and get the new
// parameters, wires, subscriptions, failure policies and defaults (a default that was set
// meanwhile stays, unless the new definition changes it); new ones are created; those that are gone are removed. Messages on
// the way stay where they are. A job can be removed only when it holds no messages and does
// nothing: else the error wraps job.ErrStatus and nothing is changed. It also does if the graph
// was changed by somebody else meanwhile; then try again. A graph that is nested in another one
// changes with a patch of that one. Another number of instances of a worker moves message keys to
// other jobs of it: the state that the former jobs have of a key does not move.
//
// A port in which messages wait keeps its Go type, unless they are converted, see [Convert]: else the error says which port, both
// types and how many messages, and wraps job.ErrStatus.
func (h *Handle) Patch(ctx context.Context, p job.Planner, opts ...PatchOption) error {
	plan, err := planned(p)
	if err != nil {
		return fmt.Errorf("patching job %s: %w", h.id, err)
	}
	return h.patch(ctx, plan, opts...)
}

// planned is the valid plan of a planner.
func planned(p job.Planner) (*job.Plan, error) {
	if p == nil {
		return nil, fmt.Errorf("%w: there is no plan; give a graph", job.ErrValue)
	}
	plan, err := p.Plan()
	if err == nil {
		err = plan.Validate()
	}
	return plan, err
}

// patch changes the graph into that of a valid plan.
func (h *Handle) patch(ctx context.Context, plan *job.Plan, opts ...PatchOption) error {
	o := &patchOptions{}
	for _, opt := range opts {
		if opt != nil {
			opt(o)
		}
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return err
	}
	patch, err := diff(h.id, tree, plan)
	if err == nil {
		err = h.convert(ctx, patch, o)
	}
	if err != nil {
		return fmt.Errorf("patching job %s: %w", h.id, err)
	}
	fresh := 0
	for _, f := range patch.Fresh {
		if f {
			fresh++
		}
	}
	if fresh > 0 {
		next, err := h.store.Reserve(ctx, h.id.Tree(), fresh)
		if err != nil {
			return err
		}
		for i, f := range patch.Fresh {
			if f {
				patch.Numbers[i] = next
				next++
			}
		}
	}
	return h.store.Patch(ctx, h.id, patch)
}

// diff compares the jobs of a graph with a plan.
func diff(root job.ID, tree []*job.Info, plan *job.Plan) (*store.Patch, error) {
	there := graphPaths(root, tree)
	own := there[""]
	switch {
	case own == nil || !own.Graph:
		return nil, fmt.Errorf("%w: it is no graph", job.ErrStatus)
	case own.Definition == "":
		return nil, fmt.Errorf("%w: it is part of graph %s: patch that", job.ErrStatus, own.Parent)
	case !plan.Nodes[0].Graph:
		return nil, fmt.Errorf("%w: the plan is no graph", job.ErrStatus)
	case own.Type != plan.Nodes[0].Type:
		return nil, fmt.Errorf("%w: it is a graph %q, the plan one %q", job.ErrStatus, own.Type, plan.Nodes[0].Type)
	case len(plan.Nodes) > store.MaxPatch || len(there) > store.MaxPatch:
		return nil, fmt.Errorf("%w: the graph has more than %d jobs", job.ErrTooLarge, store.MaxPatch)
	}
	p := &store.Patch{From: own.Definition, To: plan.Digest(), Nodes: plan.Nodes, Types: plan.MessageTypes()}
	paths := make([]string, len(plan.Nodes))
	kept := make(map[string]bool)
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		if i > 0 {
			paths[i] = paths[n.Parent] + "/" + n.Name
		}
		was := there[paths[i]]
		if was != nil && (was.Type != n.Type || was.Graph != n.Graph) {
			return nil, fmt.Errorf("%w: job %q is a %s, the plan has a %s there: a job keeps its type; give the new one another name, or its worker the same JobType", job.ErrStatus, strings.TrimPrefix(paths[i], "/"), was.Type, n.Type)
		}
		number := 0
		if was != nil {
			number = was.ID.Number()
			p.Retyped = append(p.Retyped, retyped(was, paths[i], n, own.MessageTypes)...)
		}
		kept[paths[i]] = was != nil
		p.Numbers, p.Fresh = append(p.Numbers, number), append(p.Fresh, was == nil)
	}
	for _, path := range sortedPaths(there) {
		if !kept[path] {
			p.Remove = append(p.Remove, there[path].ID)
		}
	}
	return p, nil
}

// graphPaths finds the jobs that a graph is made of, by their names below it. What its
// workers have spawned is not among them.
func graphPaths(root job.ID, tree []*job.Info) map[string]*job.Info {
	byID := make(map[job.ID]*job.Info, len(tree))
	for _, i := range tree {
		byID[i.ID] = i
	}
	paths := make(map[string]*job.Info)
	for _, i := range tree {
		path, at := "", i
		for at.ID != root {
			up := byID[at.Parent]
			if up == nil || !up.Graph {
				break
			}
			path, at = "/"+at.Name+path, up
		}
		if at.ID == root {
			paths[path] = i
		}
	}
	return paths
}

// sortedPaths has children before their parents.
func sortedPaths(there map[string]*job.Info) []string {
	var all []string
	for path := range there {
		all = append(all, path)
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all
}
