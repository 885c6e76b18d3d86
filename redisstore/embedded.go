package redisstore

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embeddedTick is how often the clock of the embedded Redis moves: by so much a key may
// expire early or late.
const embeddedTick = 10 * time.Millisecond

// embedded is a Redis inside this process, for trying things out: it lives in memory
// only. It listens on a loopback port and asks for a password that nobody else knows, so
// that other users of the machine cannot read it.
type embedded struct {
	server   *miniredis.Miniredis
	password string
	stop     chan struct{}
	stopped  chan struct{}
}

// startEmbedded starts an empty Redis. The caller must close it.
func startEmbedded() (*embedded, error) {
	e := &embedded{
		server:   miniredis.NewMiniRedis(),
		password: rand.Text(),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	e.server.RequireAuth(e.password) // before it listens
	if err := e.server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("starting the embedded Redis: %w", err)
	}
	go e.tick()
	return e, nil
}

// url returns the URL of the Redis, with its password.
func (e *embedded) url() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", e.password), Host: e.server.Addr()}
	return u.String()
}

// close ends the Redis and its connections and waits for them. To be called once.
func (e *embedded) close() {
	close(e.stop)
	<-e.stopped
	e.server.Close()
}

// tick lets keys expire, which miniredis does only when it is told how time passes. Its
// own clock (ClockTTL) would do it at every command, and so in the middle of a script,
// which a Redis never does.
func (e *embedded) tick() {
	defer close(e.stopped)
	timer := time.NewTimer(embeddedTick)
	defer timer.Stop()
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		e.server.FastForward(now.Sub(last))
		last = now
		// A tick looks at every key and nothing else can happen meanwhile: with very
		// many keys tick less often, so that it takes at most a twentieth of the time.
		timer.Reset(max(embeddedTick, 20*time.Since(now)))
	}
}
