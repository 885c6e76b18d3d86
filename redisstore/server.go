package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Now returns the time of the Redis, which is the one that jobs go by: that of this process may be wrong.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return now, s.explain(err)
	}
	return now, nil
}

// server is a Redis server that holds jobs, with what it says of itself.
type server struct {
	rdb  *redis.Client
	addr string
	info map[string]string // the fields of INFO; empty of a server that does not tell
}

// servers asks each server that holds jobs: the one, or all masters of a cluster.
func (s *Store) servers(ctx context.Context) ([]server, error) {
	var mu sync.Mutex
	var all []server
	ask := func(ctx context.Context, c *redis.Client, addr string) error {
		text, err := c.Info(ctx).Result()
		if err != nil && !s.answered(err) {
			return s.explain(err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, server{rdb: c, addr: addr, info: infoFields(text)})
		return nil
	}
	var err error
	switch c := s.rdb.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return ask(ctx, c, c.Options().Addr) })
	case *redis.Client:
		err = ask(ctx, c, s.where)
	}
	slices.SortFunc(all, func(a, b server) int { return cmp.Compare(a.addr, b.addr) })
	return all, err
}

func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// number returns a field as a number, 0 if it has none.
func (v server) number(field string) int64 {
	n, err := strconv.ParseInt(v.info[field], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// bad returns the fields that do not say ok, of those that are there.
func (v server) bad(fields ...string) []string {
	return slices.DeleteFunc(fields, func(f string) bool { return v.info[f] == "" || v.info[f] == "ok" })
}

// Warnings are what somebody should know who is going to rely on the store: in a line each,
// with what to do. What the server does not tell is no warning.
func (s *Store) Warnings(ctx context.Context) []string {
	if s.local != nil {
		return nil // whoever embeds a Redis knows that it ends with the process
	}
	all, err := s.servers(ctx)
	if err != nil {
		return nil // whatever is asked next says so
	}
	var warnings []string
	for _, v := range all {
		if version := v.info["redis_version"]; v.old() {
			warnings = append(warnings, fmt.Sprintf("Redis at %s has version %s; use %d or later", v.addr, version, minRedis))
		}
		if v.info["aof_enabled"] == "0" {
			warnings = append(warnings, fmt.Sprintf("Redis at %s has no append-only file: when it dies, jobs are lost; redis-cli CONFIG SET appendonly yes", v.addr))
		} else if load, known := v.setting(ctx, "aof-load-truncated"); known && load == "yes" {
			warnings = append(warnings, fmt.Sprintf("Redis at %s has aof-load-truncated yes: after a kill -9 it may carry out half a run; weir doctor says what to do", v.addr))
		}
	}
	return warnings
}

// old tells whether the server says that it is older than the scripts need.
func (v server) old() bool {
	version := v.info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return version != "" && (err != nil || n < minRedis)
}
