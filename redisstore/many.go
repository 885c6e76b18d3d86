package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

const (
	// manyCalls is how many calls go to the servers in one round trip, and manyBytes about how many bytes: the connection is
	// nobody else's meanwhile, and the replies are in memory.
	manyCalls = 500
	manyBytes = 4 << 20
)

// portions calls use for the first of n things, up to how many, and so on: as many as go together, by their sizes.
func portions(n int, size func(int) int, use func(from, to int)) {
	for from := 0; from < n; {
		to, bytes := from, 0
		for to < n && to-from < manyCalls && (to == from || bytes+size(to) <= manyBytes) {
			bytes += size(to)
			to++
		}
		use(from, to)
		from = to
	}
}

// small is the size of what is always small.
func small(int) int { return 0 }

// OnceMany implements store.Bulk.
func (s *Store) OnceMany(ctx context.Context, keys []string, ids []job.ID) []error {
	errs := make([]error, len(keys))
	portions(len(keys), small, func(from, to int) {
		set := make([]*redis.StatusCmd, to-from)
		_, _ = s.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command has its own error
			for i := range set {
				set[i] = pipe.SetArgs(ctx, s.keys.once(keys[from+i]), string(ids[from+i]), redis.SetArgs{Mode: "NX", TTL: job.OnceFor})
			}
			return nil
		})
		get := make([]*redis.StringCmd, to-from)
		known := func(i int) bool { return errors.Is(set[i].Err(), redis.Nil) }
		_, _ = s.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i := range get {
				if known(i) {
					get[i] = pipe.Get(ctx, s.keys.once(keys[from+i]))
				}
			}
			return nil
		})
		for i := range get {
			err := set[i].Err()
			if known(i) {
				ids[from+i], err = s.known(ctx, keys[from+i], ids[from+i], get[i])
			}
			errs[from+i] = s.explain(err)
		}
	})
	return errs
}

// known is the ID that a key has, or gets if it has just expired.
func (s *Store) known(ctx context.Context, key string, id job.ID, found *redis.StringCmd) (job.ID, error) {
	text, err := found.Result()
	if errors.Is(err, redis.Nil) {
		return s.Once(ctx, key, id)
	}
	return job.ID(text), err
}

// ClaimMany implements store.Bulk.
func (s *Store) ClaimMany(ctx context.Context, aliases []string, ids []job.ID) []error {
	errs := make([]error, len(aliases))
	portions(len(aliases), small, func(from, to int) {
		calls := make([]call, to-from)
		for i := range calls {
			calls[i] = call{due: s.keys.hub(), args: []any{"add", aliases[from+i], string(ids[from+i]), rand.Text()}}
		}
		replies, failed := s.runEach(ctx, scriptAlias, calls)
		for i := range calls {
			var d decoder
			if errs[from+i] = failed[i]; failed[i] == nil {
				ids[from+i], errs[from+i] = holderOf(&d, replies[i], ids[from+i])
			}
		}
	})
	return errs
}

// CreateMany implements store.Bulk.
func (s *Store) CreateMany(ctx context.Context, all []store.Creation) (created []bool, errs []error) {
	created, errs = make([]bool, len(all)), make([]error, len(all))
	times := map[job.ID]int{} // the second plan of an ID is to find the first one there
	for i := range all {
		times[all[i].ID]++
	}
	some := make([]int, len(all))
	for i := range some {
		some[i] = i
	}
	again := s.createSome(ctx, all, some, times, created, errs)
	s.createSome(ctx, all, again, nil, created, errs)
	return created, errs
}

// createSome creates some of a list in their order, as records those whose IDs are there once, as times says, and that may be; it
// returns which of these are to be created as others are.
func (s *Store) createSome(ctx context.Context, all []store.Creation, some []int, times map[job.ID]int, created []bool, errs []error) (again []int) {
	var calls []call
	var at, sizes []int
	var records []*compactTree
	for _, i := range some {
		c := &all[i]
		nodes, err := s.nodesOf(c.ID, c.Plan, c.By)
		switch {
		case err != nil:
			errs[i] = err
			continue
		case len(createParts(nodes)) > 1: // it takes several calls
			created[i], errs[i] = s.Create(ctx, c.ID, c.Plan, c.By)
			continue
		}
		one, r := call{due: s.keys.dueOf(c.ID)}, s.compactOf(c.Plan, nodes)
		if r != nil && times[c.ID] == 1 && s.definitions.worth(r.digest) {
			one.args = r.args(c.ID, rand.Text(), !note(&s.definitions, &s.definitions.seen, one.due+r.digest, true))
			one.script = &scriptCompact
		} else {
			one.args, r = createCall(c.ID, c.Plan, "", nodes), nil
		}
		calls, at, sizes, records = append(calls, one), append(at, i), append(sizes, sizeOf(one.args)), append(records, r)
	}
	s.actMany(ctx, scriptCreate, calls, sizes, func(n int, l []any, d *decoder, err error) {
		i := at[n]
		if err != nil {
			errs[i] = err
			return
		}
		if why, _ := d.at(l, 0).(string); records[n] != nil && (why == "define" || why == "spread" || why == "followed") {
			s.definitions.refused(calls[n].due, records[n].digest, why)
			again = append(again, i)
			return
		}
		created[i], errs[i] = createdBy(d, l, all[i].ID, all[i].Plan.Parent)
		if errs[i] == nil {
			s.foretell(ctx, all[i].ID, all[i].Plan)
		}
	})
	return again
}

// WriteMany implements store.Bulk.
func (s *Store) WriteMany(ctx context.Context, all []store.Posting) []error {
	errs := make([]error, len(all))
	var calls []call
	var at, sizes []int
	for i, p := range all {
		args, err := s.writeArgs(p.Job, p.Write)
		if err != nil {
			errs[i] = err
			continue
		}
		args = followArgs(args, nil, nil, 0)
		calls, at, sizes = append(calls, call{due: s.keys.dueOf(p.Job), args: args}), append(at, i), append(sizes, sizeOf(args))
	}
	s.actMany(ctx, scriptWrite, calls, sizes, func(n int, l []any, d *decoder, err error) {
		i := at[n]
		if err == nil {
			err = portRefusal(d.str(d.at(l, 0)), all[i].Job, all[i].Write.Port)
		}
		errs[i] = errors.Join(err, d.err)
	})
	return errs
}

// sizeOf is how many bytes of data arguments have.
func sizeOf(args []any) (n int) {
	for _, v := range args {
		switch v := v.(type) {
		case string:
			n += len(v)
		case []byte:
			n += len(v)
		}
	}
	return n
}

// actMany makes calls of a script whose replies have, as their second element, what is left to do, and does that. told is given each reply,
// or why there is none.
func (s *Store) actMany(ctx context.Context, p program, calls []call, sizes []int, told func(n int, l []any, d *decoder, err error)) {
	portions(len(calls), func(n int) int { return sizes[n] }, func(from, to int) {
		replies, errs := s.runEach(ctx, p, calls[from:to])
		left := map[string]*todo{}
		for i := range replies {
			var d decoder
			if errs[i] != nil {
				told(from+i, nil, &d, errs[i])
				continue
			}
			l := d.list(replies[i])
			told(from+i, l, &d, nil)
			due := calls[from+i].due
			more := d.todo(d.at(l, 1), s.keys.shardAt(due))
			if t := left[due]; t != nil {
				t.add(more)
			} else {
				left[due] = &more
			}
		}
		for due, t := range left {
			s.finish(ctx, due, *t)
		}
	})
}

// runEach makes all calls of a script in one round trip, and returns the replies, and why there is none. They are not one act: others may
// come in between. A server that does not have the script yet is given it.
func (s *Store) runEach(ctx context.Context, p program, calls []call) ([]any, []error) {
	replies, errs := make([]any, len(calls)), make([]error, len(calls))
	absent := s.pipe(ctx, p, calls, 0, replies, errs)
	if absent < len(calls) {
		replies[absent], errs[absent] = s.run(ctx, calls[absent].of(p), calls[absent].due, calls[absent].args...)
		s.pipe(ctx, p, calls, absent+1, replies, errs)
	}
	for i, err := range errs {
		if retold(err) {
			replies[i], errs[i] = s.run(ctx, calls[i].of(p), calls[i].due, calls[i].args...)
		}
	}
	return replies, errs
}

// pipe makes those calls that are behind some others, and returns which is the first that the server does not have the script for.
func (s *Store) pipe(ctx context.Context, p program, calls []call, from int, replies []any, errs []error) (absent int) {
	cmds := make([]*redis.Cmd, len(calls))
	_, _ = s.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command has its own error
		for i, c := range calls {
			switch {
			case i < from:
			case s.scripts.Load():
				cmds[i] = c.of(p).lua().EvalSha(ctx, pipe, []string{c.due}, c.args...)
			default:
				cmds[i] = pipe.FCall(ctx, functionName, []string{c.due}, append([]any{c.of(p).name}, c.args...)...)
			}
		}
		return nil
	})
	absent = len(calls)
	for i := from; i < len(calls); i++ {
		replies[i], errs[i] = cmds[i].Result()
		switch err := errs[i]; {
		case retold(err):
			absent = min(absent, i)
		case err != nil:
			errs[i] = fmt.Errorf("redis script %s: %w", calls[i].of(p).name, s.explain(err))
		}
	}
	return absent
}

// retold tells whether a call is to be made once more, by itself.
func retold(err error) bool {
	return redis.HasErrorPrefix(err, "NOSCRIPT") || missing(err) || unsupported(err) || outOfMemory(err)
}
