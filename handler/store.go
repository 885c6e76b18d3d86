package handler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Ports of a handler. On PortIn come payloads; PortOut has what comes of those that end as OK, PortErr of those that end as FAILED.
const (
	PortIn  = "in"
	PortOut = "out"
	PortErr = "err"
)

// Ports are those of every handler.
func Ports() []port.Spec {
	return []port.Spec{{Dir: port.Input, Name: PortIn}, {Dir: port.Output, Name: PortOut}, {Dir: port.Output, Name: PortErr}}
}

// Stored is one version of a handler.
type Stored struct {
	Type       string     `json:"type"`
	Version    int64      `json:"version"`
	At         time.Time  `json:"at"`
	Deleted    bool       `json:"deleted,omitempty"`
	Definition Definition `json:"definition,omitzero"`
}

func stored(v store.HandlerVersion) (Stored, error) {
	s := Stored{Type: v.Type, Version: v.Version, At: v.At, Deleted: v.Text == nil}
	if v.Text != nil {
		if err := json.Unmarshal(v.Text, &s.Definition); err != nil {
			return s, fmt.Errorf("version %d of the handler of type %q cannot be read: %w; set it again", v.Version, v.Type, err)
		}
	}
	return s, nil
}

// Set stores a new version of the handler of a type and returns its number. An invalid one, and a type whose code some program has, are
// refused.
func Set(ctx context.Context, s store.Handlers, typ string, d Definition) (int64, error) {
	if err := d.Validate(); err != nil {
		return 0, err
	}
	if d.Prefix == "" { // what belongs to a client stays its own, also if somebody else gives it another version
		before, err := Get(ctx, s, typ, 0)
		if err != nil && !errors.Is(err, job.ErrNotFound) {
			return 0, err
		}
		d.Prefix = before.Definition.Prefix
	}
	text, err := json.Marshal(d)
	if err != nil {
		return 0, err
	}
	return set(ctx, s, typ, text)
}

// SetText is Set, or Delete without a text, of a definition as JSON.
func SetText(ctx context.Context, s store.Handlers, typ string, text json.RawMessage) (int64, error) {
	if len(text) == 0 {
		return set(ctx, s, typ, nil)
	}
	d, err := Parse(text)
	if err != nil {
		return 0, err
	}
	return Set(ctx, s, typ, d)
}

func set(ctx context.Context, s store.Handlers, typ string, text json.RawMessage) (int64, error) {
	if err := job.CheckName("type", typ); err != nil {
		return 0, err
	}
	return s.SetHandler(ctx, job.TypeInfo{Type: typ, Queue: job.DefaultQueue, Ports: Ports()}, text)
}

// Expect lets jobs of a type be created that has no handler yet: they are tried again until it has one, or their time is up. It does nothing
// if the type has a handler, or had one.
func Expect(ctx context.Context, s store.Handlers, typ string) error {
	known, err := s.HandlerVersions(ctx, typ)
	if err != nil || len(known) > 0 {
		return err
	}
	_, err = set(ctx, s, typ, nil)
	return err
}

// Delete removes the handler of a type: its jobs are tried again until there is another one, or their time is up. Old versions stay.
func Delete(ctx context.Context, s store.Handlers, typ string) error {
	if _, err := Get(ctx, s, typ, 0); err != nil {
		return err
	}
	_, err := set(ctx, s, typ, nil)
	return err
}

// Get returns a version of the handler of a type, or the newest if version is 0. The error wraps job.ErrNotFound if it is not there.
func Get(ctx context.Context, s store.Handlers, typ string, version int64) (Stored, error) {
	all, err := s.HandlerVersions(ctx, typ)
	if err != nil {
		return Stored{}, err
	}
	if version == 0 && len(all) > 0 {
		version = all[0].Version
	}
	i := slices.IndexFunc(all, func(v store.HandlerVersion) bool { return v.Version == version && v.Text != nil })
	switch {
	case i >= 0:
		return stored(all[i])
	case len(all) > 0 && version != all[0].Version:
		return Stored{}, missing(fmt.Sprintf("handler not found: type %.80q has no version %d: the last %d are kept", typ, version, store.MaxHandlerVersions))
	}
	return Stored{}, notFound(ctx, s, typ)
}

// missing is the error about a handler that is not there, which is a job.ErrNotFound.
type missing string

// Error implements error.
func (m missing) Error() string { return string(m) }

// Is tells errors.Is what it is.
func (m missing) Is(target error) bool { return target == job.ErrNotFound }

// notFound says which handlers there are instead.
func notFound(ctx context.Context, s store.Handlers, typ string) error {
	all, err := List(ctx, s)
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = h.Type
	}
	hint := "weir handler set makes one"
	if len(names) > 0 {
		hint = port.Suggest(typ, names)
	}
	return errors.Join(missing(fmt.Sprintf("handler not found: type %.80q has none: %s", typ, hint)), err)
}

// List returns the newest version of each handler that is not deleted, sorted by type.
func List(ctx context.Context, s store.Handlers) ([]Stored, error) {
	all, _, err := All(ctx, s)
	return slices.DeleteFunc(all, func(h Stored) bool { return h.Deleted }), err
}

// All is List with those that were deleted, and the revision of them all.
func All(ctx context.Context, s store.Handlers) ([]Stored, int64, error) {
	versions, revision, err := s.Handlers(ctx)
	if err != nil {
		return nil, 0, err
	}
	all := make([]Stored, 0, len(versions))
	for _, v := range versions {
		one, err := stored(v)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, one)
	}
	return all, revision, nil
}
