package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
)

// readyBells returns a bell for each shard in which jobs of a queue are ready.
func (s *Store) readyBells(ctx context.Context, queue string) ([]delivery.Bell, error) {
	types := make([]*redis.StringSliceCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard := range types {
			types[shard] = p.ZRange(ctx, s.keys.ready(shard, queue), 0, -1)
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var bells []delivery.Bell
	for shard, c := range types {
		bell := delivery.Bell{Queue: queue, Shard: shard, Gen: delivery.Direct}
		for _, typ := range c.Val() {
			if typ == "" {
				typ = delivery.AnyType
			}
			bell.Types = append(bell.Types, typ)
		}
		if len(bell.Types) > 0 {
			bells = append(bells, bell)
		}
	}
	return bells, nil
}
