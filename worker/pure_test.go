package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// refusing is a store that notes what one job writes when that is about to be committed, and refuses some
// of its commits, as if somebody had taken a message from under its run.
type refusing struct {
	worker.Store
	from   job.ID
	refuse func(n, messages int) bool // the n-th of its commits that write, from 1, which writes that many messages

	mu      sync.Mutex
	n       int
	written map[int]bool
}

func (s *refusing) look(txs ...store.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []int
	for _, tx := range txs {
		for i := range tx.Deltas {
			for _, p := range tx.Deltas[i].Parts() {
				for _, w := range p.Writes {
					if tx.Deltas[i].Job == s.from {
						items = append(items, numbers(w.Items)...)
					}
				}
			}
		}
	}
	if len(items) == 0 {
		return nil
	}
	if s.n++; s.refuse(s.n, len(items)) {
		return job.ErrMoved
	}
	for _, v := range items {
		s.written[v] = true
	}
	return nil
}

// numbers decodes messages as they are stored; what is not a number is 0.
func numbers[T ~[]byte](raws []T) []int {
	all := make([]int, len(raws))
	for i, raw := range raws {
		if data, _ := port.Split([]byte(raw)); port.Decode(data, &all[i]) != nil {
			all[i] = 0
		}
	}
	return all
}

// has tells whether a number was in a commit that was not refused.
func (s *refusing) has(v int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written[v]
}

func (s *refusing) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	if err := s.look(txs...); err != nil {
		return nil, nil, err
	}
	return s.Store.Step(ctx, txs, b, types)
}

func (s *refusing) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	if err := s.look(txs...); err != nil {
		return nil, err
	}
	return s.Store.Commit(ctx, txs)
}

// TestOnlyPureTypesSeeUncommittedMessages: the code of a type without Pure is never called with a message
// before the run that wrote it is committed, even if some such commits are refused; that of a type with
// Pure is.
func TestOnlyPureTypesSeeUncommittedMessages(t *testing.T) {
	for name, c := range map[string]struct {
		middle hopper
		early  bool
	}{
		"not pure":      {middle: &Acting{}},
		"CommitEachRun": {middle: &Alone{}},
		"pure":          {middle: &Call{}, early: true},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				var early atomic.Int64
				s := &refusing{Store: b.Store, written: map[int]bool{}, refuse: func(n, _ int) bool { return n%5 == 3 }}
				key := keep(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
					v, ok, err := w.In.Read()
					if !ok || err != nil {
						return err
					}
					if !s.has(v) {
						early.Add(1)
					}
					return w.Out.Write(v)
				})
				h := b.Start(row(keyed(c.middle, key)))
				first, err := h.Child(b.Ctx, "a")
				b.Check(err)
				s.from = first.ID()
				b.serve(func(cfg *worker.Config) { cfg.Store, cfg.Workers = s, append(everything(), &Alone{}, &Acting{}) })
				b.oneByOne(h, 1, 40)
				b.rest(h, 41, 200)
				b.same(h, sequence(200)...)
				if n := early.Load(); n > 0 != c.early {
					b.Errorf("%d runs were given a message whose writer was not committed", n)
				}
			})
		})
	}
}

// TestRunsThatHappenAgain: when a commit is not taken, all runs since the last commit happen again, in order
// and on the same messages, so that their idempotency keys are the same; with CommitEachRun that is one.
func TestRunsThatHappenAgain(t *testing.T) {
	for name, c := range map[string]struct {
		worker hopper
		runs   int // in the commit that is refused, at least
		most   int // runs that happen again
	}{
		"default":       {&Acting{}, 2, 120},
		"CommitEachRun": {&Alone{}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				const n = 60
				type effect struct {
					v   int
					key string
				}
				var mu sync.Mutex
				var effects []effect
				refused := false
				s := &refusing{Store: b.Store, written: map[int]bool{}, refuse: func(_, messages int) bool {
					if refused || messages < c.runs {
						return false
					}
					refused = true
					return true
				}}
				key := keep(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
					v, ok, err := w.In.Read()
					if !ok || err != nil {
						return err
					}
					mu.Lock()
					effects = append(effects, effect{v, run.IdempotencyKey("mail")})
					mu.Unlock()
					return w.Out.Write(v)
				})
				w, _, _ := keyed(c.worker, key).hop()
				h := b.single(w)
				s.from = h.ID()
				b.feed(h, n)
				b.serve(func(cfg *worker.Config) { cfg.Store, cfg.Workers = s, append(everything(), &Alone{}, &Acting{}) })
				b.allThrough(h, n)
				mu.Lock()
				defer mu.Unlock()
				keys, again := map[int]string{}, 0
				for _, e := range effects {
					if _, ok := keys[e.v]; ok {
						again++
						if keys[e.v] != e.key {
							b.Errorf("message %d was worked on with the keys %s and %s", e.v, keys[e.v], e.key)
						}
					}
					keys[e.v] = e.key
				}
				b.Logf("%d runs happened again", again)
				if again < c.runs || again > c.most {
					b.Errorf("%d runs happened again, want %d to %d", again, c.runs, c.most)
				}
				if len(keys) != n || len(effects) != n+again {
					b.Errorf("%d messages were worked on in %d runs", len(keys), len(effects))
				}
			})
		})
	}
}

// TestPureExcludesCommitEachRun: what has no side effects needs no commit of its own.
func TestPureExcludesCommitEachRun(t *testing.T) {
	t.Parallel()
	err := worker.Options{Pure: true, CommitEachRun: true}.Validate()
	if !errors.Is(err, job.ErrConfig) {
		t.Errorf("got %v", err)
	}
}

// TestRunJob: it runs a job with those that are chained to it, and on all messages that its snapshot holds, however
// long that takes; RunJobOnce gives it one run.
func TestRunJob(t *testing.T) {
	each(t, func(b *bench) {
		const n = 20
		slow := call(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			time.Sleep(shortRun / 10) // ten such runs last longer than those that share a commit may
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			return w.Out.Write(v)
		})
		s := b.countCommits()
		e, err := worker.New(worker.Config{Store: s, Workers: everything()})
		b.Check(err)
		b.Check(e.Register(b.Ctx))
		h := b.Start(chainOf(slow, &Hop{}, &Hop{}))
		first, err := h.Child(b.Ctx, "first")
		b.Check(err)
		b.feed(h, n)
		for call, came := range []int64{1, 4, 11, n} { // the first commit tells how much room there is; then snapshots grow
			b.Check(e.RunJob(b.Ctx, first.ID()))
			if got := b.came(h); got != came || s.calls != call+1 {
				b.Errorf("after call %d %d messages came through in %d commits, want %d in %d", call+1, got, s.calls, came, call+1)
			}
		}
		b.hopCounts(h, sequence(n))
		if s.held != 9 {
			b.Errorf("at most %d speculative runs of a job in a commit, want 9", s.held)
		}
		b.Check(h.Write(b.Ctx, "in", n+1, n+2))
		b.Check(e.RunJobOnce(b.Ctx, first.ID()))
		middle, err := h.Child(b.Ctx, "middle")
		b.Check(err)
		if here, there := b.Waiting(first, "in"), b.Waiting(middle, "in"); here != 1 || there != 1 {
			b.Errorf("after a single run %d messages wait, and %d at the next job; want 1 and 1", here, there)
		}
		if err := e.RunJob(b.Ctx, h.ID()); !errors.Is(err, job.ErrStatus) {
			b.Errorf("a job that is not ready: %v", err)
		}
	})
}
