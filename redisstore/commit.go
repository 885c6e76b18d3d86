package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Group commit: while a commit of a shard is under way, others of that shard wait, and then go
// together, in one script. Each holds or is refused by itself. Nobody waits for others to come.

const (
	// groupTxs and groupBytes bound what goes together: others of the shard wait for it.
	groupTxs   = 32
	groupBytes = 256 << 10
	// groupWait is how long a commit waits for those before it, whose connection may be broken.
	groupWait = time.Second
)

// goesOn stands in the place of what followArgs encodes, for line.following() in run.lua: more of the caller is to come.
const goesOn = "4"

// errNoDeltas: a commit must change something.
var errNoDeltas = errors.New("commit without a delta")

// settling is one transaction on its way.
type settling struct {
	tx     store.Tx
	begin  *store.Begin // of a run behind it, or nil
	args   []any
	size   int
	record *recordTx    // if it completes all jobs of one
	spread bool         // Redis has said so
	again  func() []any // what to send instead, if args are for a record which is none any more

	// turn tells what waits that it has been settled (nil), or is to settle these, among them
	// itself, first.
	turn chan []*settling

	result store.Result
	begun  []*store.Snapshot
	odd    []*store.Snapshot // of which only job and token are known: what they see cannot be decoded
	why    error             // of the last of these
	err    error
}

// settle encodes a transaction, with what follow encodes: how a run is to begin behind it.
func (s *Store) settle(tx store.Tx, begin *store.Begin, follow []any) (*settling, error) {
	hidden, err := s.secrets.hideTx(tx)
	if err != nil {
		return nil, err
	}
	t := &settling{tx: tx, begin: begin, turn: make(chan []*settling, 1)}
	if r := s.definitions.ended(tx.Deltas[0].Token); r != nil {
		t.record = s.keys.completes(r, hidden)
	}
	if t.record != nil {
		t.args, t.again = append(slices.Clip(follow), t.record.args...), func() []any { return txArgs(follow, hidden) }
	} else {
		t.args = txArgs(follow, hidden)
	}
	for _, a := range t.args {
		switch a := a.(type) {
		case string:
			t.size += len(a)
		case []byte:
			t.size += len(a)
		}
	}
	return t, nil
}

// Commit implements store.Runs.
func (s *Store) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	results, _, err := s.commit(ctx, txs, nil, nil)
	return results, err
}

// Step implements store.Runs.
func (s *Store) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	results, begun, err := s.commit(ctx, txs, &b, types)
	return results, s.shown(ctx, begun), err
}

// shown returns runs that began, with what is secret in what they see, but those of which that cannot be read.
func (s *Store) shown(ctx context.Context, begun []*store.Snapshot) []*store.Snapshot {
	shown := begun[:0]
	for _, snap := range begun {
		if err := s.secrets.showSnapshot(snap); err != nil {
			_ = s.park(ctx, snap, err) // whoever takes it next says so
			continue
		}
		shown = append(shown, snap)
	}
	return shown
}

// parkOdd ends runs that began and cannot be decoded.
func (s *Store) parkOdd(ctx context.Context, t *settling) {
	for _, snap := range t.odd {
		_ = s.park(ctx, snap, t.why) // whoever takes it next says so, too
	}
}

// commit commits transactions, and behind the last of them begins runs if begin is not nil.
func (s *Store) commit(ctx context.Context, txs []store.Tx, begin *store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	due, err := s.shardOf(txs)
	if err != nil {
		return nil, nil, err
	}
	group := make([]*settling, len(txs))
	for i, tx := range txs {
		follow := []any{goesOn}
		if begin == nil || i == len(txs)-1 {
			follow = followArgs(nil, begin, types, s.keys.shards)
		}
		if group[i], err = s.settle(tx, begin, follow); err != nil {
			return nil, nil, err
		}
	}
	if len(group) == 1 {
		s.settleOne(ctx, due, group[0])
	} else {
		s.settleAll(ctx, due, group, false)
	}
	out := make([]store.Result, len(group))
	for i, t := range group {
		s.foretellSpawns(ctx, txs[i])
		out[i] = t.result
		err = errors.Join(err, t.err)
		s.parkOdd(ctx, t)
	}
	return out, group[len(group)-1].begun, err
}

// foretellSpawns is foretell for the jobs that a transaction created.
func (s *Store) foretellSpawns(ctx context.Context, tx store.Tx) {
	for i := range tx.Deltas {
		for _, spawn := range tx.Deltas[i].Spawns {
			s.foretell(ctx, tx.Deltas[i].Job, spawn.Plan)
		}
		for _, l := range tx.Deltas[i].Launches {
			s.foretell(ctx, l.ID, l.Plan)
		}
	}
}

// shardOf returns the due key of the shard that all jobs of some transactions lie in.
func (s *Store) shardOf(txs []store.Tx) (string, error) {
	var due string
	var first job.ID
	for _, tx := range txs {
		if len(tx.Deltas) == 0 {
			return "", errNoDeltas
		}
		for i := range tx.Deltas {
			id := tx.Deltas[i].Job
			switch key := s.keys.dueOf(id); due {
			case "":
				due, first = key, id
			case key:
			default:
				return "", fmt.Errorf("commit of jobs %s and %s: they lie in different shards", first, id)
			}
		}
	}
	if due == "" {
		return "", errNoDeltas
	}
	return due, nil
}

// lanes are the shards that have commits under way, each with those that wait.
type lanes struct {
	wait time.Duration // of one for others
	mu   sync.Mutex
	busy map[string][]*settling
}

// enter returns what t is to settle, itself at least; nil if it has to wait.
func (l *lanes) enter(due string, t *settling) []*settling {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting, busy := l.busy[due]
	if busy {
		l.busy[due] = append(waiting, t)
		return nil
	}
	if l.busy == nil {
		l.busy = map[string][]*settling{}
	}
	l.busy[due] = nil
	return []*settling{t}
}

// leave takes back what waits; false if it has its turn.
func (l *lanes) leave(due string, t *settling) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.busy[due]
	i := slices.Index(waiting, t)
	if i < 0 {
		return false
	}
	l.busy[due] = slices.Delete(waiting, i, i+1)
	return true
}

// pass gives those that wait their turn: the first of them settles all that go with it.
func (l *lanes) pass(due string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.busy[due]
	if len(waiting) == 0 {
		delete(l.busy, due)
		return
	}
	n := together(waiting)
	l.busy[due] = slices.Clone(waiting[n:])
	waiting[0].turn <- waiting[:n:n]
}

// together is how many of some transactions go in one call: one at least.
func together(all []*settling) (n int) {
	for size := 0; n < min(len(all), groupTxs) && (n == 0 || size+all[n].size <= groupBytes); n++ {
		size += all[n].size
	}
	return n
}

// await returns what t, which waits, is to settle: nothing if somebody has settled it, itself
// alone, and leading nobody, if that takes too long.
func (l *lanes) await(ctx context.Context, due string, t *settling) (group []*settling, lead bool) {
	long := time.NewTimer(l.wait)
	defer long.Stop()
	select {
	case group = <-t.turn:
		return group, true
	case <-ctx.Done():
	case <-long.C:
	}
	if l.leave(due, t) {
		return []*settling{t}, false
	}
	return <-t.turn, true
}

// settleOne commits a transaction, with others of its shard if there are some.
func (s *Store) settleOne(ctx context.Context, due string, t *settling) {
	group, lead := s.lanes.enter(due, t), true
	if group == nil {
		group, lead = s.lanes.await(ctx, due, t)
	}
	if group != nil {
		s.settleAll(ctx, due, group, lead)
	}
}

// settleAll commits transactions of a shard with one call of the script, or several if they do much. One that leads
// then passes the shard on to those that wait for it.
func (s *Store) settleAll(ctx context.Context, due string, group []*settling, lead bool) {
	for len(group) > 0 {
		now := group[:together(group)]
		args := aheadArgs([]any{len(now)}, now)
		for _, t := range now {
			args = append(args, t.args...)
		}
		reply, err := s.run(ctx, scriptCommit, due, args...)
		err = errors.Join(err, failpoint.Fail(failpoint.CommitSentReplyLost))
		var left todo
		if err == nil {
			now, left, err = s.settled(now, reply, s.keys.shardAt(due))
		}
		if err != nil {
			now = group
		}
		group = group[len(now):]
		now = slices.DeleteFunc(slices.Clone(now), func(t *settling) bool {
			again := err == nil && t.err == nil && t.spread
			if again {
				t.args, t.again, t.record, t.spread = t.again(), nil, nil, false
				group = append(group[:len(group):len(group)], t)
			}
			return again
		})
		if lead && len(group) == 0 {
			s.lanes.pass(due)
		}
		for _, t := range now {
			if err != nil {
				t.err = err
			}
			t.turn <- nil
		}
		s.hand(ctx, due, left)
	}
}

// settled tells the transactions of a group that a call has answered what became of them, and returns these and the
// what they left to do.
func (s *Store) settled(group []*settling, reply any, shard int) ([]*settling, todo, error) {
	var d decoder
	l := d.list(reply)
	answers, left := d.list(d.at(l, 0)), d.todo(d.at(l, 1), shard)
	if n := len(answers); d.err == nil && 0 < n && n < len(group) {
		group = group[:n]
	}
	for i, t := range group {
		one := d.at(answers, i)
		answer, ok := one.([]any)
		if !ok {
			answer = []any{one} // a record's, behind which no run was to begin
		}
		for len(answer) < 5 { // behind the others it has an error, or more runs
			answer = append(answer, "")
		}
		if text, _ := answer[3].(string); text != "" {
			t.err = fmt.Errorf("redis script %s: %w", scriptCommit.name, s.explain(scriptError(text)))
			continue
		}
		if t.again != nil && strings.Contains(d.str(d.at(answer, 0)), "\x1fspread\x1f") {
			t.spread = true
			continue
		}
		t.result = d.result(d.at(answer, 0), t.tx.Deltas[0].Job)
		if t.begin == nil {
			continue
		}
		if next := d.str(answer[1]); next != "" {
			s.begun(t, []any{t.begin.Token, next, answer[2]})
		}
		s.begun(t, d.list(answer[4]))
	}
	return group, left, d.err
}

// begun notes the runs that began behind a transaction: tokens, IDs and what they see, in turn.
func (s *Store) begun(t *settling, all []any) {
	var d decoder
	for i := 0; i+2 < len(all); i += 3 {
		token, id := d.str(all[i]), job.ID(d.str(all[i+1]))
		snap, err := s.snapshot(&d, all[i+2], id, token, t.begin.Row)
		if d.err = nil; err != nil {
			t.odd, t.why = append(t.odd, &store.Snapshot{Info: job.Info{ID: id}, Token: token}), err
			continue
		}
		t.begun = append(t.begun, snap)
	}
}

// snapshot decodes what a run sees: what begin() in run.lua returns, or compact.begin() in compact_run.lua. row is how many jobs
// behind it may come with that.
func (s *Store) snapshot(d *decoder, v any, id job.ID, token string, row int) (*store.Snapshot, error) {
	if l, ok := v.([]any); ok && len(l) > 0 && l[0] == "record" {
		snap := s.recordSnapshot(d, l, id, token, row)
		return snap, d.err
	}
	return d.snapshot(v, id, token)
}

// scriptError is an error of Redis that a script met on its way, and went on.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (scriptError) RedisError() {}
