package redisstore_test

import (
	"testing"

	"github.com/weirworks/weir/redisstore"
)

// TestTraffic: each question to Redis counts as one round trip, a pipeline too, and errors are counted apart.
func TestTraffic(t *testing.T) {
	each(t, func(e *env) {
		store := e.store.(*redisstore.Store)
		before := store.Traffic()
		for range 3 {
			_, err := store.Now(e.Context())
			e.Check(err)
		}
		after := store.Traffic()
		if n := after.RoundTrips - before.RoundTrips; n != 3 || after.Time <= before.Time || after.Errors != before.Errors {
			e.Errorf("three questions: %+v, then %+v", before, after)
		}
		e.Check(store.Close())
		if _, err := store.Now(e.Context()); err == nil || store.Traffic().Errors != after.Errors+1 {
			e.Errorf("after the end: error %v, %+v", err, store.Traffic())
		}
	})
}
