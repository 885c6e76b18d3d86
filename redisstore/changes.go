package redisstore

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
)

// followFor is how long shards go on noting changes without hearing from anybody who follows them.
const followFor = time.Minute

// Place is a place in the changes of a namespace's jobs: how far they were read. Its zero value is the present.
type Place struct {
	known []int64 // the last change of each shard that was read
}

// String returns the place as a text, for ParsePlace.
func (p Place) String() string {
	var raw []byte
	for _, n := range p.known {
		raw = binary.AppendUvarint(raw, uint64(n)) //nolint:gosec // numbers of changes are positive
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// ParsePlace reads what String returned. The error wraps job.ErrValue.
func (s *Store) ParsePlace(text string) (p Place, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	for err == nil && len(raw) > 0 {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > 1<<53 {
			break
		}
		p.known, raw = append(p.known, int64(n)), raw[size:]
	}
	if err != nil || len(raw) > 0 || len(p.known) != s.keys.shards {
		return Place{}, fmt.Errorf("%w: %.40q is not a place in the changes of jobs: use one that an event had as its ID", job.ErrValue, text)
	}
	return p, nil
}

// Changes are jobs that have changed.
type Changes struct {
	IDs  []job.ID // in the order of their last changes, each once
	Next Place    // behind them
	Lost bool     // some of what changed since is not known any more
}

// Changes returns which jobs were created, removed, or got another status since a place, at most that many: roots, or all. From the first
// call on, which is one from the present, this is noted, and for a minute after the last one; of each shard for the last 10,000
// jobs that changed. A job that changes several times is told once, where it changed last.
func (s *Store) Changes(ctx context.Context, all bool, since Place, most int) (Changes, error) {
	set := "roots"
	if all {
		set = "all"
	}
	shards := make([]string, s.keys.shards)
	for n := range shards {
		shards[n] = s.keys.due(n)
	}
	return s.changes(ctx, set, shards, since, most)
}

// ChangesOf is Changes for the jobs of one tree, whose root is given, and tells also of those whose ports have changed, or what
// waits in them or has passed. Jobs that the tree has adopted from another one are left out.
func (s *Store) ChangesOf(ctx context.Context, root job.ID, since Place, most int) (Changes, error) {
	return s.changes(ctx, string(root.Tree()), []string{s.keys.dueOf(root)}, since, most)
}

// changes asks shards for what has changed of a set.
func (s *Store) changes(ctx context.Context, set string, shards []string, since Place, most int) (Changes, error) {
	calls := make([]call, len(shards))
	for n, due := range shards {
		known := any("")
		if since.known != nil {
			known = since.known[n]
		}
		calls[n] = call{due: due, args: []any{set, known, most, followFor.Milliseconds()}}
	}
	replies, err := s.runAll(ctx, scriptChanges, calls)
	if err != nil {
		return Changes{}, err
	}
	type change struct {
		id     job.ID
		shard  int
		number int64
	}
	var d decoder
	var found []change
	out := Changes{Next: Place{slices.Clone(since.known)}}
	for n, reply := range replies {
		l := d.list(reply)
		if since.known == nil {
			out.Next.known = append(out.Next.known, d.int(d.at(l, 1)))
			continue
		}
		out.Lost = out.Lost || since.known[n] < d.int(d.at(l, 0))
		for pair := range slices.Chunk(d.list(d.at(l, 2)), 2) {
			found = append(found, change{job.ID(d.str(pair[0])), n, d.int(d.at(pair, 1))})
		}
	}
	slices.SortStableFunc(found, func(a, b change) int { return cmp.Compare(a.number, b.number) })
	for _, c := range found[:min(most, len(found))] {
		out.Next.known[c.shard] = c.number
		if c.id != "-" { // else where the notes begin
			out.IDs = append(out.IDs, c.id)
		}
	}
	return out, d.err
}

// Infos reads jobs, of any shards, in one round trip, or several if they are large. Those that do not exist are left out.
func (s *Store) Infos(ctx context.Context, ids []job.ID) ([]*job.Info, error) {
	return s.infos(ctx, ids)
}
