package job

import (
	"context"
	"iter"

	"github.com/weirworks/weir/statemachine"
)

// Filter says which jobs Roots lists. Its zero value is for all.
type Filter struct {
	Type   string              // worker type, or name of a graph
	Status statemachine.Status // one of the statuses
	After  ID                  // those created after this one
	Newest bool                // the newest first; then After has those created before it
}

// rootsPage is how many jobs Roots asks for at a time.
const rootsPage = 100

// Roots lists the jobs without parent that pass the filter, in the order of their creation
// or, with Newest, in the reverse of it.
// Instances of a graph are those whose type is the graph's name; the Definition in their
// Info tells its versions apart.
func (c *Client) Roots(ctx context.Context, f Filter) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		for after := f.After; ; {
			page, err := c.store.Roots(ctx, Page{After: after, Newest: f.Newest, Limit: rootsPage})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, i := range page {
				fits := i.Status != "" && (f.Type == "" || i.Type == f.Type) && (f.Status == "" || i.Status == f.Status)
				if fits && !yield(i, nil) {
					return
				}
				after = i.ID
			}
			if len(page) < rootsPage {
				return
			}
		}
	}
}
