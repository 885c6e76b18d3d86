package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// JournalKept is for how long the store remembers, after the last payload of an epoch came, which of its payloads came.
const JournalKept = 30 * 24 * time.Hour

// NamespaceID is the ID of the namespace, which it has on one Redis alone: a UUID that is made when somebody first asks for it. A Redis that lost its data, or that is another one,
// has another ID for it.
func (s *Store) NamespaceID(ctx context.Context) (string, error) {
	id, err := s.rdb.HGet(ctx, s.keys.meta(), "id").Result()
	if errors.Is(err, redis.Nil) {
		made, read := uuid.NewString(), (*redis.StringCmd)(nil)
		_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HSetNX(ctx, s.keys.meta(), "id", made)
			read = p.HGet(ctx, s.keys.meta(), "id")
			return nil
		})
		id = read.Val()
	}
	if err != nil {
		return "", fmt.Errorf("reading the ID of the namespace: %w", s.explain(err))
	}
	return id, nil
}

// CreateArrivals creates the jobs of payloads of an epoch of a journal. They must come in the order of their positions, all of them, one call after the
// other, and be repeated from the first if a call fails: each job is created once, also if it has ended and been removed since. The plans must be of one job each, without
// keys. It takes one round trip, or a few for much.
func (s *Store) CreateArrivals(ctx context.Context, epoch string, all []job.Arrival) error {
	byShard := map[string][]arrival{}
	var order []string
	for i := range all {
		a := &all[i]
		if p := a.Plan; len(p.Nodes) != 1 || p.Parent != "" || p.Unique != nil || p.SequentialKey != "" || !a.ID.IsRoot() {
			return fmt.Errorf("%w: %s is to come of a journal as a lone root job without keys", job.ErrName, a.ID)
		}
		nodes, err := s.nodesOf(a.ID, a.Plan, a.By)
		if err != nil {
			return err
		}
		args := append([]any{strconv.FormatInt(a.Position, 10)}, nodes[0]...)
		due := s.keys.dueOf(a.ID)
		if byShard[due] == nil {
			order = append(order, due)
		}
		byShard[due] = append(byShard[due], arrival{args, sizeOf(args)})
	}
	for len(byShard) > 0 { // one call of a shard at a time, or a later one could be carried out without those before it
		var calls []call
		var sizes []int
		for _, due := range order {
			if rest := byShard[due]; len(rest) > 0 {
				args, size, n := arrivalCall(epoch, rest)
				calls, sizes = append(calls, call{due, args}), append(sizes, size)
				if byShard[due] = rest[n:]; n == len(rest) {
					delete(byShard, due)
				}
			}
		}
		var errs []error
		s.actMany(ctx, scriptArrive, calls, sizes, func(_ int, l []any, d *decoder, err error) {
			if err == nil {
				_ = d.int(d.at(l, 0))
			}
			errs = append(errs, err, d.err)
		})
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("creating jobs of a journal: %w", err)
		}
	}
	return nil
}

// arrival is what journal_create.lua reads of a payload.
type arrival struct {
	args []any
	size int
}

// arrivalCall are the arguments for the first of some arrivals, and how many these are.
func arrivalCall(epoch string, all []arrival) (args []any, size, n int) {
	for n < len(all) && n < createBatch && (n == 0 || size+all[n].size <= createBytes && len(args)+len(all[n].args) <= createValues) {
		size += all[n].size
		args = append(args, all[n].args...)
		n++
	}
	return append([]any{epoch, JournalKept.Milliseconds(), n}, args...), size, n
}
