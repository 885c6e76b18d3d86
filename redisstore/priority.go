package redisstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/weirworks/weir/job"
)

// SetPriority implements store.Control.
func (s *Store) SetPriority(ctx context.Context, ids []job.ID, n int) error {
	if len(ids) == 0 {
		return nil
	}
	entry, err := s.byHand(ctx, ids[0], "priority", strconv.Itoa(n)) // the others are below it
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, sweepBatch) {
		due := s.keys.dueOf(some[0])
		args := []any{n, len(some), entry}
		entry = nil
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
