package worker_test

import (
	"context"
	"sync"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// Eats reads as many messages a run as Each says.
type Eats struct {
	Each int
	In   port.In[int]
}

func (w *Eats) Run(context.Context, *worker.Run) error {
	for range w.Each {
		if _, ok, err := w.In.Read(); err != nil || !ok {
			return err
		}
	}
	return nil
}

// EatsAlone is Eats whose runs are committed one by one.
type EatsAlone struct{ Eats }

// WorkerOptions implements worker.Configured.
func (*EatsAlone) WorkerOptions() worker.Options {
	return worker.Options{CommitEachRun: true}
}

// portions notes how many messages came with each run's snapshot.
type portions struct {
	*redisstore.Store

	mu   sync.Mutex
	sent []int
}

func (p *portions) note(s *store.Snapshot) {
	if s == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, len(s.In.Of("in").Items))
}

func (p *portions) Pop(ctx context.Context, queue string, shard int, gen int64, b store.Begin, types []string) ([]*store.Snapshot, error) {
	begun, err := p.Store.Pop(ctx, queue, shard, gen, b, types)
	for _, s := range begun {
		p.note(s)
	}
	return begun, err
}

func (p *portions) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	res, begun, err := p.Store.Step(ctx, txs, b, types)
	for _, s := range begun {
		p.note(s)
	}
	return res, begun, err
}

// A run that reads little of what waits gets little the next time; one that reads all of it
// gets all there is.
func TestSnapshotsFollowThePrefetchSize(t *testing.T) {
	each(t, func(b *bench) {
		const n = 500
		sent := b.eats(n, &EatsAlone{Eats{Each: 1}})
		if len(sent) < n || sent[0] != n || sent[1] != 3 || sent[n/2] != 3 {
			b.Errorf("%d runs got %v messages", len(sent), sent[:min(5, len(sent))])
		}
		if sent = b.eats(n, &Eats{Each: 5000}); len(sent) == 0 || sent[0] != n {
			b.Errorf("hungry runs got %v messages", sent)
		}
		// Runs that follow each other in one commit get about as much as they read together.
		sent = b.eats(n, &Eats{Each: 1})
		all := 0
		for _, k := range sent[1:] {
			all += k
		}
		if sent[0] != n || len(sent) > n/2 || all > 2*n {
			b.Errorf("runs of which several are committed at once got %v messages", sent)
		}
	})
}

// eats returns how many of n messages came with each of the snapshots that a worker got.
func (b *bench) eats(n int, w worker.Worker) []int {
	b.Helper()
	store := &portions{Store: b.Open(b.URL)}
	h := b.Start(job.Single(w, ""))
	items := make([]any, n)
	for i := range items {
		items[i] = i
	}
	b.Check(h.Write(b.Ctx, "in", items...))
	served := b.serve(func(c *worker.Config) { c.Store, c.Workers = store, []worker.Worker{&Eats{}, &EatsAlone{}} })
	b.Until("all is read", func() bool {
		info := b.Info(h)
		p, _ := info.Port(port.Input, "in")
		return p.Waiting == 0
	})
	served.Stop()
	store.mu.Lock()
	defer store.mu.Unlock()
	return store.sent
}
