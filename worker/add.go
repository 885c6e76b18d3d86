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

// inMotion is how lately a run of a type must have ended for slots to wait until there is room for a group of its jobs.
const inMotion = 50 * time.Millisecond

// crowded tells whether as many runs of the type go on here as may, or, while its runs end one after the other, nearly as many: few slots
// then go on with whole groups, in place of many with a job each. Then the engine asks for no more of its jobs for now.
func (k *kind) crowded() bool {
	most, here := k.most.Load(), k.here.Load()
	group := int64(k.together() / 2)
	return most > 0 && (here >= most || here > most-group && time.Since(time.Unix(0, k.ended.Load())) < inMotion)
}

// enterSome counts n runs, or as many as there is room for, and returns how many.
func (k *kind) enterSome(n int) int {
	for {
		here, some := k.here.Load(), n
		if most := k.most.Load(); most > 0 {
			some = min(n, int(most-here))
		}
		if some <= 0 {
			return 0
		}
		if k.here.CompareAndSwap(here, here+int64(some)) {
			return some
		}
	}
}

// LimitHere changes how many runs go on at once in the engine at most of a type that has Options.MaxRunningHere: for types of which it
// turns out only later how many are enough. Runs that go on already go on, and slots that go on with the type keep the places that they
// have for a tenth of a second. most is 1 at least.
func (e *Engine) LimitHere(typ string, most int) {
	k := e.registry().kind(typ)
	if k == nil || k.options.MaxRunningHere == 0 {
		return
	}
	if before := k.most.Swap(int64(max(most, 1))); before < int64(most) && !k.crowded() {
		e.catchUp(k, 0)
	}
}

// leave counts n runs that have ended.
func (e *Engine) leave(k *kind, n int) {
	k.here.Add(int64(-n))
	if k.together() > 1 {
		k.ended.Store(time.Now().UnixNano())
	}
	if !k.crowded() {
		e.catchUp(k, 0)
	}
}

// missedEvery is how long it takes until an engine looks again for what it has missed, if nothing else has it look.
const missedEvery = 100 * time.Millisecond

// catchUp looks for jobs of a type that have become ready while there was no room for them, so that their notifications were
// passed on: after a time, in as few shards as there is room for.
func (e *Engine) catchUp(k *kind, after time.Duration) {
	if !k.missed.Load() || !e.serving.Load() || e.stopping() {
		return
	}
	if !k.catching.CompareAndSwap(false, true) {
		if after == 0 {
			select {
			case k.catchNow <- struct{}{}:
			default:
			}
		}
		return
	}
	e.active.Go(func() {
		select {
		case <-time.After(after):
		case <-k.catchNow:
		case <-e.quiet:
			return
		}
		if !k.crowded() {
			k.missed.Store(false)
			room := int(k.most.Load() - k.here.Load())
			if (*e.slots.Load()).CatchUp(e.runs, e.ofKind(k), max(room/k.together(), 1)) {
				k.missed.Store(true)
			}
		}
		k.catching.Store(false)
		e.catchUp(k, missedEvery) // for the rest, once there is room
	})
}

// ofKind tells of which types jobs are of a kind that the engine may run: their names say what else they need.
func (e *Engine) ofKind(k *kind) func(typ string) bool {
	r := e.registry()
	return func(typ string) bool { return r.kind(typ) == k && r.runs(typ) }
}

// miss notes that something of a type may be missed, as it is crowded, and has the engine look for that later.
func (e *Engine) miss(k *kind) {
	k.missed.Store(true)
	e.catchUp(k, missedEvery)
}

// asks returns what the engine asks for when it takes jobs: its types and their versions, and when it was given a job that it could not
// decode, its build, so that it is given none again that its build could not. Types of which no more runs may begin here now it leaves
// out, but one that places are kept of, if any is.
func (e *Engine) asks(kept *kind) []string {
	r := e.registry()
	types := *r.asked.Load()
	if !r.crowds {
		return types
	}
	return slices.DeleteFunc(slices.Clone(types), func(name string) bool {
		k := r.kinds[name]
		if k == nil || k == kept || !k.crowded() {
			return false
		}
		e.miss(k)
		return true
	})
}

// takes tells whether the engine may begin runs of a type now.
func (e *Engine) takes(typ string) bool {
	r := e.registry()
	k := r.kind(typ)
	if k != nil && k.crowded() {
		e.miss(k)
		return false
	}
	return r.runs(typ)
}
