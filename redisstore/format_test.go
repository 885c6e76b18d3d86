package redisstore_test

import (
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
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
		engine := job.EngineInfo{ID: "one"}
		e.Check(s.Heartbeat(e.Context(), engine))
		changed, err := s.Migrate(e.Context(), false)
		e.fails(err, job.ErrStatus)
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
