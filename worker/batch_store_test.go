package worker_test

import (
	"context"
	"sync"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// commits is a store that counts calls that commit runs, those that were refused, and the runs in one
// call.
type commits struct {
	worker.Store

	mu    sync.Mutex
	calls int
	wrong int
	held  int                                   // speculative runs of a job in one call that was not refused
	most  map[job.ID]int                        // runs of a job in one call
	first func(context.Context, store.Tx) error // called before the next call that has several runs of a job
	moved bool                                  // refuse the call behind the first one with a checkpoint
	next  bool                                  // the next call is that one
}

// countCommits returns the bench's store, counting.
func (b *bench) countCommits() *commits {
	return &commits{Store: b.Store, most: map[job.ID]int{}}
}

func (s *commits) note(ctx context.Context, txs ...store.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.moved && s.next {
		s.moved = false
		return job.ErrMoved
	}
	s.next = txs[0].Deltas[0].Outcome == store.Checkpoint
	several := false
	for _, tx := range txs {
		for i := range tx.Deltas {
			n := len(tx.Deltas[i].Before) + 1
			if id := tx.Deltas[i].Job; n > s.most[id] {
				s.most[id] = n
			}
			several = several || n > 1
		}
	}
	if first := s.first; several && first != nil {
		s.first = nil
		return first(ctx, txs[0])
	}
	return nil
}

func (s *commits) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	if err := s.note(ctx, txs...); err != nil {
		return nil, nil, err
	}
	res, next, err := s.Store.Step(ctx, txs, b, types)
	for i := range res {
		s.judge(txs[i], res[i])
	}
	return res, next, err
}

func (s *commits) judge(tx store.Tx, res store.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if res.Refused != nil {
		s.wrong++
	}
	for i := range tx.Deltas[:res.Applied] {
		if d := &tx.Deltas[i]; d.Speculation != nil {
			s.held = max(s.held, len(d.Parts()))
		}
	}
}

func (s *commits) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	if err := s.note(ctx, txs...); err != nil {
		return nil, err
	}
	res, err := s.Store.Commit(ctx, txs)
	for i := range res {
		s.judge(txs[i], res[i])
	}
	return res, err
}
