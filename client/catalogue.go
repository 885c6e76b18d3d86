package client

import (
	"context"
	"sync"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// catalogue is what a client has read of the store's catalogue of worker types. It is read when
// something is not in it: engines add types, and nobody removes any.
type catalogue struct {
	store store.Types
	mu    sync.Mutex
	known map[registration]*job.TypeInfo
}

// registration is a worker type of a queue.
type registration struct{ queue, typ string }

// find returns a type of a queue as it was registered when that was last read, if it was.
func (c *catalogue) find(r registration) *job.TypeInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[r]
}

// get returns a type of a queue, which is empty if it is not registered.
func (c *catalogue) get(ctx context.Context, r registration) (*job.TypeInfo, error) {
	if t := c.find(r); t != nil {
		return t, nil
	}
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	if t := c.find(r); t != nil {
		return t, nil
	}
	return &job.TypeInfo{}, nil
}

// read reads all of the store's catalogue.
func (c *catalogue) read(ctx context.Context) error {
	all, err := c.store.Types(ctx)
	if err != nil {
		return err
	}
	known := make(map[registration]*job.TypeInfo, len(all))
	for i := range all {
		known[registration{all[i].Queue, all[i].Type}] = &all[i]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = known
	return nil
}

// elsewhere tells whether a type is registered, but for other queues only.
func (c *catalogue) elsewhere(r registration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[r] != nil {
		return false
	}
	for other := range c.known {
		if other.typ == r.typ {
			return true
		}
	}
	return false
}

// checkQueues refuses a plan with a job in a queue that nobody serves for its type, if another
// queue has the type. A type that nobody has registered at all may come later. It asks the store if
// a type of the plan has not been seen yet.
func (c *catalogue) checkQueues(ctx context.Context, p *job.Plan) error {
	var unseen []registration
	for i := range p.Nodes {
		n := &p.Nodes[i]
		r := registration{n.Queue, n.Type}
		if r.queue == "" {
			r.queue = job.DefaultQueue
		}
		if !n.Graph && c.find(r) == nil {
			unseen = append(unseen, r)
		}
	}
	if len(unseen) == 0 {
		return nil
	}
	if err := c.read(ctx); err != nil {
		return err
	}
	for _, r := range unseen {
		if !c.elsewhere(r) {
			continue
		}
		if _, err := c.store.Type(ctx, r.queue, r.typ); err != nil { // it says where there is one
			return err
		}
	}
	return nil
}
