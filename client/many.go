package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Starting is a tree that StartMany starts.
type Starting struct {
	Plan    job.Planner
	Options []job.Option
}

// Started is what became of one of several trees or jobs.
type Started struct {
	Handle *Handle // nil if Err is not
	Err    error
}

// Writing is what WriteMany writes to an In port of a job.
type Writing struct {
	To       *Handle
	In       string
	Messages []any
	// Key makes it idempotent, as that of WriteOnce; empty means none.
	Key string
	// Context has keys that the messages carry besides those of job.WithContext.
	Context port.Context
}

// ManyError tells that some of several acts were not carried out: of the others each was, by itself. errors.Is and As find what is wrong with
// any of them.
type ManyError struct {
	What   string  // such as "trees were not started"
	Failed int     // how many
	All    int     // of how many
	First  int     // the first of them, from 0
	Errs   []error // of each; nil for those that went well
}

// Error implements error.
func (e *ManyError) Error() string {
	return fmt.Sprintf("%d of %d %s; the first is number %d: %v", e.Failed, e.All, e.What, e.First+1, e.Errs[e.First])
}

// Unwrap is for errors.Is and errors.As.
func (e *ManyError) Unwrap() (all []error) {
	for _, err := range e.Errs {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// manyError returns an error if there is one among these.
func manyError(what string, errs []error) error {
	e := &ManyError{What: what, All: len(errs), Errs: errs, First: -1}
	for i, err := range errs {
		if err != nil {
			if e.Failed++; e.First < 0 {
				e.First = i
			}
		}
	}
	if e.Failed == 0 {
		return nil
	}
	return e
}

// StartMany starts trees, each as Start does, by itself: in the order given it says what became of them. If some were not started the
// error is a *ManyError; a caller that repeats the call gives each a Key. All of them need one round trip, one more for keys
// and one for aliases, and more if they are too much for one: some 500 trees, or 4 MiB. A tree that is there already under its alias is
// looked at by itself.
func (c *Client) StartMany(ctx context.Context, all []Starting) ([]Started, error) {
	starts := make([]*start, len(all))
	for i, s := range all {
		starts[i] = c.prepare(ctx, s.Plan, s.Options)
	}
	return c.startAll(ctx, "trees were not started", "start", starts)
}

// CreateMany creates jobs by the names of their types, each as Create does, by itself: in the order given it says what became of
// them. Round trips and errors are those of StartMany; a child takes its own.
func (c *Client) CreateMany(ctx context.Context, all []job.New) ([]Started, error) {
	starts := make([]*start, len(all))
	types := map[registration]*job.TypeInfo{}
	for i := range all {
		starts[i] = c.prepareNew(ctx, all[i], types)
	}
	return c.startAll(ctx, "jobs were not created", "create", starts)
}

// start is a tree on its way.
type start struct {
	o      *job.Choices
	plan   *job.Plan
	id     job.ID
	own    job.ID // that it would get, if neither key nor alias knew another one
	create bool
	h      *Handle
	err    error
}

func (c *Client) prepare(ctx context.Context, p job.Planner, opts []job.Option) *start {
	s := &start{o: job.Choose(opts)}
	if s.plan, s.err = c.plan(ctx, p, s.o); s.err != nil {
		s.err = fmt.Errorf("starting a tree: %w", s.err)
	} else {
		s.plan = s.plan.Traced(c.trace.in(ctx))
		if s.id, s.err = s.o.NewID(); s.err == nil {
			s.id = c.placed(s.id, s.plan)
		}
	}
	if s.err == nil && s.o.Keyed {
		s.err = checkKey("start", s.o.Key)
	}
	s.own = s.id
	return s
}

// prepareNew is prepare for a job by its type. A child is created at once.
func (c *Client) prepareNew(ctx context.Context, n job.New, types map[registration]*job.TypeInfo) *start {
	s := &start{o: &job.Choices{}, create: true}
	if n.Parent != "" {
		s.h, s.err = c.Create(ctx, n)
		return s
	}
	s.o = &job.Choices{Key: n.Key, Keyed: n.Key != "", Alias: n.Alias, Aliased: n.Alias != "", By: n.By}
	s.plan, s.err = job.PlanNew(ctx, func(ctx context.Context, queue, name string) (t *job.TypeInfo, err error) {
		at := registration{queue, name}
		if types[at] == nil {
			types[at], err = c.store.Type(ctx, queue, name)
		}
		return types[at], err
	}, n)
	if s.err == nil {
		s.plan = s.plan.Traced(c.trace.in(ctx))
	}
	if s.err == nil && s.o.Keyed {
		s.err = checkKey("create", s.o.Key)
	}
	if s.err == nil && s.o.Aliased {
		s.err = job.CheckAlias(s.o.Alias)
	}
	if s.err == nil {
		s.id, s.err = job.NewID()
	}
	if s.err == nil {
		s.id = c.placed(s.id, s.plan)
	}
	s.own = s.id
	return s
}

// startAll starts those that were prepared.
func (c *Client) startAll(ctx context.Context, what, keys string, all []*start) ([]Started, error) {
	open := func(more func(*start) bool) (some []*start) {
		for _, s := range all {
			if s.err == nil && s.h == nil && more(s) {
				some = append(some, s)
			}
		}
		return some
	}
	nameAll(open(func(s *start) bool { return s.o.Keyed }), func(s *start) string { return keys + " " + s.o.Key },
		func(names []string, ids []job.ID) []error { return c.store.OnceMany(ctx, names, ids) })
	for _, s := range open(func(s *start) bool { return s.id != s.own }) {
		if s.own = s.id; s.plan.Unique != nil {
			s.h, s.err = c.remembered(ctx, keys, s.o.Key, s.id, s.plan)
		}
	}
	nameAll(open(func(s *start) bool { return s.o.Aliased }), func(s *start) string { return s.o.Alias },
		func(names []string, ids []job.ID) []error { return c.store.ClaimMany(ctx, names, ids) })
	for _, s := range open(func(s *start) bool { return s.create && s.id != s.own }) {
		s.err = fmt.Errorf("%w: job %s has the alias %q", job.ErrExists, s.id, s.o.Alias)
	}
	some := open(func(*start) bool { return true })
	creations := make([]store.Creation, len(some))
	for i, s := range some {
		creations[i] = store.Creation{ID: s.id, Plan: s.plan, By: s.o.By}
	}
	created, errs := c.store.CreateMany(ctx, creations)
	for i, s := range some {
		c.arrived(ctx, s, keys, created[i], errs[i])
	}
	out, failed := make([]Started, len(all)), make([]error, len(all))
	for i, s := range all {
		if s.err != nil {
			s.h = nil
		}
		out[i], failed[i] = Started{s.h, s.err}, s.err
	}
	return out, manyError(what, failed)
}

// nameAll gives trees the IDs that their names have.
func nameAll(some []*start, name func(*start) string, look func([]string, []job.ID) []error) {
	if len(some) == 0 {
		return
	}
	names, ids := make([]string, len(some)), make([]job.ID, len(some))
	for i, s := range some {
		names[i], ids[i] = name(s), s.id
	}
	for i, err := range look(names, ids) {
		some[i].id, some[i].err = ids[i], err
	}
}

// arrived makes the handle of a tree that was created, or was there.
func (c *Client) arrived(ctx context.Context, s *start, keys string, created bool, err error) {
	if err != nil {
		if s.h, err = c.standing(ctx, s.plan, err); err == nil {
			s.err = c.stands(ctx, keys, s.o.Key, s.h)
			return
		}
	}
	s.h = c.handle(s.id)
	s.h.created = created
	switch {
	case err != nil && s.create && s.o.Aliased:
		s.err = errors.Join(err, c.store.Unclaim(context.WithoutCancel(ctx), s.o.Alias, s.id))
	case err != nil:
		s.err = err
	case created:
		s.h.planned = s.plan
	case !s.create && !s.o.Keyed && s.o.ID == nil:
		s.err = s.h.meet(ctx, s.plan, s.o)
	}
}

// WriteMany writes to In ports of jobs, each as Handle.Write does, by itself: in the order given it tells errors in a *ManyError. All of it
// needs one round trip, or more if it is too much for one: some 500 writes, or 4 MiB. A handle that neither started its job nor found
// it asks what the port takes, as with its first Write. Writes to one port come in the order given.
func (c *Client) WriteMany(ctx context.Context, all []Writing) error {
	errs := make([]error, len(all))
	var postings []store.Posting
	var at []int
	for i, w := range all {
		p, err := w.posting(ctx)
		if err != nil {
			errs[i] = err
			continue
		}
		postings, at = append(postings, p), append(at, i)
	}
	for n, err := range c.store.WriteMany(ctx, postings) {
		errs[at[n]] = err
	}
	return manyError("writes were not carried out", errs)
}

func (w *Writing) posting(ctx context.Context) (store.Posting, error) {
	switch {
	case w.To == nil:
		return store.Posting{}, fmt.Errorf("%w: To is missing: name the job", job.ErrName)
	case w.Key != "":
		if err := checkKey("write", w.Key); err != nil {
			return store.Posting{}, err
		}
	}
	if len(w.Context) > 0 {
		ctx = job.WithContext(ctx, w.Context)
	}
	one, err := w.To.writing(ctx, port.Input, w.In, w.Key, w.Messages)
	return store.Posting{Job: w.To.id, Write: one}, err
}
