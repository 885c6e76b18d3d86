package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Child is a child of the run's job, perhaps one that exists only if the run commits.
type Child struct {
	run   *Run
	id    job.ID
	name  string
	fresh *job.Plan // of a child spawned in this run
	boxes map[string]*inbox
}

// ID returns the ID of the child. It may be kept in the state.
func (c *Child) ID() job.ID { return c.id }

// Spawn creates a child job, or a whole tree of them, when the run commits: a worker
// struct with its parameters filled in (see job.Single) or a graph. The job is woken
// whenever a child ends a run, or writes to an Out port that is wired to nobody. The name must be
// new among the job's children; a name that is taken fails the run.
func (r *Run) Spawn(name string, p job.Planner) (*Child, error) {
	plan, err := p.Plan()
	if err != nil {
		return nil, fmt.Errorf("spawning %q: %w", name, err)
	}
	if err := job.CheckName("job name", name); err != nil {
		return nil, fmt.Errorf("spawning: %w", err)
	}
	plan.Nodes[0].Name = name
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("spawning %q: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, errOver
	}
	if err := r.loadChildren(); err != nil {
		return nil, err
	}
	if r.children[name] != nil {
		return nil, fmt.Errorf("spawning %q: %w under job %s", name, job.ErrExists, r.info.ID)
	}
	nodes := len(plan.Nodes)
	for _, s := range r.delta.Spawns {
		nodes += len(s.Plan.Nodes)
	}
	if nodes > MaxSpawn {
		return nil, fmt.Errorf("spawning %q: %w: the run would create more than %d jobs in one commit; call Checkpoint in between", name, job.ErrTooLarge, MaxSpawn)
	}
	for i := range plan.Nodes {
		if err := r.grow(len(plan.Nodes[i].Args)); err != nil {
			return nil, fmt.Errorf("spawning %q: %w", name, err)
		}
	}
	var base int
	if err := r.ask(func(ctx context.Context) (err error) {
		base, err = r.store.Reserve(ctx, r.info.ID.Tree(), len(plan.Nodes))
		return err
	}); err != nil {
		return nil, fmt.Errorf("spawning %q: %w", name, err)
	}
	r.delta.Spawns = append(r.delta.Spawns, job.Spawn{Plan: plan, Base: base})
	c := &Child{run: r, id: r.info.ID.Nth(base), name: name, fresh: plan, boxes: map[string]*inbox{}}
	r.children[name] = c
	return c, nil
}

// Child returns the child of that name, or an error that wraps job.ErrNotFound.
func (r *Run) Child(name string) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.loadChildren(); err != nil {
		return nil, err
	}
	if c := r.children[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%w: job %s has no child %q", job.ErrNotFound, r.info.ID, name)
}

func (r *Run) loadChildren() error {
	if r.children != nil {
		return nil
	}
	var ids map[string]job.ID
	if err := r.ask(func(ctx context.Context) (err error) {
		ids, err = r.store.Children(ctx, r.info.ID)
		return err
	}); err != nil {
		return fmt.Errorf("looking for children of job %s: %w", r.info.ID, err)
	}
	r.children = make(map[string]*Child, len(ids))
	for name, id := range ids {
		r.children[name] = &Child{run: r, id: id, name: name, boxes: map[string]*inbox{}}
	}
	return nil
}

// Info returns what is known of the child now: not a part of the run's snapshot.
func (c *Child) Info() (info *job.Info, err error) {
	err = c.run.ask(func(ctx context.Context) error {
		info, err = c.run.store.Info(ctx, c.id)
		return err
	})
	return info, err
}

// Write sends a message to an In port of the child when the run commits. A port that is closed, or that the child does
// not have, refuses the commit, and so the run fails. Of a child that was adopted from another tree the commit does not
// know: what does not arrive there is dropped, and the log of the run's job says so.
func (c *Child) Write(in string, v any) error {
	raw, err := port.Encode(v)
	if err != nil {
		return fmt.Errorf("writing to port %q of child %q: %w", in, c.name, err)
	}
	if err := c.checkPort(in); err != nil {
		return err
	}
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	return c.run.write(job.Write{Job: c.id, Dir: port.Input, Port: in}, raw)
}

// checkPort tells at once about a wrong port of a child that the store does not know yet.
// For others the commit tells.
func (c *Child) checkPort(in string) error {
	if c.fresh == nil {
		return port.CheckName(in)
	}
	for _, p := range c.fresh.Nodes[0].Ports {
		if p.Dir == port.Input && (p.Name == in || p.Name == port.Any) {
			return port.CheckName(in)
		}
	}
	return fmt.Errorf("%w: child %q has no In port %q", job.ErrPort, c.name, in)
}

// In returns an In port of the child to write to, for Run.Connect.
func (c *Child) In(name string) (port.Writer, error) {
	if err := c.checkPort(name); err != nil {
		return nil, err
	}
	return &childIn{child: c, name: name}, nil
}

// Out returns an Out port of the child that is wired to nobody: its messages at this moment.
func (c *Child) Out(name string) (port.Reader, error) {
	in, err := c.box(name)
	if err != nil {
		return nil, err
	}
	if in == nil {
		return &inbox{run: c.run, job: c.id, dir: port.Output, name: name, asked: true}, nil
	}
	return in, nil
}

// childIn writes to an In port of a child.
type childIn struct {
	child *Child
	name  string
}

// Write implements port.Writer.
func (w *childIn) Write(raw json.RawMessage) error {
	if err := port.Check(raw); err != nil {
		return fmt.Errorf("writing to port %q of child %q: %w", w.name, w.child.name, err)
	}
	w.child.run.mu.Lock()
	defer w.child.run.mu.Unlock()
	return w.child.run.write(job.Write{Job: w.child.id, Dir: port.Input, Port: w.name}, slices.Clone(raw))
}

// WriteKey implements port.Writer. There is one consumer, so the key decides nothing.
func (w *childIn) WriteKey(_ string, raw json.RawMessage) error { return w.Write(raw) }

// Close implements port.Writer.
func (w *childIn) Close() error {
	return fmt.Errorf("%w %q of child %q: a parent cannot close it", job.ErrPort, w.name, w.child.name)
}

// Read takes the oldest message of an Out port of the child that is wired to nobody,
// and decodes it into v. ok is false when there is none now.
func (c *Child) Read(out string, v any) (ok bool, err error) {
	in, err := c.box(out)
	if in == nil || err != nil {
		return false, err
	}
	raw, ok, err := in.Read()
	if err != nil || !ok {
		return false, err
	}
	if err := port.Decode(raw, v); err != nil {
		return false, fmt.Errorf("reading port %q of child %q: %w", out, c.name, err)
	}
	return true, nil
}

// box opens a port of the child: its messages at this moment. nil while the child is
// not yet in the store.
func (c *Child) box(out string) (*inbox, error) {
	r := c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := c.boxes[out]; in != nil {
		return in, nil
	}
	if c.id.Tree() != r.info.ID.Tree() {
		return nil, fmt.Errorf("reading %w %q of child %q: the child was adopted from another tree, whose messages no run of this one can take; wire or publish them", job.ErrPort, out, c.name)
	}
	items, head, err := r.page(c.id, port.Output, out, 0, batchMessages)
	if errors.Is(err, job.ErrNotFound) && c.fresh != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading port %q of child %q: %w", out, c.name, err)
	}
	in := &inbox{run: r, job: c.id, dir: port.Output, name: out, head: head, left: len(items), items: items, more: full(items)}
	c.boxes[out] = in
	r.boxes = append(r.boxes, in)
	return in, nil
}
