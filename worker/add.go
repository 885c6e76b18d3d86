package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
)

// Add has the engine run more types of workers, also while it serves jobs: of types that become known later than it starts, such as those of
// handlers. Types are never taken away. One that the engine has already gives an error that wraps job.ErrExists, and then none is added.
func (e *Engine) Add(ctx context.Context, workers ...Worker) error {
	added, err := newRegistry(workers, e.cfg.Defaults)
	if err != nil {
		return err
	}
	if err := e.cfg.Store.Register(ctx, added.catalogue(e.cfg.Queues)); err != nil {
		return fmt.Errorf("registering workers: %w", err)
	}
	e.adding.Lock()
	defer e.adding.Unlock()
	next, err := e.registry().with(added)
	if err != nil {
		return err
	}
	e.types.Store(next)
	e.lookAtLimits(ctx)
	if e.serving.Load() {
		e.heartbeatNow()
		e.cfg.Store.Broker().CatchUp(ctx) // what was ready before is not sent again
	}
	return nil
}

// registry is what the engine runs at this moment. What is in it stays in each later one.
func (e *Engine) registry() *registry { return e.types.Load() }

// with returns a registry that has the types of another one, too.
func (r *registry) with(more *registry) (*registry, error) {
	next := &registry{kinds: maps.Clone(r.kinds), limits: maps.Clone(r.limits), names: slices.Concat(r.names, more.names)}
	for name, k := range more.kinds {
		if next.kinds[name] != nil {
			return nil, fmt.Errorf("adding type %q: %w: the engine has it", name, job.ErrExists)
		}
		next.kinds[name] = k
	}
	maps.Copy(next.limits, more.limits)
	next.running = slices.Concat(r.running, more.running)
	slices.Sort(next.names)
	next.batches.Store(r.batches.Load())
	next.sealAsks()
	return next, nil
}

// crowded tells whether as many runs of the type go on here as may. Then the engine asks for no more of its jobs until one has ended.
func (k *kind) crowded() bool {
	most := k.options.MaxRunningHere
	if most == 0 || k.here.Load() <= int64(most-max(k.together()/2, 1)) {
		return false
	}
	k.missed.Store(true)
	return true
}

// enterSome counts n runs, or as many as there is room for, and returns how many.
func (k *kind) enterSome(n int) int {
	for {
		here, some := k.here.Load(), n
		if most := k.options.MaxRunningHere; most > 0 {
			some = min(n, most-int(here))
		}
		if some <= 0 {
			return 0
		}
		if k.here.CompareAndSwap(here, here+int64(some)) {
			return some
		}
	}
}

// leave counts n runs that have ended.
func (e *Engine) leave(k *kind, n int) {
	k.here.Add(int64(-n))
	e.catchUp(k, 0)
}

// missedEvery is how long it takes until an engine looks again for what it has missed, if nothing else has it look.
const missedEvery = 100 * time.Millisecond

// catchUp looks for jobs of a type that have become ready while there was no room for them, so that their notifications were
// passed on: after a time, in as few shards as there is room for.
func (e *Engine) catchUp(k *kind, after time.Duration) {
	if !k.missed.Load() || k.crowded() || !e.serving.Load() || e.stopping() {
		return
	}
	if !e.catching.CompareAndSwap(false, true) {
		if after == 0 {
			select {
			case e.catchNow <- struct{}{}:
			default:
			}
		}
		return
	}
	e.active.Go(func() {
		defer e.catchUpAll() // for other types, or where there was more
		defer e.catching.Store(false)
		select {
		case <-time.After(after):
		case <-e.catchNow:
		case <-e.quiet:
			return
		}
		k.missed.Store(false)
		room := k.options.MaxRunningHere - int(k.here.Load())
		if e.cfg.Store.Broker().CatchUpHere(e.runs, max(room/k.together(), 1)) {
			k.missed.Store(true)
		}
	})
}

// catchUpAll does so before long for all types of which something was missed, and there is room.
func (e *Engine) catchUpAll() {
	if r := e.registry(); r.crowds {
		for _, k := range r.kinds {
			e.catchUp(k, missedEvery)
		}
	}
}

// roomy leaves out the types of which no more runs may begin here now. There are places kept of one, or none.
func (r *registry) roomy(types []string, kept *kind) []string {
	if !r.crowds {
		return types
	}
	return slices.DeleteFunc(slices.Clone(types), func(name string) bool {
		k := r.kinds[name]
		return k != nil && k != kept && k.crowded()
	})
}
