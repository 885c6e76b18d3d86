package rig

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// reshards moves slots of the namespace from server to server of the cluster, at random, until ctx
// ends, while other faults happen to the processes.
func (r *rig) reshards(ctx context.Context) error {
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { r.besides(ctx) })
	c := r.site.cluster
	for pause(ctx, r.between(0, 300*time.Millisecond)) {
		key := hubPrefix + "due"
		if shard := r.intn(shards + 1); shard < shards {
			key = keyPrefix(shard) + "due"
		}
		whole := context.WithoutCancel(ctx) // a move that was broken off has to be fixed by an operator
		slot, err := c.Slot(whole, key)
		if err != nil {
			return err
		}
		owner, err := c.Owner(whole, slot)
		if err != nil {
			return err
		}
		to := (owner + 1 + r.intn(len(c.Nodes)-1)) % len(c.Nodes)
		if err := c.MoveSlot(whole, slot, to); err != nil {
			r.bad(duplicated, "moving the slot of %s from server %d to %d: %v", key, owner, to, err) // a key is on both
			return nil
		}
		r.fault("reshard")
	}
	return nil
}

// scan returns all keys of a pattern, of all servers.
func (r *rig) scan(ctx context.Context, pattern string) (keys []string, err error) {
	var mu sync.Mutex
	one := func(ctx context.Context, c *redis.Client) error {
		it := c.Scan(ctx, 0, pattern, 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	switch c := r.rdb.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, one)
	case *redis.Client:
		err = one(ctx, c)
	}
	if err != nil {
		return nil, fmt.Errorf("listing keys like %s: %w", pattern, err)
	}
	return keys, nil
}
