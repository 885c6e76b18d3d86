// Package redisstore keeps jobs in Redis. A Store implements all contracts of package
// job; each change is one Lua script in one shard, idempotent by token, so that a run is
// one transaction wherever a process or a connection dies.
//
// A program that imports it has the log lines of go-redis, of all its clients, in
// slog.Default at level debug, unless it calls redis.SetLogger.
package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/localredis"
	"github.com/weirworks/weir/internal/redisconn"
	"github.com/weirworks/weir/job"
)

// patience is how long Open waits for an answer.
const patience = 10 * time.Second

// Defaults of a Config.
const (
	DefaultNamespace = "main"
	DefaultShards    = 64
)

// maxShards is how many parts a namespace may have.
const maxShards = 1024

// Config says where jobs are kept: at a URL, or in a Redis that the store starts.
type Config struct {
	// URL of the Redis: redis://, rediss:// (TLS), unix://, redis+sentinel:// or
	// redis+cluster://. Empty means one that Embedded starts.
	URL string
	// Embedded starts a Redis in this process, which lives and dies with the store: set it to
	// embedded.Start, of package redisstore/embedded. It is asked only when URL is empty.
	Embedded func() (localredis.Server, error)
	// Namespace separates installations that share a Redis; lower-case letters, digits
	// and '-'. Empty means DefaultNamespace.
	Namespace string
	// Shards is the number of parts that a new namespace is cut into, 1 to 1024. Zero
	// means what the namespace has, or DefaultShards for a new one.
	Shards int
	// Codec encodes what jobs hold before it is sent, and decodes it when it was read: to
	// encrypt it, see package encrypt. All programs that read and write data of the namespace
	// need it. Nil means that all is stored as it is.
	Codec job.Codec
	// Clock is the time of the embedded Redis, for tests. Nil means the machine's. A
	// Redis with a URL has a clock of its own.
	Clock *Clock
}

var namespaceRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Validate names every bad field. The error wraps job.ErrConfig.
func (c Config) Validate() error {
	var bad []string
	if c.Namespace != "" && !namespaceRE.MatchString(c.Namespace) {
		bad = append(bad, fmt.Sprintf("Namespace %.80q: use 1 to 63 lower-case letters, digits and '-'", c.Namespace))
	}
	if c.Shards < 0 || c.Shards > maxShards {
		bad = append(bad, fmt.Sprintf("Shards %d: use 1 to %d, or 0 for the default", c.Shards, maxShards))
	}
	if c.Clock != nil && c.URL != "" {
		bad = append(bad, "Clock: only the embedded Redis can have one; leave URL empty")
	}
	if bad != nil {
		return fmt.Errorf("%w of the store: %s", job.ErrConfig, strings.Join(bad, "; "))
	}
	return nil
}

// String is fit for messages: it tells no password.
func (c Config) String() string {
	where := "an embedded Redis"
	if c.URL != "" {
		where, _ = redisconn.Mask(c.URL) // of a wrong one, what is surely no password
	}
	return fmt.Sprintf("namespace %s at %s", c.namespace(), where)
}

// GoString is String.
func (c Config) GoString() string { return c.String() }

// LogValue is String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c Config) namespace() string { return cmp.Or(c.Namespace, DefaultNamespace) }

// Store keeps jobs in Redis. It is safe for concurrent use.
type Store struct {
	rdb    redis.UniversalClient
	target *redisconn.Target
	keys   keyspace
	broker *delivery.Broker
	where  string            // the URL without password, for messages
	local  localredis.Server // nil unless the store started its own Redis

	secrets     secrets
	relays      *relays
	lanes       lanes
	callers     callers
	lives       lives
	definitions definitions
	hurry       atomic.Bool   // the sweeper knows of something that is due soon
	hurries     chan struct{} // gets a value when it comes to know of such
	living      living
	acts        acts
	traffic     traffic
	types       atomic.Pointer[knownTypes]
	scripts     atomic.Bool // the server has no functions: scripts are used
	records     atomic.Bool // small trees may be one record: the namespace has this layout
}

// Open connects to Redis and checks that it can be relied on: that it answers, never
// evicts keys, and that the namespace has this layout. The caller must Close the store.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, cfg.Shards); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// connect makes a store that has not asked its Redis anything yet. Until prepare it does
// not know how many shards it has.
func connect(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Store{
		where: "the embedded Redis", relays: newRelays(cfg.Clock != nil), lanes: lanes{wait: groupWait}, callers: callers{process: rand.Text()},
		hurries: make(chan struct{}, 1),
	}
	url := cfg.URL
	if url == "" {
		local, err := cfg.start()
		if err != nil {
			return nil, err
		}
		s.local, url = local, local.URL()
		s.scripts.Store(true)
	}
	t, err := redisconn.Parse(url)
	if err != nil {
		return nil, err
	}
	if s.local == nil {
		s.where = t.String()
	}
	if err := t.ReadFiles(); err != nil {
		return nil, err
	}
	s.target, s.rdb = t, t.Client()
	s.rdb.AddHook(&s.traffic)
	s.keys = keyspace{namespace: cfg.namespace()}
	s.secrets = secrets{cfg.Codec, cfg.namespace()}
	s.broker = delivery.New(s.rdb, cfg.namespace())
	s.broker.FindReady, s.broker.SendReady, s.broker.Renew = s.readyNotifications, s.sendReady, s.renew
	return s, nil
}

// start starts the embedded Redis.
func (c Config) start() (localredis.Server, error) {
	if c.Embedded == nil {
		return nil, fmt.Errorf("%w of the store: URL is empty: give that of a Redis, such as redis://localhost:6379, "+
			"or let the store start one, with Embedded: embedded.Start (package redisstore/embedded)", job.ErrConfig)
	}
	local, err := c.Embedded()
	if err == nil && c.Clock != nil {
		c.Clock.drive(local)
	}
	return local, err
}

// Close stops engines that still run on the store, as the end of their context does, and
// waits for them; then it closes the connections and ends the embedded Redis, if any.
func (s *Store) Close() error {
	s.broker.Close()
	s.relays.stop()
	err := s.rdb.Close()
	if s.local != nil {
		s.local.Close()
	}
	return err
}

// Broker is where engines hear of ready jobs.
func (s *Store) Broker() delivery.Source { return s.broker }

// Where says which Redis the store uses, without its password.
func (s *Store) Where() string { return s.where }

// Namespace is that of the store.
func (s *Store) Namespace() string { return s.keys.namespace }

// Shards is how many shards the namespace has.
func (s *Store) Shards() int { return s.keys.shards }

func (s *Store) prepare(ctx context.Context, shards int) error {
	if err := s.answers(ctx); err != nil {
		return err
	}
	if s.local == nil {
		if err := s.checkEviction(ctx); err != nil {
			return err
		}
	}
	return s.checkNamespace(ctx, shards)
}

// answers tells whether Redis does.
func (s *Store) answers(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.rdb.Ping(asked).Err()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w at %s: no answer within %s; check the address, and whether it speaks TLS (rediss://) or not (redis://)",
			job.ErrUnreachable, s.where, patience)
	}
	return s.explain(err)
}

// checkEviction refuses a Redis that would throw away jobs when its memory is full.
func (s *Store) checkEviction(ctx context.Context) error {
	check := func(ctx context.Context, c redis.Cmdable) error {
		info, err := c.Info(ctx, "memory").Result()
		if s.answered(err) {
			return nil // it does not tell: some compatible servers know no such section
		}
		if err != nil {
			return s.explain(err)
		}
		_, rest, ok := strings.Cut(info, "maxmemory_policy:")
		policy, _, _ := strings.Cut(rest, "\r\n")
		if ok && policy != "noeviction" {
			return fmt.Errorf("%w: Redis at %s has maxmemory-policy %s and would evict jobs; set it with: redis-cli CONFIG SET maxmemory-policy noeviction",
				job.ErrConfig, s.where, policy)
		}
		return nil
	}
	if cluster, ok := s.rdb.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return check(ctx, c) })
	}
	return check(ctx, s.rdb)
}
