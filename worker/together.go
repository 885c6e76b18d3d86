package worker

import (
	"sync"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
)

// Several runs at the same time: a slot begins up to Options.Together ready jobs of a type in one call of the store, runs them at the
// same time, and commits what is done in one call. Each takes a place of MaxRunningHere and, but for the first, a slot of the engine.
// Both are reserved before that call, and kept by the slot as long as it goes on with the type.

// reserved are places of a type, and slots, for the jobs that the next call of the store begins.
type reserved struct {
	kind          *kind
	places, slots int
}

// together is how many jobs of the type one slot runs at the same time at most.
func (k *kind) together() int {
	n := min(k.options.Together, store.MostSeveral)
	if most := int(k.most.Load()); most > 0 {
		n = min(n, most)
	}
	return max(n, 1)
}

// reserve has the slot keep what it needs to go on with jobs of a type, as far as there is room, if it runs several of it at the
// same time.
func (t *turn) reserve(k *kind) {
	server := t.slots.Load()
	if k == nil || k.together() == 1 || server == nil || t.cfg.Lease < severalLease { // else several() says one
		return
	}
	r := &t.reserved
	if r.kind != k {
		t.release(*r)
		*r = reserved{kind: k}
	}
	r.places += k.enterSome(k.together() - r.places)
	r.slots += (*server).Reserve(max(r.places-1-r.slots, 0))
	t.release(reserved{kind: k, places: max(r.places-1-r.slots, 0)})
	r.places = min(r.places, r.slots+1)
}

// atOnce tells how many jobs of a type may run at the same time in the slot, by what is reserved for them.
func (t *turn) atOnce(typ string) int {
	if t.reserved.kind == nil || t.reserved.kind != t.registry().kind(typ) {
		return 1
	}
	return max(t.reserved.places, 1)
}

// groups returns the type of which a notification may bring several jobs that run at the same time, or nil: one that it tells of or, if
// it does not say, the one of which there was such a group last.
func (e *Engine) groups(n delivery.Notification) *kind {
	k := e.grouped.Load()
	for _, typ := range n.Types {
		if k = e.registry().kind(typ); k != nil && k.together() > 1 {
			break
		}
	}
	if k == nil || k.together() == 1 || k.crowded() {
		return nil
	}
	return k
}

// keeps returns the type that the slot keeps places of, or nil.
func (t *turn) keeps() *kind {
	if t.reserved.places == 0 {
		return nil
	}
	return t.reserved.kind
}

// release gives back what was reserved.
func (t *turn) release(r reserved) {
	if r.slots > 0 {
		(*t.slots.Load()).Release(r.slots)
	}
	if r.places > 0 {
		t.leave(r.kind, r.places)
	}
}

// use has jobs that have begun take what is reserved for them, and gives the rest back.
func (t *turn) use(begun []*store.Snapshot) {
	r := t.reserved
	t.reserved, t.together = reserved{kind: r.kind}, len(begun) > 0 && r.places > 0 && t.registry().kind(begun[0].Info.Type) == r.kind
	if t.together {
		t.grouped.Store(r.kind)
		r.places, r.slots = r.places-len(begun), r.slots-len(begun)+1
	}
	t.release(r)
}

// workTogether is workAll for jobs that run at the same time, each in a turn of its own. None that is done waits long for the others.
func (t *turn) workTogether(begun []*store.Snapshot, granted time.Time) []chained {
	q := &batch{engine: t.Engine, running: len(begun), free: t.reserved}
	var all sync.WaitGroup
	for i, snap := range begun {
		all.Go(func() {
			one := t.newTurn(t.start)
			defer one.end()
			one.held = t.reserved.kind
			q.over(one.work(snap, granted), i > 0)
		})
	}
	all.Wait()
	t.now, t.together, t.reserved = time.Now(), false, q.free
	return q.end()
}

// over notes that one of those is over that run at the same time. Without runs there is nothing to commit.
func (q *batch) over(done chained, hasSlot bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	q.free.places++
	if hasSlot {
		q.free.slots++
	}
	if done.runs != nil {
		q.done = append(q.done, done)
	}
	q.ended = q.running == 0
	if !q.ended && !q.timed {
		q.timed = true
		time.AfterFunc(shortRun, q.late)
	}
}
