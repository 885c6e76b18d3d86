package redisstore

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// recorded is a job of a tree that is one record, or was so a moment ago.
type recorded struct {
	fields   map[string]string
	children map[string]job.ID
}

// values are fields of it, as HMGET has them.
func (r recorded) values(names []string) []any {
	out := make([]any, len(names))
	for i, name := range names {
		if v, is := r.fields[name]; is {
			out[i] = v
		}
	}
	return out
}

// recorded reads those of some jobs, which had no hash, whose trees are records, or have got hashes since.
func (s *Store) recorded(ctx context.Context, ids []job.ID) (map[job.ID]recorded, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var calls []call
	var asked [][]job.ID
	open := map[string]int{} // the last call of a shard, while it has room
	for _, id := range ids {
		due := s.keys.dueOf(id)
		n, ok := open[due]
		if !ok || len(asked[n]) > walkBudget {
			n = len(calls)
			open[due] = n
			calls, asked = append(calls, call{due: due}), append(asked, nil)
		}
		calls[n].args, asked[n] = append(calls[n].args, string(id)), append(asked[n], id)
	}
	replies, err := s.runAll(ctx, scriptRecord, calls)
	if err != nil {
		return nil, err
	}
	out := map[job.ID]recorded{}
	var d decoder
	for n, reply := range replies {
		l := d.list(reply)
		for i, id := range asked[n] {
			one := d.list(d.at(l, i))
			r := recorded{map[string]string{}, map[string]job.ID{}}
			for fields := d.list(d.at(one, 0)); len(fields) > 1; fields = fields[2:] {
				r.fields[d.str(fields[0])] = d.str(fields[1])
			}
			for children := d.list(d.at(one, 1)); len(children) > 1; children = children[2:] {
				r.children[d.str(children[0])] = job.ID(d.str(children[1]))
			}
			if len(r.fields) > 0 {
				out[id] = r
			}
		}
	}
	return out, d.err
}

// readFields reads fields of jobs, wherever they are: of each a value for each name, empty for a field that it lacks. none tells
// which jobs do not exist: they lack the first field.
func (s *Store) readFields(ctx context.Context, ids []job.ID, names ...string) ([][]string, error) {
	cmds := make([]*redis.SliceCmd, len(ids))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, s.keys.job(id, ""), names...)
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	all := make([][]string, len(ids))
	var absent []job.ID
	for i, c := range cmds {
		all[i] = strs(c.Val())
		if !slices.ContainsFunc(c.Val(), func(v any) bool { return v != nil }) {
			absent = append(absent, ids[i])
		}
	}
	found, err := s.recorded(ctx, absent)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if r, is := found[id]; is {
			for n, name := range names {
				all[i][n] = r.fields[name]
			}
		}
	}
	return all, nil
}

// fieldOf reads a field of a job; empty: it lacks that, or does not exist.
func (s *Store) fieldOf(ctx context.Context, id job.ID, name string) (string, error) {
	all, err := s.readFields(ctx, []job.ID{id}, name)
	if err != nil {
		return "", err
	}
	return all[0][0], nil
}

// recordedChildren returns the children of those of some jobs, none of which were found, whose trees are records, or were so a
// moment ago: those whose names are as a pattern says.
func (s *Store) recordedChildren(ctx context.Context, ids []job.ID, pattern string) (map[job.ID]map[string]job.ID, error) {
	cmds := make([][2]*redis.IntCmd, len(ids))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids { // one key at a time, as a slot of a cluster may be moving
			cmds[i] = [2]*redis.IntCmd{p.Exists(ctx, s.keys.record(id)), p.Exists(ctx, s.keys.job(id, childrenSuffix))}
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var some []job.ID
	for i, c := range cmds {
		if c[0].Val()+c[1].Val() > 0 { // children may be there since they were looked for
			some = append(some, ids[i])
		}
	}
	found, err := s.recorded(ctx, some)
	out := make(map[job.ID]map[string]job.ID, len(found))
	for id, r := range found {
		for name := range r.children {
			if !job.MatchName(pattern, name) {
				delete(r.children, name)
			}
		}
		out[id] = r.children
	}
	return out, err
}
