package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// watchFor is how long shards go on publishing statuses without hearing from a listener.
const watchFor = 10 * time.Second

// Publish implements store.Channels.
func (s *Store) Publish(ctx context.Context, channel string, items []json.RawMessage) error {
	if len(items) > job.MaxWrites {
		return fmt.Errorf("publishing to %s: %w: %d messages, at most %d are allowed; publish them in several calls", channel, job.ErrTooLarge, len(items), job.MaxWrites)
	}
	items, err := s.secrets.hideMessages(items)
	if err != nil {
		return err
	}
	reply, err := s.run(ctx, scriptPublish, s.keys.hub(), itemArgs([]any{channel, rand.Text()}, items)...)
	if err != nil {
		return err
	}
	var d decoder
	l := d.list(reply)
	return s.deliver(ctx, s.keys.hub(), &d, d.at(l, 1))
}

// Listen implements store.Channels.
func (s *Store) Listen(ctx context.Context, channel string, fn func(json.RawMessage)) error {
	sub := s.rdb.Subscribe(ctx, s.keys.channel(channel))
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return s.explain(err)
	}
	statuses := strings.HasPrefix(channel, "/weir/")
	tick := time.NewTicker(watchFor / 3)
	defer tick.Stop()
	if statuses {
		if err := s.watch(ctx); err != nil {
			return err
		}
	}
	for messages := sub.Channel(); ; {
		select {
		case <-ctx.Done():
			return nil
		case m, ok := <-messages:
			if !ok {
				return s.explain(redis.ErrClosed)
			}
			item, err := s.secrets.showMessage(json.RawMessage(m.Payload))
			if err != nil {
				return fmt.Errorf("channel %s: %w", channel, err)
			}
			data, _ := port.Split(item)
			fn(data)
		case <-tick.C:
			if statuses {
				_ = s.watch(ctx) // it holds for three ticks
			}
		}
	}
}

// watch asks all shards to publish statuses for a while.
func (s *Store) watch(ctx context.Context) error {
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range s.keys.shards {
			p.Set(ctx, s.keys.watch(i), "1", watchFor)
		}
		return nil
	})
	return s.explain(err)
}
