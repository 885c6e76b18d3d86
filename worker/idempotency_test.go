package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// forgetful is a store whose caller dies at the first commits of each job, from the engine's
// point of view: before, after, and again before the commit is carried out.
type forgetful struct {
	worker.Store
	mu      sync.Mutex
	commits map[job.ID]int
}

func (s *forgetful) dies(tx store.Tx) (before, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := tx.Deltas[0].Job
	s.commits[id]++
	n := s.commits[id]
	return n == 1 || n == 5, n == 3
}

// Step implements store.Runs.
func (s *forgetful) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	before, after := s.dies(txs[0])
	if before {
		return nil, nil, job.ErrFenced
	}
	res, next, err := s.Store.Step(ctx, txs, b, types)
	if after {
		return nil, nil, job.ErrFenced
	}
	return res, next, err
}

// Commit implements store.Runs.
func (s *forgetful) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	before, after := s.dies(txs[0])
	if before {
		return nil, job.ErrFenced
	}
	res, err := s.Store.Commit(ctx, txs)
	if after {
		return nil, job.ErrFenced
	}
	return res, err
}

// ledger is a payment service: it notes under which keys each order came.
type ledger struct {
	mu     sync.Mutex
	orders map[int][]string
}

func (l *ledger) charge(run *worker.Run, order int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders[order] = append(l.orders[order], run.IdempotencyKey("charge"))
}

// covers fails the test unless each of n orders always came under one key of its own, and some
// came more than once.
func (l *ledger) covers(t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	of, repeats := map[string]int{}, 0
	for order := 1; order <= n; order++ {
		keys := l.orders[order]
		repeats += len(keys) - 1
		if len(keys) == 0 {
			t.Errorf("order %d never came", order)
			continue
		}
		if different := slices.Compact(slices.Sorted(slices.Values(keys))); len(different) > 1 {
			t.Errorf("order %d came under %d keys: %v", order, len(different), keys)
		}
		if other := of[keys[0]]; other != 0 {
			t.Errorf("orders %d and %d came under one key", other, order)
		}
		of[keys[0]] = order
	}
	if repeats < 1 {
		t.Error("no order came twice: this shows nothing")
	}
}

// TestIdempotencyKeyCoversTheMessage: a payment is asked for under one key however often its
// message is worked on, in whatever company, and the next one under another key.
func TestIdempotencyKeyCoversTheMessage(t *testing.T) {
	const orders = 20
	all := func(each func(run *worker.Run, n int) error) func(l *ledger) code {
		return func(l *ledger) code {
			return func(_ context.Context, run *worker.Run, w *Call) error {
				for n, err := range w.In.All() {
					if err != nil {
						return err
					}
					l.charge(run, n)
					if err := each(run, n); err != nil {
						return err
					}
				}
				return nil
			}
		}
	}
	plain := func(c Call) any { return &c }
	tried := func(c Call) any { return &Tried{c} }
	for name, c := range map[string]struct {
		as   func(c Call) any
		code func(l *ledger) code
	}{
		"batch": {plain, all(func(*worker.Run, int) error { return nil })},
		"one a run": {plain, func(l *ledger) code {
			return func(_ context.Context, run *worker.Run, w *Call) error {
				n, ok, err := w.In.Read()
				if ok {
					l.charge(run, n)
				}
				return err
			}
		}},
		"checkpoints": {plain, all(func(run *worker.Run, n int) error {
			if n%3 == 0 {
				return run.Checkpoint()
			}
			return nil
		})},
		"groups": {plain, func(l *ledger) code {
			return func(_ context.Context, run *worker.Run, w *Call) error {
				for w.In.Len() > 0 {
					before := run.IdempotencyKey("charge")
					err := run.Group(func() error {
						n, _, err := w.In.Read()
						l.charge(run, n)
						return errors.Join(err, errors.New("undo it"))
					})
					if after := run.IdempotencyKey("charge"); after != before {
						return errors.New("what was undone still counts as read")
					}
					n, _, err2 := w.In.Read()
					l.charge(run, n)
					if err == nil || err2 != nil {
						return errors.Join(err, err2)
					}
				}
				return nil
			}
		}},
		"failures": {tried, all(func(run *worker.Run, n int) error {
			if n%7 == 0 && run.Info().Tries == 0 {
				return errors.New("not at first")
			}
			return nil
		})},
		"dead letters": {tried, all(func(_ *worker.Run, n int) error {
			if n == 7 {
				return errors.New("never")
			}
			return nil
		})},
		"rows": {plain, func(l *ledger) code {
			return func(_ context.Context, run *worker.Run, _ *Call) error {
				return run.Zip(func(row worker.Row) error {
					var n int
					err := row.Decode("in", &n)
					l.charge(run, n)
					return err
				}, "in", "size")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := onRedis(t)
			l := &ledger{orders: map[int][]string{}}
			h := b.Start(planned{c.as(*call(b, c.code(l))), func(n *job.Node) {
				if name == "dead letters" {
					n.OnFailure = job.DeadLetter
					n.Ports = append(n.Ports, job.Port{Spec: port.Spec{Name: job.ErrorsPort, Dir: port.Output}})
				}
			}})
			b.feed(h, orders/2)
			if name == "rows" {
				b.Check(h.Write(b.Ctx, "size", 1, 2, 3, 4, 5))
			}
			b.serve(func(cfg *worker.Config) {
				cfg.Store, cfg.Lease = &forgetful{Store: b.Store, commits: map[job.ID]int{}}, 100*time.Millisecond
			})
			b.Until("the first half is done", func() bool { return b.Waiting(h, "in") == 0 })
			more := []any{}
			for n := orders/2 + 1; n <= orders; n++ {
				more = append(more, n)
			}
			b.Check(h.Write(b.Ctx, "in", more...))
			b.Until("the second half is done", func() bool { return b.Waiting(h, "in") == 0 })
			b.Reach(h, 1, statemachine.Completed)
			l.covers(t, orders)
		})
	}
}

// In a row of Zip the message of each port counts.
func TestIdempotencyKeyCoversTheRow(t *testing.T) {
	b := onRedis(t)
	b.serve()
	keys := make(chan string, 10)
	h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
		keys <- run.IdempotencyKey("row") // of the step: nothing was read
		defer func() { keys <- run.IdempotencyKey("row") }()
		return run.Zip(func(worker.Row) error {
			keys <- run.IdempotencyKey("row")
			return nil
		}, "in", "size")
	}))
	next := func(n int) (got []string) {
		b.Helper()
		for range n {
			got = append(got, <-keys)
		}
		return got
	}
	b.Completed(h, 1)
	begun := next(2)
	b.Check(h.Write(b.Ctx, "in", 1, 2))
	b.Completed(h, 2)
	first := next(4)
	b.Check(h.Write(b.Ctx, "size", 1))
	b.Reach(h, 3, statemachine.Suspended) // a row needs something of in
	second := next(2)
	different := map[string]bool{}
	for _, key := range slices.Concat(begun[:1], first[:3], second[:1]) {
		different[key] = true
	}
	if begun[0] != begun[1] || first[2] != first[3] || second[0] != second[1] || len(different) != 5 {
		b.Errorf("keys %v, then %v, then %v", begun, first, second)
	}
}
