package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirworks/weir/job"
)

const (
	retainMember = "!retain"
	// What the field `retain` of a job says besides milliseconds.
	releaseField = "release"
	foreverField = "forever"
	// expireShare is how much longer than a script that removes what is past its retention is waited until the next one.
	expireShare = 2
)

// retentionLua is what holds for a namespace that nobody has set a retention for, as the scripts know it.
func retentionLua() string {
	d := job.DefaultRetention
	return fmt.Sprintf("local retain = { ended = %d, failed = %d }\n", d.Ended.Milliseconds(), d.Failed.Milliseconds())
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

// Retention implements job.Keeper.
func (s *Store) Retention(ctx context.Context) (job.Retention, error) {
	out := job.DefaultRetention
	set, err := s.rdb.HMGet(ctx, s.keys.retention(0), "ended", "failed").Result()
	if err != nil {
		return out, s.explain(err)
	}
	var d decoder
	if set[0] != nil {
		out.Ended = d.retention(d.str(set[0]))
	}
	if set[1] != nil {
		out.Failed = d.retention(d.str(set[1]))
	}
	return out, d.err
}

// SetRetention implements job.Keeper. Each shard has it, as scripts see one shard only.
func (s *Store) SetRetention(ctx context.Context, r job.Retention) error {
	var fields []any
	if r.Ended != 0 {
		fields = append(fields, "ended", retainText(r.Ended))
	}
	if r.Failed != 0 {
		fields = append(fields, "failed", retainText(r.Failed))
	}
	var errs []error
	for shard := s.keys.shards - 1; len(fields) > 0 && shard >= 0; shard-- { // that which is read comes last
		errs = append(errs, s.explain(s.rdb.HSet(ctx, s.keys.retention(shard), fields...).Err()))
	}
	return errors.Join(errs...)
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
