package redistest

import (
	"fmt"
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
	m, err := launchMini()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func launchMini() (*Mini, error) {
	r := miniredis.NewMiniRedis()
	if err := r.Start(); err != nil {
		return nil, fmt.Errorf("starting miniredis: %w", err)
	}
	m := &Mini{Redis: r, stop: make(chan struct{}), stopped: make(chan struct{})}
	go m.runTTLs()
	return m, nil
}

// runTTLs moves miniredis's clock, which stands still on its own.
func (m *Mini) runTTLs() {
	defer close(m.stopped)
	tick := time.NewTicker(miniTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
			now := time.Now()
			m.Redis.FastForward(now.Sub(last))
			last = now
		}
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
