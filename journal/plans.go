package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// In is the In port that payloads go to: of a type without it, the first.
const In = "in"

// By is who creates the jobs.
const By = "journal"

// typesKept is for how long what is registered is taken to be as it was read.
const typesKept = time.Second

// Types tells which types are registered.
type Types interface {
	Types(ctx context.Context) ([]job.TypeInfo, error)
}

// Plans plans the jobs that payloads become. It is used by one goroutine at a time.
type Plans struct {
	Types Types
	// Ports are those of jobs of types that nobody has registered yet; nil means an In port named In alone.
	Ports []port.Spec

	known map[string]*model
	read  time.Time
}

// model is what all jobs of a type have in common.
type model struct {
	plan *job.Plan
	in   int    // the port of its node that payloads go to; -1 for none
	kind string // that the port takes
}

// refresh reads what is registered, unless it has just been read.
func (p *Plans) refresh(ctx context.Context) error {
	if p.known != nil && time.Since(p.read) < typesKept {
		return nil
	}
	all, err := p.Types.Types(ctx)
	if err != nil {
		return err
	}
	found := map[string]*job.TypeInfo{}
	for i := range all { // of a type that several queues have, that of the default queue, or the first
		if t := &all[i]; found[t.Type] == nil || t.Queue == job.DefaultQueue {
			found[t.Type] = t
		}
	}
	p.known, p.read = map[string]*model{}, time.Now()
	for name, t := range found {
		if p.known[name], err = modelOf(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func modelOf(ctx context.Context, t *job.TypeInfo) (*model, error) {
	plan, err := job.PlanNew(ctx, func(context.Context, string, string) (*job.TypeInfo, error) { return t, nil }, job.New{Type: t.Type, Queue: t.Queue})
	if err != nil {
		return nil, fmt.Errorf("type %s: %w", t.Type, err)
	}
	o := &model{plan: plan, in: -1}
	for i := range plan.Nodes[0].Ports {
		if p := &plan.Nodes[0].Ports[i]; p.Dir == port.Input && p.Name != port.Any && (o.in < 0 || p.Name == In) {
			o.in = i
		}
	}
	if o.in >= 0 {
		o.kind = t.Kinds[port.TypeKey(port.Input, plan.Nodes[0].Ports[o.in].Name)]
	}
	return o, nil
}

// Plan is the job of a type that a payload becomes: its In port holds it, and ends behind it. A type that nobody has registered is planned in the
// default queue: its jobs wait for an engine that has it.
func (p *Plans) Plan(ctx context.Context, typ string, payload []byte) (*job.Plan, error) {
	if err := p.refresh(ctx); err != nil {
		return nil, err
	}
	o := p.known[typ]
	if o == nil {
		t := &job.TypeInfo{Type: typ, Queue: job.DefaultQueue, Ports: p.Ports}
		if t.Ports == nil {
			t.Ports = []port.Spec{{Dir: port.Input, Name: In}}
		}
		var err error
		if o, err = modelOf(ctx, t); err != nil {
			return nil, err
		}
		p.known[typ] = o
	}
	plan := *o.plan
	if o.in >= 0 {
		message, err := Message(payload, o.kind)
		if err == nil {
			message, err = port.SealBy(message, "", By)
		}
		if err != nil {
			return nil, err
		}
		node := plan.Nodes[0]
		node.Ports = append([]job.Port{}, node.Ports...)
		in := &node.Ports[o.in]
		in.Initial, in.Closed = []json.RawMessage{message}, true
		plan.Nodes = []job.Node{node}
	}
	return &plan, nil
}

// Message is the message that a payload becomes for a port that takes messages of a kind: a string, or what its JSON means if the port
// takes JSON of another kind, such as objects.
func Message(payload []byte, kind string) (json.RawMessage, error) {
	if kind != "" && kind != "string" && json.Valid(payload) {
		return bytes.TrimSpace(payload), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(string(payload))
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
