package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // it tells whether an entry has changed; nothing is to be kept from anybody
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// WorkKit is a schedule in the keys of WorkKit, `<name>:jobs` and `<name>:next`, which programs that know nothing of Weir read and
// write, too. Package workkit serves such schedules; this is the part of it that acts in Redis.
type WorkKit struct {
	s    *Store
	name string
}

// Bounds of calls of a WorkKit.
const (
	WorkKitPage  = 1000 // members that Due returns
	WorkKitMoves = 100  // entries that Move takes
	kitBytes     = 1 << 20
	lastScore    = 253402300799000 // the end of the year 9999
)

// WorkKit returns a schedule of WorkKit by its name. The error wraps job.ErrName, or job.ErrConfig on a Redis Cluster, where no script
// reaches the keys of a schedule together.
func (s *Store) WorkKit(name string) (*WorkKit, error) {
	if err := checkKitName(name); err != nil {
		return nil, err
	}
	if _, cluster := s.rdb.(*redis.ClusterClient); cluster {
		return nil, fmt.Errorf("%w: the keys %s:jobs and %[2]s:next of a WorkKit schedule have different slots of a Redis Cluster: use a Redis of its own for it", job.ErrConfig, name)
	}
	return &WorkKit{s, name}, nil
}

func checkKitName(name string) error { return job.CheckName("name of a WorkKit schedule", name) }

// WorkKits returns the names of the schedules of WorkKit that were served or added to, sorted.
func (s *Store) WorkKits(ctx context.Context) ([]string, error) {
	names, err := s.rdb.SMembers(ctx, s.keys.workkits()).Result()
	slices.Sort(names)
	return names, s.explain(err)
}

// Name is that of the schedule.
func (k *WorkKit) Name() string { return k.name }

func (k *WorkKit) jobs() string { return k.name + ":jobs" }
func (k *WorkKit) next() string { return k.name + ":next" }

func (k *WorkKit) run(ctx context.Context, p program, args ...any) (any, error) {
	return k.s.run(ctx, p, k.s.keys.hub(), append([]any{k.name}, args...)...)
}

// Enroll notes that the schedule is served.
func (k *WorkKit) Enroll(ctx context.Context) error {
	return k.s.explain(k.s.rdb.SAdd(ctx, k.s.keys.workkits(), k.name).Err())
}

// Head returns the time, by Redis's clock, and when the first member of the queue is due; the zero time if there is none.
func (k *WorkKit) Head(ctx context.Context) (now, first time.Time, err error) {
	var clock *redis.TimeCmd
	var head *redis.ZSliceCmd
	if _, err := k.s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		clock, head = p.Time(ctx), p.ZRangeWithScores(ctx, k.next(), 0, 0)
		return nil
	}); err != nil {
		return now, first, k.s.explain(err)
	}
	for _, z := range head.Val() {
		first = scoreTime(z.Score)
	}
	return clock.Val(), first, nil
}

// WorkKitMember is a member of the queue of a schedule.
type WorkKitMember struct {
	Member string
	Score  string // as Redis writes it: milliseconds
}

// Due is when the member is due.
func (m *WorkKitMember) Due() time.Time {
	ms, _ := strconv.ParseFloat(m.Score, 64) // Redis has nothing else
	return scoreTime(ms)
}

// scoreTime is the time that a score means; what other programs wrote may be none: then it is the nearest one.
func scoreTime(ms float64) time.Time {
	return time.UnixMilli(int64(min(max(ms, 0), lastScore))).UTC()
}

// Due returns the time, by Redis's clock, up to WorkKitPage members that are due, but the first over of them, and when the next
// one is due, or the zero time. Those of the same score are in the order in which Weir put them there, before those that others put there.
func (k *WorkKit) Due(ctx context.Context, over int) (now time.Time, all []WorkKitMember, later time.Time, err error) {
	reply, err := k.run(ctx, scriptKitDue, over)
	if err != nil {
		return now, nil, later, err
	}
	var d decoder
	l := d.list(reply)
	now = d.time(d.at(l, 0))
	if at := (WorkKitMember{Score: d.str(d.at(l, 1))}); at.Score != "" {
		later = at.Due()
	}
	d.pairs(d.at(l, 2), func(member string, score any) {
		all = append(all, WorkKitMember{member, d.str(score)})
	})
	return now, all, later, d.err
}

// Payloads returns the JSON of entries; nil of one that is not there.
func (k *WorkKit) Payloads(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	values, err := k.s.rdb.HMGet(ctx, k.jobs(), ids...).Result()
	if err != nil {
		return nil, k.s.explain(err)
	}
	all := make([]json.RawMessage, len(values))
	for i, v := range values {
		if text, ok := v.(string); ok {
			all[i] = json.RawMessage(text)
		}
	}
	return all, nil
}

// WorkKitMove is what is to become of an entry that is due, if it is as it was seen: with Launch that tree is launched, and the entry is
// put off to Next, or runs for the last time. With Refused it stays as it is, and why is noted. Else its member is dropped: it has no Payload, or
// another member of its ID.
type WorkKitMove struct {
	WorkKitMember
	ID      string
	Payload json.RawMessage
	Launch  *store.Launch
	Next    time.Time
	Refused *WorkKitRefusal
}

// WorkKitRefusal is why an entry is not run.
type WorkKitRefusal struct {
	Member string    `json:"member"`
	Job    string    `json:"job,omitempty"`
	Why    string    `json:"why"`
	Since  time.Time `json:"since"`
}

// Move moves entries into Weir, in one script, in their order: up to WorkKitMoves, and fewer if they are large. It returns of each of those whether it
// was as it was seen; what was not, somebody else has taken or changed. A Move that is repeated changes nothing.
func (k *WorkKit) Move(ctx context.Context, moves []WorkKitMove) (done []bool, err error) {
	var args []any
	size, n := 0, 0
	for ; n < len(moves) && n < WorkKitMoves && size < kitBytes; n++ {
		some, err := k.moveArgs(&moves[n])
		if err != nil {
			return nil, err
		}
		size += sizeOf(some)
		args = append(args, some...)
	}
	failpoint.Hit(failpoint.BeforeWorkKitMove)
	reply, err := k.run(ctx, scriptKitMove, append([]any{n}, args...)...)
	if err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.AfterWorkKitMove)
	var d decoder
	l := d.list(reply)
	for _, v := range d.list(d.at(l, 2)) {
		done = append(done, d.int(v) == 1)
	}
	return done, cmp.Or(d.err, k.s.deliver(ctx, k.s.keys.hub(), &d, d.at(l, 1)))
}

func (k *WorkKit) moveArgs(m *WorkKitMove) ([]any, error) {
	what, next, root, text := "drop", "", "", ""
	switch {
	case m.Refused != nil:
		why, err := json.Marshal(m.Refused)
		if err != nil {
			return nil, err
		}
		what, text = "refuse", string(why)
	case m.Launch != nil:
		plan := *m.Launch.Plan
		plan.TellEnd = &job.PortRef{Job: job.ID("workkit:" + m.ID), Port: k.name} // see retain.told in mail.lua
		l := *m.Launch
		l.Plan = &plan
		hidden, err := k.s.secrets.hideLaunch(&l)
		if err != nil {
			return nil, err
		}
		what, root, text = "launch", string(l.ID), launchOrder(hidden, "")
		if !m.Next.IsZero() {
			next = strconv.FormatInt(m.Next.UnixMilli(), 10)
		}
	}
	sum := ""
	if m.Payload != nil {
		digest := sha1.Sum(m.Payload) //nolint:gosec // as above
		sum = hex.EncodeToString(digest[:])
	}
	return []any{what, m.Member, m.Score, m.ID, sum, next, root, text}, nil
}

// Add adds an entry, unless it is there already.
func (k *WorkKit) Add(ctx context.Context, id, member string, payload json.RawMessage, due time.Time) (added bool, err error) {
	reply, err := k.run(ctx, scriptKitAdd, id, []byte(payload), member, strconv.FormatInt(due.UnixMilli(), 10), rand.Text())
	if err != nil {
		return false, err
	}
	var d decoder
	return d.int(reply) == 1, d.err
}

// Remove removes an entry, and tells whether it was there. What it has launched goes on. idOf returns the ID in a member of the queue, which
// may be written in several ways, and in more than one.
func (k *WorkKit) Remove(ctx context.Context, id string, idOf func(member string) (string, error)) (there bool, err error) {
	args := []any{id, rand.Text()}
	err = k.queued(ctx, func(z redis.Z) {
		if member, ok := z.Member.(string); ok {
			if of, err := idOf(member); err == nil && of == id {
				args = append(args, member)
			}
		}
	})
	if err != nil {
		return false, err
	}
	reply, err := k.run(ctx, scriptKitGone, args...)
	if err != nil {
		return false, err
	}
	var d decoder
	return d.int(reply) > 0, d.err
}

// queued calls fn with each member of the queue, the next one first.
func (k *WorkKit) queued(ctx context.Context, fn func(redis.Z)) error {
	for from := int64(0); ; from += WorkKitPage {
		page, err := k.s.rdb.ZRangeWithScores(ctx, k.next(), from, from+WorkKitPage-1).Result()
		if err != nil {
			return k.s.explain(err)
		}
		for _, z := range page {
			fn(z)
		}
		if len(page) < WorkKitPage {
			return nil
		}
	}
}

// WorkKitEntry is what there is of an entry.
type WorkKitEntry struct {
	ID      string
	Payload json.RawMessage
	Due     time.Time // zero: it is not in the queue
	Running job.ID    // the tree that it runs for the last time
	Refused *WorkKitRefusal
}

// Entries calls fn with each entry, in no order, until it returns an error. idOf returns the ID in a member of the queue.
func (k *WorkKit) Entries(ctx context.Context, idOf func(member string) (string, error), fn func(WorkKitEntry) error) error {
	due := map[string]time.Time{}
	if err := k.queued(ctx, func(z redis.Z) {
		member, _ := z.Member.(string) // a member is one
		if id, err := idOf(member); err == nil && due[id].IsZero() {
			due[id] = scoreTime(z.Score)
		}
	}); err != nil {
		return err
	}
	for cursor := uint64(0); ; {
		found, after, err := k.s.rdb.HScan(ctx, k.jobs(), cursor, "", kitScan).Result()
		if err != nil {
			return k.s.explain(err)
		}
		entries := make([]WorkKitEntry, len(found)/2)
		for i := range entries {
			entries[i] = WorkKitEntry{ID: found[2*i], Payload: json.RawMessage(found[2*i+1]), Due: due[found[2*i]]}
		}
		if err := k.complete(ctx, entries); err != nil {
			return err
		}
		for _, e := range entries {
			if err := fn(e); err != nil {
				return err
			}
		}
		if cursor = after; cursor == 0 {
			return nil
		}
	}
}

const kitScan = 500

// complete reads what else there is of entries.
func (k *WorkKit) complete(ctx context.Context, entries []WorkKitEntry) error {
	type found struct{ running, refused *redis.StringCmd }
	all := make([]found, len(entries))
	if _, err := k.s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, e := range entries {
			all[i] = found{p.HGet(ctx, k.s.keys.workkit(k.name, "last"), e.ID), p.HGet(ctx, k.s.keys.workkit(k.name, "refused"), e.ID)}
		}
		return nil
	}); err != nil && !errors.Is(err, redis.Nil) {
		return k.s.explain(err)
	}
	for i := range entries {
		e := &entries[i]
		tree, _, _ := strings.Cut(all[i].running.Val(), " ")
		e.Running = job.ID(tree)
		if text := all[i].refused.Val(); text != "" {
			e.Refused = &WorkKitRefusal{}
			if err := json.Unmarshal([]byte(text), e.Refused); err != nil {
				return fmt.Errorf("entry %q of %s: %w", e.ID, k.name, err)
			}
		}
	}
	return nil
}

// Tidy puts right what nobody was told of: that the last run of an entry has ended, as an engine that may not use the keys of the
// schedule took the message, and that an entry that was refused is gone. It looks at some, from a cursor on, and returns the next one.
func (k *WorkKit) Tidy(ctx context.Context, cursor uint64) (after uint64, err error) {
	found, after, err := k.s.rdb.HScan(ctx, k.s.keys.workkit(k.name, "last"), cursor, "", kitScan).Result()
	if err != nil {
		return 0, k.s.explain(err)
	}
	status := make([]*redis.StringCmd, len(found)/2)
	trees := make([]job.ID, len(status))
	if _, err := k.s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range status {
			tree, _, _ := strings.Cut(found[2*i+1], " ")
			trees[i] = job.ID(tree)
			status[i] = p.HGet(ctx, k.s.keys.job(trees[i], ""), "status")
		}
		return nil
	}); err != nil && !errors.Is(err, redis.Nil) {
		return 0, k.s.explain(err)
	}
	var ended []any
	for i, s := range status {
		if at := statemachine.Status(s.Val()); at.Settled() || at == statemachine.Failed {
			ended = append(ended, found[2*i], string(trees[i]))
		}
	}
	if len(ended) > 0 {
		if _, err := k.run(ctx, scriptKitEnd, ended...); err != nil {
			return 0, err
		}
	}
	return after, k.forget(ctx)
}

// forget drops what is noted of refused entries that are gone.
func (k *WorkKit) forget(ctx context.Context) error {
	refused := k.s.keys.workkit(k.name, "refused")
	found, _, err := k.s.rdb.HScan(ctx, refused, 0, "", kitScan).Result()
	if err != nil || len(found) == 0 {
		return k.s.explain(err)
	}
	score := make([]*redis.FloatCmd, len(found)/2)
	if _, err := k.s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range score {
			var r WorkKitRefusal
			_ = json.Unmarshal([]byte(found[2*i+1]), &r) // what is none has no member: it goes
			score[i] = p.ZScore(ctx, k.next(), r.Member)
		}
		return nil
	}); err != nil && !errors.Is(err, redis.Nil) {
		return k.s.explain(err)
	}
	var gone []string
	for i, s := range score {
		if errors.Is(s.Err(), redis.Nil) {
			gone = append(gone, found[2*i])
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return k.s.explain(k.s.rdb.HDel(ctx, refused, gone...).Err())
}
