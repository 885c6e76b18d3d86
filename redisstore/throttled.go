package redisstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Throttled is a job that has run too often, and waits until the minute is over.
type Throttled struct {
	ID      job.ID
	Name    string // in the graph that it is part of, if it is part of one
	Type    string
	Reason  string
	HotLoop bool // its runs read, wrote and spawned nothing; otherwise its type has a limit
}

// Throttled finds throttled jobs in the trees of some jobs. It looks at no more than 16 of each
// shard that has one of the trees, so there may be more.
func (s *Store) Throttled(ctx context.Context, trees ...job.ID) ([]Throttled, error) {
	if len(trees) == 0 {
		return nil, nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	asked, shards := map[job.ID]bool{}, map[int]bool{}
	for _, id := range trees {
		asked[id.Tree()], shards[id.Shard(s.keys.shards)] = true, true
	}
	all, err := s.throttledOf(ctx, now, slices.Sorted(maps.Keys(shards)))
	return slices.DeleteFunc(all, func(t Throttled) bool { return !asked[t.ID.Tree()] }), s.explain(err)
}

// throttledOf finds throttled jobs of shards: those whose entry in `due` is for the end of the
// minute, or of the next one, since this one may be over by now.
func (s *Store) throttledOf(ctx context.Context, now time.Time, shards []int) ([]Throttled, error) {
	end := now.Truncate(time.Minute).Add(time.Minute)
	ends := []time.Time{end, end.Add(time.Minute)}
	heads := make([]*redis.StringSliceCmd, 0, len(ends)*len(shards))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, i := range shards {
			for _, end := range ends {
				at := strconv.FormatInt(end.UnixMilli(), 10)
				heads = append(heads, p.ZRangeByScore(ctx, s.keys.due(i), &redis.ZRangeBy{Min: at, Max: at, Count: sampleOf}))
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	jobs, err := s.fieldsOf(ctx, heads, "status", "rate", "name", "type", "reason")
	if err != nil {
		return nil, err
	}
	var all []Throttled
	for _, j := range jobs {
		if status, rate := j.fields[0], j.fields[1]; status == string(statemachine.Queued) && rate != "" {
			all = append(all, Throttled{j.id, j.fields[2], baseType(j.fields[3]), j.fields[4], strings.HasPrefix(rate, idleRuns)})
		}
	}
	return all, nil
}

// candidate is a job with some of its fields.
type candidate struct {
	id     job.ID
	fields []string
}

// fieldsOf reads fields of the jobs among the members of due keys.
func (s *Store) fieldsOf(ctx context.Context, members []*redis.StringSliceCmd, names ...string) ([]candidate, error) {
	var jobs []candidate
	for _, list := range members {
		for _, member := range list.Val() {
			if id, err := job.ParseID(member); err == nil {
				jobs = append(jobs, candidate{id: id})
			}
		}
	}
	if len(jobs) == 0 {
		return nil, nil
	}
	ids := make([]job.ID, len(jobs))
	for i := range jobs {
		ids[i] = jobs[i].id
	}
	fields, err := s.readFields(ctx, ids, names...)
	for i := range fields {
		jobs[i].fields = fields[i]
	}
	return jobs, err
}

// strs returns what HMGET replies as strings, empty for fields that are not there.
func strs(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out
}
