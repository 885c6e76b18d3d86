package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

const (
	retainMember = "!retain"
	// What the field `retain` of a job says besides milliseconds.
	releaseField = "release"
	foreverField = "forever"
	// retainSoon is how long before the first end in a shard its `due` says so. Ends that are further away are not there:
	// the sweeper looks for those that come near each retainLook.
	retainSoon = 10 * time.Minute
	retainLook = retainSoon / 2
	// retainFirst is for how long a root job is kept at least that has completed without a message, though it has open In
	// ports: the first may be on its way.
	retainFirst = time.Minute
	// expireShare is how much longer than a script that removes what is past its retention is waited until the next one.
	expireShare = 2
)

// retentionLua is what holds for a namespace that nobody has set a retention for, as the scripts know it.
func retentionLua() string {
	d := job.DefaultRetention
	return fmt.Sprintf("local retain = { ended = %d, failed = %d, soon = %d, first = %d }\n",
		d.Ended.Milliseconds(), d.Failed.Milliseconds(), retainSoon.Milliseconds(), retainFirst.Milliseconds())
}

// retainText is a retention as Redis has it.
func retainText(d time.Duration) string {
	if d == job.Forever {
		return foreverField
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// retainField is the field `retain` of the first job of a plan; empty: it has none.
func retainField(p *job.Plan) string {
	switch {
	case p.Release:
		return releaseField
	case p.Retain == 0:
		return ""
	}
	return retainText(p.Retain)
}

// retention decodes what retainText returns, or a field of a job.
func (d *decoder) retention(text string) time.Duration {
	switch text {
	case "", releaseField:
		return 0
	case foreverField:
		return job.Forever
	}
	return time.Duration(d.int(text)) * time.Millisecond
}

// Retention implements store.RetentionStore.
func (s *Store) Retention(ctx context.Context) (job.Retention, error) {
	out := job.DefaultRetention
	set, err := s.rdb.HMGet(ctx, s.keys.retention(0), "ended", "failed", "log").Result()
	if err != nil {
		return out, s.explain(err)
	}
	var d decoder
	for i, to := range []*time.Duration{&out.Ended, &out.Failed, &out.Log} {
		if set[i] != nil {
			*to = d.retention(d.str(set[i]))
		}
	}
	return out, d.err
}

// SetRetention implements store.RetentionStore. Each shard has it, as scripts see one shard only.
func (s *Store) SetRetention(ctx context.Context, r job.Retention) error {
	var fields []any
	if r.Ended != 0 {
		fields = append(fields, "ended", retainText(r.Ended))
	}
	if r.Failed != 0 {
		fields = append(fields, "failed", retainText(r.Failed))
	}
	if r.Log != 0 {
		fields = append(fields, "log", retainText(r.Log))
	}
	var errs []error
	for shard := s.keys.shards - 1; len(fields) > 0 && shard >= 0; shard-- { // that which is read comes last
		errs = append(errs, s.explain(s.rdb.HSet(ctx, s.keys.retention(shard), fields...).Err()))
	}
	return errors.Join(errs...)
}

// nearEnds puts into `due` of each shard when the first of its trees is past its retention, if that is soon, and tells the
// sweeper's round. It does so each retainLook, or when the clock was set back.
func (s *Store) nearEnds(ctx context.Context, r *round) error {
	if r.ends > r.now && r.ends <= r.now+retainLook.Milliseconds() {
		return nil
	}
	heads := make([]*redis.ZSliceCmd, s.keys.shards)
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range heads {
			heads[i] = p.ZRangeWithScores(ctx, s.keys.retained(i), 0, 0)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("looking for what is soon past its retention: %w", s.explain(err))
	}
	near := map[int]int64{}
	_, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, h := range heads {
			if z := h.Val(); len(z) > 0 && int64(z[0].Score) <= r.now+retainSoon.Milliseconds() {
				near[i] = int64(z[0].Score)
				p.ZAddLT(ctx, s.keys.due(i), redis.Z{Score: z[0].Score, Member: retainMember})
			}
		}
		return nil
	})
	if outOfMemory(err) { // what is removed frees some
		for i, at := range near {
			if at <= r.now {
				err = errors.Join(err, s.urgent(ctx, s.keys.due(i), []string{retainMember}))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("noting what is soon past its retention: %w", s.explain(err))
	}
	r.told(near, false)
	r.ends = r.now + retainLook.Milliseconds()
	return nil
}

// expire removes what is past its retention in a shard. It leaves most of the time to others: much may be due at a time.
func (s *Store) expire(ctx context.Context, due string) error {
	var took time.Duration
	return s.pieces(ctx, due, retainMember, func() (any, error) {
		if err := rest(ctx, expireShare*took); err != nil {
			return nil, err
		}
		began := time.Now()
		reply, err := s.run(ctx, scriptExpire, due)
		took = time.Since(began)
		return reply, err
	})
}
