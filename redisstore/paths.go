package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// anyDepth is a name of a path that stands for any number of names.
const anyDepth = "**"

// matchingPath is a source of the jobs that a path leads to. It reads the children of those jobs only that the beginning of the
// path leads to, in pages.
func (s *Store) matchingPath(ctx context.Context, f *job.Filter) (source, error) {
	names := strings.Split(f.Path, "/")
	var level []job.ID
	switch {
	case f.Below != "":
		level = []job.ID{f.Below}
		if f.Path == "" {
			names = nil
		}
	case names[0] == anyDepth:
		return nil, fmt.Errorf("%w: path %.80q: begin with a job, or with a pattern of aliases", job.ErrName, f.Path)
	default:
		var err error
		if level, err = s.aliased(ctx, names[0]); err != nil {
			return nil, err
		}
		names = names[1:]
	}
	for _, name := range names {
		next, err := s.descend(ctx, level, name)
		if err != nil {
			return nil, err
		}
		slices.Sort(next)
		level = slices.Compact(next)
	}
	return sorted(level, f), nil
}

// descend returns those children of jobs that a name of a path leads to.
func (s *Store) descend(ctx context.Context, level []job.ID, name string) (next []job.ID, err error) {
	if name == anyDepth {
		return (&below{store: s, sign: 1}).expand(ctx, level)
	}
	for part := range slices.Chunk(level, largestPage) {
		children, err := s.childrenNamed(ctx, part, name)
		if err != nil {
			return nil, err
		}
		for _, some := range children {
			next = append(next, some...)
		}
	}
	return next, nil
}

// childrenNamed returns those children of each of the jobs whose names are as a pattern says.
func (s *Store) childrenNamed(ctx context.Context, ids []job.ID, pattern string) ([][]job.ID, error) {
	if job.IsPattern(pattern) {
		return s.childrenOf(ctx, ids, pattern)
	}
	cmds := make([]*redis.StringCmd, len(ids))
	_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			cmds[i] = p.HGet(ctx, s.keys.job(id, childrenSuffix), pattern)
		}
		return nil
	})
	children := make([][]job.ID, len(ids))
	for i, c := range cmds {
		switch id, err := c.Result(); {
		case err == nil:
			children[i] = []job.ID{job.ID(id)}
		case !errors.Is(err, redis.Nil):
			return nil, s.explain(err)
		}
	}
	return children, s.addRecorded(ctx, ids, pattern, children)
}

// addRecorded adds to children that were found those of trees that are records.
func (s *Store) addRecorded(ctx context.Context, ids []job.ID, pattern string, children [][]job.ID) error {
	var without []job.ID
	for i, id := range ids {
		if len(children[i]) == 0 {
			without = append(without, id)
		}
	}
	more, err := s.recordedChildren(ctx, without, pattern)
	for i, id := range ids {
		for _, child := range more[id] {
			children[i] = append(children[i], child)
		}
	}
	return err
}

// childrenOf returns those children of each of the jobs whose names are as a pattern says. What one command reads is bounded.
func (s *Store) childrenOf(ctx context.Context, ids []job.ID, pattern string) ([][]job.ID, error) {
	type part struct {
		of     int
		cursor uint64
	}
	todo, children := make([]part, len(ids)), make([][]job.ID, len(ids))
	for i := range ids {
		todo[i].of = i
	}
	for len(todo) > 0 {
		cmds := make([]*redis.ScanCmd, len(todo))
		if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, t := range todo {
				cmds[i] = p.HScan(ctx, s.keys.job(ids[t.of], childrenSuffix), t.cursor, pattern, pageItems)
			}
			return nil
		}); err != nil {
			return nil, s.explain(err)
		}
		var more []part
		for i, c := range cmds {
			pairs, cursor := c.Val()
			of := todo[i].of
			for n := 1; n < len(pairs); n += 2 {
				children[of] = append(children[of], job.ID(pairs[n]))
			}
			if cursor > 0 {
				more = append(more, part{of, cursor})
			}
		}
		todo = more
	}
	if err := s.addRecorded(ctx, ids, pattern, children); err != nil {
		return nil, err
	}
	for i := range children { // a hash that changes while it is read may name one twice
		slices.Sort(children[i])
		children[i] = slices.Compact(children[i])
	}
	return children, nil
}
