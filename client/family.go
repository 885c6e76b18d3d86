package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// At returns a handle of another job without asking whether it exists.
func (h *Handle) at(id job.ID) *Handle {
	return &Handle{store: h.store, types: h.types, trace: h.trace, id: id}
}

// Equal tells whether two handles are of the same job. As a key of a map use the ID.
func (h *Handle) Equal(o *Handle) bool { return o != nil && h.id == o.id }

// Exists tells whether the job is still there.
func (h *Handle) Exists(ctx context.Context) (bool, error) {
	_, err := h.Info(ctx)
	if errors.Is(err, job.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Children returns the job's children by name.
func (h *Handle) Children(ctx context.Context) (map[string]*Handle, error) {
	if _, err := h.Info(ctx); err != nil {
		return nil, err
	}
	ids, err := h.store.Children(ctx, h.id)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*Handle, len(ids))
	for name, id := range ids {
		out[name] = h.at(id)
	}
	return out, nil
}

// Child returns the child of that name, or an error that wraps job.ErrNotFound.
func (h *Handle) Child(ctx context.Context, name string) (*Handle, error) {
	id, err := h.store.Child(ctx, h.id, name)
	if err != nil {
		return nil, err
	}
	return h.at(id), nil
}

// Parent returns the job's parent, or nil if it has none.
func (h *Handle) Parent(ctx context.Context) (*Handle, error) {
	info, err := h.Info(ctx)
	if err != nil || info.Parent == "" {
		return nil, err
	}
	return h.at(info.Parent), nil
}

// RunParent asks for a run of the job's parent, if it has one.
func (h *Handle) RunParent(ctx context.Context) error {
	p, err := h.Parent(ctx)
	if err != nil || p == nil {
		return err
	}
	return p.Run(ctx)
}

// Adopt makes a job without a parent, of any tree, a child of this one. One that has a parent, this one included, is to be disowned
// first: the error wraps job.ErrStatus. One that has a sequential key or a unique key is refused.
func (h *Handle) Adopt(ctx context.Context, child *Handle, name string) error {
	if err := job.CheckName("job name", name); err != nil {
		return err
	}
	if child == nil {
		return fmt.Errorf("%w: there is no child to adopt as %q", job.ErrValue, name)
	}
	return h.store.Adopt(ctx, h.id, child.id, name)
}

// Disown makes the child of that name an orphan, or returns job.ErrNotFound if there is none.
func (h *Handle) Disown(ctx context.Context, name string) error {
	c, err := h.Child(ctx, name)
	if err != nil {
		return err
	}
	return h.DisownChild(ctx, c)
}

// DisownChild makes a child of the job an orphan, or returns job.ErrNotFound if it is not one.
func (h *Handle) DisownChild(ctx context.Context, child *Handle) error {
	return h.store.Disown(ctx, h.id, child.id)
}

// Terminate asks the job to end: a run in progress finishes first, then its worker's
// Shutdown gets its chance. The children of a job that is no graph go on.
func (h *Handle) Terminate(ctx context.Context) error {
	return h.store.Apply(ctx, h.id, statemachine.Terminate)
}

// TerminateAll asks the job and all below it to end.
func (h *Handle) TerminateAll(ctx context.Context) error { return h.store.Terminate(ctx, h.id) }

// Ended tells whether the job and all below it are terminated.
func (h *Handle) Ended(ctx context.Context) (bool, error) { return h.store.Ended(ctx, h.id) }

// Delete removes the job and all below it with everything they had. It returns an error
// that wraps job.ErrStatus, and removes nothing, unless all of them are terminated.
func (h *Handle) Delete(ctx context.Context) error { return h.store.Delete(ctx, h.id) }

// RunAt asks for a run at a time, besides those that happen before: at once if it is past. Its year is at most 9999.
func (h *Handle) RunAt(ctx context.Context, at time.Time) error {
	if err := job.CheckTime(at); err != nil {
		return fmt.Errorf("asking for a run of job %s: %w", h.id, err)
	}
	return h.store.RunAt(ctx, h.id, at, 0)
}

// RunAfter asks for a run after a delay, besides those that happen before.
func (h *Handle) RunAfter(ctx context.Context, d time.Duration) error {
	return h.store.RunAt(ctx, h.id, time.Time{}, max(d, 0))
}

// SetState stores values, each encoded as JSON, in the job's state. A run in progress
// may not see them. Keys are valid UTF-8, else the error wraps port.ErrEncoding. More than job.MaxWrites/2 of them, or than
// job.MaxCommit bytes, are refused with job.ErrTooLarge.
func (h *Handle) SetState(ctx context.Context, values map[string]any) error {
	if err := h.checkKeys(len(values)); err != nil {
		return err
	}
	set, size := make(map[string]json.RawMessage, len(values)), 0
	for k, v := range values {
		if err := job.CheckStateKey(k); err != nil {
			return fmt.Errorf("job %s: %w", h.id, err)
		}
		raw, err := port.Encode(v)
		if err != nil {
			return fmt.Errorf("state %q of job %s: %w", k, h.id, err)
		}
		if err := job.CheckSize("its value", len(k)+len(raw)); err != nil {
			return fmt.Errorf("state %.80q of job %s: %w", k, h.id, err)
		}
		set[k] = raw
		if size += len(k) + len(raw); size > job.MaxCommit {
			return fmt.Errorf("state of job %s: %w: the values have more than %d bytes together; set them in several calls", h.id, job.ErrTooLarge, job.MaxCommit)
		}
	}
	return h.store.SetState(ctx, h.id, set, nil)
}

// checkKeys refuses more keys of the state than one call changes.
func (h *Handle) checkKeys(n int) error {
	if n > job.MaxWrites/2 {
		return fmt.Errorf("state of job %s: %w: %d keys, at most %d are allowed; change them in several calls", h.id, job.ErrTooLarge, n, job.MaxWrites/2)
	}
	return nil
}

// UnsetState removes keys from the job's state.
func (h *Handle) UnsetState(ctx context.Context, keys ...string) error {
	if err := h.checkKeys(len(keys)); err != nil {
		return err
	}
	return h.store.SetState(ctx, h.id, nil, keys)
}

// AddAlias gives the job one more name, unique in the namespace. If another job has it
// the error wraps job.ErrExists and names that job.
func (h *Handle) AddAlias(ctx context.Context, alias string) error {
	if err := job.CheckAlias(alias); err != nil {
		return err
	}
	if _, err := h.Info(ctx); err != nil {
		return err
	}
	holder, err := h.store.Claim(ctx, alias, h.id)
	if err != nil {
		return err
	}
	if holder != h.id {
		return fmt.Errorf("%w: job %s has the alias %q", job.ErrExists, holder, alias)
	}
	// If the job was deleted meanwhile its aliases may have been removed before this one.
	if _, err := h.Info(ctx); errors.Is(err, job.ErrNotFound) {
		return errors.Join(err, h.store.Unclaim(ctx, alias, h.id))
	}
	return nil
}

// RemoveAlias removes an alias of the job, or returns job.ErrNotFound.
func (h *Handle) RemoveAlias(ctx context.Context, alias string) error {
	return h.store.Unclaim(ctx, alias, h.id)
}

// Aliases returns the job's aliases, sorted.
func (h *Handle) Aliases(ctx context.Context) ([]string, error) {
	names, err := h.store.Aliases(ctx, h.id)
	return names, h.checkEmpty(ctx, len(names), err)
}

// SetPorts replaces the job's ports, except those that are wired. Ports that stay keep
// their messages, dropped ones lose them.
func (h *Handle) SetPorts(ctx context.Context, ports []port.Spec) error {
	if err := job.CheckPorts(ports); err != nil {
		return err
	}
	return h.store.SetPorts(ctx, h.id, ports)
}

// SetDefault sets the default of an In port, or of an Out port and of all In ports that
// it is wired to. Jobs whose default changed wake.
func (h *Handle) SetDefault(ctx context.Context, dir port.Dir, name string, v any) error {
	raw, err := port.Encode(v)
	if err == nil {
		err = job.CheckSize("it", len(raw))
	}
	if err != nil {
		return fmt.Errorf("default of port %q of job %s: %w", name, h.id, err)
	}
	return h.store.SetDefault(ctx, h.id, store.Default{Dir: dir, Port: name, Value: raw})
}

// ClearDefault removes the default of a port.
func (h *Handle) ClearDefault(ctx context.Context, dir port.Dir, name string) error {
	return h.store.SetDefault(ctx, h.id, store.Default{Dir: dir, Port: name})
}

// Ref names a port of the job, for Connect.
func (h *Handle) Ref(dir port.Dir, name string) job.PortRef {
	return job.PortRef{Job: h.id, Dir: dir, Port: name}
}

// Connect moves all messages of a port to others, In ports if they are of another tree, each message to each
// of them, copies the port's default, and returns the data of what it moved. Many messages are moved in pieces, in
// order: those that are there when it is called. Should the process die, the engines move the rest. If a port that they
// go to is closed or deleted meanwhile the others stay where they are, and the error says so. In other trees messages
// arrive a moment later, and the job's log tells of those that did not.
func (h *Handle) Connect(ctx context.Context, dir port.Dir, name string, to ...job.PortRef) ([]json.RawMessage, error) {
	items, err := h.store.Connect(ctx, h.id, dir, name, to)
	for i := range items {
		items[i], _ = port.Split(items[i])
	}
	return items, err
}

// Runs returns what the last runs of the job, or of its whole tree if it is the root,
// read and wrote, oldest first: up to limit, which below zero is refused with job.ErrValue.
func (h *Handle) Runs(ctx context.Context, limit int) ([]job.RunEntry, error) {
	if _, err := h.Info(ctx); err != nil {
		return nil, err
	}
	return h.store.Runs(ctx, h.id, limit)
}
