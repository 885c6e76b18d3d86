package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
	if most == 0 || k.here.Load() < int64(most) {
		return false
	}
	k.missed.Store(true)
	return true
}

// enter counts a run of a type with MaxRunningHere. It returns false if as many go on as may.
func (k *kind) enter() bool {
	most := k.options.MaxRunningHere
	if most > 0 && k.here.Add(1) > int64(most) {
		k.here.Add(-1)
		return false
	}
	return true
}

// leave counts a run that has ended. Jobs of its type may have become ready meanwhile whose notifications were passed on.
func (e *Engine) leave(k *kind) {
	if k.options.MaxRunningHere == 0 {
		return
	}
	k.here.Add(-1)
	if !k.missed.Load() || !e.serving.Load() || e.stopping() || !e.catching.CompareAndSwap(false, true) {
		return
	}
	k.missed.Store(false)
	e.active.Go(func() {
		defer e.catching.Store(false)
		e.cfg.Store.Broker().CatchUp(e.runs)
	})
}

// roomy leaves out the types of which no more runs may begin here now.
func (r *registry) roomy(types []string) []string {
	if !r.crowds {
		return types
	}
	return slices.DeleteFunc(slices.Clone(types), func(name string) bool {
		k := r.kinds[name]
		return k != nil && k.crowded()
	})
}
