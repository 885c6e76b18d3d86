package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// takes is what a handle knows of the messages that ports of its job take.
type takes struct {
	mu    sync.Mutex
	ports map[string][]taker // by port.TypeKey
}

// taker is a port of a worker that messages pass or arrive in.
type taker struct {
	at        job.PortRef
	typ, kind string          // the Go type of its messages, and their kind of JSON
	schema    *port.Schema    // what more is known of them; nil for nothing, and of messages that have versions
	any       bool            // it takes any message: nothing more is known
	text      json.RawMessage // the JSON Schema of its messages
}

// maxLooks is how many jobs a handle looks at to learn what a port takes that leads to others.
const maxLooks = 16

// fit refuses messages that could not be decoded where they would arrive. What the handle knows may
// be old, as engines and wires change: nothing is refused without asking again.
func (h *Handle) fit(ctx context.Context, ref job.PortRef, items []json.RawMessage) error {
	for _, fresh := range []bool{false, true} {
		takers, err := h.takers(ctx, ref, fresh)
		if err != nil {
			return err
		}
		err = h.unfit(takers, items)
		if o, _ := ctx.Value(writeKey{}).(writeOptions); err == nil && o.known {
			err = unknown(takers, items)
		}
		if err == nil || fresh {
			return err
		}
	}
	return nil
}

// unfit returns an error about the first message that a port does not take.
func (h *Handle) unfit(takers []taker, items []json.RawMessage) error {
	for i, item := range items {
		data, head := port.Split(item)
		for _, t := range takers {
			err := t.check(data, head)
			if err == nil {
				continue
			}
			of := ""
			if t.at.Job != h.id {
				of = fmt.Sprintf(", it leads to port %q of job %s, which", t.at.Port, t.at.Job)
			}
			return fmt.Errorf("message %d: %w%s takes messages of type %s; nothing was written", i+1, err, cmp.Or(of, ", and the port"), t.typ)
		}
	}
	return nil
}

// unknown returns an error about the first message with a field that none of the ports knows.
func unknown(takers []taker, items []json.RawMessage) error {
	for _, t := range takers {
		if t.any || t.typ == "" || t.schema == nil {
			return nil
		}
	}
	for i, item := range items {
		data, _ := port.Split(item)
		var found map[string]string
		for n, t := range takers {
			here := t.schema.UnknownFields(data)
			if n == 0 {
				found = here
			}
			maps.DeleteFunc(found, func(field, _ string) bool { _, ok := here[field]; return !ok })
		}
		for _, field := range slices.Sorted(maps.Keys(found)) {
			return fmt.Errorf("message %d: %w: the port takes messages of type %s, which has no field %s: %s; nothing was written", i+1, port.ErrEncoding, takers[0].typ, field, found[field])
		}
	}
	return nil
}

// check tells why a message could not be decoded. One of another version of its type is converted by the worker.
func (t *taker) check(data, head json.RawMessage) error {
	if t.any {
		return nil
	}
	err := port.CheckKind(data, t.kind)
	if err != nil || t.schema == nil || bytes.Contains(head, []byte(port.ContextVersion)) {
		return err
	}
	if bad := t.schema.Check(data); len(bad) > 0 {
		return fmt.Errorf("%w: %s", port.ErrEncoding, strings.Join(bad, ", "))
	}
	return nil
}

// takers returns which ports messages pass or arrive in that are written to one, as far as it is
// known what they take; fresh: as it is now.
func (h *Handle) takers(ctx context.Context, ref job.PortRef, fresh bool) ([]taker, error) {
	key := port.TypeKey(ref.Dir, ref.Port)
	h.takes.mu.Lock()
	known, ok := h.takes.ports[key]
	h.takes.mu.Unlock()
	if ok && !fresh {
		return known, nil
	}
	if fresh {
		if err := h.types.read(ctx); err != nil {
			return nil, err
		}
	}
	takers, err := h.follow(ctx, ref, fresh)
	if err != nil {
		return nil, err
	}
	h.takes.mu.Lock()
	defer h.takes.mu.Unlock()
	if h.takes.ports == nil {
		h.takes.ports = make(map[string][]taker)
	}
	h.takes.ports[key] = takers
	return takers, nil
}

// Schema returns the JSON Schema of the messages of a port. Of one that leads to others, such as an In port of a graph, it is that of
// the first port on their way of which one is known; it is that of any JSON if none is.
func (h *Handle) Schema(ctx context.Context, dir port.Dir, name string) (json.RawMessage, error) {
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := info.Port(dir, name); !ok {
		return nil, fmt.Errorf("%w: job %s has no %s port %q", job.ErrPort, h.id, dir, name)
	}
	takers, err := h.takers(ctx, job.PortRef{Job: h.id, Dir: dir, Port: name}, true)
	if err != nil {
		return nil, fmt.Errorf("looking what port %q of job %s takes: %w", name, h.id, err)
	}
	for _, t := range takers {
		if !t.any {
			return t.text, nil
		}
	}
	return port.SchemaText(port.KindAny, nil), nil
}

// follow finds the takers of a port along its wires. Of an edge with several ends, which are
// instances of one node, it looks at the first.
func (h *Handle) follow(ctx context.Context, ref job.PortRef, fresh bool) (takers []taker, err error) {
	todo := []job.PortRef{ref}
	for looks := 0; looks < len(todo) && looks < maxLooks; looks++ {
		at := todo[looks]
		info, err := plannedInfo(h.planned, h.id, at.Job), error(nil)
		if looks == 0 && info == nil {
			info = h.seen
		}
		if info == nil || fresh {
			info, err = h.store.Info(ctx, at.Job)
		}
		if errors.Is(err, job.ErrNotFound) {
			continue // if it is the job itself, the write says so
		}
		if err != nil {
			return nil, err
		}
		if !info.Graph {
			t, err := h.types.get(ctx, registration{info.Queue, info.Type})
			if err != nil {
				return nil, err
			}
			if kind := t.Kinds[port.TypeKey(at.Dir, at.Port)]; kind != "" {
				takers = append(takers, takerOf(t, at, kind))
			} else {
				takers = append(takers, taker{at: at, any: true})
			}
		}
		p, _ := info.Port(at.Dir, at.Port)
		for _, edge := range p.Edges {
			todo = append(todo, edge[0])
		}
	}
	return takers, nil
}

// takerOf is what is registered of the messages of a port.
func takerOf(t *job.TypeInfo, at job.PortRef, kind string) taker {
	takes := taker{at: at, kind: kind, text: port.SchemaText(kind, t.Schemas[port.TypeKey(at.Dir, at.Port)])}
	versions := false
	for _, s := range t.Ports {
		if s.Dir == at.Dir && s.Name == at.Port {
			takes.typ, versions = s.Type, s.MessageVersion > 1
		}
	}
	if raw := t.Schemas[port.TypeKey(at.Dir, at.Port)]; len(raw) > 0 && !versions {
		takes.schema = new(port.Schema)
		if json.Unmarshal(raw, takes.schema) != nil {
			takes.schema = nil // it says nothing that could be checked
		}
	}
	return takes
}

// plannedInfo is what a plan tells of one of its jobs for whoever looks where messages go, or nil: root is the ID of the first one.
func plannedInfo(p *job.Plan, root, id job.ID) *job.Info {
	if p == nil || id.Tree() != root || root != root.Tree() || id.Number() >= len(p.Nodes) {
		return nil
	}
	n := &p.Nodes[id.Number()]
	i := &job.Info{ID: id, Type: n.Type, Queue: cmp.Or(n.Queue, job.DefaultQueue), Graph: n.Graph}
	for k := range n.Ports {
		one := job.PortInfo{Spec: n.Ports[k].Spec}
		for _, e := range n.Ports[k].Edges {
			var ends []job.PortRef
			for _, t := range e {
				ends = append(ends, job.PortRef{Job: root.Nth(t.Node), Dir: t.Dir, Port: t.Port})
			}
			one.Edges = append(one.Edges, ends)
		}
		i.Ports = append(i.Ports, one)
	}
	return i
}
