package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// A list is made in pages. A source gives IDs in the order of creation, a pipeline reads the
// few fields of each job that a filter asks for, and of the jobs that pass it a second
// pipeline reads all. So a page costs three round trips, however many shards it is from.

// Pages grow: most lists end early, and those that do not are long.
const (
	firstPage   = 64
	largestPage = 2048
)

// Jobs implements store.Lister.
func (s *Store) Jobs(ctx context.Context, f job.Filter) iter.Seq2[*job.Info, error] {
	return func(yield func(*job.Info, error) bool) {
		for ids, err := range s.matching(ctx, &f) {
			var infos []*job.Info
			if err == nil {
				infos, err = s.infos(ctx, ids)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, i := range infos {
				if f.Match(i) && !yield(i, nil) { // it may have changed meanwhile
					return
				}
			}
		}
	}
}

// maxLooked is how many jobs are looked at for one page, about.
const maxLooked = 20_000

// JobsPage implements store.Lister.
func (s *Store) JobsPage(ctx context.Context, f job.Filter, limit int) (jobs []*job.Info, next job.ID, err error) {
	if !f.Order.ByCreation() {
		for i, err := range s.Jobs(ctx, f) {
			switch {
			case err != nil:
				return nil, "", err
			case len(jobs) == limit:
				return jobs, jobs[limit-1].ID, nil
			}
			jobs = append(jobs, i)
		}
		return jobs, "", nil
	}
	l, err := s.lister(ctx, &f)
	if err != nil {
		return nil, "", err
	}
	for passing, err := range l.pages(ctx) {
		if err != nil {
			return nil, "", err
		}
		for part := range slices.Chunk(passing, limit+1) {
			infos, err := s.infos(ctx, idsOf(part))
			if err != nil {
				return nil, "", err
			}
			for _, i := range infos {
				if !f.Match(i) {
					continue
				}
				if len(jobs) == limit {
					return jobs, jobs[limit-1].ID, nil
				}
				jobs = append(jobs, i)
			}
		}
		if l.looked >= maxLooked {
			return jobs, l.last, nil
		}
	}
	return jobs, "", nil
}

func idsOf(jobs []*job.Info) []job.ID {
	ids := make([]job.ID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// Count implements store.Lister.
func (s *Store) Count(ctx context.Context, f job.Filter) (int, error) {
	if f.After == "" {
		f.Order = job.Newest // it makes no difference
		if f.Alias == "" && !f.All && plain(&f) {
			return s.indexSize(ctx, &f)
		}
	}
	n := 0
	for ids, err := range s.matching(ctx, &f) {
		if err != nil {
			return 0, err
		}
		n += len(ids)
	}
	return n, nil
}

// matching yields the IDs of the jobs that pass a filter in its order, in pages.
func (s *Store) matching(ctx context.Context, f *job.Filter) iter.Seq2[[]job.ID, error] {
	return func(yield func([]job.ID, error) bool) {
		l, err := s.lister(ctx, f)
		if err != nil {
			yield(nil, err)
			return
		}
		if !f.Order.ByCreation() {
			all, err := l.ranked(ctx)
			if err != nil {
				yield(nil, err)
			}
			for page := range slices.Chunk(all, firstPage) {
				if !yield(page, nil) {
					return
				}
			}
			return
		}
		for jobs, err := range l.pages(ctx) {
			if !yield(idsOf(jobs), err) {
				return
			}
		}
	}
}

// lister finds the jobs that pass a filter.
type lister struct {
	store  *Store
	filter *job.Filter
	from   source
	sure   bool // all that come from there pass, and nobody asks how they rank
	looked int  // how many came from there, the last of them last
	last   job.ID
}

// pages yields what is needed to know of the jobs that pass the filter, in the order of their
// creation. It ends with the first error.
func (l *lister) pages(ctx context.Context) iter.Seq2[[]*job.Info, error] {
	return func(yield func([]*job.Info, error) bool) {
		for n := firstPage; ; n = min(2*n, largestPage) {
			ids, err := l.from.next(ctx, n)
			if err == nil && len(ids) == 0 {
				return
			}
			var jobs []*job.Info
			if err == nil {
				l.looked, l.last = l.looked+len(ids), ids[len(ids)-1]
				jobs, err = l.passing(ctx, ids)
			}
			if !yield(jobs, err) || err != nil {
				return
			}
		}
	}
}

func (l *lister) passing(ctx context.Context, ids []job.ID) ([]*job.Info, error) {
	if l.sure {
		jobs := make([]*job.Info, len(ids))
		for i, id := range ids {
			jobs[i] = &job.Info{ID: id}
		}
		return jobs, nil
	}
	jobs, err := l.store.briefs(ctx, ids, l.filter)
	return slices.DeleteFunc(jobs, func(i *job.Info) bool { return !l.filter.Match(i) }), err
}

// rank is a job's place in an order that is not that of creation.
type rank struct {
	number int64
	text   string
	id     job.ID
}

func rankOf(i *job.Info, o job.Order) rank {
	r := rank{id: i.ID}
	switch o {
	case job.LastRan:
		r.number = -i.Ran.UnixMilli()
	case job.FirstRan:
		r.number = i.Ran.UnixMilli()
	case job.ByStatus:
		r.number = int64(slices.Index(statemachine.Statuses(), i.Status))
	case job.ByType:
		r.text = i.Type
	case job.Newest, job.Oldest:
	}
	return r
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.number, other.number), strings.Compare(r.text, other.text), other.id.Compare(r.id))
}

// ranked reads all jobs that pass the filter and puts them in its order.
func (l *lister) ranked(ctx context.Context) ([]job.ID, error) {
	var all []rank
	for jobs, err := range l.pages(ctx) {
		if err != nil {
			return nil, err
		}
		for _, i := range jobs {
			all = append(all, rankOf(i, l.filter.Order))
		}
	}
	slices.SortFunc(all, rank.compare)
	if l.filter.After != "" {
		last, err := l.store.briefs(ctx, []job.ID{l.filter.After}, &job.Filter{})
		if err != nil {
			return nil, err
		}
		if len(last) == 0 {
			return nil, fmt.Errorf("%w: %s, after which the list was to go on", job.ErrNotFound, l.filter.After)
		}
		at, found := slices.BinarySearchFunc(all, rankOf(last[0], l.filter.Order), rank.compare)
		if found {
			at++
		}
		all = all[at:]
	}
	ids := make([]job.ID, len(all))
	for i, r := range all {
		ids[i] = r.id
	}
	return ids, nil
}

// briefFields are what filters and orders ask of jobs. Few ask for what else there is.
var briefFields = []string{"status", "type", "queue", "parent", "joining", "created", "ran"}

// briefs reads of jobs what a filter and orders ask. Those that do not exist, or whose state lacks a key that it asks for, are
// left out.
func (s *Store) briefs(ctx context.Context, ids []job.ID, f *job.Filter) ([]*job.Info, error) {
	fields := slices.Clip(briefFields)
	if f.Name != "" {
		fields = append(fields, "name")
	}
	if len(f.Labels)+len(f.Keys)+len(f.Without) > 0 {
		fields = append(fields, "labels")
	}
	if f.SequentialKey != "" {
		fields = append(fields, "key")
	}
	if f.UniqueKey != "" {
		fields = append(fields, "unique")
	}
	if f.Blocked {
		fields = append(fields, "blocked")
	}
	cmds := make([]*redis.SliceCmd, len(ids))
	states := make([]*redis.BoolCmd, 0, len(ids)*len(f.StateKeys))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, s.keys.job(id, ""), fields...)
			for _, key := range f.StateKeys {
				states = append(states, p.HExists(ctx, s.keys.job(id, stateSuffix), key))
			}
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var absent []job.ID
	for n, id := range ids {
		if cmds[n].Val()[0] == nil {
			absent = append(absent, id)
		}
	}
	found, err := s.recorded(ctx, absent)
	if err != nil {
		return nil, err
	}
	var d decoder
	jobs := make([]*job.Info, 0, len(ids))
	for n, id := range ids {
		values := cmds[n].Val()
		if r, is := found[id]; is {
			values = r.values(fields)
		}
		i := d.brief(id, fields, values)
		keys := states[n*len(f.StateKeys):][:len(f.StateKeys)]
		if i.Status != "" && !slices.ContainsFunc(keys, func(has *redis.BoolCmd) bool { return !has.Val() }) {
			jobs = append(jobs, i)
		}
	}
	return jobs, d.err
}

// infos reads jobs, of any shards, in one round trip, or several if they are large. Those that do not exist are left out.
func (s *Store) infos(ctx context.Context, ids []job.ID) ([]*job.Info, error) {
	var d decoder
	found := make(map[job.ID]*job.Info, len(ids))
	for todo := ids; len(todo) > 0 && d.err == nil; {
		replies, err := s.runAll(ctx, scriptWalk, s.walks(todo))
		if err != nil {
			return nil, err
		}
		todo = nil
		for _, reply := range replies {
			l := d.list(reply)
			for _, i := range d.infos(d.at(l, 0)) {
				s.secrets.showInfo(i)
				found[i.ID] = i
			}
			for _, left := range d.list(d.at(l, 1)) {
				todo = append(todo, job.ID(d.str(left)))
			}
		}
	}
	infos := make([]*job.Info, 0, len(ids))
	for _, id := range ids {
		i := found[id]
		if i == nil {
			continue
		}
		if err := s.confirm(ctx, i); err != nil {
			return nil, err
		}
		infos = append(infos, i)
	}
	return infos, d.err
}

// walks are the calls that read just some jobs, of any shards.
func (s *Store) walks(ids []job.ID) []call {
	var calls []call
	open := map[string]int{} // the last call of a shard, while it has room
	for _, id := range ids {
		due := s.keys.dueOf(id)
		n, ok := open[due]
		if !ok || len(calls[n].args) > walkBudget {
			n = len(calls)
			open[due] = n
			calls = append(calls, call{due: due, args: []any{0}})
		}
		calls[n].args = append(calls[n].args, string(id))
	}
	return calls
}

// Details implements store.Lister.
func (s *Store) Details(ctx context.Context, ids []job.ID) ([]job.Details, error) {
	aliases := make([]*redis.StringSliceCmd, len(ids))
	families := make([]*redis.ScanCmd, len(ids))
	failures := make([]*redis.StringSliceCmd, len(ids))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			aliases[i] = p.SMembers(ctx, s.keys.aliasesOf(id))
			families[i] = p.HScan(ctx, s.keys.job(id, childrenSuffix), 0, "", scanFields)
			failures[i] = p.LRange(ctx, s.keys.job(id, errorsSuffix), 0, -1)
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var alone []job.ID
	for i, id := range ids {
		if some, _ := families[i].Val(); len(some) == 0 {
			alone = append(alone, id)
		}
	}
	recorded, err := s.recordedChildren(ctx, alone, "*")
	if err != nil {
		return nil, err
	}
	all := make([]job.Details, len(ids))
	for i, id := range ids {
		d := &all[i]
		d.Aliases = slices.Sorted(slices.Values(aliases[i].Val()))
		some, more := families[i].Val()
		d.Children = make(map[string]job.ID, len(some)/2)
		for n := 0; n+1 < len(some); n += 2 {
			d.Children[some[n]] = job.ID(some[n+1])
		}
		maps.Copy(d.Children, recorded[id])
		if more > 0 {
			if d.Children, err = s.Children(ctx, id); err != nil {
				return nil, err
			}
		}
		for _, raw := range failures[i].Val() {
			var f job.Failure
			if err := json.Unmarshal([]byte(raw), &f); err != nil {
				return nil, fmt.Errorf("decoding an error of job %s: %w", id, err)
			}
			s.secrets.showFailure(id, &f)
			d.Failures = append(d.Failures, f)
		}
	}
	return all, nil
}
