package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Store is all of a store that a Client needs.
type Store interface {
	Creator
	Inspector
	Ports
	Control
}

// Client creates jobs and finds them. It holds nothing but its store and needs no closing.
type Client struct {
	store Store
}

// NewClient returns a client of a store.
func NewClient(s Store) *Client { return &Client{store: s} }

// Option is a choice made when a tree is started.
type Option func(*startOptions)

type startOptions struct {
	alias, by string
	aliased   bool
}

// Alias gives the tree a name that is unique in the namespace. Starting a tree under
// an alias that exists already starts nothing and returns the existing tree: so a
// program may be started again and again for one piece of work.
func Alias(name string) Option { return func(o *startOptions) { o.alias, o.aliased = name, true } }

// By records who created the tree.
func By(who string) Option { return func(o *startOptions) { o.by = who } }

// Start creates all jobs of a plan in one step and queues those that have something
// to do. It returns a handle of the root.
func (c *Client) Start(ctx context.Context, p Planner, opts ...Option) (*Handle, error) {
	var o startOptions
	for _, opt := range opts {
		opt(&o)
	}
	plan, err := p.Plan()
	if err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	if err := plan.Validate(); err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	id, err := NewID()
	if err != nil {
		return nil, err
	}
	if o.aliased {
		if err := checkAlias(o.alias); err != nil {
			return nil, err
		}
		// The alias is bound before the tree exists. If this process dies in between,
		// the next Start under the alias creates the tree under the same ID.
		if id, err = c.store.Claim(ctx, o.alias, id); err != nil {
			return nil, fmt.Errorf("starting tree %q: %w", o.alias, err)
		}
	}
	created, err := c.store.Create(ctx, id, plan, o.by)
	if err != nil {
		return nil, fmt.Errorf("starting tree %s: %w", id, err)
	}
	return &Handle{store: c.store, id: id, created: created}, nil
}

// Find returns a handle of a job by its ID or by an alias, or an error that wraps ErrNotFound.
func (c *Client) Find(ctx context.Context, idOrAlias string) (*Handle, error) {
	id, err := ParseID(idOrAlias)
	if err != nil {
		if checkAlias(idOrAlias) != nil {
			return nil, fmt.Errorf("%w: %.80q is neither a job ID nor an alias", ErrNotFound, idOrAlias)
		}
		if id, err = c.store.Resolve(ctx, idOrAlias); err != nil {
			return nil, err
		}
	}
	if _, err := c.store.Info(ctx, id); err != nil {
		return nil, err
	}
	return &Handle{store: c.store, id: id}, nil
}

// checkAlias: an alias begins with a letter, so that it is never taken for an ID, which
// never is mistaken for an alias because it parses as a UUID first.
func checkAlias(s string) error {
	if err := CheckName("alias", s); err != nil {
		return err
	}
	if c := s[0] | 0x20; c < 'a' || c > 'z' {
		return fmt.Errorf("%w: alias %q must begin with a letter", ErrName, s)
	}
	if _, err := ParseID(s); err == nil {
		return fmt.Errorf("%w: alias %q looks like a job ID", ErrName, s)
	}
	return nil
}

// pathOf joins the names from the root of a tree down to one of its jobs.
func pathOf(tree []*Info, id ID) string {
	byID := make(map[ID]*Info, len(tree))
	for _, i := range tree {
		byID[i.ID] = i
	}
	var names []string
	for i := byID[id]; i != nil; i = byID[i.Parent] {
		name := i.Name
		if name == "" {
			name = i.Type
		}
		names = append([]string{name}, names...)
	}
	return strings.Join(names, "/")
}

// failureOf finds the job to blame for a failed tree: the failed one that is no graph,
// for a graph only passes on the failure of a child.
func failureOf(ctx context.Context, s Inspector, tree []*Info) error {
	blame := tree[0]
	for _, i := range tree {
		if i.Status == "failed" && !i.Graph {
			blame = i
			break
		}
	}
	reason := "no reason was recorded"
	fs, err := s.Failures(ctx, blame.ID)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if len(fs) > 0 {
		reason, _, _ = strings.Cut(fs[0].Error, "\n")
	}
	return &FailedError{Job: blame.ID, Path: pathOf(tree, blame.ID), Reason: reason}
}
