package rig

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirworks/weir/job"

	"github.com/weirworks/weir/chaos/internal/crew"
)

// How often trees with one unique key are asked for, and by how many at a time.
const (
	uniqueAsks   = 30
	uniqueAskers = 3
)

// uniques are the trees that were made, or found, for one unique key.
type uniques struct {
	sequence
	mu    sync.Mutex
	asked map[int]bool        // the numbers that were asked for
	found map[job.ID][]string // trees that were answered, and to whom
}

// unique has actors ask for trees with one unique key, several at a time, and waits until the last is over.
func (r *rig) unique(ctx context.Context) {
	if !r.told.listens(ctx, r) {
		pause(ctx, time.Second)
		return
	}
	u := &uniques{sequence: sequence{key: r.name("unique"), anyOrder: true}, asked: map[int]bool{}, found: map[job.ID][]string{}}
	r.add(u)
	end, cancel := r.toEnd(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for k := range uniqueAskers {
		wg.Go(func() {
			for n := k; n < uniqueAsks && end.Err() == nil; n += uniqueAskers {
				u.ask(end, r, n)
			}
		})
	}
	wg.Wait()
	u.await(end, r)
}

// ask has an actor ask for a tree. One whose answer is lost may have made it.
func (u *uniques) ask(ctx context.Context, r *rig, n int) {
	u.mu.Lock()
	u.asked[n] = true
	u.mu.Unlock()
	r.act(ctx, crew.Order{What: crew.StartUnique, Key: u.key, N: n}, func(a crew.Answer) bool {
		if a.Error == "" && a.Job != "" {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.found[a.Job] = append(u.found[a.Job], fmt.Sprint(n))
		}
		return true
	})
}

// await waits until each tree that was answered is over.
func (u *uniques) await(ctx context.Context, r *rig) {
	for id := range u.found {
		r.insist(ctx, "waiting for "+string(id), func(ctx context.Context) error {
			h, err := r.client.Find(ctx, string(id))
			if err != nil {
				return err
			}
			i, err := h.Info(ctx)
			if err == nil && !i.Status.Settled() && i.Status != job.Failed {
				err = fmt.Errorf("tree %s is %s", id, i.Status)
			}
			return err
		})
	}
}

// check implements round.
func (u *uniques) check(ctx context.Context, r *rig) error {
	steps, err := r.told.of(ctx, u.key)
	if err != nil {
		return err
	}
	u.inOrder(r, steps)
	began, ended := map[int]bool{}, map[int]bool{}
	for _, s := range steps {
		if !u.asked[s.N] {
			r.bad(duplicated, "tree %d of key %s was not asked for", s.N, u.key)
		}
		if began[s.N] = true; s.End {
			ended[s.N] = true
		}
	}
	r.count(jobsSeen, len(began))
	r.count(uniqueTreesSeen, len(began))
	for n := range began {
		if !ended[n] {
			r.bad(lost, "tree %d of key %s did not tell its end", n, u.key)
		}
	}
	if len(u.found) > len(began) {
		r.bad(lost, "key %s: %d trees were answered, and %d have run: %v", u.key, len(u.found), len(began), u.found)
	}
	for id, who := range u.found {
		h, err := r.client.Find(ctx, string(id))
		if err != nil {
			return fmt.Errorf("tree %s of key %s, answered to %v: %w", id, u.key, who, err)
		}
		i, err := h.Info(ctx)
		if err != nil {
			return err
		}
		if i.Status != job.Completed && i.Status != job.Failed {
			r.bad(stuck, "tree %s of key %s is %s", id, u.key, i.Status)
		}
	}
	return nil
}
