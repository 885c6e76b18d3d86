package redistest

import (
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

const miniTick = 10 * time.Millisecond

// Mini is a miniredis in this process whose keys expire in real time.
type Mini struct {
	Redis *miniredis.Miniredis

	close   sync.Once
	stop    chan struct{}
	stopped chan struct{}
}

// StartMini runs a miniredis on a free port, closed when the test ends.
func StartMini(t testing.TB) *Mini {
	t.Helper()
	r := miniredis.NewMiniRedis()
	if err := r.Start(); err != nil {
		t.Fatalf("starting miniredis: %v", err)
	}
	m := &Mini{Redis: r, stop: make(chan struct{}), stopped: make(chan struct{})}
	go m.runTTLs()
	t.Cleanup(m.Close)
	return m
}

// runTTLs moves miniredis's clock, which stands still on its own.
func (m *Mini) runTTLs() {
	defer close(m.stopped)
	timer := time.NewTimer(miniTick)
	defer timer.Stop()
	last := time.Now()
	for {
		select {
		case <-m.stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		m.Redis.FastForward(now.Sub(last)) // looks at every key, and nothing else can happen meanwhile
		last = now
		timer.Reset(max(miniTick, 20*time.Since(now)))
	}
}

// Addr returns the host:port miniredis listens on.
func (m *Mini) Addr() string { return m.Redis.Addr() }

// URL returns the address as a redis:// URL of database 0.
func (m *Mini) URL() string { return "redis://" + m.Addr() + "/0" }

// Close stops miniredis and its clock. Further calls do nothing.
func (m *Mini) Close() {
	m.close.Do(func() {
		close(m.stop)
		<-m.stopped
		m.Redis.Close()
	})
}
