package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redisconn"
)

// minRedis is the oldest version of Redis that the scripts are made for.
const minRedis = 7

// Limits from which on something is worth a remark.
const (
	memoryFull  = 95 // percent of maxmemory
	memoryHigh  = 80
	skewLimit   = time.Second
	latencyHigh = 10 * time.Millisecond
	pings       = 20
)

func (e *examiner) connection(ctx context.Context) error {
	err := e.answers(ctx)
	if err == nil {
		e.all, err = e.servers(ctx)
	}
	if err == nil && len(e.all) == 0 {
		err = errOtherServer
	}
	if err != nil {
		if ctx.Err() == nil {
			e.problem("start Redis, or correct the URL", "%v", err)
			e.hopeless = true
			return nil
		}
		return err
	}
	e.ok("Redis at %s answers", e.where)
	return nil
}

// tells returns an error unless the servers told a field of INFO.
func (e *examiner) tells(field string) error {
	for _, v := range e.all {
		if v.info[field] == "" {
			return fmt.Errorf("%w %s in its INFO", errOtherServer, field)
		}
	}
	return nil
}

// setting returns a setting of a server; known is false if it does not tell, as servers of
// some providers.
func (v server) setting(ctx context.Context, name string) (value string, known bool) {
	all, err := v.rdb.ConfigGet(ctx, name).Result()
	value, known = all[name]
	return value, known && err == nil
}

func (e *examiner) version(context.Context) error {
	if err := e.tells("redis_version"); err != nil {
		return err
	}
	var versions []string
	for _, v := range e.all {
		version := v.info["redis_version"]
		versions = append(versions, version)
		if v.old() {
			e.problem(fmt.Sprintf("use Redis %d or later", minRedis), "%sversion %s is too old", e.of(v), version)
		}
	}
	if !e.found() {
		slices.Sort(versions)
		e.ok("version %s", strings.Join(slices.Compact(versions), ", "))
	}
	return nil
}

func (e *examiner) eviction(context.Context) error {
	if err := e.tells("maxmemory_policy"); err != nil {
		return err
	}
	for _, v := range e.all {
		if policy := v.info["maxmemory_policy"]; policy != "noeviction" {
			e.problem("redis-cli CONFIG SET maxmemory-policy noeviction, then CONFIG REWRITE",
				"%smaxmemory-policy is %s: when memory is full, Redis throws jobs away", e.of(v), policy)
		}
	}
	if !e.found() {
		e.ok("maxmemory-policy is noeviction")
	}
	return nil
}

func (e *examiner) memory(context.Context) error {
	if err := e.tells("used_memory"); err != nil {
		return err
	}
	for _, v := range e.all {
		used, limit, of := v.number("used_memory"), v.number("maxmemory"), "maxmemory"
		if limit == 0 {
			limit, of = v.number("total_system_memory"), "the machine's memory; there is no maxmemory"
		}
		if limit == 0 {
			e.ok("%s%d MiB are used", e.of(v), used>>20)
			continue
		}
		percent := used * 100 / limit
		text := fmt.Sprintf("%s%d of %d MiB are used, %d %% of %s", e.of(v), used>>20, limit>>20, percent, of)
		switch fix := "delete trees that are done (weir jobs --status completed; weir delete), or raise maxmemory, on a larger machine if need be"; {
		case percent >= memoryFull:
			e.problem(fix, "%s; when it is full, all is refused but what ends, reads and deletes", text)
		case percent >= memoryHigh:
			e.warn(fix, "%s", text)
		default:
			e.ok("%s", text)
		}
	}
	return nil
}

func (e *examiner) persistence(ctx context.Context) error {
	if err := e.tells("aof_enabled"); err != nil {
		return err
	}
	for _, v := range e.all {
		if v.info["loading"] == "1" {
			e.problem("wait until it has read its data from disk", "%sit is loading its data", e.of(v))
		}
		if bad := v.diskErrors(); len(bad) > 0 {
			e.problem("look at Redis's log and at its disk; until it can write, Redis may refuse all changes",
				"%sthe last write to disk failed: %s", e.of(v), strings.Join(bad, ", "))
		}
		e.aof(ctx, v)
	}
	return nil
}

// aof looks at how a server keeps its data.
func (e *examiner) aof(ctx context.Context, v server) {
	const fix = "redis-cli CONFIG SET appendonly yes, then CONFIG REWRITE"
	if v.info["aof_enabled"] != "1" {
		save, known := v.setting(ctx, "save")
		if known && save == "" {
			e.problem(fix, "%snothing is written to disk: when Redis ends, all jobs are gone", e.of(v))
			return
		}
		e.warn(fix, "%sthere is no append-only file, only snapshots: when Redis dies, what came after the last one is lost", e.of(v))
		return
	}
	sync, known := v.setting(ctx, "appendfsync")
	switch {
	case known && sync == "no":
		e.warn("redis-cli CONFIG SET appendfsync everysec, then CONFIG REWRITE",
			"%sappendfsync is no: when the machine dies, half a minute of work is lost", e.of(v))
	case known && sync == "always":
		e.ok("%sappend-only file, synced with each change", e.of(v))
	case known:
		e.ok("%sappend-only file, appendfsync %s: when the machine dies, about a second of work is lost", e.of(v), sync)
	default:
		e.ok("%sappend-only file; the server does not tell appendfsync", e.of(v))
	}
	if load, known := v.setting(ctx, "aof-load-truncated"); known && load == "yes" {
		e.warn("let redis-check-aof --fix run before Redis starts, then redis-cli CONFIG SET aof-load-truncated no and CONFIG REWRITE: docs/reliability.md shows how",
			"%saof-load-truncated is yes: a kill -9 of Redis, or a power loss, can tear the last run that was on its way into the file, and Redis carries out half of it at the start after the next one", e.of(v))
	}
}

func (e *examiner) replication(ctx context.Context) error {
	if err := e.tells("role"); err != nil {
		return err
	}
	for _, v := range e.all {
		if v.info["role"] != "master" {
			e.problem("name the master in the URL, or use redis+sentinel://", "%sthis server is a replica: it takes no changes", e.of(v))
			continue
		}
		replicas := v.number("connected_slaves")
		text, known := v.setting(ctx, "min-replicas-to-write")
		least, _ := strconv.ParseInt(text, 10, 64) // a number, if it is known
		switch {
		case known && least > replicas:
			e.problem("bring the replicas back, or lower min-replicas-to-write",
				"%s%s connected, min-replicas-to-write is %d: Redis refuses all changes", e.of(v), counted(replicas, "replica"), least)
		case replicas > 0 && known && least == 0:
			e.warn("redis-cli CONFIG SET min-replicas-to-write 1, then CONFIG REWRITE",
				"%s%s, but min-replicas-to-write is 0: a master that was cut off goes on taking changes, which a failover loses", e.of(v), counted(replicas, "replica"))
		case replicas > 0:
			e.ok("%s%s", e.of(v), counted(replicas, "replica"))
		default:
			e.ok("%sno replicas: jobs are where this machine is", e.of(v))
		}
	}
	return nil
}

func (e *examiner) cluster(ctx context.Context) error {
	c, isCluster := e.rdb.(*redis.ClusterClient)
	if !isCluster {
		if e.all[0].info["cluster_enabled"] == "1" {
			e.problem("use redis+cluster:// in the URL", "this server is part of a cluster, and the URL does not say so")
			return nil
		}
		e.ok("no cluster")
		return nil
	}
	text, err := c.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	info := infoFields(text)
	if info["cluster_state"] != "ok" || info["cluster_slots_fail"] != "0" {
		e.problem("redis-cli --cluster check HOST:PORT, and bring the servers back", "cluster_state is %s, %s of 16384 slots have failed", info["cluster_state"], info["cluster_slots_fail"])
		return nil
	}
	e.ok("%s, all slots are served", counted(len(e.all), "master"))
	return e.moves(ctx)
}

// moves looks for slots that are on their way from one server of the cluster to another.
func (e *examiner) moves(ctx context.Context) error {
	found := map[int]bool{}
	for _, v := range e.all {
		nodes, err := v.rdb.ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		for _, slot := range movingSlots(nodes) {
			found[slot] = true
		}
	}
	if len(found) == 0 {
		return nil
	}
	slots, they := slices.Sorted(maps.Keys(found)), "it"
	if len(slots) > 1 {
		they = "them"
	}
	e.warn("wait if somebody is moving "+they+" now; otherwise the move was broken off: redis-cli --cluster fix "+e.all[0].addr,
		"%s half moved from one server to another: %s. Until the move ends, scripts of the shards in %s are refused (not now), and their jobs wait",
		are(len(slots), "slot"), few(slots), they)
	return nil
}

// movingSlots are those that a server sends or takes, as CLUSTER NODES says in its own line:
// [93->-NODE] and [93-<-NODE].
func movingSlots(nodes string) []int {
	var slots []int
	for line := range strings.Lines(nodes) {
		if !strings.Contains(line, "myself") {
			continue
		}
		for _, word := range strings.Fields(line) {
			text, move := strings.CutPrefix(word, "[")
			number, _, _ := strings.Cut(text, "-")
			if slot, err := strconv.Atoi(number); move && err == nil {
				slots = append(slots, slot)
			}
		}
	}
	return slots
}

// are counts things that are something.
func are(n int, thing string) string {
	if n == 1 {
		return counted(n, thing) + " is"
	}
	return counted(n, thing) + " are"
}

func (e *examiner) clock(ctx context.Context) error {
	asked := time.Now()
	now, err := e.rdb.Time(ctx).Result()
	if err != nil {
		return err
	}
	took := time.Since(asked)
	e.now = now
	skew := now.Sub(asked.Add(took / 2)).Round(time.Millisecond)
	if skew.Abs() > skewLimit+took/2 {
		direction := "ahead of"
		if skew < 0 {
			direction = "behind"
		}
		e.warn("let both machines follow a time server (chrony, systemd-timesyncd)",
			"Redis's clock is %s %s this machine's: ages and times that are shown are off by that much", skew.Abs(), direction)
		return nil
	}
	e.ok("Redis's clock and this machine's differ by %s", skew.Abs())
	return nil
}

func (e *examiner) latency(ctx context.Context) error {
	took := make([]time.Duration, pings)
	for i := range took {
		asked := time.Now()
		if err := e.rdb.Ping(ctx).Err(); err != nil {
			return err
		}
		took[i] = time.Since(asked)
	}
	slices.Sort(took)
	half := took[pings/2].Round(10 * time.Microsecond)
	text := fmt.Sprintf("half of %d PINGs took %s or less", pings, half)
	if half > latencyHigh {
		e.warn("run engines near their Redis: a run takes one round trip or two", "%s", text)
		return nil
	}
	e.ok("%s", text)
	return nil
}

// encryption tells who can read along between this process and its Redis.
func (e *examiner) encryption() {
	t := e.target
	hosts := t.Exposed()
	switch {
	case len(hosts) > 0:
		e.warn("use rediss://, or a network that is yours alone", "connections to %s are not encrypted: who listens on the way reads all jobs and the password", few(hosts))
	case t.TLS() == nil:
		e.ok("plain connections, which stay on this machine")
	case t.TLS().InsecureSkipVerify:
		e.warn("remove skip_verify, and name who signed the certificate with ?"+redisconn.CAFile+"=PATH", "certificates are not checked (skip_verify): anybody on the way can pretend to be Redis")
	default:
		e.ok("connections are encrypted, and certificates are checked")
	}
}
