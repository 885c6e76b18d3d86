package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Handle acts on one job from outside of its runs. It holds no state of the job, but what kind of
// messages ports take that it has written to: every call asks the store. Methods on a job that is gone return job.ErrNotFound.
type Handle struct {
	store   store.Store
	types   *catalogue
	trace   traceFinder
	id      job.ID
	created bool
	merged  bool      // see Merged
	seen    *job.Info // as it was when the handle was made, if that is known
	planned *job.Plan // what the job was created of by this handle, unless that is nil
	takes   takes
}

// ID returns the job's ID.
func (h *Handle) ID() job.ID { return h.id }

// Created tells whether the Start that returned this handle created the tree, rather
// than found it under its alias, its Key or its unique key.
func (h *Handle) Created() bool { return h.created }

// Merged tells whether the Start that returned this handle found the tree by its unique key and merged the args into those of its root, see
// job.UniqueBy.Merge.
func (h *Handle) Merged() bool { return h.merged }

// Info returns what is known of the job now.
func (h *Handle) Info(ctx context.Context) (*job.Info, error) { return h.store.Info(ctx, h.id) }

// Tree returns all jobs of the job's tree ordered by number, the root first. Graphs in
// which nothing moves say in their Reason what is open.
func (h *Handle) Tree(ctx context.Context) ([]*job.Info, error) {
	tree, err := h.store.Tree(ctx, h.id)
	explain(tree)
	return tree, err
}

// under tells which jobs of a tree are a job or below it.
func under(tree []*job.Info, top job.ID) map[job.ID]bool {
	parents, is := make(map[job.ID]job.ID, len(tree)), make(map[job.ID]bool, len(tree))
	for _, i := range tree {
		parents[i.ID] = i.Parent
	}
	for _, i := range tree {
		up := i.ID
		for up != "" && up != top {
			up = parents[up]
		}
		is[i.ID] = up == top
	}
	return is
}

// State returns the job's state: the given keys, or all of it when none is given.
func (h *Handle) State(ctx context.Context, keys ...string) (map[string]json.RawMessage, error) {
	all, err := h.store.State(ctx, h.id, keys...)
	return all, h.checkEmpty(ctx, len(all), err)
}

// checkEmpty tells a job that has nothing from one that is gone.
func (h *Handle) checkEmpty(ctx context.Context, n int, err error) error {
	if n == 0 && err == nil {
		_, err = h.Info(ctx)
	}
	return err
}

// Failures returns the job's recorded errors, newest first.
func (h *Handle) Failures(ctx context.Context) ([]job.Failure, error) {
	fs, err := h.store.Failures(ctx, h.id)
	return fs, h.checkEmpty(ctx, len(fs), err)
}

// Logs returns the last entries that runs of the job logged, oldest first: up to limit, which below zero is refused with job.ErrValue.
func (h *Handle) Logs(ctx context.Context, limit int) ([]job.LogEntry, error) {
	if _, err := h.Info(ctx); err != nil {
		return nil, err
	}
	return h.store.Logs(ctx, h.id, limit)
}

// Write appends messages to an In port of the job, each encoded as JSON, and wakes it. If a
// message, or a field within it, is of another kind of JSON than the Go type of the port, which engines have registered, or of
// those that the port of a graph leads to, the error wraps port.ErrEncoding and nothing is
// written. A handle's first write to a port asks the store for that.
func (h *Handle) Write(ctx context.Context, in string, messages ...any) error {
	return h.write(ctx, port.Input, in, "", messages)
}

// WriteOnce is Write, and does nothing if a write with the same key came to the port within the last hour: so a caller that does not know
// whether a write was carried out, as its process died or no answer came, may repeat it. A key is a text of 1 to 128 bytes;
// each write needs one of its own, such as the number of an order.
func (h *Handle) WriteOnce(ctx context.Context, key, in string, messages ...any) error {
	if err := checkKey("write", key); err != nil {
		return err
	}
	return h.write(ctx, port.Input, in, key, messages)
}

// WriteOut appends messages to an Out port of the job, as if the job had written them.
func (h *Handle) WriteOut(ctx context.Context, out string, messages ...any) error {
	return h.write(ctx, port.Output, out, "", messages)
}

func (h *Handle) write(ctx context.Context, dir port.Dir, name, once string, messages []any) error {
	w, err := h.writing(ctx, dir, name, once, messages)
	if err != nil {
		return err
	}
	return h.store.Write(ctx, h.id, w)
}

// writing is what write hands to the store.
func (h *Handle) writing(ctx context.Context, dir port.Dir, name, once string, messages []any) (store.Write, error) {
	items, err := encode(ctx, h.trace, messages)
	if err != nil {
		return store.Write{}, fmt.Errorf("writing to port %q of job %s: %w", name, h.id, err)
	}
	if err := h.fit(ctx, job.PortRef{Job: h.id, Dir: dir, Port: name}, items); err != nil {
		return store.Write{}, fmt.Errorf("writing to port %q of job %s: %w", name, h.id, err)
	}
	w := store.Write{Dir: dir, Port: name, Items: items, Once: once}
	if o, _ := ctx.Value(writeKey{}).(writeOptions); o.quiet {
		w.NoWake = true
	}
	if o, _ := ctx.Value(writeKey{}).(writeOptions); !o.unlogged {
		w.Entry = outsideEntry(h.id, w, job.ContextOf(ctx))
	}
	return w, nil
}

// Close ends an In port of the job: when what it holds is read, it is done.
func (h *Handle) Close(ctx context.Context, in string) error {
	return h.store.ClosePort(ctx, h.id, port.Input, in)
}

// Peek returns up to n of the oldest messages of an Out port, and no more of them than
// fit in job.MaxPeek bytes, without removing them.
func (h *Handle) Peek(ctx context.Context, out string, n int) ([]json.RawMessage, error) {
	items, _, err := h.store.Peek(ctx, h.id, port.Output, out, n)
	for i := range items {
		items[i], _ = port.Split(items[i])
	}
	return items, err
}

// Read removes the oldest message of an Out port and decodes it into v. When the port
// is empty v gets its default; ok is false if it has none.
func (h *Handle) Read(ctx context.Context, out string, v any) (ok bool, err error) {
	return h.read(ctx, port.Output, out, v)
}

// ReadIn is Read for an In port.
func (h *Handle) ReadIn(ctx context.Context, in string, v any) (ok bool, err error) {
	return h.read(ctx, port.Input, in, v)
}

func (h *Handle) read(ctx context.Context, dir port.Dir, name string, v any) (bool, error) {
	var found bool
	err := h.takeFirst(ctx, dir, name, 1, func(items []json.RawMessage) error {
		if found = len(items) > 0; found {
			return h.decode(name, items[0], v)
		}
		info, err := h.Info(ctx)
		if err != nil {
			return err
		}
		p, exists := info.Port(dir, name)
		if !exists {
			p, _ = info.Port(dir, port.Any)
		}
		if p.Default != nil {
			found = true
			return h.decode(name, p.Default, v)
		}
		return nil
	})
	return found && err == nil, err
}

func (h *Handle) decode(name string, stored json.RawMessage, v any) error {
	if err := port.DecodeStored(stored, v); err != nil {
		return fmt.Errorf("reading port %q of job %s: %w", name, h.id, err)
	}
	return nil
}

// Drain removes all messages of a port, never its default, and returns their data.
func (h *Handle) Drain(ctx context.Context, dir port.Dir, name string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for {
		n := 0
		err := h.takeFirst(ctx, dir, name, drainBatch, func(items []json.RawMessage) error {
			n = len(items)
			for _, stored := range items {
				data, _ := port.Split(stored)
				all = append(all, data)
			}
			return nil
		})
		if err != nil || n == 0 {
			return all, err
		}
	}
}

// drainBatch is how many messages Drain takes at a time.
const drainBatch = 1000

// takeFirst removes up to n of the oldest messages of a port, after use was called with
// them. First look, then use, then remove: a reply lost on the way loses no message, and a
// message that cannot be used stays.
func (h *Handle) takeFirst(ctx context.Context, dir port.Dir, name string, n int, use func([]json.RawMessage) error) error {
	token := rand.Text()
	for {
		items, head, err := h.store.Peek(ctx, h.id, dir, name, n)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return use(nil)
		}
		taken := func() error {
			return h.store.Take(ctx, h.id, store.Take{Dir: dir, Port: name, Head: head, N: len(items)}, token)
		}
		if n == 1 { // decoding may fail: then the message must stay
			if err := use(items); err != nil {
				return err
			}
			if err = taken(); !errors.Is(err, job.ErrMoved) {
				return err
			}
			continue
		}
		if err = taken(); err == nil {
			return use(items)
		}
		if !errors.Is(err, job.ErrMoved) {
			return err
		}
	}
}

// Run asks for a run that begins after this call, now, whatever the job waits for. A
// failed or terminated job needs Retry or Force.
func (h *Handle) Run(ctx context.Context) error {
	return h.store.Apply(ctx, h.id, statemachine.Run)
}

// Force is Run for failed and terminated jobs too.
func (h *Handle) Force(ctx context.Context) error {
	return h.store.Apply(ctx, h.id, statemachine.Force)
}

// outsideEntry is what the log says of messages written from outside of runs.
func outsideEntry(id job.ID, w store.Write, c port.Context) string {
	m := job.Movement{Job: id, Dir: w.Dir, Port: w.Port, N: len(w.Items), Context: maps.Clone(c)}
	delete(m.Context, port.ContextBy)
	size := 0
	for _, stored := range w.Items {
		data, _ := port.Split(stored)
		m.Data = append(m.Data, data)
		if size += len(data); len(data) > store.MaxLoggedMessage || size > store.MaxLoggedEntry {
			m.Data = nil
			break
		}
	}
	by, _ := c[port.ContextBy].(string)
	return (&job.RunEntry{By: by, Write: []job.Movement{m}}).Encode()
}
