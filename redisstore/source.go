package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	var err error
	sets := s.setsOf(f.Status)
	if sets != nil && f.Alias == "" && !f.All {
		many, err := s.many(ctx, sets)
		if err != nil {
			return nil, err
		}
		if many {
			sets = nil
		}
	}
	switch {
	case f.Alias != "":
		l.from, err = s.named(ctx, f)
	case sets != nil:
		l.from, err = s.members(ctx, sets, f)
	case f.All:
		l.from, err = s.trees(ctx, f)
	default:
		l.from, l.sure = s.roots(f), plain(f) && f.Order.ByCreation()
	}
	return l, err
}

// plain tells whether a filter asks for nothing but when jobs were created.
func plain(f *job.Filter) bool {
	return len(f.Status) == 0 && f.Type == "" && f.Queue == "" && len(f.Labels) == 0 && len(f.Keys) == 0
}

// setsOf returns the keys of the sets that hold all jobs with one of the statuses; none if
// there are no such sets.
func (s *Store) setsOf(statuses []statemachine.Status) (keys []string) {
	failed, due := false, false
	for _, status := range statuses {
		switch status {
		case statemachine.Failed:
			failed = true
		case statemachine.Queued, statemachine.Scheduled, statemachine.Running, statemachine.Terminating:
			due = true
		default:
			return nil
		}
	}
	for n := range s.keys.shards {
		if failed {
			keys = append(keys, s.keys.failures(n))
		}
		if due {
			keys = append(keys, s.keys.due(n))
		}
	}
	return keys
}

// many tells whether the sets have so many members that the jobs are found sooner among
// those without parent.
func (s *Store) many(ctx context.Context, sets []string) (bool, error) {
	var members, roots []*redis.IntCmd
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range sets {
			members = append(members, p.ZCard(ctx, key))
		}
		for n := range s.keys.shards {
			roots = append(roots, p.ZCard(ctx, s.keys.index(n)))
		}
		return nil
	}); err != nil {
		return false, s.explain(err)
	}
	sum := func(cmds []*redis.IntCmd) (n int64) {
		for _, c := range cmds {
			n += c.Val()
		}
		return n
	}
	return sum(members) > sum(roots)/4, nil
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

// members is a source of the jobs in sorted sets.
func (s *Store) members(ctx context.Context, keys []string, f *job.Filter) (source, error) {
	cmds := make([]*redis.StringSliceCmd, len(keys))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			cmds[i] = p.ZRange(ctx, key, 0, -1)
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
	var ids []job.ID
	if !strings.ContainsAny(f.Alias, `*?[\`) {
		id, err := s.rdb.HGet(ctx, s.keys.aliases(), f.Alias).Result()
		if err == nil {
			ids = append(ids, job.ID(id))
		}
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return sorted(ids, f), s.explain(err)
	}
	for cursor := uint64(0); ; {
		pairs, next, err := s.rdb.HScan(ctx, s.keys.aliases(), cursor, f.Alias, 10_000).Result()
		if err != nil {
			return nil, s.explain(err)
		}
		for i := 1; i < len(pairs); i += 2 {
			ids = append(ids, job.ID(pairs[i]))
		}
		if cursor = next; cursor == 0 {
			return sorted(ids, f), nil
		}
	}
}

// index is a source of the jobs without parent: the shards' indexes as one.
type index struct {
	store *Store
	sign  int // 1: from the oldest to the newest, else -1
	parts []part
	ready []job.ID
}

// part is the index of one shard, as far as it was read.
type part struct {
	by   redis.ZRangeBy
	ids  []job.ID // in order, not yet given
	done bool     // there are no more behind them
}

// roots is a source of the jobs without parent within the times of a filter.
func (s *Store) roots(f *job.Filter) *index {
	by := between(f)
	switch {
	case f.After == "" || !f.Order.ByCreation():
	case direction(f) > 0:
		by.Min = later(by.Min, "("+string(f.After))
	default:
		by.Max = earlier(by.Max, "("+string(f.After))
	}
	return s.index(by, direction(f))
}

func (s *Store) index(by redis.ZRangeBy, sign int) *index {
	x := &index{store: s, sign: sign, parts: make([]part, s.keys.shards)}
	for i := range x.parts {
		x.parts[i].by = by
	}
	return x
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

// later is the bound of a range that leaves out more of its beginning.
func later(a, b string) string {
	if a == "-" || a[1:] <= b[1:] {
		return b
	}
	return a
}

// earlier is the bound of a range that leaves out more of its end.
func earlier(a, b string) string {
	if a == "+" || a[1:] >= b[1:] {
		return b
	}
	return a
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
	n := 0
	for _, c := range cmds {
		n += int(c.Val())
	}
	return n, nil
}

func (x *index) next(ctx context.Context, n int) ([]job.ID, error) {
	if len(x.ready) == 0 {
		if err := x.fill(ctx, max(16, 2*n/len(x.parts))); err != nil {
			return nil, err
		}
		x.take()
	}
	page := x.ready[:min(n, len(x.ready))]
	x.ready = x.ready[len(page):]
	return page, nil
}

// fill reads on, in one round trip, in all shards of which less than half a chunk is at hand.
func (x *index) fill(ctx context.Context, chunk int) error {
	cmds := make([]*redis.StringSliceCmd, len(x.parts))
	if _, err := x.store.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range x.parts {
			part := &x.parts[i]
			if part.done || len(part.ids) > chunk/2 {
				continue
			}
			read := p.ZRangeByLex
			if x.sign < 0 {
				read = p.ZRevRangeByLex
			}
			part.by.Count = int64(chunk)
			cmds[i] = read(ctx, x.store.keys.index(i), &part.by)
		}
		return nil
	}); err != nil {
		return x.store.explain(err)
	}
	for i, c := range cmds {
		if c == nil {
			continue
		}
		part := &x.parts[i]
		for _, id := range c.Val() {
			part.ids = append(part.ids, job.ID(id))
		}
		if part.done = len(c.Val()) < chunk; part.done {
			continue
		}
		if last := "(" + c.Val()[chunk-1]; x.sign > 0 {
			part.by.Min = last
		} else {
			part.by.Max = last
		}
	}
	return nil
}

// take makes those ready that no shard can have any before.
func (x *index) take() {
	var limit job.ID
	for i := range x.parts {
		part := &x.parts[i]
		if part.done {
			continue
		}
		if last := part.ids[len(part.ids)-1]; limit == "" || x.compare(last, limit) < 0 {
			limit = last
		}
	}
	for i := range x.parts {
		part := &x.parts[i]
		n := len(part.ids)
		if limit != "" {
			n, _ = slices.BinarySearchFunc(part.ids, limit, x.compare)
			if n < len(part.ids) && part.ids[n] == limit {
				n++
			}
		}
		x.ready = append(x.ready, part.ids[:n]...)
		part.ids = part.ids[n:]
	}
	slices.SortFunc(x.ready, x.compare)
}

// compare compares IDs as Redis does in the index.
func (x *index) compare(a, b job.ID) int { return x.sign * strings.Compare(string(a), string(b)) }

// below is a source of all jobs: those of the index, each with what is below it.
type below struct {
	store *Store
	sign  int
	roots *index
	after job.ID // where to begin in the first tree
	ready []job.ID
}

// trees is a source of all jobs. Those of trees that were adopted come with those who adopted
// them. The children of an old job may be new: only Until limits where to look.
func (s *Store) trees(ctx context.Context, f *job.Filter) (source, error) {
	by := between(f)
	by.Min = "-"
	x := &below{store: s, sign: direction(f)}
	if f.After != "" && f.Order.ByCreation() {
		x.after = f.After
		top, err := s.top(ctx, f.After)
		if err != nil {
			return nil, fmt.Errorf("finding where the list was to go on: %w", err)
		}
		if x.sign > 0 {
			by.Min = "[" + string(top)
		} else {
			by.Max = earlier(by.Max, "["+string(top))
		}
	}
	x.roots = s.index(by, x.sign)
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
		children, err := x.store.childrenOf(ctx, ids)
		if err != nil {
			return nil, err
		}
		for n, p := range part {
			for _, child := range children[n] {
				level = append(level, place{job.ID(child), p.tree})
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

// childrenOf returns the children of each of the jobs.
func (s *Store) childrenOf(ctx context.Context, ids []job.ID) ([][]string, error) {
	cmds := make([]*redis.StringSliceCmd, len(ids))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			cmds[i] = p.HVals(ctx, s.keys.job(id, childrenSuffix))
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	children := make([][]string, len(ids))
	for i, c := range cmds {
		children[i] = c.Val()
	}
	return children, nil
}
