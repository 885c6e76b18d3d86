package rig

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/workkit"

	"github.com/weirworks/weir/chaos/internal/crew"
)

// timetable is a schedule of WorkKit, to which a program adds that knows nothing of Weir: entries that come once, and one that comes each
// second.
type timetable struct{ added int }

// entering adds an entry, unless it was added before: a call whose reply is lost may be repeated when the entry has run.
var entering = redis.NewScript(`
if redis.call('SADD', KEYS[3], ARGV[1]) == 0 then return 0 end
local now = redis.call('TIME')
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], now[1] * 1000, '{"id":"' .. ARGV[1] .. '"}')
return 1`)

// eachSecond is the entry that comes again and again: number 0.
const eachSecond = "0"

// enter adds an entry.
func (t *timetable) enter(ctx context.Context, r *rig, id, cron string) bool {
	return r.insist(ctx, "adding to the timetable", func(ctx context.Context) error {
		payload := fmt.Sprintf(`{"cron":%q,"job":"#'chaos/scheduled","args":[%s]}`, cron, id)
		return entering.Run(ctx, r.rdb, []string{crew.TimetableJobs, crew.TimetableNext, crew.Timetable + ":added"}, id, payload).Err()
	})
}

// timetable adds entries for as long as there is work, and waits until all of them are moved.
func (r *rig) timetable(ctx context.Context) {
	t := &timetable{}
	r.add(t)
	if !t.enter(ctx, r, eachSecond, "* * * * * * *") {
		return
	}
	for pause(ctx, r.between(50*time.Millisecond, 200*time.Millisecond)) {
		if !t.enter(ctx, r, strconv.Itoa(t.added+1), "") {
			return
		}
		t.added++
	}
	r.insist(ctx, "ending what comes each second", func(ctx context.Context) error {
		_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HDel(ctx, crew.TimetableJobs, eachSecond)
			p.ZRem(ctx, crew.TimetableNext, `{"id":"`+eachSecond+`"}`)
			return nil
		})
		return err
	})
	r.insist(ctx, "moving the timetable", func(ctx context.Context) error {
		left, err := r.rdb.Exists(ctx, crew.TimetableNext, crew.TimetableJobs).Result()
		if err == nil && left > 0 {
			err = fmt.Errorf("there are entries")
		}
		return err
	})
}

// check implements round: each entry has run once, and what comes each second once in each.
func (t *timetable) check(ctx context.Context, r *rig) error {
	times := map[crew.Appointment]int{}
	came := make([]int, t.added+1)
	for info, err := range r.client.Jobs(ctx, job.Filter{Labels: map[string]string{workkit.Label: crew.Timetable}}) {
		if err != nil {
			return fmt.Errorf("timetable: %w", err)
		}
		if !info.Status.Settled() {
			r.bad(stuck, "%s of the timetable is %s: %s", info.ID, info.Status, info.Reason)
			continue
		}
		raws, err := r.client.At(info.ID).Peek(ctx, "out", 9)
		if err != nil {
			return fmt.Errorf("timetable: %w", err)
		}
		for _, raw := range raws {
			var a crew.Appointment
			if err := port.Decode(raw, &a); err != nil {
				return fmt.Errorf("timetable: %w", err)
			}
			if times[a]++; a.N < len(came) {
				came[a.N]++
			}
		}
	}
	for a, n := range times {
		if n > 1 || a.N > 0 && a.N < len(came) && came[a.N] > 1 {
			r.bad(duplicated, "entry %d of the timetable, due at %v, ran %d times, and %d in all", a.N, a.Due, n, came[min(a.N, t.added)])
		}
	}
	for n, times := range came {
		if times == 0 {
			r.bad(lost, "entry %d of the timetable did not run", n)
		}
	}
	return nil
}
