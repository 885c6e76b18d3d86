package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Tree is a root tree that a run starts, and that exists only if the run commits.
type Tree struct {
	run    *Run
	launch *store.Launch
}

// Start creates a tree of its own, one job or a graph, when the run commits: it is no child of the run's job, lives on
// without it, and may lie in another shard. It is created soon after the commit and exactly once, wherever a process
// dies. Its root sees what is written to it here from its first run on.
//
// A tree has at most job.MaxLaunchJobs jobs, and about job.MaxLaunch bytes. job.WithID gives it an ID of the caller's choice, and
// job.TellEnd has its end come to a port; it can have neither an alias nor a key. See PlanNew for a type that the program does
// not link.
//
// With job.Unique the tree is not created if another one has its unique key by then, and what was written to it is dropped. The run
// cannot know: its ID is then that of no job. The log of the run's job says so, and job.TellEnd tells of a status "duplicate".
func (r *Run) Start(p job.Planner, opts ...job.Option) (*Tree, error) {
	l, err := store.PlanLaunch(p, append([]job.Option{job.By("job:" + string(r.info.ID))}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	if key := l.Plan.Home(); key != "" {
		l.ID = r.store.Keyed(l.ID, key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.Plan = l.Plan.Traced(r.trace.at)
	if slices.ContainsFunc(r.delta.Launches, func(other *store.Launch) bool { return other.ID == l.ID }) {
		return nil, fmt.Errorf("starting a tree: %w: the run starts %s already", job.ErrExists, l.ID)
	}
	if err := r.launches(l.Plan); err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	r.delta.Launches = append(r.delta.Launches, l)
	return &Tree{run: r, launch: l}, nil
}

// launches accounts for a tree in the commit. r.mu is held.
func (r *Run) launches(p *job.Plan) error {
	for i := range p.Nodes {
		size := len(p.Nodes[i].Args) + len(p.Nodes[i].Memo)
		for j := range p.Nodes[i].Ports {
			size += 64
			for _, m := range p.Nodes[i].Ports[j].Initial {
				size += len(m)
			}
		}
		if err := r.add(size); err != nil {
			return err
		}
	}
	r.reached++
	return nil
}

// PlanNew plans one job by the name of its type, which some engine has registered for its queue. Alias, Key and Parent
// of n must be empty.
func (r *Run) PlanNew(n job.New) (*job.Plan, error) {
	if n.Alias != "" || n.Key != "" || n.Parent != "" {
		return nil, fmt.Errorf("planning a job of type %q: %w: a tree that a run starts has no alias, key or parent", n.Type, job.ErrName)
	}
	plan, err := job.PlanNew(r.ctx, func(_ context.Context, queue, name string) (typ *job.TypeInfo, err error) {
		err = r.ask(func(ctx context.Context) error {
			typ, err = r.store.Type(ctx, queue, name)
			return err
		})
		return typ, err
	}, n)
	if err != nil {
		return nil, fmt.Errorf("planning a job of type %q: %w", n.Type, err)
	}
	return plan, nil
}

// ID returns the ID of the tree's root. It may be kept in the state.
func (t *Tree) ID() job.ID { return t.launch.ID }

// Write sends a message to an In port of the root.
func (t *Tree) Write(in string, v any) error {
	raw, err := port.Encode(v)
	if err == nil {
		err = t.check(in)
	}
	if err != nil {
		return fmt.Errorf("writing to port %q of tree %s: %w", in, t.launch.ID, err)
	}
	r := t.run
	r.mu.Lock()
	defer r.mu.Unlock()
	head, err := r.sealed()
	if err != nil {
		return fmt.Errorf("writing to port %q of tree %s: %w", in, t.launch.ID, err)
	}
	size := len(raw) + len(head)
	for _, w := range t.launch.Writes {
		for _, m := range w.Items {
			size += len(m)
		}
	}
	if size > job.MaxLaunch {
		return fmt.Errorf("writing to port %q of tree %s: %w: %d bytes, a run can send at most %d to a tree that it starts", in, t.launch.ID, job.ErrTooLarge, size, job.MaxLaunch)
	}
	if err := r.add(size); err != nil {
		return fmt.Errorf("writing to port %q of tree %s: %w", in, t.launch.ID, err)
	}
	t.launch.Writes = append(t.launch.Writes, store.Write{Dir: port.Input, Port: in, Items: []json.RawMessage{slices.Concat(head, raw)}})
	return nil
}

// Close ends an In port of the root behind what was written to it.
func (t *Tree) Close(in string) error {
	if err := t.check(in); err != nil {
		return fmt.Errorf("closing port %q of tree %s: %w", in, t.launch.ID, err)
	}
	t.run.mu.Lock()
	defer t.run.mu.Unlock()
	if t.run.over {
		return errOver
	}
	if !slices.Contains(t.launch.Closes, in) {
		t.launch.Closes = append(t.launch.Closes, in)
	}
	return nil
}

// check refuses what is no In port of the root.
func (t *Tree) check(in string) error {
	for _, p := range t.launch.Plan.Nodes[0].Ports {
		if p.Dir == port.Input && (p.Name == in || p.Name == port.Any) {
			return port.CheckName(in)
		}
	}
	return fmt.Errorf("%w: it has no In port %q", job.ErrPort, in)
}
