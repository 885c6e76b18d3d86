package worker

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// WithContext calls fn; all messages and log entries that the run writes meanwhile carry
// the given keys in their context, besides those of an enclosing WithContext, who wrote them, and the trace of the run if it is sampled.
func (r *Run) WithContext(keys port.Context, fn func() error) error {
	r.mu.Lock()
	before := r.keys
	if before == nil {
		before = r.writer()
	}
	err := r.setContext(before.With(keys))
	r.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		_ = r.setContext(before) // it was encoded once already
	}()
	return fn()
}

// writer is the context of messages that say no more than who wrote them.
func (r *Run) writer() port.Context {
	c := port.Context{port.ContextBy: byJob + string(r.info.ID)}
	if r.trace.at.Sampled() {
		return r.trace.at.Carry(c)
	}
	return c
}

// sealed returns what precedes a message that the run writes. r.mu is held.
func (r *Run) sealed() ([]byte, error) {
	if len(r.head) > 0 {
		return r.head, nil
	}
	var err error
	if t := r.trace.at; t.Sampled() {
		r.head, err = port.SealTraced(nil, byJob, string(r.info.ID), t.Parent, t.State)
	} else {
		r.head, err = port.SealBy(nil, byJob, string(r.info.ID))
	}
	return r.head, err
}

// byJob comes before the ID of a job in what says who wrote a message.
const byJob = "job:"

func (r *Run) setContext(c port.Context) error {
	head, err := port.Seal(nil, c)
	if err != nil {
		return err
	}
	r.keys, r.head = c, head
	r.extra = maps.Clone(c)
	for _, key := range []string{port.ContextBy, port.ContextTrace, port.ContextTraceState} {
		delete(r.extra, key)
	}
	return nil
}

// MessageContext returns the context of the message that was read last from an In port:
// who wrote it, the channel it came by, and its writer's keys. It is empty for a default.
func (r *Run) MessageContext(in string) (port.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	box := r.ins.get(in)
	if box == nil || box.context == nil {
		return port.Context{}, nil
	}
	var c map[string]any
	if err := port.Decode(box.context, &c); err != nil {
		return nil, fmt.Errorf("context of a message of port %q: %w", in, err)
	}
	return c, nil
}

// In returns an In port by its name, for ports that have no handle.
func (r *Run) In(name string) (port.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, errOver
	}
	if in := r.ins.get(name); in != nil {
		in.opened = true
		return in, nil
	}
	spec, err := r.admits(port.Input, name)
	if err != nil {
		return nil, err
	}
	in := &inbox{run: r, dir: port.Input, name: name, fallback: spec.Default}
	r.ins.add(in)
	r.boxes = append(r.boxes, in)
	return in, nil
}

// Out returns an Out port by its name, for ports that have no handle.
func (r *Run) Out(name string) (port.Writer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, errOver
	}
	if out := r.outs.get(name); out != nil {
		return out, nil
	}
	if _, err := r.admits(port.Output, name); err != nil {
		return nil, err
	}
	out := &outbox{run: r, name: name}
	r.outs.add(out)
	return out, nil
}

// admits tells whether the job's port `*` admits a port of that name.
func (r *Run) admits(dir port.Dir, name string) (port.Spec, error) {
	if err := port.CheckName(name); err != nil {
		return port.Spec{}, fmt.Errorf("%w of job %s: %w", job.ErrPort, r.info.ID, err)
	}
	for _, p := range r.info.Ports {
		if p.Dir == dir && p.Name == port.Any {
			return p.Spec, nil
		}
	}
	return port.Spec{}, fmt.Errorf("%w: job %s has no %s port %q", job.ErrPort, r.info.ID, dir, name)
}

// SetDefault sets the default of a port of the job when the run commits; of an Out port,
// also of the In ports that it is wired to.
func (r *Run) SetDefault(dir port.Dir, name string, v any) error {
	raw, err := port.Encode(v)
	if err != nil {
		return fmt.Errorf("default of port %q: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setDefault(store.Default{Dir: dir, Port: name, Value: raw})
}

// ClearDefault removes the default of a port of the job when the run commits.
func (r *Run) ClearDefault(dir port.Dir, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setDefault(store.Default{Dir: dir, Port: name})
}

func (r *Run) setDefault(d store.Default) error {
	known := r.ins.get(d.Port) != nil
	if d.Dir == port.Output {
		known = r.outs.get(d.Port) != nil
	}
	if !known && d.Job == "" {
		if _, err := r.admits(d.Dir, d.Port); err != nil {
			return err
		}
	}
	if err := r.grow(len(d.Value)); err != nil {
		return fmt.Errorf("default of port %q: %w", d.Port, err)
	}
	if in := r.ins.get(d.Port); d.Dir == port.Input && d.Job == "" && in != nil {
		in.fallback = d.Value
	}
	r.delta.Defaults = append(r.delta.Defaults, d)
	return nil
}

// SetPorts replaces the job's ports when the run commits, except those that are wired.
// Ports that stay keep their messages, dropped ones lose them. The next run has them.
func (r *Run) SetPorts(ports []port.Spec) error {
	if err := job.CheckPorts(ports); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errOver
	}
	r.delta.SetPorts = append([]port.Spec{}, ports...)
	return nil
}

// Connect moves all messages that an In port, or a child's Out port, has to other ports,
// each message to each of them with the keys of its context, and copies the port's default. It returns how many it moved.
func (r *Run) Connect(from port.Reader, to ...port.Writer) (int, error) {
	in, ok := from.(*inbox)
	if !ok || in.run != r {
		return 0, fmt.Errorf("%w: Connect needs a port of this run, from Run.In or Child.Out", job.ErrPort)
	}
	if len(to) == 0 {
		return 0, fmt.Errorf("%w: Connect is given no port to write to: what it read would be gone", job.ErrPort)
	}
	var all []passed
	for {
		raw, ok, err := in.message()
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		keys, err := in.keys()
		if err != nil {
			return 0, err
		}
		all = append(all, passed{raw, r.passes(nil, 0), keys})
	}
	for _, w := range to {
		for _, m := range all {
			if err := r.pass(m, w); err != nil {
				return 0, err
			}
		}
	}
	n := len(all)
	if in.fallback == nil {
		return n, nil
	}
	for _, w := range to {
		if err := r.copyDefault(in.fallback, w); err != nil {
			return n, err
		}
	}
	return n, nil
}

// passed is a message that Connect moves: its version, and the keys of its context that this run does not set itself.
type passed struct {
	raw     json.RawMessage
	version int
	keys    port.Context
}

// pass writes a message as it was read.
func (r *Run) pass(m passed, to port.Writer) error {
	r.passes(m.raw, m.version)
	if len(m.keys) == 0 {
		return to.Write(m.raw)
	}
	return r.WithContext(m.keys, func() error { return to.Write(m.raw) })
}

// keys are those of the context of the message read last, besides what says who wrote it, its trace and its version.
func (in *inbox) keys() (port.Context, error) {
	if in.context == nil {
		return nil, nil
	}
	var c port.Context
	if err := port.Decode(in.context, &c); err != nil {
		return nil, fmt.Errorf("context of a message of port %q: %w", in.name, err)
	}
	for _, key := range []string{port.ContextBy, port.ContextTrace, port.ContextTraceState, port.ContextVersion} {
		delete(c, key)
	}
	return c, nil
}

// passes returns which version the message has that was read last as it is stored, and with raw makes that one it.
func (r *Run) passes(raw json.RawMessage, version int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if raw != nil {
		r.passed, r.passing = raw, version
	}
	return r.passing
}

func (r *Run) copyDefault(value json.RawMessage, to port.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch w := to.(type) {
	case *outbox:
		return r.setDefault(store.Default{Dir: port.Output, Port: w.name, Value: value})
	case *childIn:
		return r.setDefault(store.Default{Job: w.child.id, Dir: port.Input, Port: w.name, Value: value})
	}
	return fmt.Errorf("%w: Connect needs ports of this run, from Run.Out or Child.In", job.ErrPort)
}
