package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"

	"github.com/weirworks/weir/chaos/internal/crew"
)

// keyPrefix is what the keys of a shard begin with.
func keyPrefix(shard int) string { return fmt.Sprintf("weir:{%s:%d}:", namespace, shard) }

const hubPrefix = "weir:{" + namespace + "}:"

// quiet waits until nothing is to be done any more: nothing is due, now or later. What is due
// still when patience ends is stuck.
func (r *rig) quiet(ctx context.Context) error {
	r.say("waiting until all is quiet")
	began, told := time.Now(), time.Now()
	for calm := 0; ; {
		due, err := r.due(ctx)
		if err != nil {
			return err
		}
		if time.Since(told) > tellEvery {
			told = time.Now()
			r.say("%2.0f s: %d things are due, such as %q", time.Since(began).Seconds(), len(due), due[:min(3, len(due))])
		}
		if len(due) > 0 {
			calm = 0
		} else if calm++; calm == 3 { // also between two looks
			r.report.QuietMS = time.Since(began).Milliseconds()
			return nil
		}
		if time.Since(began) > r.Patience {
			for _, what := range due {
				r.bad(stuck, "%s after the last fault it is still due: %s", r.Patience, r.describe(ctx, what))
			}
			r.say("queues: %s", r.queues(ctx))
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// due lists what is due, in all shards, but that of which the retention is not over for long.
func (r *rig) due(ctx context.Context) (all []string, err error) {
	prefixes := []string{hubPrefix}
	for shard := range shards {
		prefixes = append(prefixes, keyPrefix(shard))
	}
	for _, prefix := range prefixes {
		members, err := r.rdb.ZRangeWithScores(ctx, prefix+"due", 0, -1).Result()
		if err != nil {
			return nil, err
		}
		for _, z := range members {
			if at := time.UnixMilli(int64(z.Score)); z.Member != "!retain" || time.Until(at) < time.Hour {
				all = append(all, fmt.Sprintf("%s %v", prefix, z.Member))
			}
		}
	}
	return all, nil
}

// describe adds to what is due how its job is.
func (r *rig) describe(ctx context.Context, due string) string {
	prefix, id, _ := strings.Cut(due, " ")
	fields := []string{"status", "type", "tries", "deaths", "queued", "reason"}
	values, err := r.rdb.HMGet(ctx, prefix+"j:"+strings.TrimPrefix(id, "@"), fields...).Result()
	if err != nil {
		return fmt.Sprintf("%s (%v)", due, err)
	}
	for n, v := range values {
		if v != nil {
			due += fmt.Sprintf(" %s=%q", fields[n], v)
		}
	}
	return due
}

// queues says how the queues are: why nothing runs.
func (r *rig) queues(ctx context.Context) string {
	all, err := r.store.Queues(ctx)
	if err != nil {
		return err.Error()
	}
	limits, err := r.store.Limits(ctx)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%+v, limits: %+v", all, limits)
}

// check checks each piece of work.
func (r *rig) check(ctx context.Context) error {
	for _, one := range r.rounds {
		if err := one.check(ctx, r); err != nil {
			r.bad(trouble, "%v", err)
		}
	}
	return ctx.Err()
}

// keyspace is what lies in the Redis: the jobs, and the keys that belong to them.
type keyspace struct {
	jobs     map[job.ID]map[string]string // their hashes
	children map[job.ID]map[string]string
	keys     []string
	lost     map[job.ID]bool // trees whose creation was lost in an outage
}

// inspect looks at all keys of the namespace when no process works on it any more.
func (r *rig) inspect(ctx context.Context) error {
	r.say("looking at all keys")
	// Locks of processes that were killed end by themselves: the longest lasts 15 s.
	if err := r.locksEnd(ctx, 20*time.Second); err != nil {
		return err
	}
	ks, err := r.read(ctx)
	if err != nil {
		return err
	}
	if err := r.definitions(ctx, ks); err != nil {
		return err
	}
	for _, key := range ks.keys {
		if why := ks.stray(key); why != "" {
			r.bad(orphanKeys, "key %s: %s", key, why)
		}
	}
	for id, fields := range ks.jobs {
		r.relations(ks, id, fields)
	}
	return r.lists(ctx, ks)
}

// locksEnd waits until there are no locks, or counts those that there are.
func (r *rig) locksEnd(ctx context.Context, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; {
		var locks []string
		keys, err := r.scan(ctx, "weir:{"+namespace+"*")
		for _, k := range keys {
			if strings.HasSuffix(k, ":lock") || strings.HasSuffix(k, "}:adopting") || strings.HasSuffix(k, "}:sweeper") {
				locks = append(locks, k)
			}
		}
		if err != nil || len(locks) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			for _, k := range locks {
				r.bad(leakedLocks, "lock %s has not ended", k)
			}
			return nil
		}
		if !pause(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// read reads all keys, and the jobs among them.
func (r *rig) read(ctx context.Context) (*keyspace, error) {
	ks := &keyspace{lost: r.lostTrees, jobs: map[job.ID]map[string]string{}, children: map[job.ID]map[string]string{}}
	var err error
	if ks.keys, err = r.scan(ctx, "weir:{"+namespace+"*"); err == nil && r.spread(ctx, ks.keys) {
		ks.keys, err = r.scan(ctx, "weir:{"+namespace+"*")
	}
	if err != nil {
		return nil, err
	}
	for _, key := range ks.keys {
		id, suffix, ok := jobKey(key)
		if !ok || suffix != "" && suffix != "c" {
			continue
		}
		fields, err := r.rdb.HGetAll(ctx, key).Result()
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		if suffix == "" {
			ks.jobs[id] = fields
		} else {
			ks.children[id] = fields
		}
	}
	return ks, nil
}

// spread has the jobs of all trees that are records get hashes, so that they are looked at as all others.
func (r *rig) spread(ctx context.Context, keys []string) (some bool) {
	for _, key := range keys {
		if _, root, ok := strings.Cut(key, "}:r:"); ok {
			_ = r.store.ClosePort(ctx, job.ID(root), port.Input, "none") // there is no such port
			some = true
		}
	}
	return some
}

// definitions looks at what trees that are records have in common, once there are none: nobody uses it, and it goes by itself.
func (r *rig) definitions(ctx context.Context, ks *keyspace) error {
	for _, key := range ks.keys {
		if !strings.Contains(key, "}:d:") {
			continue
		}
		users, err := r.rdb.HGet(ctx, key, "users").Result()
		if err != nil {
			return fmt.Errorf("key %s: %w", key, err)
		}
		ttl, err := r.rdb.PTTL(ctx, key).Result()
		if err != nil {
			return err
		}
		if users != "0" || ttl <= 0 || ttl > time.Hour {
			r.bad(orphanKeys, "key %s: %s trees are said to use it, and none does; it goes in %s", key, users, ttl)
		}
	}
	return nil
}

// jobKey takes a key of a job apart.
func jobKey(key string) (id job.ID, suffix string, ok bool) {
	_, name, ok := strings.Cut(key, "}:j:")
	text, suffix, _ := strings.Cut(name, ":")
	return job.ID(text), suffix, ok
}

// Keys that are there whether there are jobs or not, behind the prefix of a shard or of the hub.
var (
	shardKeys = map[string]bool{"due": true, "index": true, "failures": true, "seen": true, "mailed": true, "inbox": true, "erased": true, "bells": true, "retained": true, "limits": true, "places": true, "kept": true, "removed": true, "sequence": true, "unique": true}
	hubKeys   = map[string]bool{"meta": true, "types": true, "types:version": true, "aliases": true, "numbers": true, "due": true, "mailed": true, "inbox": true, "seen": true, "engines": true, "activity": true, "workkit": true, "workkit:" + crew.Timetable + ":order": true}
)

// stray tells why a key should not be there, or returns "".
func (ks *keyspace) stray(key string) string {
	if id, suffix, ok := jobKey(key); ok {
		fields, exists := ks.jobs[id]
		_, port, isPort := strings.Cut(suffix, ":")
		switch {
		case !exists:
			return "its job does not exist"
		case fields["status"] == "":
			return "its job has no status"
		case isPort && fields[suffix[:1]+"."+port] == "" && suffix[:1] != "p":
			return "its job has no such port"
		}
		return ""
	}
	_, name, _ := strings.Cut(key, "}:")
	if strings.HasPrefix(key, hubPrefix) {
		id, isAliases := strings.CutPrefix(name, "aliases:")
		switch {
		case hubKeys[name], strings.HasPrefix(name, "ch:"), strings.HasPrefix(name, "engine:"):
			return ""
		case isAliases && (ks.jobs[job.ID(id)] != nil || ks.lost[job.ID(id)]):
			return "" // an alias is bound before its tree is created: the next Start under it creates the tree
		}
		return "it is no key of a namespace without work, or its job does not exist"
	}
	kind, tree, _ := strings.Cut(name, ":")
	switch {
	case shardKeys[name]:
		return ""
	case kind == "pops", kind == "d":
		return "" // for a minute, and for an hour: see definitions
	case (kind == "t" || kind == "l") && ks.hasTree(job.ID(tree)):
		return ""
	}
	return "it is no key of a shard without work, or its tree does not exist"
}

func (ks *keyspace) hasTree(tree job.ID) bool {
	for id := range ks.jobs {
		if id.Tree() == tree {
			return true
		}
	}
	return false
}

// relations checks what the hash of a job says of others, and of runs in progress.
func (r *rig) relations(ks *keyspace, id job.ID, fields map[string]string) {
	status := statemachine.Status(fields["status"])
	if fields["token"] != "" {
		r.bad(leakedLocks, "job %s has a run in progress: it is %s", id, status)
	}
	if parent := job.ID(fields["parent"]); parent != "" {
		up := ks.jobs[parent]
		switch {
		case up == nil:
			r.bad(orphanKeys, "job %s has a parent that does not exist: %s", id, parent)
		case ks.children[parent][fields["name"]] != string(id):
			r.bad(orphanKeys, "job %s is not in the list of its parent %s", id, parent)
		case up["ending"] == "1" && up["status"] == string(statemachine.Terminated) && status != statemachine.Terminated:
			r.bad(zombies, "job %s is %s below %s, which was terminated with all below it", id, status, parent)
		}
	}
	open, broken := 0, 0
	for name, child := range ks.children[id] {
		f := ks.jobs[job.ID(child)]
		if f == nil {
			r.bad(orphanKeys, "child %s of job %s does not exist: %s", name, id, child)
			continue
		}
		switch s := statemachine.Status(f["status"]); {
		case s == statemachine.Failed && f["policy"] == string(job.Ignore):
		case s == statemachine.Failed:
			open, broken = open+1, broken+1
		case !s.Settled():
			open++
		}
	}
	if fields["graph"] == "1" && (fields["open"] != fmt.Sprint(open) || fields["broken"] != fmt.Sprint(broken)) {
		r.bad(wrongState, "graph %s counts %s open children and %s that failed: there are %d and %d", id, fields["open"], fields["broken"], open, broken)
	}
}

// lists checks the lists of jobs: that they name those that they should, and no others.
func (r *rig) lists(ctx context.Context, ks *keyspace) error {
	trees := map[job.ID]int{}
	for id := range ks.jobs {
		trees[id.Tree()]++
	}
	for tree, n := range trees {
		key := fmt.Sprintf("%st:%s", keyPrefix(tree.Shard(shards)), tree)
		counted, err := r.rdb.HGet(ctx, key, "jobs").Int()
		if errors.Is(err, redis.Nil) && ks.jobs[tree] != nil {
			counted, err = 1, nil // a root that is alone is not counted
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if counted != n {
			r.bad(wrongState, "tree %s counts %d jobs, and has %d", tree, counted, n)
		}
	}
	for shard := range shards {
		for list, belongs := range map[string]func(f map[string]string) bool{
			"index":    func(f map[string]string) bool { return f["parent"] == "" },
			"failures": func(f map[string]string) bool { return f["status"] == string(statemachine.Failed) },
		} {
			ids, err := r.rdb.ZRange(ctx, keyPrefix(shard)+list, 0, -1).Result()
			if err != nil {
				return err
			}
			listed := map[job.ID]bool{}
			for _, id := range ids {
				listed[job.ID(id)] = true
				if f := ks.jobs[job.ID(id)]; f == nil || !belongs(f) {
					r.bad(orphanKeys, "%s of shard %d lists %s, which does not belong there", list, shard, id)
				}
			}
			for id, f := range ks.jobs {
				if id.Shard(shards) == shard && belongs(f) && !listed[id] {
					r.bad(orphanKeys, "%s of shard %d does not list %s", list, shard, id)
				}
			}
		}
		if err := r.holders(ctx, ks, shard); err != nil {
			return err
		}
	}
	return nil
}

// holders checks who has the unique keys of a shard.
func (r *rig) holders(ctx context.Context, ks *keyspace, shard int) error {
	all, err := r.rdb.HGetAll(ctx, keyPrefix(shard)+"unique").Result()
	for name, id := range all {
		if f := ks.jobs[job.ID(id)]; f == nil || f["unique"] != name {
			r.bad(orphanKeys, "unique key %q of shard %d has tree %s, which does not", name, shard, id)
		}
	}
	return err
}
