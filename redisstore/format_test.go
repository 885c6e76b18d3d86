package redisstore_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// In a namespace that an older version has made no tree is a record, until it is migrated, which is refused while engines live.
func TestMigrate(t *testing.T) {
	each(t, func(e *env) {
		meta := "weir:{" + e.Namespace + "}:meta"
		e.Check(e.Redis.HSet(e.Context(), meta, "format", "2").Err())
		s := enginetest.Open(e, redisstore.Config{URL: e.URL, Namespace: e.Namespace})
		create := func() {
			e.Helper()
			for range 2 {
				_, err := s.Create(e.Context(), newID(e), record(2), "test")
				e.Check(err)
			}
		}
		create()
		e.equal("records", e.records(), 0)
		engine := store.EngineInfo{ID: "one"}
		e.Check(s.Heartbeat(e.Context(), engine))
		changed, err := s.Migrate(e.Context(), false)
		e.fails(err, job.ErrServed)
		e.equal("changed", changed, false)
		changed, err = s.Migrate(e.Context(), true)
		e.Check(err)
		e.equal("changed", changed, true)
		changed, err = s.Migrate(e.Context(), false)
		e.Check(err)
		e.equal("changed again", changed, false)
		create()
		e.equal("records", e.records(), 1)
	})
}

// A namespace that is migrated stays so, whoever has been opening it meanwhile, when it had the first format.
func TestMigrateMeanwhile(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	meta := "weir:{" + e.Namespace + "}:meta"
	e.Check(e.Redis.HSet(e.Context(), meta, "format", "1").Err())
	slow := openBy(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: e.Namespace})
	e.equal("format", e.Redis.HGet(e.Context(), meta, "format").Val(), "2")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 20 {
				_, errs := slow.Store.CreateMany(e.Context(), []store.Creation{{ID: newID(e), Plan: record(1)}})
				e.Check(errors.Join(errs...))
			}
		})
	}
	changed, err := slow.Store.Migrate(e.Context(), true)
	e.Check(err)
	all.Wait()
	e.equal("changed", changed, true)
	e.Check(redisstore.Upgrade(e.Context(), slow.Store)) // of one that had read the first format
	e.equal("format", e.Redis.HGet(e.Context(), meta, "format").Val(), "3")
}
