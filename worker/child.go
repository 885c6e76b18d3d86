package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Child is a child of the run's job, perhaps one that exists only if the run commits.
type Child struct {
	run   *Run
	id    job.ID
	name  string
	fresh *job.Plan // of a child spawned in this run
	woke  int64     // its place among those that woke the job, when Info looked at it
	boxes map[string]*inbox
}

// ID returns the ID of the child. It may be kept in the state.
func (c *Child) ID() job.ID { return c.id }

// Name returns the child's name among the children of its parent.
func (c *Child) Name() string { return c.name }

// Spawn creates a child job, or a whole tree of them, when the run commits: a worker
// struct with its parameters filled in (see job.Single) or a graph. The job is woken
// whenever a child ends a run, or writes to an Out port that is wired to nobody: WokenBy tells by whom, and
// Await gives a child's result. The name must be new among the job's children, else the error wraps job.ErrExists.
// Options give the child labels, an alias, a queue. It takes as long with a million children as with one.
func (r *Run) Spawn(name string, p job.Planner, opts ...job.ChildOption) (*Child, error) {
	plan, alias, err := job.PlanChild(name, p, opts...)
	if err == nil && alias != "" {
		err = r.aliasFree(alias)
	}
	if err != nil {
		return nil, fmt.Errorf("spawning %.80q: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, errOver
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
	plan = plan.Traced(r.trace.at)
	for i := range plan.Nodes {
		if err := r.grow(len(plan.Nodes[i].Args)); err != nil {
			return nil, fmt.Errorf("spawning %q: %w", name, err)
		}
	}
	var base int
	if err := r.ask(func(ctx context.Context) (err error) {
		base, err = r.store.ReserveChild(ctx, r.info.ID, name, len(plan.Nodes))
		return err
	}); err != nil {
		return nil, fmt.Errorf("spawning %q: %w", name, err)
	}
	r.delta.Spawns = append(r.delta.Spawns, store.Spawn{Plan: plan, Base: base, Alias: alias})
	return r.knownChild(name, r.info.ID.Nth(base), plan), nil
}

// aliasFree returns an error if another job has an alias. Between now and the commit it may be taken: then the child's log
// says so.
func (r *Run) aliasFree(alias string) error {
	var holder job.ID
	err := r.ask(func(ctx context.Context) (err error) {
		holder, err = r.store.Resolve(ctx, alias)
		return err
	})
	if errors.Is(err, job.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%w: job %s has the alias %q", job.ErrExists, holder, alias)
	}
	return err
}

// knownChild notes what is known of a child. r.mu is held.
func (r *Run) knownChild(name string, id job.ID, fresh *job.Plan) *Child {
	c := &Child{run: r, id: id, name: name, fresh: fresh, boxes: map[string]*inbox{}}
	if r.children == nil {
		r.children = map[string]*Child{}
	}
	r.children[name] = c
	return c
}

// Child returns the child of that name, or an error that wraps job.ErrNotFound. It takes as long with a million children
// as with one.
func (r *Run) Child(name string) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.children[name]; c != nil {
		return c, nil
	}
	var id job.ID
	if err := r.ask(func(ctx context.Context) (err error) {
		id, err = r.store.Child(ctx, r.info.ID, name)
		return err
	}); err != nil {
		return nil, fmt.Errorf("looking for child %q: %w", name, err)
	}
	return r.knownChild(name, id, nil), nil
}

// WokenBy returns the children that woke the job: those that ended a run, or wrote to an Out port that is wired to
// nobody, since the last run of the job that did not fail was told of them; the first of them first. A run is told of at
// most job.MaxWoken, and if there are more it is followed by another. Who else woke the job, such as a message, is not
// told. A child's run may have changed nothing that the job cares for: see Await and Child.Info.
func (r *Run) WokenBy() []*Child {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Child, len(r.woken))
	for i, kin := range r.woken {
		if all[i] = r.children[kin.Name]; all[i] == nil {
			all[i] = r.knownChild(kin.Name, kin.ID, nil)
		}
	}
	return all
}

// Info returns what is known of the child now: not a part of the run's snapshot. What the child has
// done so far is no reason any more to run the job again after this run.
func (c *Child) Info() (info *job.Info, err error) {
	err = c.run.ask(func(ctx context.Context) error {
		info, err = c.run.store.Info(ctx, c.id)
		return err
	})
	if err == nil {
		c.run.mu.Lock()
		defer c.run.mu.Unlock()
		c.woke = info.Woke
	}
	return info, err
}

// Release lets the child go when the run commits: it is deleted, with all below it, as soon as it has settled and a run of
// its parent was told of that; at once if both are so. It is as if it had been spawned with job.Release, for a parent that learns only
// later that it is done with a child. A run releases job.MaxReleased children in one commit at most, and none that it spawns.
func (c *Child) Release() error {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	released := &c.run.delta.Released
	switch {
	case c.run.over:
		return errOver
	case c.fresh != nil:
		return fmt.Errorf("releasing child %q: %w: it is spawned by this run: give job.Release to Spawn", c.name, job.ErrNotFound)
	case slices.Contains(*released, c.name):
		return nil
	case len(*released) == job.MaxReleased:
		return fmt.Errorf("releasing child %q: %w: the run would release more than %d children in one commit; call Checkpoint in between", c.name, job.ErrTooLarge, job.MaxReleased)
	}
	*released = append(*released, c.name)
	return nil
}

// looked returns the children that woke the job during the run, which then looked what they had done. r.mu is held.
func (r *Run) looked() (all []store.Looked) {
	for _, c := range r.children {
		if c.woke > r.wokenTo && len(all) < job.MaxWoken {
			all = append(all, store.Looked{Name: c.name, Woke: c.woke})
		}
	}
	return all
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
	return c.write(in, raw, port.VersionOf(v))
}

// write buffers a message for an In port of the child, which the caller gives away.
func (c *Child) write(in string, raw json.RawMessage, version int) error {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	if err := c.run.write(store.Write{Job: c.id, Dir: port.Input, Port: in}, raw, version); err != nil {
		return fmt.Errorf("writing to port %q of child %q: %w", in, c.name, err)
	}
	return nil
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
	return w.child.write(w.name, slices.Clone(raw), 1)
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
	in.Reads(port.FormatOf(v))
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
