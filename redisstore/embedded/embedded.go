// Package embedded is a Redis inside the process, for trying things out and for tests: a store with this one needs nothing else.
//
//	store, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv("WEIR_REDIS_URL"), Embedded: embedded.Start})
//
// It keeps everything in memory and ends with its store, and what it held ends with it. It is a package of its own so that a program
// that always has a Redis does not contain another one.
package embedded

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weirworks/weir/internal/localredis"
)

// tick is how often the clock of the server moves: by so much a key may expire early or late.
const tick = 10 * time.Millisecond

// server listens on a loopback port and asks for a password that nobody else knows, so that other users of the machine cannot read it.
type server struct {
	redis    *miniredis.Miniredis
	password string
	stop     chan struct{}
	stopped  chan struct{}
	halt     func() // ends run and waits for it
}

// Start starts an empty Redis on a free loopback port. It is what redisstore.Config.Embedded is set to: the store starts it when
// it has no URL, and ends it when it is closed.
func Start() (localredis.Server, error) { return start() }

func start() (*server, error) {
	s := &server{
		redis:    miniredis.NewMiniRedis(),
		password: rand.Text(),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	s.halt = sync.OnceFunc(func() {
		close(s.stop)
		<-s.stopped
	})
	s.redis.RequireAuth(s.password) // before it listens
	if err := s.redis.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("starting the embedded Redis: %w", err)
	}
	go s.run()
	return s, nil
}

// URL implements localredis.Server.
func (s *server) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", s.password), Host: s.redis.Addr()}
	return u.String()
}

// Hold implements localredis.Server.
func (s *server) Hold(now time.Time) {
	s.halt()
	s.redis.SetTime(now)
}

// Advance implements localredis.Server.
func (s *server) Advance(now time.Time, passed time.Duration) {
	s.redis.SetTime(now)
	s.redis.FastForward(passed)
}

// Close implements localredis.Server.
func (s *server) Close() {
	s.halt()
	s.redis.Close()
}

// run lets keys expire, which miniredis does only when it is told how time passes. Its
// own clock (ClockTTL) would do it at every command, and so in the middle of a script,
// which a Redis never does.
func (s *server) run() {
	defer close(s.stopped)
	timer := time.NewTimer(tick)
	defer timer.Stop()
	last := time.Now()
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		s.redis.FastForward(now.Sub(last))
		last = now
		// A tick looks at every key and nothing else can happen meanwhile: with very
		// many keys tick less often, so that it takes at most a twentieth of the time.
		timer.Reset(max(tick, 20*time.Since(now)))
	}
}
