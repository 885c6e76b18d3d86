package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Every key of Weir begins with `weir:{<namespace>:<shard>}:`, so that all keys of one
// shard share a hash tag and one script may touch them all, also on a Redis Cluster.
// The scripts derive the same names from the key of `due`; docs/redis.md describes them.

// keyspace names the keys of one namespace.
type keyspace struct {
	namespace string
	shards    int
}

// prefix is what all keys of shards begin with, and no others.
func (k keyspace) prefix() string { return "weir:{" + k.namespace + ":" }

func (k keyspace) shard(n int) string {
	return k.prefix() + strconv.Itoa(n) + "}:"
}

// due is the sorted set of the reasons to look at a job of the shard later.
func (k keyspace) due(shard int) string { return k.shard(shard) + "due" }

func (k keyspace) dueOf(id job.ID) string { return k.due(id.Shard(k.shards)) }

// shardAt is the shard of a due key; -1 if it is the hub's.
func (k keyspace) shardAt(due string) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(due, k.prefix()), "}")
	shard, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return shard
}

// ready is the sorted set of the types of a queue that have ready jobs in a shard.
func (k keyspace) ready(shard int, queue string) string { return k.shard(shard) + "ready:" + queue }

// bells counts, by queue, the notifications of a shard that were heard.
func (k keyspace) bells(shard int) string { return k.shard(shard) + "bells" }

// readyOf is the sorted set of the ready jobs of a type.
func (k keyspace) readyOf(shard int, queue, typ string) string {
	return k.ready(shard, queue) + "#" + typ
}

// outboxAt and backgroundTasksAt are what lies beside a due key: see mail.go.
func outboxAt(due string) string { return strings.TrimSuffix(due, "due") + "outbox" }

func backgroundTasksAt(due string) string { return strings.TrimSuffix(due, "due") + "chores" }

// job is the hash of a job; with a suffix, another key of that job.
func (k keyspace) job(id job.ID, suffix string) string {
	return k.shard(id.Shard(k.shards)) + "j:" + string(id) + suffix
}

// port is the list of messages in a port of a job.
func (k keyspace) port(id job.ID, dir port.Dir, name string) string {
	return k.job(id, ":"+string(byte(dir))+":"+name)
}

// record is the tree of a job as one record, if it is one.
func (k keyspace) record(id job.ID) string {
	return k.shard(id.Shard(k.shards)) + "r:" + string(id.Tree())
}

// definition is what records of the shard of a job have in common that name it by that digest.
func (k keyspace) definition(id job.ID, digest string) string {
	return k.shard(id.Shard(k.shards)) + "d:" + digest
}

// Suffixes of a job's further keys.
const (
	stateSuffix    = ":s"    // hash: state
	childrenSuffix = ":c"    // hash: child name -> ID
	errorsSuffix   = ":e"    // list: recorded errors, newest first
	lockSuffix     = ":lock" // string: redislock of somebody outside
	heldSuffix     = ":held" // list: jobs of a large plan that have not entered yet
)

// log is the list of what runs of a tree did.
func (k keyspace) log(id job.ID) string {
	return k.shard(id.Shard(k.shards)) + "l:" + string(id.Tree())
}

// index is the sorted set of the shard's jobs without parent, in order of their IDs.
func (k keyspace) index(shard int) string { return k.shard(shard) + "index" }

// failures is the sorted set of the shard's failed jobs, in order of their IDs.
func (k keyspace) failures(shard int) string { return k.shard(shard) + "failures" }

// dead is the sorted set of the shard's jobs whose port for errors may hold dead letters, in order of their IDs.
func (k keyspace) dead(shard int) string { return k.shard(shard) + "dead" }

// limits is the hash of how many places limits of runs at once have that are in use and whose home a shard is; held and waits are the sorted sets of the jobs that hold a place of one, and that wait for
// one; limited is that of the jobs of a queue in the shard that wait for any. queueLimits is the hash of those that were set for queues.
func (k keyspace) limits(shard int) string                { return k.shard(shard) + "limits" }
func (k keyspace) ran(shard int, name string) string      { return k.shard(shard) + "ran:" + name }
func (k keyspace) held(shard int, name string) string     { return k.shard(shard) + "held:" + name }
func (k keyspace) waits(shard int, name string) string    { return k.shard(shard) + "waits:" + name }
func (k keyspace) limited(shard int, queue string) string { return k.shard(shard) + "limited:" + queue }
func (k keyspace) queueLimits() string                    { return "weir:{" + k.namespace + "}:limits" }

// keyHolders is the hash of who holds which sequential key of a shard; waitsForKey is the sorted set of the roots that wait for one.
func (k keyspace) keyHolders(shard int) string              { return k.shard(shard) + "keys" }
func (k keyspace) waitsForKey(shard int, key string) string { return k.shard(shard) + "key:" + key }

// retention is the hash of what holds for trees that name no retention of their own.
func (k keyspace) retention(shard int) string { return k.shard(shard) + "retention" }

// retained is the sorted set of what is to be removed of a shard, scored with when; kept is that of trees that are past
// their retention and hold unread messages; removed counts what was removed.
func (k keyspace) retained(shard int) string { return k.shard(shard) + "retained" }
func (k keyspace) kept(shard int) string     { return k.shard(shard) + "kept" }
func (k keyspace) removed(shard int) string  { return k.shard(shard) + "removed" }

// watch exists while programs outside listen to statuses of jobs of the shard.
func (k keyspace) watch(shard int) string { return k.shard(shard) + "watch:outside" }

// hub is the due key of what belongs to no shard: channels and aliases.
func (k keyspace) hub() string { return "weir:{" + k.namespace + "}:due" }

// aliasesOf is the set of a job's aliases.
func (k keyspace) aliasesOf(id job.ID) string {
	return "weir:{" + k.namespace + "}:aliases:" + string(id)
}

// types is the hash of registered worker types: "<queue> <type>" -> JSON. typesVersion is the string that each registration changes.
func (k keyspace) types() string        { return "weir:{" + k.namespace + "}:types" }
func (k keyspace) typesVersion() string { return k.types() + ":version" }

// numbers is the hash of what was counted under names: the last number of each.
func (k keyspace) numbers() string { return "weir:{" + k.namespace + "}:numbers" }

// tokens is the hash of the tokens of the HTTP API: ID -> JSON.
func (k keyspace) tokens() string { return "weir:{" + k.namespace + "}:tokens" }

// handlers is the hash of the newest version of each handler: type -> version; its field ” counts changes. handler is the list of the
// last versions of one.
func (k keyspace) handlers() string          { return "weir:{" + k.namespace + "}:handlers" }
func (k keyspace) handler(typ string) string { return "weir:{" + k.namespace + "}:handler:" + typ }

// audit is the list of the last acts over HTTP, the newest first.
func (k keyspace) audit() string { return "weir:{" + k.namespace + "}:audit" }

// channel is the Redis channel that a channel is mirrored on.
func (k keyspace) channel(name string) string { return "weir:{" + k.namespace + "}:" + name }

// meta is the hash of what holds for the whole namespace: format, shards, and its ID (see Store.NamespaceID).
func (k keyspace) meta() string { return "weir:{" + k.namespace + "}:meta" }

// aliases is the hash alias -> ID.
func (k keyspace) aliases() string { return "weir:{" + k.namespace + "}:aliases" }

// once is the string that remembers the ID that was made under a key of a caller.
func (k keyspace) once(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "weir:{" + k.namespace + "}:once:" + hex.EncodeToString(sum[:16])
}

// adopting is the lock that adoptions take turns with.
func (k keyspace) adopting() string { return "weir:{" + k.namespace + "}:adopting" }

// system is the lock of the process that has a system ID.
func (k keyspace) system(id string) string { return "weir:{" + k.namespace + "}:system:" + id }

// sweeper is the lock of the namespace's one sweeping process.
func (k keyspace) sweeper() string { return "weir:{" + k.namespace + "}:sweeper" }

// workkits is the set of the schedules of WorkKit that are served, or were added to. workkit is what Weir keeps of one of them: the
// sequence of its members (order), the trees of entries that run for the last time (last), why entries are not run (refused).
func (k keyspace) workkits() string { return "weir:{" + k.namespace + "}:workkit" }

func (k keyspace) workkit(name, what string) string {
	return k.workkits() + ":" + name + ":" + what
}

// paused is the set of the queues that are paused.
func (k keyspace) paused() string { return "weir:{" + k.namespace + "}:paused" }

// engines is the sorted set of the engines that live, scored with their last sign of life.
func (k keyspace) engines() string { return "weir:{" + k.namespace + "}:engines" }

// activity is the hash of what runs did in each span of the last while.
func (k keyspace) activity() string { return "weir:{" + k.namespace + "}:activity" }

// engine is the hash of what an engine tells of itself.
func (k keyspace) engine(id string) string { return "weir:{" + k.namespace + "}:engine:" + id }
