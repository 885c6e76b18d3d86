package redisstore

import (
	"context"
	"slices"

	"github.com/weirworks/weir/job"
)

// SetPriority implements job.Control.
func (s *Store) SetPriority(ctx context.Context, ids []job.ID, n int) error {
	for some := range slices.Chunk(ids, sweepBatch) {
		due := s.keys.dueOf(some[0])
		args := []any{n, len(some)}
		for _, id := range some {
			args = append(args, string(id))
		}
		reply, err := s.run(ctx, scriptPriority, due, args...)
		if err != nil {
			return err
		}
		var d decoder
		if err := s.deliver(ctx, due, &d, reply); err != nil {
			return err
		}
	}
	return nil
}
