package redisstore_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// A deep look finds what no path leads to.
func TestExamineDeep(t *testing.T) {
	e := durable(t)
	redisstore.Hashes(e.Store)
	ctx := e.Context()
	e.healthy()
	root, child, adopted := e.tree()
	e.create(job.Node{Type: "T"}, job.Node{Name: "one", Type: "T"}) // stays as it should be
	lonely, unlisted, gone := e.single(), e.single(), e.single()
	index := func(id job.ID) string { return strings.TrimSuffix(e.due(id), "due") + "index" }

	e.Check(e.Redis.HDel(ctx, e.key(root)+":c", "kid").Err())
	e.Check(e.Redis.HSet(ctx, e.key(root)+":c", "found", string(child)).Err()) // another child of that name
	e.Check(e.Redis.HSet(ctx, e.key(lonely), "parent", string(newID(t)), "name", "x").Err())
	e.Check(e.Redis.ZRem(ctx, index(unlisted), string(unlisted)).Err())
	e.Check(e.Redis.Del(ctx, e.key(gone)).Err())
	e.Check(e.Redis.ZRem(ctx, e.due(gone), string(gone)).Err())
	e.Check(e.Redis.HSet(ctx, e.key(gone)+":s", "k", "1").Err())
	e.Check(e.Redis.Set(ctx, e.key(lonely)+":lock", fmt.Sprintf(`x {"by":"ann","since":%d}`, time.Now().Add(-3*time.Hour).UnixMilli()), time.Hour).Err())

	found := e.examine(true)
	names := regexp.MustCompile(`[0-9a-f-]{36}(\.\d+)?`)
	for _, c := range []struct {
		finding, fix string
		jobs         []job.ID
	}{
		{"^3 jobs whose parent is gone", "weir terminate [0-9a-f.-]+ --recursive, then weir delete", []job.ID{child, adopted, lonely}},
		{"^1 root jobs that are not listed", "ZADD 'weir:.*:index' 0 [0-9a-f-]+$", []job.ID{unlisted}},
		{"^1 entries of the list of root jobs", "ZREM 'weir:.*:index' [0-9a-f-]+$", []job.ID{gone}},
		{"^1 keys of jobs that are gone: weir:.*:s$", "UNLINK 'weir:.*:s'$", []job.ID{gone}},
	} {
		found.has(t, "orphans", redisstore.Problem, c.finding, c.fix)
		for _, f := range found.of("orphans") {
			if !regexp.MustCompile(c.finding).MatchString(f.Finding) {
				continue
			}
			var got []job.ID
			for _, id := range names.FindAllString(f.Finding, -1) {
				got = append(got, job.ID(id))
			}
			slices.Sort(got)
			slices.Sort(c.jobs)
			e.equal(f.Finding, got, c.jobs)
		}
	}
	found.has(t, "orphans", redisstore.Warning, `locked for 3h\d+m0s`, "weir unlock "+string(lonely))
	e.equal("findings", len(found.of("orphans")), 5)

	// While subtrees of a shard are removed, what is in it may look wrong.
	for shard := range shards {
		e.Check(e.Redis.RPush(ctx, fmt.Sprintf("weir:{%s:%d}:chores", e.Namespace, shard), "delete x").Err())
	}
	found = e.examine(true)
	found.has(t, "orphans", redisstore.Skipped, "subtrees are being removed", "")
	e.equal("problems", slices.ContainsFunc(found.of("orphans"), func(f redisstore.Finding) bool { return f.Level == redisstore.Problem }), false)
}

// A deep look counts the jobs of records, and finds those that are not listed, or whose definition is gone.
func TestExamineDeepRecords(t *testing.T) {
	e := durable(t)
	e.healthy()
	var ids []job.ID
	for range 3 {
		id := newID(e)
		if len(ids) > 0 {
			id = newIDIn(e, ids[0])
		}
		ids = append(ids, id)
		e.createRecord(id, 2)
	}
	e.examine(true).has(t, "orphans", redisstore.OK, "^9 jobs, each where", "")
	base := strings.TrimSuffix(e.due(ids[0]), "due")
	e.Check(e.Redis.ZRem(e.Context(), base+"index", string(ids[0])).Err())
	e.examine(true).has(t, "orphans", redisstore.Problem, "^1 root jobs that are not listed: .*"+string(ids[0]), "ZADD")
	e.Check(e.Redis.ZAdd(e.Context(), base+"index", redis.Z{Member: string(ids[0])}).Err())

	record := base + "r:" + string(ids[0])
	whole := e.Redis.Get(e.Context(), record).Val()
	digest, _, _ := strings.Cut(whole, " ")
	e.Check(e.Redis.Set(e.Context(), record, digest+" x", 0).Err())
	e.examine(true).has(t, "orphans", redisstore.Problem, "^1 trees that nobody can read, as somebody has damaged", "UNLINK '"+record+"'")
	e.Check(e.Redis.Set(e.Context(), record, whole, 0).Err())

	e.forgetDefinitions()
	e.examine(true).has(t, "orphans", redisstore.Problem, "^3 trees that nobody can read, as the definition", "start another tree of that kind.* UNLINK '"+base+"r:")
	e.createRecord(newIDIn(e, ids[0]), 2)
	e.examine(true).has(t, "orphans", redisstore.OK, "^12 jobs, each where", "")
}

// newIDIn returns an ID in the shard of another.
func newIDIn(e *env, other job.ID) job.ID {
	for {
		if id := newID(e); id.Shard(shards) == other.Shard(shards) {
			return id
		}
	}
}
