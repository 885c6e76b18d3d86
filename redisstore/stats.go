package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
)

// Stats are counters of a namespace and its Redis at one moment. Taking them costs the
// same however many jobs there are.
type Stats struct {
	Namespace       string
	At              time.Time // by the store's clock
	Shards          int
	Roots           int64         // jobs without parent
	Dead            int64         // jobs with dead letters
	Failed          int64         // jobs, also of trees that go on
	Due             int64         // reasons to look at something later: wakes, leases, timers, work left to do
	Overdue         int64         // of them, those that nobody has looked at for Lag
	Late            time.Duration // since when the first of them is due; 0 if nothing is
	Orders          int64         // from shard to shard, not yet carried out
	BackgroundTasks int64         // pieces of work on subtrees that are left to do
	Aliases         int64
	Retained        int64            // trees and children that have settled, and are removed when their time has come
	Kept            int64            // trees that are past their retention, and hold messages that nobody has read
	Removed         int64            // trees and children that were past their retention, ever
	Activity        []store.Activity // what runs did, of each span of the last while in which there were some; the oldest first
	Queues          []QueueInfo
	Engines         []store.EngineInfo
	Servers         []ServerStats // more than one of a cluster
}

// Lag is for how long something may be past due before that is worth a remark: sweepers
// look each second.
const Lag = 10 * time.Second

// ServerStats are counters of one Redis server. What it does not tell is zero.
type ServerStats struct {
	Address   string        `json:"address"`
	Version   string        `json:"version"`
	Role      string        `json:"role"`
	Uptime    time.Duration `json:"-" cbor:"uptime"`
	Used      int64         `json:"memory_used"`
	Max       int64         `json:"memory_max"` // 0: no limit
	Keys      int64         `json:"keys"`       // in the whole database
	Commands  int64         `json:"commands_per_second"`
	Clients   int64         `json:"clients"`
	Replicas  int64         `json:"replicas"`
	AOF       bool          `json:"aof"`
	LastSave  time.Time     `json:"last_save"`  // of a snapshot
	DiskError []string      `json:"disk_error"` // fields of INFO that say that writing to disk failed
}

// Stats counts.
func (s *Store) Stats(ctx context.Context) (*Stats, error) {
	st := &Stats{Namespace: s.keys.namespace, Shards: s.keys.shards}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	st.At = now.UTC()
	if err := s.count(ctx, st, now); err != nil {
		return nil, err
	}
	if st.Engines, err = s.Engines(ctx); err != nil {
		return nil, err
	}
	if st.Queues, err = s.queuesOf(ctx, st.Engines); err != nil {
		return nil, err
	}
	servers, err := s.servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range servers {
		one := v.stats()
		if one.Keys, err = v.rdb.DBSize(ctx).Result(); err != nil {
			return nil, s.explain(err)
		}
		st.Servers = append(st.Servers, one)
	}
	return st, nil
}

// count adds up what the shards hold.
func (s *Store) count(ctx context.Context, st *Stats, now time.Time) error {
	late := strconv.FormatInt(now.Add(-Lag).UnixMilli(), 10)
	sums := map[*int64][]*redis.IntCmd{}
	var heads []*redis.ZSliceCmd
	var removed []*redis.SliceCmd
	var spans *redis.MapStringStringCmd
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		add := func(sum *int64, c *redis.IntCmd) { sums[sum] = append(sums[sum], c) }
		for i := range s.keys.shards + 1 { // the last being that of the channels
			due := s.dueAt(i)
			add(&st.Due, p.ZCard(ctx, due))
			add(&st.Overdue, p.ZCount(ctx, due, "-inf", late))
			heads = append(heads, p.ZRangeWithScores(ctx, due, 0, 0))
			add(&st.Orders, p.XLen(ctx, outboxAt(due)))
			add(&st.BackgroundTasks, p.LLen(ctx, backgroundTasksAt(due)))
			if i < s.keys.shards {
				add(&st.Roots, p.ZCard(ctx, s.keys.index(i)))
				add(&st.Failed, p.ZCard(ctx, s.keys.failures(i)))
				add(&st.Dead, p.ZCard(ctx, s.keys.dead(i)))
				add(&st.Retained, p.ZCard(ctx, s.keys.retained(i)))
				add(&st.Kept, p.ZCard(ctx, s.keys.kept(i)))
				removed = append(removed, p.MGet(ctx, s.keys.removed(i))) // which is no error if it is not there
			}
		}
		add(&st.Aliases, p.HLen(ctx, s.keys.aliases()))
		spans = p.HGetAll(ctx, s.keys.activity())
		return nil
	}); err != nil {
		return s.explain(err)
	}
	var d decoder
	for _, c := range removed {
		if v := c.Val()[0]; v != nil {
			st.Removed += d.int(v)
		}
	}
	for sum, counts := range sums {
		for _, c := range counts {
			*sum += c.Val()
		}
	}
	for _, head := range heads {
		for _, z := range head.Val() {
			st.Late = max(st.Late, now.Sub(time.UnixMilli(int64(z.Score))))
		}
	}
	if d.err != nil {
		return d.err
	}
	var err error
	st.Activity, err = activities(spans.Val(), now)
	return err
}

func (v server) stats() ServerStats {
	st := ServerStats{
		Address: v.addr, Version: v.info["redis_version"], Role: v.info["role"],
		Uptime: time.Duration(v.number("uptime_in_seconds")) * time.Second,
		Used:   v.number("used_memory"), Max: v.number("maxmemory"),
		Commands: v.number("instantaneous_ops_per_sec"), Clients: v.number("connected_clients"), Replicas: v.number("connected_slaves"),
		AOF: v.info["aof_enabled"] == "1", DiskError: v.diskErrors(),
	}
	if at := v.number("rdb_last_save_time"); at > 0 {
		st.LastSave = time.Unix(at, 0).UTC()
	}
	return st
}

// diskErrors are the fields that tell that what was last written to disk failed.
func (v server) diskErrors() []string {
	fields := []string{"rdb_last_bgsave_status"}
	if v.info["aof_enabled"] == "1" {
		fields = append(fields, "aof_last_bgrewrite_status", "aof_last_write_status")
	}
	return v.bad(fields...)
}
