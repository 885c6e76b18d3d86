package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/failpoint"
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

// errNoDeltas: a commit must change something.
var errNoDeltas = errors.New("commit without a delta")

// settling is one transaction on its way.
type settling struct {
	tx     job.Tx
	begin  *job.Begin // of a run behind it, or nil
	args   []any
	size   int
	spread bool         // Redis has said so
	again  func() []any // what to send instead, if args are for a record which is none any more

	// turn tells what waits that it has been settled (nil), or is to settle these, among them
	// itself, first.
	turn chan []*settling

	result   job.Result
	snapshot *job.Snapshot
	err      error
}

// settle encodes a transaction, with a run of one of the types behind it if begin is not nil.
func (s *Store) settle(tx job.Tx, begin *job.Begin, types []string) (*settling, error) {
	hidden, err := s.secrets.hideTx(tx)
	if err != nil {
		return nil, err
	}
	t := &settling{tx: tx, begin: begin, turn: make(chan []*settling, 1)}
	follow := followArgs(nil, begin, types, s.keys.shards)
	if n := s.definitions.ended(tx.Deltas[0].Token); n == len(tx.Deltas) {
		if args, ok := recordArgs(slices.Clip(follow), hidden); ok {
			t.args, t.again = args, func() []any { return txArgs(follow, hidden) }
		}
	}
	if t.args == nil {
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

// Commit implements job.Runs.
func (s *Store) Commit(ctx context.Context, txs []job.Tx) ([]job.Result, error) {
	due, err := s.shardOf(txs)
	if err != nil {
		return nil, err
	}
	group := make([]*settling, len(txs))
	for i, tx := range txs {
		if group[i], err = s.settle(tx, nil, nil); err != nil {
			return nil, err
		}
	}
	if len(group) == 1 {
		s.together(ctx, due, group[0])
	} else {
		s.settleAll(ctx, due, group, false)
	}
	for _, tx := range txs {
		s.foretellSpawns(ctx, tx)
	}
	out := make([]job.Result, len(group))
	for i, t := range group {
		out[i] = t.result
		err = errors.Join(err, t.err)
	}
	return out, err
}

// foretellSpawns is foretell for the jobs that a transaction created.
func (s *Store) foretellSpawns(ctx context.Context, tx job.Tx) {
	for i := range tx.Deltas {
		for _, spawn := range tx.Deltas[i].Spawns {
			s.foretell(ctx, tx.Deltas[i].Job, spawn.Plan)
		}
		for _, l := range tx.Deltas[i].Launches {
			s.foretell(ctx, l.ID, l.Plan)
		}
	}
}

// Step implements job.Runs.
func (s *Store) Step(ctx context.Context, tx job.Tx, b job.Begin, types []string) (job.Result, *job.Snapshot, error) {
	due, err := s.shardOf([]job.Tx{tx})
	if err != nil {
		return job.Result{}, nil, err
	}
	t, err := s.settle(tx, &b, types)
	if err != nil {
		return job.Result{}, nil, err
	}
	s.together(ctx, due, t)
	s.foretellSpawns(ctx, tx)
	if t.snapshot != nil {
		if err := s.secrets.showSnapshot(t.snapshot); err != nil {
			_ = s.park(ctx, t.snapshot, err) // whoever takes it next says so
			t.snapshot = nil
		}
	}
	return t.result, t.snapshot, t.err
}

// shardOf returns the due key of the shard that all jobs of some transactions lie in.
func (s *Store) shardOf(txs []job.Tx) (string, error) {
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
	n, size := 1, waiting[0].size
	for n < min(len(waiting), groupTxs) && size+waiting[n].size <= groupBytes {
		size += waiting[n].size
		n++
	}
	l.busy[due] = slices.Clone(waiting[n:])
	waiting[0].turn <- waiting[:n:n]
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

// together commits a transaction, with others of its shard if there are some.
func (s *Store) together(ctx context.Context, due string, t *settling) {
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
		args := []any{len(group)}
		for _, t := range group {
			args = append(args, t.args...)
		}
		reply, err := s.run(ctx, scriptCommit, due, args...)
		err = errors.Join(err, failpoint.Fail(failpoint.CommitSentReplyLost))
		now := group
		var left todo
		if err == nil {
			now, left, err = s.settled(group, reply, s.keys.shardAt(due))
		}
		group = group[len(now):]
		now = slices.DeleteFunc(slices.Clone(now), func(t *settling) bool {
			again := err == nil && t.err == nil && t.spread
			if again {
				t.args, t.again, t.spread = t.again(), nil, false
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
		answer := d.list(d.at(answers, i))
		if len(answer) > 3 {
			t.err = fmt.Errorf("redis script %s: %w", scriptCommit.name, s.explain(scriptError(d.str(answer[3]))))
			continue
		}
		if result := d.list(d.at(answer, 0)); t.again != nil && d.str(d.at(result, 1)) == "spread" {
			t.spread = true
			continue
		}
		t.result = d.result(d.at(answer, 0), t.tx.Deltas[0].Job)
		next := d.str(d.at(answer, 1))
		if d.err != nil || next == "" {
			continue
		}
		var one decoder
		t.snapshot, t.err = one.snapshot(d.at(answer, 2), job.ID(next), t.begin.Token)
		s.definitions.begun(t.begin.Token, one.record)
	}
	return group, left, d.err
}

// scriptError is an error of Redis that a script met on its way, and went on.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError implements redis.Error.
func (scriptError) RedisError() {}
