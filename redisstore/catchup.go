package redisstore

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/job"
)

// classScores is how many scores of ready sets are of one priority, see ready.lua.
const classScores = 1 << 40

// readyNotifications returns a notification for each shard in which jobs of a queue are ready.
func (s *Store) readyNotifications(ctx context.Context, queue string) ([]delivery.Notification, error) {
	types := make([]*redis.ZSliceCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard := range types {
			types[shard] = p.ZRangeWithScores(ctx, s.keys.ready(shard, queue), 0, -1)
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var notifications []delivery.Notification
	for shard, c := range types {
		notification := delivery.Notification{Queue: queue, Shard: shard, Gen: delivery.Direct}
		for _, z := range c.Val() {
			notification.Types = append(notification.Types, cmp.Or(z.Member.(string), delivery.AnyType)) //nolint:forcetypeassert // it is
			notification.Priorities = append(notification.Priorities, job.MaxPriority-int(math.Floor(z.Score/classScores)))
		}
		if len(notification.Types) > 0 {
			notifications = append(notifications, notification)
		}
	}
	return notifications, nil
}

// sendReady sends notifications for jobs of some types that are ready in a queue, but those that asynq holds.
func (s *Store) sendReady(ctx context.Context, queue string, runs func(typ string) bool) error {
	all, err := s.readyNotifications(ctx, queue)
	var notifications []delivery.Notification
	for _, b := range all {
		if own, some := b.Only(runs); some {
			notifications = append(notifications, own)
		}
	}
	if err != nil || len(notifications) == 0 {
		return err
	}
	generations := make([]*redis.StringCmd, len(notifications))
	_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for i, b := range notifications {
			generations[i] = p.HGet(ctx, s.keys.bells(b.Shard), queue)
		}
		return nil
	})
	for i, gen := range generations {
		n, err := gen.Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return s.explain(err)
		}
		notifications[i].Gen = n
	}
	_, err = s.broker.Enqueue(ctx, notifications)
	return s.explain(err)
}
