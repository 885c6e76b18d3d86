package redisstore

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// thing is something that has a key of its own, by all that tells it from others.
type thing struct {
	Kind, Namespace, Name, Port string
	Shard                       int
}

// names are those that are allowed and as like to parts of keys as they can be.
func names(t *rapid.T, label, letters string, check func(string) error) string {
	return rapid.StringOfN(rapid.RuneFrom([]rune(letters)), 1, 6, -1).Filter(func(s string) bool { return check(s) == nil }).Draw(t, label)
}

// drawThing returns a thing and its key.
func drawThing(t *rapid.T) (thing, string) {
	checkNamespace := func(s string) error { return Config{Namespace: s}.Validate() }
	k := keyspace{namespace: names(t, "namespace", "a10-", checkNamespace), shards: 3}
	trees := []job.ID{"018f4e2a-0000-7000-8000-000000000001", "018f4e2a-0000-7000-8000-000000000002", "018f4e2a-0000-7000-8000-00000000000a"}
	id := rapid.SampledFrom(trees).Draw(t, "tree").Nth(rapid.SampledFrom([]int{0, 1, 2, 11}).Draw(t, "number"))
	one := thing{Kind: rapid.SampledFrom([]string{"job", "in", "out", "resting", "tree", "log", "shard", "namespace", "aliases", "channel", "subscribers", "engine", "queue"}).Draw(t, "kind"), Namespace: k.namespace}
	switch one.Kind {
	case "job":
		one.Name, one.Port = string(id), rapid.SampledFrom([]string{"", stateSuffix, childrenSuffix, errorsSuffix, lockSuffix, heldSuffix, ":d", ":t", ":l", ":scrap"}).Draw(t, "suffix")
		return one, k.job(id, one.Port)
	case "in", "out", "resting":
		one.Name, one.Port = string(id), names(t, "port", "iosdtlc_1heldlock", port.CheckName)
		return one, k.job(id, ":"+map[string]string{"in": "i", "out": "o", "resting": "p"}[one.Kind]+":"+one.Port)
	case "tree":
		one.Name = string(id.Tree())
		return one, k.shard(id.Shard(k.shards)) + "t:" + one.Name
	case "log":
		one.Name = string(id.Tree())
		return one, k.log(id)
	case "shard":
		one.Shard = rapid.IntRange(0, 2).Draw(t, "shard")
		one.Name = rapid.SampledFrom([]string{"due", "index", "failures", "dead", "limits", "places", "retention", "retained", "kept", "expired", "removed", "seen", "erased", "outbox", "mailed", "inbox", "chores", "watch", "watch:outside", "changes:roots", "changes:all", "changes:trees"}).Draw(t, "name")
		return one, k.shard(one.Shard) + one.Name
	case "namespace":
		one.Name = rapid.SampledFrom([]string{"due", "meta", "types", "types:version", "aliases", "watchers", "engines", "sweeper", "adopting", "outbox", "mailed", "inbox", "seen"}).Draw(t, "name")
		return one, "weir:{" + k.namespace + "}:" + one.Name
	case "aliases":
		one.Name = string(id)
		return one, k.aliasesOf(id)
	case "channel":
		one.Name = "/" + names(t, "channel", "a/:.-_1meta", func(s string) error { return port.CheckChannel("/" + s) })
		return one, k.channel(one.Name)
	case "subscribers":
		one.Name = "/" + names(t, "channel", "a/:.-_1meta", func(s string) error { return port.CheckChannel("/" + s) })
		return one, "weir:{" + k.namespace + "}:ch:" + one.Name
	case "engine":
		one.Name = fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "engine"))
		return one, k.engine(one.Name)
	default:
		one.Name = names(t, "queue", "a:/._-1t", func(s string) error { return job.CheckName("queue", s) })
		return one, "asynq:{weir:" + k.namespace + ":" + one.Name + "}:t:" + string(id.Tree())
	}
}

// Things that differ in anything never share a key, whatever names they have, and those of
// one shard share a hash tag with nothing else.
func TestDistinctNamesNeverShareAKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seen := map[string]thing{}
		for range 60 {
			one, key := drawThing(t)
			if one.Kind == "queue" {
				one.Port = key[len(key)-36:]
			}
			if other, taken := seen[key]; taken && other != one {
				t.Fatalf("%+v and %+v share the key %s", one, other, key)
			}
			seen[key] = one
		}
	})
}
