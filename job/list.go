package job

import (
	"context"
	"iter"
	"slices"

	"github.com/weirworks/weir/statemachine"
)

// Filter says which jobs Roots lists. Its zero value is for all.
type Filter struct {
	Type   string              // worker type, or name of a graph
	Status statemachine.Status // one of the statuses
	After  ID                  // those created after this one
}

// rootsPage is how many jobs Roots asks for at a time.
const rootsPage = 100

// Roots lists the jobs without parent that pass the filter, in the order of their creation.
// Instances of a graph are those whose type is the graph's name; the Definition in their
// Info tells its versions apart.
func (c *Client) Roots(ctx context.Context, f Filter) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		for after := f.After; ; {
			page, err := c.store.Roots(ctx, after, rootsPage)
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

// Newest returns up to limit jobs without parent, the one created last first.
func (c *Client) Newest(ctx context.Context, limit int) ([]*Info, error) {
	infos, err := c.store.Newest(ctx, limit)
	return slices.DeleteFunc(infos, func(i *Info) bool { return i.Status == "" }), err
}
