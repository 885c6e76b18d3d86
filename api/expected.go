package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// expected are the types of which payloads came, by namespace: those that nobody has registered are made known as types of handlers, once, so
// that engines with handlers try their payloads, and end them when their time is up.
type expected struct {
	mu    sync.Mutex
	types map[string]bool // a namespace, a byte 0, and a type
}

// maxExpected is how many types are remembered; then they are looked up anew.
const maxExpected = 20_000

// add makes sure that jobs of a type can be tried by an engine.
func (e *expected) add(ctx context.Context, store *redisstore.Store, typ string) error {
	key := store.Namespace() + "\x00" + typ
	e.mu.Lock()
	known := e.types[key]
	e.mu.Unlock()
	if known {
		return nil
	}
	all, err := store.Types(ctx)
	if err == nil && !slices.ContainsFunc(all, func(t job.TypeInfo) bool { return t.Type == typ }) {
		err = handler.Expect(ctx, store, typ)
	}
	// A program has registered the type just now, or there are too many types of handlers: the payloads wait for an engine with the type.
	if err != nil && !errors.Is(err, job.ErrExists) && !errors.Is(err, job.ErrLimit) {
		return fmt.Errorf("making type %.80q known to engines with handlers: %w", typ, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.types == nil || len(e.types) >= maxExpected {
		e.types = map[string]bool{}
	}
	e.types[key] = true
	return nil
}

// addAll is add for the types of payloads.
func (e *expected) addAll(ctx context.Context, store *redisstore.Store, payloads []store.Arrival) error {
	last := ""
	for i := range payloads {
		typ := payloads[i].Plan.Nodes[0].Type
		if typ == last {
			continue
		}
		if err := e.add(ctx, store, typ); err != nil {
			return err
		}
		last = typ
	}
	return nil
}
