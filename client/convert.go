package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// PatchOption is a choice made when a graph is patched.
type PatchOption func(*patchOptions)

type patchOptions struct {
	convert map[portPath]converter
}

// converter turns a stored message into the data of another one, and says which version of its type that is.
type converter struct {
	from, to reflect.Type
	convert  func(stored json.RawMessage) (data json.RawMessage, version int, err error)
}

// portPath names a port of a graph by the path of its job below the graph, like sub/sum.
type portPath struct{ job, port string }

// Convert has a patch turn the messages that wait in an In port into those of its new Go type, when that is another one: in the
// same step as all else of the patch. Old and New are the Go types that the port has and is to have, and the new graph must have
// such a port: else the patch is refused. The job is named by its path below the graph, like "sum" or "sub/sum"; "" is the graph.
// Contexts of messages stay. fn is called again if messages come meanwhile. Without it such a patch is refused.
func Convert[Old, New any](path, in string, fn func(Old) (New, error)) PatchOption {
	return func(o *patchOptions) {
		if o.convert == nil {
			o.convert = map[portPath]converter{}
		}
		o.convert[portPath{path, in}] = converter{reflect.TypeFor[Old](), reflect.TypeFor[New](), func(stored json.RawMessage) (json.RawMessage, int, error) {
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
		}}
	}
}

// retyped lists the ports of a job that stays which get another Go type.
func retyped(was *job.Info, path string, n *job.Node, before map[string]string) (all []store.Retyped) {
	for k := range n.Ports {
		p := &n.Ports[k]
		from := before[job.MessageKey(n.Type, p)]
		if from == "" || p.Type == "" || from == p.Type || p.MessageVersion > 1 {
			continue // of several versions: it reads the older ones
		}
		path := strings.TrimPrefix(path, "/")
		all = append(all, store.Retyped{PortRef: job.PortRef{Job: was.ID, Dir: p.Dir, Port: p.Name}, Path: path, From: from, To: p.Type})
	}
	return all
}

// convert converts what waits in ports that get another Go type.
func (h *Handle) convert(ctx context.Context, p *store.Patch, o *patchOptions) error {
	for at := range o.convert {
		if err := at.in(p.Nodes); err != nil {
			return err
		}
	}
	for i := range p.Retyped {
		r := &p.Retyped[i]
		c, ok := o.convert[portPath{r.Path, r.Port}]
		if r.Convert = ok; !ok {
			continue
		}
		if !sameType(c.from, r.From) || !sameType(c.to, r.To) {
			return fmt.Errorf("%w: port %q of job %q goes from Go type %s to %s, and client.Convert from %s to %s", port.ErrEncoding, r.Port, r.Path, r.From, r.To, c.from, c.to)
		}
		items, err := h.waiting(ctx, r)
		if err != nil {
			return err
		}
		r.Converted = make([]json.RawMessage, len(items))
		for n, stored := range items {
			data, _ := port.Split(stored)
			fresh, version, err := c.convert(stored)
			if err == nil {
				err = errors.Join(port.Check(fresh), job.CheckSize("it", len(fresh)))
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

// in tells what is wrong if a graph has no such port.
func (at portPath) in(nodes []job.Node) error {
	paths := make([]string, len(nodes))
	for i := range nodes {
		if i > 0 {
			paths[i] = strings.TrimPrefix(paths[nodes[i].Parent]+"/"+nodes[i].Name, "/")
		}
		if paths[i] != at.job {
			continue
		}
		names := make([]string, 0, len(nodes[i].Ports))
		for k := range nodes[i].Ports {
			if p := &nodes[i].Ports[k]; p.Name == at.port {
				return nil
			} else if p.Dir == port.Input {
				names = append(names, p.Name)
			}
		}
		return fmt.Errorf("%w: client.Convert: job %q of the new graph has no port %q: %s", job.ErrPort, at.job, at.port, port.Suggest(at.port, names))
	}
	return fmt.Errorf("%w: client.Convert: the new graph has no job %q: %s", job.ErrName, at.job, port.Suggest(at.job, paths))
}

// waiting reads all messages of a port that is to be converted.
func (h *Handle) waiting(ctx context.Context, r *store.Retyped) (all []json.RawMessage, err error) {
	size := 0
	for {
		items, head, err := h.store.Page(ctx, r.Job, r.Dir, r.Port, len(all), 1000, job.MaxCommit)
		if err != nil || len(items) == 0 || len(all) > 0 && head != r.Head {
			return all, err // if it moved the store refuses the patch
		}
		r.Head = head
		for _, m := range items {
			size += len(m)
		}
		if all = append(all, items...); job.Values(len(all), size) > job.MaxWrites || size > job.MaxCommit {
			return nil, fmt.Errorf("%w: port %q of job %q holds too many messages to be converted in one step: at most %d, where each 512 bytes count as one more: let some be read first",
				job.ErrTooLarge, r.Port, r.Path, job.MaxWrites)
		}
	}
}
