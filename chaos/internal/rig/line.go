package rig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
)

// line is the troublesome network of a slot.
type line struct {
	name     string
	site     *site
	replaced func() // is called when those who use the line have to go to another address

	changing sync.Mutex // held while its troubles change

	mu    sync.Mutex
	proxy *toxiproxy.Proxy
}

// hangs is how long a change of troubles may take. When one of the two ends of a connection dies in the wrong
// moment toxiproxy waits for it indefinitely, and nobody gets through any more (its issue 558): then there is a new
// proxy instead.
const hangs = 3 * time.Second

var errHangs = errors.New("the proxy hangs")

// open starts the line's proxy, or another one instead of it.
func (l *line) open() error {
	p := toxiproxy.NewProxy(l.site.toxics, l.name, "127.0.0.1:0", l.site.drop.Addr())
	if err := p.Start(); err != nil {
		return fmt.Errorf("starting a proxy: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proxy = p
	return nil
}

func (l *line) now() *toxiproxy.Proxy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.proxy
}

// url is that of the Redis as the slot sees it.
func (l *line) url() string { return "redis://" + l.now().Listen + "/0" + timeouts }

// change changes troubles of the line.
func (l *line) change(fn func(*toxiproxy.ToxicCollection) error) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	p, done := l.now(), make(chan error, 1)
	go func() { done <- fn(p.Toxics) }()
	select {
	case err := <-done:
		return err
	case <-time.After(hangs):
	}
	if err := l.open(); err != nil {
		return errors.Join(errHangs, err)
	}
	l.replaced()
	return errHangs
}

// trouble makes the line troublesome for a while. It returns false if it is already.
func (l *line) trouble(ctx context.Context, t toxic, d time.Duration) bool {
	add := func(c *toxiproxy.ToxicCollection) error {
		_, err := c.AddToxicJson(strings.NewReader(t.json))
		return err
	}
	if l.change(add) != nil {
		return false
	}
	remove := func(c *toxiproxy.ToxicCollection) error { return c.RemoveToxic(context.WithoutCancel(ctx), "x") }
	time.AfterFunc(d, func() { _ = l.change(remove) }) // it may be gone already
	return true
}

// calm ends the line's troubles.
func (l *line) calm(ctx context.Context) {
	_ = l.change(func(c *toxiproxy.ToxicCollection) error { // else it has a new proxy, without troubles
		c.ResetToxics(ctx)
		return nil
	})
}

// close ends the line, unless it hangs: then it ends with the harness's process.
func (l *line) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.now().Stop()
	}()
	select {
	case <-done:
	case <-time.After(hangs):
	}
}
