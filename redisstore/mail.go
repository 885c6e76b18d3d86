package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/job"
)

// A script acts in one shard. What it wants done in another it leaves as an order in its
// shard's outbox; what would take too long it leaves as chores. Both are done at once by
// the process that ran the script, or later by the sweeper. The other shard remembers the
// number of the last order it carried out for each outbox: so orders are carried out in
// order and once, whoever delivers them, however often.

const (
	mailMember   = "!mail"
	choresMember = "!chores"
	mailBatch    = 200
	mailRounds   = 20 // then the caller has waited long enough
	choresBatch  = 25
)

// urgent does what is not to be done by runs, and returns the wakes of jobs.
func (s *Store) urgent(ctx context.Context, due string, wakes []delivery.Wake) ([]delivery.Wake, error) {
	var jobs []delivery.Wake
	var first error
	for _, w := range wakes {
		var err error
		switch w.ID {
		case mailMember:
			err = s.mail(ctx, due)
		case choresMember:
			err = s.chores(ctx, due)
		default:
			jobs = append(jobs, w)
		}
		if first == nil {
			first = err
		}
	}
	return jobs, first
}

// ofJobs returns the wakes of jobs among what a script left to do.
func ofJobs(wakes []delivery.Wake) []delivery.Wake {
	return slices.DeleteFunc(slices.Clone(wakes), func(w delivery.Wake) bool {
		return w.ID == mailMember || w.ID == choresMember
	})
}

// chores does a shard's chores until none are left.
func (s *Store) chores(ctx context.Context, due string) error {
	for {
		reply, err := s.run(ctx, scriptChores, due, choresBatch)
		if err != nil {
			return err
		}
		var d decoder
		l := d.list(reply)
		left := d.int(d.at(l, 0))
		wakes := d.wakes(d.at(l, 1))
		if d.err != nil {
			return d.err
		}
		var jobs []delivery.Wake
		for _, w := range wakes {
			if w.ID != choresMember { // those are done here
				jobs = append(jobs, w)
			}
		}
		if jobs, err = s.urgent(ctx, due, jobs); err != nil {
			return err
		}
		_, _ = s.broker.Enqueue(ctx, jobs) // else the sweeper does
		if left == 0 {
			return nil
		}
	}
}

// order is one entry of an outbox.
type order struct {
	entry  string // ID in the stream
	number string
	text   string
}

// mail delivers a shard's outbox until it is empty.
func (s *Store) mail(ctx context.Context, due string) error {
	outbox := strings.TrimSuffix(due, "due") + "outbox"
	for range mailRounds {
		entries, err := s.rdb.XRangeN(ctx, outbox, "-", "+", mailBatch).Result()
		if err != nil {
			return s.explain(err)
		}
		var done []any
		for _, e := range entries {
			done = append(done, e.ID)
		}
		for to, orders := range s.sort(entries) {
			if err := s.carry(ctx, due, to, orders); err != nil {
				return err
			}
		}
		reply, err := s.run(ctx, scriptMailDone, due, done...)
		if err != nil {
			return err
		}
		var d decoder
		if left := d.int(reply); left == 0 || d.err != nil {
			return d.err
		}
	}
	return nil // others fill the outbox as fast: the sweeper goes on with it
}

// sort groups orders by the due key of where they go, each group in order.
func (s *Store) sort(entries []redis.XMessage) map[string][]order {
	out := map[string][]order{}
	for _, e := range entries {
		to, _ := e.Values["to"].(string)
		text, _ := e.Values["order"].(string)
		number, _, _ := strings.Cut(e.ID, "-")
		key := s.address(to)
		out[key] = append(out[key], order{e.ID, number, text})
	}
	return out
}

// address turns "hub", "shard:<n>" or a job's ID into a due key.
func (s *Store) address(to string) string {
	if to == "hub" {
		return s.keys.hub()
	}
	if n, ok := strings.CutPrefix(to, "shard:"); ok {
		return "weir:{" + s.keys.namespace + ":" + n + "}:due"
	}
	return s.keys.dueOf(job.ID(to))
}

// carry has orders of one outbox carried out in one shard.
func (s *Store) carry(ctx context.Context, from, to string, orders []order) error {
	args := []any{from, len(orders)}
	for _, o := range orders {
		args = append(args, o.number, o.text)
	}
	reply, err := s.run(ctx, scriptMail, to, args...)
	if err != nil {
		return err
	}
	var d decoder
	l := d.list(reply)
	return s.deliver(ctx, to, &d, d.at(l, 1))
}
