package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Traffic is what passed between a Store and its Redis since the store was opened. What a client repeats by itself, and the
// subscriptions, are not in it.
type Traffic struct {
	RoundTrips int64         // a pipeline is one
	Errors     int64         // of these, those that were answered with an error, or not at all
	Time       time.Duration // until their answers were there, added up
}

// Traffic returns what passed since the store was opened, with what asynq sends for it.
func (s *Store) Traffic() Traffic {
	return Traffic{
		RoundTrips: s.traffic.trips.Load(), Errors: s.traffic.errors.Load(), Time: time.Duration(s.traffic.nanos.Load()),
	}
}

// traffic counts round trips, as a hook of the Redis client.
type traffic struct{ trips, errors, nanos atomic.Int64 }

// DialHook implements redis.Hook.
func (*traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (t *traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		sent := time.Now()
		err := next(ctx, cmd)
		t.note(sent, err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (t *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := time.Now()
		err := next(ctx, cmds)
		t.note(sent, err)
		return err
	}
}

func (t *traffic) note(sent time.Time, err error) {
	t.trips.Add(1)
	t.nanos.Add(int64(time.Since(sent)))
	if err != nil && !errors.Is(err, redis.Nil) {
		t.errors.Add(1)
	}
}
