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
	counts, some := make([]*redis.IntCmd, e.keys.shards), make([]*redis.StringSliceCmd, e.keys.shards)
	if _, err := e.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range counts {
			counts[i], some[i] = p.ZCard(ctx, e.keys.kept(i)), p.ZRange(ctx, e.keys.kept(i), 0, shown-1)
		}
		return nil
	}); err != nil {
		return err
	}
	n, ids := int64(0), []string{}
	for i := range counts {
		n, ids = n+counts[i].Val(), append(ids, some[i].Val()...)
	}
	for int64(len(ids)) < n { // so that few counts them
		ids = append(ids, "")
	}
	if n > 0 {
		e.warn("read them (weir read JOB PORT), or delete the trees (weir terminate JOB --tree, weir delete JOB)",
			"%s past their retention, and kept as their Out ports hold messages that nobody has read: %s", counted(n, "tree"), few(ids))
		return nil
	}
	e.ok("trees go %s after they have ended, %s after they have failed, unless they were started with another retention",
		job.RetentionText(r.Ended), job.RetentionText(r.Failed))
	return nil
}
