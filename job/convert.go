package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirworks/weir/port"
)

// PatchOption is a choice made when a graph is patched.
type PatchOption func(*patchOptions)

type patchOptions struct {
	convert map[portPath]converter
}

// converter turns a stored message into the data of another one, and says which version of its type that is.
type converter func(stored json.RawMessage) (data json.RawMessage, version int, err error)

// portPath names a port of a graph by the path of its job below the graph, like sub/sum.
type portPath struct{ job, port string }

// Convert has a patch turn the messages that wait in an In port into those of its new Go type, when that is another one: in the
// same step as all else of the patch. The job is named by its path below the graph, like "sum" or "sub/sum"; "" is the graph.
// Contexts of messages stay. fn is called again if messages come meanwhile. Without it such a patch is refused.
func Convert[Old, New any](path, in string, fn func(Old) (New, error)) PatchOption {
	return func(o *patchOptions) {
		if o.convert == nil {
			o.convert = map[portPath]converter{}
		}
		o.convert[portPath{path, in}] = func(stored json.RawMessage) (json.RawMessage, int, error) {
			var old Old
			if err := port.DecodeStored(stored, &old); err != nil {
				return nil, 0, err
			}
			fresh, err := fn(old)
			if err != nil {
				return nil, 0, err
			}
			raw, err := port.Encode(fresh)
			return raw, port.VersionOf(fresh), err
		}
	}
}

// Retyped is a port that gets another Go type with a patch.
type Retyped struct {
	PortRef
	Path     string // of the job, below the graph
	From, To string
	// Converted are the messages that wait there, of the new type; the port's head must still be Head then, and it must hold no
	// more. Without Convert it must hold none.
	Convert   bool
	Head      int64
	Converted []json.RawMessage

	fn converter
}

// Refused is the error of a patch that leaves that many messages of another type in the port.
func (r *Retyped) Refused(waiting int64) error {
	return fmt.Errorf("%w: port %q of job %q holds %d messages of Go type %s, and is to have %s: let them be read first, or convert them with job.Convert",
		ErrStatus, r.Port, r.Path, waiting, r.From, r.To)
}

// MessageTypes tells which Go types the messages of ports have, by type of job and port, as far as known: what Patch compares.
func (p *Plan) MessageTypes() map[string]string {
	types := map[string]string{}
	for i := range p.Nodes {
		for k := range p.Nodes[i].Ports {
			if q := &p.Nodes[i].Ports[k]; q.Type != "" {
				types[messageKey(p.Nodes[i].Type, q)] = q.Type
			}
		}
	}
	return types
}

func messageKey(typ string, p *Port) string { return typ + " " + port.TypeKey(p.Dir, p.Name) }

// EncodeTypes writes what MessageTypes returns as one text, and DecodeTypes reads it.
func EncodeTypes(types map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(types)) {
		b.WriteString(key + "\t" + types[key] + "\n")
	}
	return b.String()
}

// DecodeTypes reads what EncodeTypes returned.
func DecodeTypes(text string) map[string]string {
	types := map[string]string{}
	for line := range strings.Lines(text) {
		key, typ, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		types[key] = typ
	}
	return types
}

// retyped lists the ports of a job that stays which get another Go type.
func retyped(was *Info, path string, n *Node, before map[string]string, o *patchOptions) (all []Retyped) {
	for k := range n.Ports {
		p := &n.Ports[k]
		from := before[messageKey(n.Type, p)]
		if from == "" || p.Type == "" || from == p.Type || p.MessageVersion > 1 {
			continue // of several versions: it reads the older ones
		}
		path := strings.TrimPrefix(path, "/")
		r := Retyped{PortRef: PortRef{Job: was.ID, Dir: p.Dir, Port: p.Name}, Path: path, From: from, To: p.Type}
		r.fn = o.convert[portPath{path, p.Name}]
		all = append(all, r)
	}
	return all
}

// convert converts what waits in ports that get another Go type.
func (h *Handle) convert(ctx context.Context, p *Patch) error {
	for i := range p.Retyped {
		r := &p.Retyped[i]
		if r.Convert = r.fn != nil; !r.Convert {
			continue
		}
		items, err := h.waiting(ctx, r)
		if err != nil {
			return err
		}
		r.Converted = make([]json.RawMessage, len(items))
		for n, stored := range items {
			data, _ := port.Split(stored)
			fresh, version, err := r.fn(stored)
			if err == nil {
				err = errors.Join(port.Check(fresh), CheckSize("it", len(fresh)))
			}
			if err != nil {
				return fmt.Errorf("converting message %d of port %q of job %q from %s to %s: %w", n+1, r.Port, r.Path, r.From, r.To, err)
			}
			head := stored[:len(stored)-len(data)] // its context
			r.Converted[n] = port.SealVersion(slices.Concat(head, fresh), version)
		}
	}
	return nil
}

// waiting reads all messages of a port that is to be converted.
func (h *Handle) waiting(ctx context.Context, r *Retyped) (all []json.RawMessage, err error) {
	size := 0
	for {
		items, head, err := h.store.Page(ctx, r.Job, r.Dir, r.Port, len(all), 1000, MaxCommit)
		if err != nil || len(items) == 0 || len(all) > 0 && head != r.Head {
			return all, err // if it moved the store refuses the patch
		}
		r.Head = head
		for _, m := range items {
			size += len(m)
		}
		if all = append(all, items...); Values(len(all), size) > MaxWrites || size > MaxCommit {
			return nil, fmt.Errorf("%w: port %q of job %q holds too many messages to be converted in one step: at most %d, where each 512 bytes count as one more: let some be read first",
				ErrTooLarge, r.Port, r.Path, MaxWrites)
		}
	}
}
