package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
)

// Heartbeat implements store.Engines.
func (s *Store) Heartbeat(ctx context.Context, e store.EngineInfo) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("telling that engine %s lives: %w", e.ID, err)
	}
	return s.heartbeat(ctx, e.ID, raw, packActivity(&e.Activity))
}

// Leave implements store.Engines.
func (s *Store) Leave(ctx context.Context, engine string) error {
	return s.heartbeat(ctx, engine, nil, "")
}

func (s *Store) heartbeat(ctx context.Context, engine string, info []byte, activity string) error {
	_, err := s.run(ctx, scriptHeartbeat, s.keys.hub(), engine, info, store.EngineGone.Milliseconds(),
		activity, store.ActivitySpan.Milliseconds(), store.ActivitySpans)
	return err
}

// Engines implements store.Engines.
func (s *Store) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	since := strconv.FormatInt(now.Add(-store.EngineGone).UnixMilli(), 10)
	seen, err := s.rdb.ZRangeByScoreWithScores(ctx, s.keys.engines(), &redis.ZRangeBy{Min: since, Max: "+inf"}).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	hashes := make([]*redis.MapStringStringCmd, len(seen))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, z := range seen {
			hashes[i] = p.HGetAll(ctx, s.keys.engine(fmt.Sprint(z.Member)))
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	engines := []store.EngineInfo{}
	for i, h := range hashes {
		hash := h.Val()
		if hash["info"] == "" {
			continue // it left meanwhile
		}
		var e store.EngineInfo
		if err := json.Unmarshal([]byte(hash["info"]), &e); err != nil {
			return nil, fmt.Errorf("reading what engine %v tells: %w", seen[i].Member, err)
		}
		var d decoder
		e.Seen = time.UnixMilli(int64(seen[i].Score)).UTC()
		e.Started = time.UnixMilli(d.int(hash["started"])).UTC()
		if d.err != nil {
			return nil, d.err
		}
		engines = append(engines, e)
	}
	slices.SortFunc(engines, func(a, b store.EngineInfo) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return engines, nil
}
