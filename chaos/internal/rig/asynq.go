package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// skews are by how much the clocks of the processes are wrong, one after another. asynq, which
// goes by these clocks, takes wakes from each other's servers then, or leaves them alone for long.
var skews = []time.Duration{30 * time.Minute, -30 * time.Minute, 0}

// clocks looks whether asynq really believes in those clocks: by what its servers that live say of themselves.
func (r *rig) clocks(ctx context.Context) error {
	servers, err := r.rdb.ZRangeWithScores(ctx, "asynq:servers", 0, -1).Result()
	if err != nil {
		return err
	}
	seen := map[time.Duration]int{}
	for _, z := range servers {
		lives, err := r.rdb.Exists(ctx, fmt.Sprint(z.Member)).Result()
		if err != nil {
			return err
		}
		away := time.Until(time.Unix(int64(z.Score), 0))
		for _, skew := range skews {
			if lives == 1 && (away-skew).Abs() < 5*time.Minute {
				seen[skew]++
			}
		}
	}
	r.report.Clocks = map[string]int{}
	for n, skew := range skews {
		r.report.Clocks[skew.String()] = seen[skew]
		if seen[skew] == 0 && n < r.Workers {
			r.bad(trouble, "no asynq server has a clock that is wrong by %s", skew)
		}
	}
	return nil
}

// Lists of a queue of asynq, which are the states of its tasks.
var (
	asynqLists = []string{"pending", "active"}
	asynqSets  = []string{"lease", "scheduled", "retry", "archived", "completed"}
)

// wakesEnd waits until asynq has nothing left that it should not have, or counts what it has.
func (r *rig) wakesEnd(ctx context.Context, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; {
		left, err := r.wakes(ctx)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			for _, what := range left {
				r.bad(orphanKeys, "left in asynq: %s", what)
			}
			return nil
		}
		if !pause(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// wakes lists what asynq has of the namespace and should not have when nothing is to be done.
func (r *rig) wakes(ctx context.Context) (left []string, err error) {
	queues, err := r.rdb.SMembers(ctx, "asynq:queues").Result()
	for _, queue := range queues {
		name, ours := strings.CutPrefix(queue, "weir:"+namespace+":")
		if err != nil || !ours || name == ownQueue { // whose wakes nobody takes
			continue
		}
		var q asynqQueue
		if q, err = r.asynqQueue(ctx, "asynq:{"+queue+"}:"); err == nil {
			left = append(left, q.left(time.Now())...)
		}
	}
	return left, err
}

// asynqQueue is what asynq has of a queue.
type asynqQueue struct {
	lists map[string][]string           // tasks, by state
	sets  map[string]map[string]float64 // times of tasks, by state and task
	tasks map[string]string             // states, by task
}

func (r *rig) asynqQueue(ctx context.Context, prefix string) (asynqQueue, error) {
	q := asynqQueue{map[string][]string{}, map[string]map[string]float64{}, map[string]string{}}
	lists, sets := map[string]*redis.StringSliceCmd{}, map[string]*redis.ZSliceCmd{}
	_, err := r.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, name := range asynqLists {
			lists[name] = p.LRange(ctx, prefix+name, 0, -1)
		}
		for _, name := range asynqSets {
			sets[name] = p.ZRangeWithScores(ctx, prefix+name, 0, -1)
		}
		return nil
	})
	if err != nil {
		return q, err
	}
	for name, cmd := range lists {
		q.lists[name] = cmd.Val()
	}
	for name, cmd := range sets {
		q.sets[name] = map[string]float64{}
		for _, z := range cmd.Val() {
			q.sets[name][fmt.Sprint(z.Member)] = z.Score
		}
	}
	tasks, err := r.scan(ctx, prefix+"t:*")
	for _, key := range tasks {
		state, err := r.rdb.HGet(ctx, key, "state").Result()
		if err != nil && err != redis.Nil { //nolint:errorlint // the driver returns it as it is
			return q, err
		}
		q.tasks[strings.TrimPrefix(key, prefix+"t:")] = state
	}
	return q, err
}

// left lists what should not be there. A task whose worker was killed is active, with a lease, until asynq's
// recoverer takes it: after half a minute to two and a half, or later by the clock of that worker. Then
// it is to be tried again, when it is time by the clock of who took it.
func (q asynqQueue) left(now time.Time) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, state := range []string{"scheduled", "archived", "completed"} {
		for task := range q.sets[state] {
			say("task %s is %s", task, state)
		}
	}
	for _, task := range q.lists["pending"] {
		say("task %s is pending", task)
	}
	for task, at := range q.sets["retry"] {
		if at < float64(now.Unix()) {
			say("task %s should have been tried again at %s", task, time.Unix(int64(at), 0))
		}
	}
	for _, task := range q.lists["active"] {
		if _, leased := q.sets["lease"][task]; !leased {
			say("task %s is active without a lease", task)
		}
	}
	for task := range q.sets["lease"] {
		if !slices.Contains(q.lists["active"], task) {
			say("task %s has a lease and is not active", task)
		}
	}
	for task, state := range q.tasks {
		if _, delayed := q.sets[state][task]; !delayed && !slices.Contains(q.lists[state], task) {
			say("task %s says that it is %q, and is in no such list", task, state)
		}
	}
	return all
}
