package client

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
)

// Jobs lists the jobs that pass a filter, in its order, as they are when the list comes to
// them. Instances of a graph are those whose type is the graph's name; the Definition in
// their Info tells its versions apart.
func (c *Client) Jobs(ctx context.Context, f job.Filter) iter.Seq2[*job.Info, error] {
	return func(yield func(*job.Info, error) bool) {
		f, err := c.filter(ctx, f)
		if err != nil {
			yield(nil, fmt.Errorf("listing jobs: %w", err))
			return
		}
		for i, err := range c.store.Jobs(ctx, f) {
			if err != nil {
				err = fmt.Errorf("listing jobs: %w", err)
			}
			if !yield(i, err) {
				return
			}
		}
	}
}

// JobsPage returns the first jobs that pass a filter, in its order, up to limit of them, and the job behind which the list
// goes on: the After of the next page, empty if this is the last one. In an order of creation it looks at some 20,000 jobs at
// most: where few pass the filter a page may have fewer than limit jobs, or none, and another one after it.
func (c *Client) JobsPage(ctx context.Context, f job.Filter, limit int) (jobs []*job.Info, next job.ID, err error) {
	f, err = c.filter(ctx, f)
	if err == nil && limit < 1 {
		err = fmt.Errorf("%w: a page of %d jobs: use at least 1", job.ErrValue, limit)
	}
	if err == nil {
		jobs, next, err = c.store.JobsPage(ctx, f, limit)
	}
	if err != nil {
		return nil, "", fmt.Errorf("listing jobs: %w", err)
	}
	return jobs, next, nil
}

// filter returns a filter as the store understands it: a path begins below a job, unless with a pattern.
func (c *Client) filter(ctx context.Context, f job.Filter) (job.Filter, error) {
	if err := f.Validate(); err != nil {
		return f, err
	}
	f.All = f.All || f.Path != "" || f.Name != "" || f.Below != "" || f.Blocked
	if f.Path == "" || f.Below != "" {
		return f, nil
	}
	names := strings.Split(f.Path, "/")
	n := max(slices.IndexFunc(names, job.IsPattern), 0)
	if !job.IsPattern(f.Path) {
		n = len(names)
	}
	if n == 0 {
		return f, nil
	}
	h, err := c.Find(ctx, strings.Join(names[:n], "/"))
	if err != nil {
		return f, err
	}
	f.Below, f.Path = h.ID(), strings.Join(names[n:], "/")
	return f, nil
}

// Count returns how many jobs pass a filter.
func (c *Client) Count(ctx context.Context, f job.Filter) (int, error) {
	f, err := c.filter(ctx, f)
	n := 0
	if err == nil {
		n, err = c.store.Count(ctx, f)
	}
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", err)
	}
	return n, nil
}

// Details returns what Info does not say of jobs, in their order. Of a job that does not
// exist it is empty.
func (c *Client) Details(ctx context.Context, ids ...job.ID) ([]job.Details, error) {
	all, err := c.store.Details(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("reading details of %d jobs: %w", len(ids), err)
	}
	return all, nil
}

// At returns a handle of a job without asking whether there is one. If id is none that a job can have, errors of the handle's
// methods wrap job.ErrNotFound and job.ErrID.
func (c *Client) At(id job.ID) *Handle { return c.handle(id) }
