package redisstore

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Dead implements store.Letters.
func (s *Store) Dead(ctx context.Context, tree job.ID, f job.Filter) iter.Seq2[*job.Info, error] {
	return func(yield func(*job.Info, error) bool) {
		f.All = true
		from := s.stream(s.keys.dead, &f)
		if tree != "" {
			from = s.rangeOf(s.keys.dead, redis.ZRangeBy{Min: "[" + string(tree), Max: "(" + string(tree) + "/"}, direction(&f))
		}
		l := &lister{store: s, filter: &f, from: from}
		for jobs, err := range l.pages(ctx) {
			var infos []*job.Info
			if err == nil {
				infos, err = s.infos(ctx, idsOf(jobs))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, i := range infos {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// Settle implements store.Letters.
func (s *Store) Settle(ctx context.Context, from job.PortRef, t store.Settlement) (refused int, err error) {
	if err := checkPort(from.Job, from.Port); err != nil {
		return -1, err
	}
	entry, err := s.secrets.hideText(job.KindLog, from.Job, t.Entry)
	if err != nil {
		return -1, err
	}
	args := []any{string(from.Job), dirArg(from.Dir), from.Port, t.Token, strconv.FormatInt(t.Head, 10), entry, len(t.Letters)}
	for _, l := range t.Letters {
		items, err := s.secrets.hideMessages(l.Items)
		if err != nil {
			return -1, err
		}
		args = append(args, l.Index, len(items))
		for i, to := range l.Ports {
			args = append(args, string(to.Job), dirArg(to.Dir), to.Port, []byte(items[i]))
		}
	}
	due := s.keys.dueOf(from.Job)
	reply, err := s.run(ctx, scriptSettle, due, args...)
	if err != nil {
		return -1, err
	}
	var d decoder
	l := d.list(reply)
	why := d.str(d.at(l, 0))
	if len(l) > 2 { // one cannot be written where it is to go
		index := int(d.int(d.at(l, 2)))
		err := portRefusal(why, job.ID(d.str(d.at(l, 3))), d.str(d.at(l, 4)))
		return slices.IndexFunc(t.Letters, func(l store.SettledLetter) bool { return l.Index == index }), cmp.Or(d.err, err)
	}
	if err := portRefusal(why, from.Job, from.Port); err != nil {
		return -1, err
	}
	return -1, s.deliver(ctx, due, &d, d.at(l, 1))
}
