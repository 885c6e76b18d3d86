package store

import (
	"context"

	"github.com/weirworks/weir/job"
)

// SequenceKey is a sequential key that a tree holds.
type SequenceKey struct {
	Key     string `json:"key"`
	Holder  job.ID `json:"holder"`  // the root that holds it
	Waiting int64  `json:"waiting"` // how many trees wait for it
}

// Sequences keeps trees with one sequential key one after the other.
type Sequences interface {
	// Keyed returns the ID that the root of a tree gets in the place of id if it has a key, see job.Plan.Home: always the same.
	Keyed(id job.ID, key string) job.ID
	// Turn returns the place of a tree among those with its key, or job.ErrNotFound.
	Turn(ctx context.Context, id job.ID) (job.Turn, error)
}
