package api

import (
	"context"
	"sync"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// writerKept is how long what a handle has learned of the ports of its job is used for other requests, and maxWriters of how many
// jobs that is remembered at a time.
const (
	writerKept = 5 * time.Second
	maxWriters = 10_000
)

// writers are handles of the jobs that were written to lately: with them a write asks for nothing before it is sent.
type writers struct {
	mu   sync.Mutex
	kept map[writerOf]writer
}

type writerOf struct {
	store *redisstore.Store
	job   job.ID
}

type writer struct {
	*client.Handle
	until time.Time
}

// writer returns the handle of a job for messages that go to its ports. A job that is named by its ID is not looked up: a
// write to one that is not there is refused.
func (s *session) writer(ctx context.Context, name string) (*client.Handle, error) {
	id, err := job.ParseID(name)
	var h *client.Handle
	if err == nil {
		h = s.client.At(id)
	} else if h, err = s.find(ctx, name); err != nil {
		return nil, err
	}
	all, of, now := &s.writers, writerOf{s.store, h.ID()}, time.Now()
	all.mu.Lock()
	defer all.mu.Unlock()
	if known, ok := all.kept[of]; ok && now.Before(known.until) {
		return known.Handle, nil
	}
	if all.kept == nil || len(all.kept) >= maxWriters {
		all.kept = make(map[writerOf]writer)
	}
	all.kept[of] = writer{h, now.Add(writerKept)}
	return h, nil
}
