package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// handle returns what a program has of a job that came to it by its ID alone.
func (e *env) handle(id job.ID) *client.Handle {
	e.Helper()
	h, err := client.New(e.store).Find(e.Context(), string(id))
	e.Check(err)
	return h
}

func TestUnlockByToken(t *testing.T) {
	each(t, func(e *env) {
		ctx := job.WithContext(e.Context(), port.Context{port.ContextBy: "ann"})
		id := e.single()
		h := e.handle(id)
		_, locked, err := h.Locked(ctx)
		e.Check(err)
		e.equal("locked", locked, false)
		e.fails(h.Unlock(ctx, "x"), job.ErrStatus)
		e.fails(h.BreakLock(ctx), job.ErrStatus)

		before := time.Now().Add(-time.Second)
		lock, err := h.Lock(ctx, time.Hour, 0)
		e.Check(err)
		info, locked, err := h.Locked(ctx)
		e.Check(err)
		if !locked || info.By != "ann" || info.Since.Before(before) || info.Until.Sub(info.Since) < 59*time.Minute {
			e.Errorf("locked %t: %+v", locked, info)
		}
		_, err = e.store.Begin(ctx, id, beginning())
		e.fails(err, job.ErrLocked)
		for _, wrong := range []string{"", "x", lock.Token() + "x", lock.Token()[1:], lock.Token()[:5]} {
			e.fails(h.Unlock(ctx, wrong), job.ErrLocked)
		}
		e.Check(lock.Refresh(ctx, 2*time.Hour))
		e.Check(e.handle(id).Unlock(ctx, lock.Token()))
		e.fails(lock.Refresh(ctx, time.Hour), job.ErrLocked)
		e.fails(lock.Release(ctx), job.ErrLocked)
		e.begin(id)
	})
}

func TestBreakLock(t *testing.T) {
	each(t, func(e *env) {
		id, other := e.single(), e.single()
		lock, err := e.handle(id).Lock(e.Context(), time.Hour, 0)
		e.Check(err)
		all, err := e.store.Locked(e.Context(), id, other, newID(e))
		e.Check(err)
		if _, ok := all[id]; len(all) != 1 || !ok {
			e.Errorf("locked: %v", all)
		}
		e.Check(e.handle(id).BreakLock(e.Context()))
		e.fails(lock.Release(e.Context()), job.ErrLocked)
		e.begin(id)
	})
}

// A job that is not there is not found, and no lock lasts no time.
func TestLockOfNoJob(t *testing.T) {
	each(t, func(e *env) {
		id, gone := e.single(), client.New(e.store).At(newID(e))
		e.fails(gone.BreakLock(e.Context()), job.ErrNotFound)
		_, _, err := gone.Locked(e.Context())
		e.fails(err, job.ErrNotFound)
		_, err = e.handle(id).Lock(e.Context(), 0, 0)
		e.fails(err, job.ErrValue)
		lock, err := e.handle(id).Lock(e.Context(), time.Hour, 0)
		e.Check(err)
		e.fails(lock.Refresh(e.Context(), -time.Second), job.ErrValue)
		e.Check(lock.Release(e.Context()))
		e.fails(e.handle(id).BreakLock(e.Context()), job.ErrStatus)
	})
}

// A lock that some other program set has no note, but is a lock. One without
// an end keeps nobody from running, and is none.
func TestForeignLock(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.Check(e.Redis.Set(e.Context(), e.key(id)+":lock", "mine {]", time.Hour).Err())
		info, locked, err := e.handle(id).Locked(e.Context())
		e.Check(err)
		if !locked || info.By != "" || !info.Since.IsZero() || info.Until.Before(time.Now()) {
			e.Errorf("locked %t: %+v", locked, info)
		}
		e.Check(e.handle(id).Unlock(e.Context(), "mine"))
		e.Check(e.Redis.Set(e.Context(), e.key(id)+":lock", "x", 0).Err())
		_, locked, err = e.handle(id).Locked(e.Context())
		e.Check(err)
		e.equal("locked", locked, false)
		e.begin(id)
	})
}
