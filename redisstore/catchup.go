package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
)

// readyNotifications returns a notification for each shard in which jobs of a queue are ready.
func (s *Store) readyNotifications(ctx context.Context, queue string) ([]delivery.Notification, error) {
	types := make([]*redis.StringSliceCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard := range types {
			types[shard] = p.ZRange(ctx, s.keys.ready(shard, queue), 0, -1)
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var notifications []delivery.Notification
	for shard, c := range types {
		notification := delivery.Notification{Queue: queue, Shard: shard, Gen: delivery.Direct}
		for _, typ := range c.Val() {
			if typ == "" {
				typ = delivery.AnyType
			}
			notification.Types = append(notification.Types, typ)
		}
		if len(notification.Types) > 0 {
			notifications = append(notifications, notification)
		}
	}
	return notifications, nil
}
