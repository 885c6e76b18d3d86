package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// source gives the IDs of jobs among which are all that pass a filter, in its order if that
// is one of creation.
type source interface {
	// next returns some more, about n. None means that there are no more.
	next(ctx context.Context, n int) ([]job.ID, error)
}

// lister chooses where to look for the jobs that pass a filter.
func (s *Store) lister(ctx context.Context, f *job.Filter) (*lister, error) {
	l := &lister{store: s, filter: f}
	failed, active := among(f.Status)
	pathed := f.Path != "" || f.Below != ""
	var many bool
	var err error
	if active && f.Alias == "" && !f.All {
		if many, err = s.many(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case pathed:
		l.from, err = s.matchingPath(ctx, f)
	case f.Alias != "":
		l.from, err = s.named(ctx, f)
	case active && !many:
		l.from, err = s.active(ctx, f, failed)
	case failed && !active:
		l.from = s.stream(s.keys.failures, f)
	case f.All:
		l.from, err = s.trees(ctx, f)
	default:
		l.from, l.sure = s.stream(s.keys.index, f), plain(f) && f.Order.ByCreation()
	}
	return l, err
}

// plain tells whether a filter asks for nothing but when jobs were created.
func plain(f *job.Filter) bool {
	return len(f.Status) == 0 && !f.Blocked && f.Type+f.Queue+f.Name+f.SequentialKey+f.UniqueKey == "" && len(f.Labels)+len(f.Keys)+len(f.Without)+len(f.StateKeys) == 0
}

// among tells whether failed is among the statuses, and whether any of those whose jobs are in
// due. With any other status among them it tells neither.
func among(statuses []statemachine.Status) (failed, active bool) {
	for _, status := range statuses {
		switch status {
		case statemachine.Failed:
			failed = true
		case statemachine.Queued, statemachine.Scheduled, statemachine.Running, statemachine.Terminating:
			active = true
		default:
			return false, false
		}
	}
	return failed, active
}

// many tells whether so many jobs are in due that those asked for are found sooner among the
// jobs without parent.
func (s *Store) many(ctx context.Context) (bool, error) {
	due := make([]*redis.IntCmd, s.keys.shards)
	roots := make([]*redis.IntCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range s.keys.shards {
			due[n], roots[n] = p.ZCard(ctx, s.keys.due(n)), p.ZCard(ctx, s.keys.index(n))
		}
		return nil
	}); err != nil {
		return false, s.explain(err)
	}
	return sum(due) > sum(roots)/4, nil
}

func sum(cmds []*redis.IntCmd) (n int64) {
	for _, c := range cmds {
		n += c.Val()
	}
	return n
}

// fixed is a source of IDs that are known.
type fixed []job.ID

func (x *fixed) next(_ context.Context, n int) ([]job.ID, error) {
	page := (*x)[:min(n, len(*x))]
	*x = (*x)[len(page):]
	return page, nil
}

// sorted makes a source of IDs in any order.
func sorted(ids []job.ID, f *job.Filter) *fixed {
	ids = slices.DeleteFunc(ids, func(id job.ID) bool {
		if f.Order.ByCreation() && f.After != "" && direction(f)*id.Compare(f.After) <= 0 {
			return true
		}
		return !f.All && !f.During(id.Time())
	})
	slices.SortFunc(ids, func(a, b job.ID) int { return direction(f) * a.Compare(b) })
	x := fixed(slices.Compact(ids))
	return &x
}

// direction is 1 if a list goes from the oldest job to the newest, else -1.
func direction(f *job.Filter) int {
	if f.Order == job.Oldest {
		return 1
	}
	return -1
}

// active is a source of the jobs in due and, if asked for, of those that failed.
func (s *Store) active(ctx context.Context, f *job.Filter, failed bool) (source, error) {
	var cmds []*redis.StringSliceCmd
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n := range s.keys.shards {
			cmds = append(cmds, p.ZRange(ctx, s.keys.due(n), 0, -1))
			if failed {
				cmds = append(cmds, p.ZRange(ctx, s.keys.failures(n), 0, -1))
			}
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var ids []job.ID
	for _, c := range cmds {
		for _, m := range c.Val() {
			if m[0] != '@' && m[0] != '!' { // what else there is in due
				ids = append(ids, job.ID(m))
			}
		}
	}
	return sorted(ids, f), nil
}

// named is a source of the jobs that have an alias of a pattern.
func (s *Store) named(ctx context.Context, f *job.Filter) (source, error) {
	ids, err := s.aliased(ctx, f.Alias)
	return sorted(ids, f), err
}

// aliased returns the jobs that have an alias of a pattern.
func (s *Store) aliased(ctx context.Context, pattern string) (ids []job.ID, err error) {
	if !job.IsPattern(pattern) {
		id, err := s.rdb.HGet(ctx, s.keys.aliases(), pattern).Result()
		if err == nil {
			ids = append(ids, job.ID(id))
		}
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return ids, s.explain(err)
	}
	for cursor := uint64(0); ; {
		pairs, next, err := s.rdb.HScan(ctx, s.keys.aliases(), cursor, pattern, 10_000).Result()
		if err != nil {
			return nil, s.explain(err)
		}
		for i := 1; i < len(pairs); i += 2 {
			ids = append(ids, job.ID(pairs[i]))
		}
		if cursor = next; cursor == 0 {
			return ids, nil
		}
	}
}

// stream is a source of the jobs in sorted sets, one of each shard, that have them in the
// order of their IDs.
type stream struct {
	store *Store
	key   func(shard int) string
	sign  int    // 1: from the oldest to the newest, else -1
	after job.ID // the stream begins behind it; empty: with the first
	with  bool   // … or rather with it
	parts []part
	ready []job.ID
}

// part is the set of one shard, as far as it was read.
type part struct {
	by   redis.ZRangeBy
	ids  []job.ID // as Redis has them: in the order of their trees
	done bool     // there are no more behind them
}

// stream is a source of the jobs in such sets that may pass a filter. Where jobs below others
// are meant, too, an old tree may have new ones.
func (s *Store) stream(key func(shard int) string, f *job.Filter) *stream {
	by := between(f)
	if f.All {
		by.Min = "-"
	}
	x := s.rangeOf(key, by, direction(f))
	if f.Order.ByCreation() {
		x.begin(f.After, false)
	}
	return x
}

func (s *Store) rangeOf(key func(shard int) string, by redis.ZRangeBy, sign int) *stream {
	x := &stream{store: s, key: key, sign: sign, parts: make([]part, s.keys.shards)}
	for i := range x.parts {
		x.parts[i].by = by
	}
	return x
}

// begin lets a stream begin behind a job or with it.
func (x *stream) begin(id job.ID, with bool) {
	x.after, x.with = id, with
	if id == "" {
		return
	}
	for i := range x.parts {
		by := &x.parts[i].by
		if first := "[" + string(id.Tree()); x.sign > 0 && (by.Min == "-" || by.Min[1:] < first[1:]) {
			by.Min = first
		}
		if last := "[" + string(id.Tree()) + "/"; x.sign < 0 && (by.Max == "+" || by.Max[1:] > last[1:]) {
			by.Max = last // behind all IDs of the tree
		}
	}
}

// between is the range of the IDs that were made within the times of a filter.
func between(f *job.Filter) redis.ZRangeBy {
	by := redis.ZRangeBy{Min: "-", Max: "+"}
	if !f.Since.IsZero() {
		by.Min = "[" + firstID(f.Since)
	}
	if !f.Until.IsZero() {
		by.Max = "(" + firstID(f.Until)
	}
	return by
}

// firstID is what IDs made at a time, rounded up to milliseconds, begin with.
func firstID(t time.Time) string {
	ms := t.Add(time.Millisecond - 1).UnixMilli()
	ms = min(max(ms, 0), 1<<48-1)
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}

// indexSize counts the jobs without parent within the times of a filter.
func (s *Store) indexSize(ctx context.Context, f *job.Filter) (int, error) {
	by := between(f)
	cmds := make([]*redis.IntCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range cmds {
			cmds[i] = p.ZLexCount(ctx, s.keys.index(i), by.Min, by.Max)
		}
		return nil
	}); err != nil {
		return 0, s.explain(err)
	}
	return int(sum(cmds)), nil
}

func (x *stream) next(ctx context.Context, n int) ([]job.ID, error) {
	for chunk := max(16, 2*n/len(x.parts)); len(x.ready) == 0; chunk *= 2 {
		more, err := x.fill(ctx, chunk)
		if err != nil {
			return nil, err
		}
		if x.take(); !more {
			break
		}
	}
	page := x.ready[:min(n, len(x.ready))]
	x.ready = x.ready[len(page):]
	return page, nil
}

// fill reads on, in one round trip, in all shards of which less than a chunk is at hand. more
// is false if there is nothing left to read.
func (x *stream) fill(ctx context.Context, chunk int) (more bool, err error) {
	cmds := make([]*redis.StringSliceCmd, len(x.parts))
	if _, err := x.store.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range x.parts {
			part := &x.parts[i]
			if part.done || len(part.ids) >= chunk {
				continue
			}
			read := p.ZRangeByLex
			if x.sign < 0 {
				read = p.ZRevRangeByLex
			}
			part.by.Count = int64(chunk)
			cmds[i] = read(ctx, x.key(i), &part.by)
		}
		return nil
	}); err != nil {
		return false, x.store.explain(err)
	}
	for i, c := range cmds {
		part := &x.parts[i]
		if c != nil {
			for _, id := range c.Val() {
				part.ids = append(part.ids, job.ID(id))
			}
			if part.done = len(c.Val()) < chunk; !part.done {
				if last := "(" + c.Val()[chunk-1]; x.sign > 0 {
					part.by.Min = last
				} else {
					part.by.Max = last
				}
			}
		}
		more = more || !part.done
	}
	return more, nil
}

// take makes the jobs of those trees ready that were read as a whole and that no shard can have any
// before: Redis has the jobs of one tree in another order than that of their numbers.
func (x *stream) take() {
	var limit job.ID // the first tree that more may be read of
	for i := range x.parts {
		part := &x.parts[i]
		if part.done {
			continue
		}
		if last := part.ids[len(part.ids)-1].Tree(); limit == "" || x.sign*last.Compare(limit) < 0 {
			limit = last
		}
	}
	for i := range x.parts {
		part := &x.parts[i]
		n := len(part.ids)
		if limit != "" {
			n, _ = slices.BinarySearchFunc(part.ids, limit, func(id, limit job.ID) int { return x.sign * id.Tree().Compare(limit) })
		}
		for _, id := range part.ids[:n] {
			if c := x.sign * id.Compare(x.after); x.after == "" || c > 0 || c == 0 && x.with {
				x.ready = append(x.ready, id)
			}
		}
		part.ids = part.ids[n:]
	}
	slices.SortFunc(x.ready, func(a, b job.ID) int { return x.sign * a.Compare(b) })
}

// below is a source of all jobs: those of the index, each with what is below it.
type below struct {
	store *Store
	sign  int
	roots *stream
	after job.ID // where to begin in the first tree
	ready []job.ID
}

// trees is a source of all jobs. Those of trees that were adopted come with those who adopted
// them.
func (s *Store) trees(ctx context.Context, f *job.Filter) (source, error) {
	x := &below{store: s, sign: direction(f)}
	by := between(f)
	by.Min = "-"
	x.roots = s.rangeOf(s.keys.index, by, x.sign)
	if f.After != "" && f.Order.ByCreation() {
		x.after = f.After
		top, err := s.top(ctx, f.After)
		if err != nil {
			return nil, fmt.Errorf("finding where the list was to go on: %w", err)
		}
		x.roots.begin(top, true)
	}
	return x, nil
}

// top returns the job without parent that a job is below.
func (s *Store) top(ctx context.Context, id job.ID) (job.ID, error) {
	i, err := s.Info(ctx, id)
	for err == nil && i.Parent != "" {
		id = i.Parent
		i, err = s.Info(ctx, id)
	}
	return id, err
}

func (x *below) next(ctx context.Context, n int) ([]job.ID, error) {
	for len(x.ready) == 0 {
		roots, err := x.roots.next(ctx, n)
		if err != nil || len(roots) == 0 {
			return nil, err
		}
		if x.ready, err = x.expand(ctx, roots); err != nil {
			return nil, err
		}
		if x.after != "" {
			x.ready = x.ready[1+slices.Index(x.ready, x.after):]
			x.after = ""
		}
	}
	page := x.ready[:min(n, len(x.ready))]
	x.ready = x.ready[len(page):]
	return page, nil
}

// expand returns jobs, each with all below it.
func (x *below) expand(ctx context.Context, roots []job.ID) ([]job.ID, error) {
	trees := make([][]job.ID, len(roots))
	type place struct {
		id   job.ID
		tree int
	}
	var level []place
	for n, id := range roots {
		level = append(level, place{id, n})
	}
	for len(level) > 0 {
		part := level[:min(largestPage, len(level))]
		level = level[len(part):]
		ids := make([]job.ID, len(part))
		for n, p := range part {
			ids[n] = p.id
			trees[p.tree] = append(trees[p.tree], p.id)
		}
		children, err := x.store.childrenOf(ctx, ids, "*")
		if err != nil {
			return nil, err
		}
		for n, p := range part {
			for _, child := range children[n] {
				level = append(level, place{child, p.tree})
			}
		}
	}
	var all []job.ID
	for _, tree := range trees {
		slices.SortFunc(tree, func(a, b job.ID) int { return x.sign * a.Compare(b) })
		all = append(all, tree...)
	}
	return all, nil
}
