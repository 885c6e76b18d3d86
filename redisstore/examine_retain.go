package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// retention looks for trees that are past their retention and kept, as nobody has read what they wrote.
func (e *examiner) retention(ctx context.Context) error {
	r, err := e.Retention(ctx)
	if err != nil {
		return err
	}
	ids, err := e.members(ctx, e.keys.kept)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		past := "tree is past its retention, and kept as its"
		if len(ids) > 1 {
			past = "trees are past their retention, and kept as their"
		}
		e.warn("read them (weir read JOB PORT), or delete the trees (weir terminate JOB --tree, weir delete JOB)",
			"%d %s Out ports hold messages that nobody has read: %s", len(ids), past, few(ids))
		return nil
	}
	e.ok("trees go %s after they have ended, %s after they have failed, unless they were started with another retention",
		job.RetentionText(r.Ended), job.RetentionText(r.Failed))
	return nil
}

// deadLetters looks for jobs with dead letters, which wait for somebody.
func (e *examiner) deadLetters(ctx context.Context) error {
	ids, err := e.members(ctx, e.keys.dead)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		e.warn("weir dead list shows why; weir dead requeue sends them again", "dead letters of %s: %s", counted(len(ids), "job"), few(ids))
		return nil
	}
	e.ok("no job has dead letters")
	return nil
}

// members returns the jobs in a sorted set that each shard has: the first of each, and then as many empty IDs as there are more.
func (e *examiner) members(ctx context.Context, at func(shard int) string) ([]string, error) {
	counts, some := make([]*redis.IntCmd, e.keys.shards), make([]*redis.StringSliceCmd, e.keys.shards)
	if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range counts {
			counts[i], some[i] = p.ZCard(ctx, at(i)), p.ZRange(ctx, at(i), 0, shown-1)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	n, ids := 0, []string{}
	for i := range counts {
		n, ids = n+int(counts[i].Val()), append(ids, some[i].Val()...)
	}
	return append(ids, make([]string, max(n-len(ids), 0))...), nil
}
