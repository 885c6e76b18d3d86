package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// LimitInfo is how a limit of runs at once, or a rate, is used.
type LimitInfo struct {
	// Name is `type:` and a type, or `rate:` and a type, with a `=` and the value of an argument behind it if there is a limit for each,
	// or `queue:` and a queue.
	Name    string
	Max     int
	Per     time.Duration // of a rate: within what time at most Max runs begin
	By      string        // of a type: the argument of which each value has places of its own; of a limit of which none is taken
	Running int64         // places that are taken: of a rate by runs that began within Per, or are about to
	Waiting int64         // jobs that wait for one
	Waited  time.Duration // for how long the first of those is ready: of the highest priority, the one that has claimed its place first
	Holders []job.ID      // the first of those that have a place: of a rate, those that are about to begin
	Next    []job.ID      // the first of those that wait
	Free    time.Duration // of a rate that has no place: in how long the first of the runs that hold them has begun Per ago; 0 if none has begun
}

// holdersShown is how many jobs a LimitInfo names.
const holdersShown = 10

// SetQueueLimit implements store.Limits.
func (s *Store) SetQueueLimit(ctx context.Context, queue string, n int) error {
	if err := job.CheckName("queue", queue); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("%w: a limit of %d runs at once in queue %q: use at least 1, or 0 for none", job.ErrValue, n, queue)
	}
	err := s.setPlaces(ctx, store.RunLimit{Queue: queue, Max: n})
	if err == nil && n == 0 {
		err = s.explain(s.rdb.HDel(ctx, s.keys.queueLimits(), queue).Err())
	} else if err == nil {
		err = s.explain(s.rdb.HSet(ctx, s.keys.queueLimits(), queue, n).Err())
	}
	return err
}

// setPlaces says in the home of a limit how many places it has, and lets jobs go on that wait for one that there is now.
func (s *Store) setPlaces(ctx context.Context, l store.RunLimit) error {
	home, base := homeOf(l, s.keys.shards), nameOf(l)
	names := []any{base}
	if l.Type != "" {
		names = nil
		used, err := s.rdb.HKeys(ctx, s.keys.limits(home)).Result()
		if err != nil {
			return s.explain(err)
		}
		for _, name := range used {
			if name == base || strings.HasPrefix(name, base+"=") {
				names = append(names, name)
			}
		}
	}
	due := s.keys.due(home)
	for {
		some := names[:min(len(names), limitsAtOnce)]
		reply, err := s.run(ctx, scriptLimit, due, append([]any{base, placesOf(l), len(some)}, some...)...)
		if err != nil {
			return err
		}
		var d decoder
		r := d.list(reply)
		if err := s.deliver(ctx, due, &d, d.at(r, 1)); err != nil {
			return err
		}
		if d.str(d.at(r, 0)) == "" {
			names = names[len(some):]
		}
		if d.err != nil || len(names) == 0 {
			return d.err
		}
	}
}

// limitsAtOnce is how many limits of a type, each of a value, one script looks at.
const limitsAtOnce = 5

// newLimits has the limits of types hold that are registered with others than before.
func (s *Store) newLimits(ctx context.Context, types []job.TypeInfo, before []any) error {
	for i := range types {
		var old job.TypeInfo
		if text, ok := before[i].(string); ok && json.Unmarshal([]byte(text), &old) != nil {
			old = job.TypeInfo{}
		}
		t := &types[i]
		var changed []store.RunLimit
		if t.MaxRunning != old.MaxRunning {
			changed = append(changed, store.RunLimit{Type: t.Type, Max: t.MaxRunning})
		}
		if t.MaxRuns != old.MaxRuns || t.MaxRunsPer != old.MaxRunsPer {
			changed = append(changed, store.RunLimit{Type: t.Type, Max: t.MaxRuns, Per: cmp.Or(t.MaxRunsPer, old.MaxRunsPer)})
		}
		for _, l := range changed {
			if err := s.setPlaces(ctx, l); err != nil {
				return fmt.Errorf("setting the limit of type %q: %w", l.Type, err)
			}
		}
	}
	return nil
}

// QueueLimits implements store.Limits.
func (s *Store) QueueLimits(ctx context.Context) (map[string]int, error) {
	all, err := s.rdb.HGetAll(ctx, s.keys.queueLimits()).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	var d decoder
	out := make(map[string]int, len(all))
	for queue, n := range all {
		out[queue] = int(d.int(n))
	}
	return out, d.err
}

// Limits returns the limits of runs at once and the rates, by name: those that are set for queues or registered with types, and those of
// each value of an argument of which places are taken.
func (s *Store) Limits(ctx context.Context) ([]LimitInfo, error) {
	all, err := s.limitsInUse(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := s.limitsSet(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		delete(idle, l.Name)
	}
	all = slices.AppendSeq(all, maps.Values(idle))
	slices.SortFunc(all, func(a, b LimitInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// limitsSet returns the limits that queues and types have, by name.
func (s *Store) limitsSet(ctx context.Context) (map[string]LimitInfo, error) {
	queues, err := s.QueueLimits(ctx)
	if err != nil {
		return nil, err
	}
	types, err := s.Types(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]LimitInfo{}
	for queue, n := range queues {
		all["queue:"+queue] = LimitInfo{Name: "queue:" + queue, Max: n}
	}
	for typ, limit := range store.LastLimits(types) {
		for _, l := range store.RunLimits(typ, limit) {
			all[nameOf(l)] = LimitInfo{Name: nameOf(l), Max: l.Max, Per: l.Per, By: l.By}
		}
	}
	return all, nil
}

// Limit returns one of Limits by its name. The error wraps job.ErrNotFound if there is none. It reads that one alone, however many values
// of an argument have places.
func (s *Store) Limit(ctx context.Context, name string) (*LimitInfo, error) {
	base, _, _ := strings.Cut(name, "=")
	home, ok := homeOfName(base, s.keys.shards)
	if !ok {
		return nil, fmt.Errorf("%w: no limit %.200q", job.ErrNotFound, name)
	}
	places, err := s.rdb.HGet(ctx, s.keys.limits(home), name).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, s.explain(err)
	}
	all, err := s.usage(ctx, []usedLimit{{home, name, places}})
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		return &all[0], nil
	}
	idle, err := s.limitsSet(ctx)
	if err != nil {
		return nil, err
	}
	if l, ok := idle[name]; ok {
		return &l, nil
	}
	return nil, fmt.Errorf("%w: no limit %.200q", job.ErrNotFound, name)
}

// usedLimit is a limit as its home has it: its name, with a value if it is of one, and how many places it has.
type usedLimit struct {
	home         int
	name, places string
}

// limitsInUse returns the limits of which places are taken, or waited for.
func (s *Store) limitsInUse(ctx context.Context) ([]LimitInfo, error) {
	maxima := make([]*redis.MapStringStringCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range maxima {
			maxima[i] = p.HGetAll(ctx, s.keys.limits(i))
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var used []usedLimit
	for i, m := range maxima {
		for name, n := range m.Val() {
			used = append(used, usedLimit{i, name, n})
		}
	}
	return s.usage(ctx, used)
}

// usage reads how limits are used. It leaves out those that were removed, of which those that hold a place are still to end.
func (s *Store) usage(ctx context.Context, used []usedLimit) ([]LimitInfo, error) {
	type sets struct {
		held, waits, ran *redis.IntCmd
		first            *redis.StringSliceCmd
		next             *redis.StringSliceCmd
		began            *redis.ZSliceCmd // the first of those that count
	}
	used = slices.DeleteFunc(used, func(u usedLimit) bool { return u.places == "" || u.places == "0" })
	if len(used) == 0 {
		return nil, nil
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	var all []LimitInfo
	var found []sets
	var d decoder
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, u := range used {
			most, span, _ := strings.Cut(u.places, "/")
			per := d.int(cmp.Or(span, "0"))
			held, waits := s.keys.held(u.home, u.name), s.keys.waits(u.home, u.name)
			all = append(all, LimitInfo{Name: u.name, Max: int(d.int(most)), Per: time.Duration(per) * time.Millisecond})
			ran, counts := s.keys.ran(u.home, u.name), &redis.ZRangeBy{Min: "(" + strconv.FormatInt(now.UnixMilli()-per, 10), Max: "+inf", Count: 1}
			found = append(found, sets{
				p.ZCard(ctx, held), p.ZCard(ctx, waits), p.ZCount(ctx, ran, counts.Min, counts.Max),
				p.ZRange(ctx, held, 0, holdersShown-1), p.ZRange(ctx, waits, 0, holdersShown-1), p.ZRangeByScoreWithScores(ctx, ran, counts),
			})
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	for i, f := range found {
		all[i].Running, all[i].Waiting = f.held.Val()+f.ran.Val(), f.waits.Val()
		all[i].Holders = jobsOf(f.first.Val())
		all[i].Next = jobsOf(f.next.Val())
		if began := f.began.Val(); len(began) > 0 && all[i].Running >= int64(all[i].Max) {
			all[i].Free = time.UnixMilli(int64(began[0].Score)).Add(all[i].Per).Sub(now)
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return all, s.readySince(ctx, all, now)
}

// readySince adds to limits since when the first job that waits for each is ready. The score of its claim is that of the last one: it claims
// anew when it had its place for long and no engine began its run.
func (s *Store) readySince(ctx context.Context, all []LimitInfo, now time.Time) error {
	var ids []job.ID
	var at []int
	for i := range all {
		if len(all[i].Next) > 0 {
			ids, at = append(ids, all[i].Next[0]), append(at, i)
		}
	}
	since, err := s.readFields(ctx, ids, "queued")
	if err != nil {
		return err
	}
	for n, i := range at {
		if ms, err := strconv.ParseInt(since[n][0], 10, 64); err == nil { // some may have gone meanwhile
			all[i].Waited = max(now.Sub(time.UnixMilli(ms)), 0)
		}
	}
	return nil
}

// jobsOf returns the jobs of members of a limit's sets, which have a shard behind them.
func jobsOf(members []string) []job.ID {
	ids := make([]job.ID, len(members))
	for i, m := range members {
		id, _, _ := strings.Cut(m, " ")
		ids[i] = job.ID(id)
	}
	return ids
}

// placesArg encodes limits as places.read() in place.lua reads them. The home of a limit follows from its type or queue.
func placesArg(limits []store.RunLimit, shards int) string {
	if len(limits) == 0 {
		return ""
	}
	texts := make([]string, len(limits))
	for i, l := range limits {
		kind, name := kindOf(l)
		texts[i] = strings.Join([]string{kind, strconv.Itoa(homeOf(l, shards)), placesOf(l), l.By, name}, " ")
	}
	return strings.Join(texts, "\x1f")
}

// kindOf is what a limit is of: t and a type, r and a type if it is a rate, or q and a queue.
func kindOf(l store.RunLimit) (kind, name string) {
	switch {
	case l.Type == "":
		return "q", l.Queue
	case l.Per > 0:
		return "r", l.Type
	}
	return "t", l.Type
}

// nameOf is what a limit is called in Redis, without a value.
func nameOf(l store.RunLimit) string {
	kind, name := kindOf(l)
	return kindNames[kind] + name
}

// kindNames are how the names of limits begin, by kind.
var kindNames = map[string]string{"q": "queue:", "r": "rate:", "t": "type:"}

// placesOf is how many places a limit has, as scripts read it: 0 if there is none any more.
func placesOf(l store.RunLimit) string {
	if l.Per > 0 && l.Max > 0 {
		return fmt.Sprintf("%d/%d", l.Max, l.Per.Milliseconds())
	}
	return strconv.Itoa(l.Max)
}

// homeOf is the shard that counts the places of a limit.
func homeOf(l store.RunLimit, shards int) int {
	kind, name := kindOf(l)
	return homeOfKind(kind, name, shards)
}

func homeOfKind(kind, name string, shards int) int {
	return int(job.Hash(kind+name) % uint32(shards)) //nolint:gosec // there are few
}

// homeOfName is the home of the limit that nameOf calls like that; ok tells whether it is such a name.
func homeOfName(name string, shards int) (home int, ok bool) {
	for kind, prefix := range kindNames {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return homeOfKind(kind, rest, shards), true
		}
	}
	return 0, false
}
