package client

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/job"
)

// SetPriority gives the job, and all below it that are there now, a priority from 0 to job.MaxPriority, also while they are ready:
// of the ready jobs of a queue those of a higher one run first, see job.WithPriority. A run in progress goes on.
func (h *Handle) SetPriority(ctx context.Context, n int) error {
	err := job.CheckPriority(n)
	if err != nil {
		return fmt.Errorf("job %s: %w", h.id, err)
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return err
	}
	byTree, inside := map[job.ID][]job.ID{h.id.Tree(): {h.id}}, under(tree, h.id)
	for _, i := range tree {
		if inside[i.ID] && i.ID != h.id {
			byTree[i.ID.Tree()] = append(byTree[i.ID.Tree()], i.ID)
		}
	}
	for _, ids := range byTree {
		if err := h.store.SetPriority(ctx, ids, n); err != nil {
			return fmt.Errorf("job %s: setting its priority: %w", h.id, err)
		}
	}
	return nil
}
