package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// Options of a Config are those of types that have none of their own.
func TestDefaultsForAllTypes(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) {
			c.Defaults = worker.Options{Tries: 2, Backoff: worker.ConstantBackoff(time.Millisecond), Timeout: 50 * time.Millisecond}
		})
		var plain, own atomic.Int64
		late := b.single(call(b, func(ctx context.Context, _ *worker.Run, _ *Call) error {
			plain.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}))
		tried := b.single(&Tried{Call: *call(b, func(context.Context, *worker.Run, *Call) error {
			own.Add(1)
			return errors.New("no")
		})})
		b.Failure(late)
		b.Failure(tried)
		if plain.Load() != 2 || own.Load() != 3 {
			b.Errorf("%d and %d tries, want 2 and 3", plain.Load(), own.Load())
		}
	})
}

func TestDefaultsForAllTypesRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]worker.Options{
		"Defaults.Pure":         {Pure: true},
		"the engine's Defaults": {Tries: -1},
	} {
		err := worker.Config{Defaults: o}.Validate()
		if !errors.Is(err, job.ErrConfig) {
			t.Errorf("%+v: %v", o, err)
		}
		err = worker.Config{Store: onlyStore{}, Workers: []worker.Worker{&None{}}, Defaults: o}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// onlyStore is a store that nobody asks anything.
type onlyStore struct{ worker.Store }
