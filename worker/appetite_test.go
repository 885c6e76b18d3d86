package worker_test

import (
	"context"
	"sync"
	"testing"

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

// portions notes how many messages came with each run's snapshot.
type portions struct {
	*redisstore.Store

	mu   sync.Mutex
	sent []int
}

func (p *portions) note(s *job.Snapshot) {
	if s == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, len(s.In["in"].Items))
}

func (p *portions) Begin(ctx context.Context, id job.ID, b job.Begin) (*job.Snapshot, error) {
	s, err := p.Store.Begin(ctx, id, b)
	p.note(s)
	return s, err
}

func (p *portions) Step(ctx context.Context, tx job.Tx, b job.Begin, types []string) (job.Result, *job.Snapshot, error) {
	res, s, err := p.Store.Step(ctx, tx, b, types)
	p.note(s)
	return res, s, err
}

// A run that reads little of what waits gets little the next time; one that reads all of it
// gets all there is.
func TestSnapshotsFollowTheAppetite(t *testing.T) {
	each(t, func(b *bench) {
		for _, hungry := range []int{1, 5000} {
			b.eats(hungry)
		}
	})
}

func (b *bench) eats(most int) {
	b.Helper()
	const n = 500
	store := &portions{Store: b.open(b.url)}
	h := b.start(job.Single(&Eats{Each: most}, ""))
	items := make([]any, n)
	for i := range items {
		items[i] = i
	}
	b.check(h.Write(b.ctx, "in", items...))
	served := b.serve(func(c *worker.Config) { c.Store, c.Workers = store, []worker.Worker{&Eats{}} })
	b.until("all is read", func() bool {
		info, err := h.Info(b.ctx)
		b.check(err)
		p, _ := info.Port(port.Input, "in")
		return p.Waiting == 0
	})
	served.stop()
	store.mu.Lock()
	defer store.mu.Unlock()
	if most == 1 && (len(store.sent) < n || store.sent[0] != n || store.sent[1] != 3 || store.sent[n/2] != 3) {
		b.Errorf("%d runs got %v messages", len(store.sent), store.sent[:min(5, len(store.sent))])
	}
	if most > 1 && (len(store.sent) == 0 || store.sent[0] != n) {
		b.Errorf("hungry runs got %v messages", store.sent)
	}
}
