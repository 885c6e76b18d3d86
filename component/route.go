package component

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Case sends messages to a port of Route.
type Case struct {
	// When is an expression over it; true sends the message to the port.
	When string `json:"when"`
	// To is the port.
	To string `json:"to"`
}

// Route sends each message, unchanged, to the port of the first case that is true for it.
//
// Its Out ports are those that the cases and default name. Order is kept on each port,
// the result is the same however runs fall, and the end of in is the end of all ports.
type Route struct {
	pure
	// Cases are tried in order. At least one is required.
	Cases []Case `json:"cases,omitempty" doc:"list of {when, to}: an expression over it, and the port for messages for which it is true"`
	// Default is the port of messages that fit no case; without it they are left out.
	Default string `json:"default,omitempty" doc:"port of messages that fit no case; without it they are left out"`
	// All sends a message to every case that is true for it, not just the first.
	All bool `json:"all,omitempty" doc:"send a message to every case that is true, not just the first"`
	// OnError is what becomes of messages for which an expression fails.
	OnError string                   `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[json.RawMessage] `port:"in,required"`
	Err     port.Out[Rejected]       `port:"err"`
}

// JobType implements job.TypeNamer.
func (*Route) JobType() string { return "route" }

// Describe implements Component.
func (*Route) Describe() string {
	return "sends each message to the port of the first case that is true"
}

// Ports implements job.PortDeclarer.
func (r *Route) Ports() []port.Spec { return named(port.Output, r.targets()) }

// targets lists the ports, each once.
func (r *Route) targets() []string {
	var names []string
	for _, c := range r.Cases {
		if !slices.Contains(names, c.To) {
			names = append(names, c.To)
		}
	}
	if r.Default != "" && !slices.Contains(names, r.Default) {
		names = append(names, r.Default)
	}
	return names
}

// Validate implements Component.
func (r *Route) Validate() error {
	var c check
	c.is(len(r.Cases) > 0, "cases is missing")
	for i, k := range r.Cases {
		c.expr(fmt.Sprintf("when of case %d", i+1), k.When, scopeItem, false)
	}
	c.ports("to and default", r.targets(), 0, "err")
	c.onError(r.OnError)
	return c.err(r)
}

// Run implements worker.Worker.
func (r *Route) Run(ctx context.Context, run *worker.Run) error {
	if err := r.Validate(); err != nil {
		return err
	}
	tests := make([]*expression, len(r.Cases))
	for i, c := range r.Cases {
		var err error
		if tests[i], err = newExpression(ctx, run, c.When, scopeItem); err != nil {
			return err
		}
	}
	out := outs{run: run}
	var q quota
	return q.drain(ctx, r.In, func(raw json.RawMessage) error {
		to, err := r.choose(tests, raw)
		if err != nil {
			return reject(ctx, r.OnError, r.Err, raw, err)
		}
		for _, name := range to {
			q.bytes += len(raw)
			if err := out.write(name, raw); err != nil {
				return err
			}
		}
		return nil
	})
}

// choose returns the ports of a message.
func (r *Route) choose(tests []*expression, raw json.RawMessage) ([]string, error) {
	var to []string
	for i, x := range tests {
		ok, err := x.condition(raw)
		if err != nil {
			return nil, err
		}
		if name := r.Cases[i].To; ok && !slices.Contains(to, name) {
			to = append(to, name)
		}
		if ok && !r.All {
			break
		}
	}
	if len(to) == 0 && r.Default != "" {
		to = append(to, r.Default)
	}
	return to, nil
}

// Tee copies each message to several ports. An Out port with several edges copies too;
// Tee is for copies that have names, such as those of a flow's own ports.
//
// Order is kept, and the end of in is the end of all ports.
type Tee struct {
	pure
	// To names the Out ports. At least one is required.
	To []string                 `json:"to,omitempty" doc:"names of the Out ports"`
	In port.In[json.RawMessage] `port:"in,required"`
}

// JobType implements job.TypeNamer.
func (*Tee) JobType() string { return "tee" }

// Describe implements Component.
func (*Tee) Describe() string { return "copies each message to several ports" }

// Ports implements job.PortDeclarer.
func (t *Tee) Ports() []port.Spec { return named(port.Output, t.To) }

// Validate implements Component.
func (t *Tee) Validate() error {
	var c check
	c.ports("to", t.To, 1)
	return c.err(t)
}

// Run implements worker.Worker.
func (t *Tee) Run(ctx context.Context, run *worker.Run) error {
	if err := t.Validate(); err != nil {
		return err
	}
	out := outs{run: run}
	var q quota
	return q.drain(ctx, t.In, func(raw json.RawMessage) error {
		for _, name := range t.To {
			q.bytes += len(raw)
			if err := out.write(name, raw); err != nil {
				return err
			}
		}
		return nil
	})
}

// Emit writes the messages of a parameter, once, and completes: a constant, or the
// beginning of a flow.
type Emit struct {
	pure
	// Items are the messages.
	Items []json.RawMessage         `json:"items,omitempty" doc:"the messages to write"`
	Out   port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Emit) JobType() string { return "emit" }

// Describe implements Component.
func (*Emit) Describe() string { return "writes the messages of a parameter, once" }

// Validate implements Component.
func (e *Emit) Validate() error {
	var c check
	for i, raw := range e.Items {
		if err := port.Check(raw); err != nil {
			c.add("items[%d]: %v", i, err)
		}
	}
	return c.err(e)
}

// Run implements worker.Worker.
func (e *Emit) Run(_ context.Context, run *worker.Run) error {
	if err := e.Validate(); err != nil {
		return err
	}
	// All fits one commit: parameters are no larger than a message.
	return once(run, func() error {
		for _, raw := range e.Items {
			if err := e.Out.Write(raw); err != nil {
				return err
			}
		}
		return nil
	})
}

// endKey is where the state says that the end was dealt with.
const endKey = "end"

// once calls fn unless it was called in an earlier run: a completed job may be asked to
// run again.
func once(run *worker.Run, fn func() error) error {
	var over bool
	if _, err := run.State().Get(endKey, &over); err != nil || over {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	return run.State().Set(endKey, true)
}
