package redisstore

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/job"
)

// Purge has the trees of those jobs that are roots and have settled removed now, as if they were past their retention: what holds messages
// that nobody has read, or is locked, stays. It returns how many these are; an engine removes them within a second or so.
func (s *Store) Purge(ctx context.Context, ids ...job.ID) (int, error) {
	parts := map[string][]any{}
	for _, id := range ids {
		due := s.keys.dueOf(id)
		parts[due] = append(parts[due], string(id))
	}
	n := 0
	for due, args := range parts {
		reply, err := s.run(ctx, scriptPurge, due, args...)
		if err != nil {
			return n, fmt.Errorf("purging jobs: %w", err)
		}
		var d decoder
		if n += int(d.int(reply)); d.err != nil {
			return n, d.err
		}
	}
	return n, nil
}
