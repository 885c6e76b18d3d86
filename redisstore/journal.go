package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
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
func (s *Store) CreateArrivals(ctx context.Context, epoch string, all []store.Arrival) error {
	done, err := s.createArrivals(ctx, epoch, all, true)
	if err == nil && !done { // what was created is not created again
		_, err = s.createArrivals(ctx, epoch, all, false)
	}
	return err
}

// createArrivals does so, with or without records; done is false if some were not to be records.
func (s *Store) createArrivals(ctx context.Context, epoch string, all []store.Arrival, records bool) (done bool, err error) {
	byShard := map[string][]arrival{}
	var order []string
	for i := range all {
		a := &all[i]
		if p := a.Plan; len(p.Nodes) != 1 || p.Parent != "" || p.Unique != nil || p.SequentialKey != "" || !a.ID.IsRoot() {
			return false, fmt.Errorf("%w: %s is to come of a journal as a lone root job without keys", job.ErrName, a.ID)
		}
		nodes, err := s.nodesOf(a.ID, a.Plan, a.By)
		if err != nil {
			return false, err
		}
		args, record := []any{strconv.FormatInt(a.Position, 10)}, s.compactOf(a.Plan, nodes)
		if records && record != nil && len(record.messages) == 3 && record.lead != "" && s.definitions.may(record.digest) {
			args = append(args, string(a.ID), record.digest, record.keep, record.shared, record.own, record.messages[1], record.messages[2])
		} else {
			args, record = append(args, nodes[0]...), nil
		}
		due := s.keys.dueOf(a.ID)
		if byShard[due] == nil {
			order = append(order, due)
		}
		byShard[due] = append(byShard[due], arrival{args, sizeOf(args), record})
	}
	for done = true; done && len(byShard) > 0; { // one call of a shard at a time, or a later one could be carried out without those before it
		var calls []call
		var sizes []int
		var digests [][]string // of each call
		for _, due := range order {
			if rest := byShard[due]; len(rest) > 0 {
				args, size, n, needed := arrivalCall(epoch, rest)
				calls, sizes, digests = append(calls, call{due: due, args: args}), append(sizes, size), append(digests, needed)
				if byShard[due] = rest[n:]; n == len(rest) {
					delete(byShard, due)
				}
			}
		}
		var errs []error
		s.actMany(ctx, scriptArrive, calls, sizes, func(n int, l []any, d *decoder, err error) {
			if why, is := d.at(l, 0).(string); err == nil && is {
				done = false
				for _, digest := range digests[n] {
					s.definitions.refused("", digest, why)
				}
			} else if err == nil {
				_ = d.int(d.at(l, 0))
			}
			errs = append(errs, err, d.err)
		})
		if err := errors.Join(errs...); err != nil {
			return false, fmt.Errorf("creating jobs of a journal: %w", err)
		}
	}
	return done, nil
}

// arrival is what journal_create.lua reads of a payload.
type arrival struct {
	args   []any
	size   int
	record *compactTree // that it becomes, or nil
}

// arrivalCall are the arguments for the first of some arrivals, how many these are, and which definitions they need: all become records, or
// none.
func arrivalCall(epoch string, all []arrival) (args []any, size, n int, digests []string) {
	head := []any{epoch, JournalKept.Milliseconds(), 0}
	for n < len(all) && n < createBatch && (n == 0 || size+all[n].size <= createBytes && len(args)+len(all[n].args) <= createValues) {
		r := all[n].record
		if (r == nil) != (all[0].record == nil) {
			break
		}
		if r != nil && !slices.Contains(digests, r.digest) {
			digests, head = append(digests, r.digest), append(head, r.digest, r.definition[0])
		}
		size += all[n].size
		args = append(args, all[n].args...)
		n++
	}
	head[2] = len(digests)
	return append(append(head, n), args...), size, n, digests
}
