package enginetest

import (
	"context"
	"sync"
)

// Gate lets goroutines wait for each other. Its zero value is shut.
type Gate struct {
	mu sync.Mutex
	ch chan struct{}
}

// Opened returns a channel that is closed when the gate is open.
func (g *Gate) Opened() <-chan struct{} { return g.channel() }

func (g *Gate) channel() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

// Open lets everybody pass, now and later.
func (g *Gate) Open() {
	ch := g.channel()
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// Pass waits until the gate is open.
func (g *Gate) Pass(ctx context.Context) error {
	select {
	case <-g.Opened():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
