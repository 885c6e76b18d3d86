// Package delivery rings bells: it tells engines through asynq that jobs of a queue are ready in a
// shard. A bell is only a hint: which jobs these are is in the store, so one that is lost, late or
// repeated does no harm.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/job"
)

const (
	taskType = "weir:bell"
	// A run's time is limited by its lease and by its worker's timeout, never by asynq.
	taskTimeout = 365 * 24 * time.Hour
	// checkEvery is how long asynq waits when it has found nothing, besides what sleeper does.
	checkEvery = time.Microsecond
	// oom is in each answer of a Redis whose memory is full.
	oom = "OOM command not allowed"
	// fullEvery is how many seconds are between two messages that say so.
	fullEvery = 60
	// retriedEvery is how often asynq looks for bells whose handler gave an error.
	retriedEvery = 5 * time.Second
)

// FullAdvice says what to do about a Redis that answers OOM.
const FullAdvice = "its memory is full: delete what is done (weir delete), or raise maxmemory"

// Bell says that jobs of a queue are ready in a shard.
type Bell struct {
	Queue string
	Shard int
	Gen   int64    // counts how often it was heard, which makes it unique; Direct if asynq has not had it
	Types []string // of the jobs, when it was rung
}

// AnyType stands in a bell for jobs that any engine may have.
const AnyType = "*"

// Direct is the generation of a bell that does not come through asynq.
const Direct = -1

func (b Bell) taskID() string { return strconv.Itoa(b.Shard) + "#" + strconv.FormatInt(b.Gen, 10) }

// bellOf returns the bell of a task.
func bellOf(queue, taskID string) (Bell, error) {
	shard, gen, _ := strings.Cut(taskID, "#")
	n, err := strconv.Atoi(shard)
	g, err2 := strconv.ParseInt(gen, 10, 64)
	return Bell{Queue: queue, Shard: n, Gen: g}, errors.Join(err, err2)
}

// Broker rings bells and serves them. It is safe for concurrent use and does not
// close the client that it was given.
type Broker struct {
	rdb     redis.UniversalClient
	client  *asynq.Client
	inspect *asynq.Inspector
	prefix  string
	bell    *nudges
	// Ready returns bells for what is ready in a queue. Servers ask it when they begin to hear other processes: an engine
	// without the types may have passed bells on before. Nil: they do not.
	Ready func(ctx context.Context, queue string) ([]Bell, error)

	mu   sync.Mutex
	live map[*Server]struct{} // servers not yet stopped; nil once the broker is closed
}

// New returns a broker for the queues of a namespace.
func New(rdb redis.UniversalClient, namespace string) *Broker {
	wrongClock(rdb)
	b := &Broker{
		rdb:     rdb,
		client:  asynq.NewClientFromRedisClient(enqueuer{rdb}),
		inspect: asynq.NewInspectorFromRedisClient(rdb),
		prefix:  "weir:" + namespace + ":",
		bell:    newNudges(rdb, "weir:{"+namespace+"}:nudge"),
		live:    map[*Server]struct{}{},
	}
	b.bell.told, b.bell.joined = b.offer, b.CatchUp
	return b
}

// Close tells those who serve bells to stop and waits until they have: asynq does not
// survive that its client is closed under it.
func (b *Broker) Close() {
	b.mu.Lock()
	live := slices.Collect(maps.Keys(b.live))
	b.live = nil
	b.mu.Unlock()
	for _, s := range live {
		s.cfg.Closing()
		<-s.stopped
	}
	b.bell.flush(context.Background())
}

// Waiting tells of some bells, in one round trip, whether asynq still has them in line for a server. One that is
// not was taken by a server, which may have died with it.
func (b *Broker) Waiting(ctx context.Context, bells []Bell) ([]bool, error) {
	p := b.rdb.Pipeline()
	states := make([]*redis.StringCmd, len(bells))
	for i, l := range bells {
		states[i] = p.HGet(ctx, asynqKey(b.prefix+l.Queue, "t:"+l.taskID()), "state")
	}
	_, _ = p.Exec(ctx) // each command has its own error
	waiting := make([]bool, len(bells))
	for i, s := range states {
		state, err := s.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("looking for notification %s: %w", bells[i].taskID(), err)
		}
		waiting[i] = state == asynq.TaskStatePending.String()
	}
	return waiting, nil
}

// ServeConfig says how to serve bells.
type ServeConfig struct {
	Concurrency int            // bells handled at a time
	Queues      map[string]int // weight of each queue
	Drain       time.Duration  // how long Stop waits for handlers
	Logger      *slog.Logger
	// Handle is called with a bell. Only an error makes it come again.
	Handle func(ctx context.Context, bell Bell) error
	// Runs tells whether Handle runs jobs of a type. Bells for others come through asynq only.
	Runs func(typ string) bool
	// Next returns how runs of which types begin in the call of the store that makes their job ready,
	// and Begun runs what began so, not before since. Without Next none do.
	Next  func() (b job.Begin, types []string)
	Begun func(snap *job.Snapshot, since time.Time)
	// Closing is called when the broker is closed. The caller must then stop the server.
	Closing func()

	nap time.Duration // of tests; zero means nap
}

// Server hands bells to a handler.
type Server struct {
	broker  *Broker
	srv     *asynq.Server
	line    *sleeper
	cfg     ServeConfig
	hush    func() // ends the server's sleep for good
	hushed  sync.WaitGroup
	stopped chan struct{}
	direct  sync.WaitGroup // bells that did not come through asynq
	pending *pending       // bells that did not come through asynq, and wait for a slot
	over    bool           // it takes no more of those; of the broker's mutex
}

// Serve starts a server. The caller must Stop it.
func (b *Broker) Serve(cfg ServeConfig) (*Server, error) {
	queues := make(map[string]int, len(cfg.Queues))
	for name, weight := range cfg.Queues {
		queues[b.prefix+name] = weight
	}
	ctx, cancel := context.WithCancel(context.Background())
	ear, giveBack := b.bell.ear(false)
	line := &sleeper{
		UniversalClient: b.rdb, bell: b.bell, prefix: b.prefix, queues: slices.Collect(maps.Keys(cfg.Queues)), nap: cmp.Or(cfg.nap, nap),
		ear: ear, quiet: ctx.Done(), slots: make(chan struct{}, cfg.Concurrency), empty: map[string]bool{},
	}
	srv := asynq.NewServerFromRedisClient(line, asynq.Config{
		Concurrency:              cfg.Concurrency,
		Queues:                   queues,
		ShutdownTimeout:          cfg.Drain,
		TaskCheckInterval:        checkEvery,
		DelayedTaskCheckInterval: retriedEvery,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Second },
		Logger:                   &logger{log: cfg.Logger},
		LogLevel:                 asynq.WarnLevel,
	})
	s := &Server{broker: b, srv: srv, line: line, cfg: cfg, hush: cancel, stopped: make(chan struct{}), pending: newPending()}
	handler := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		defer func() { <-line.slots }()
		queue, _ := asynq.GetQueueName(ctx)
		bell, err := bellOf(strings.TrimPrefix(queue, b.prefix), string(t.Payload()))
		if err != nil {
			return nil //nolint:nilerr // of a program that knew no bells: what it was for is in the ready sets
		}
		err = s.handle(ctx, bell)
		failpoint.Hit(failpoint.AfterCommitBeforeAck)
		return err
	})
	b.mu.Lock() // Close either sees the server or comes before it
	defer b.mu.Unlock()
	if b.live == nil {
		cancel()
		giveBack()
		return nil, errors.New("starting to serve notifications: the store is closed")
	}
	if err := srv.Start(handler); err != nil {
		cancel()
		giveBack()
		return nil, fmt.Errorf("starting to serve notifications: %w", err)
	}
	b.live[s] = struct{}{}
	s.hushed.Go(s.servePending)
	s.hushed.Go(func() {
		defer giveBack()
		b.bell.listen(ctx)
	})
	return s, nil
}

func (s *Server) handle(ctx context.Context, bell Bell) error {
	failpoint.Hit(failpoint.AfterDequeueBeforeBegin)
	return s.cfg.Handle(ctx, bell)
}

// Quiet stops taking bells; those being handled go on.
func (s *Server) Quiet() {
	s.broker.mu.Lock()
	s.over = true
	s.broker.mu.Unlock()
	s.hush() // asynq waits for whoever asks for a task
	s.srv.Stop()
}

// Stop stops taking bells and returns when the handlers have, at most after the drain
// time. To be called once.
func (s *Server) Stop() {
	s.Quiet()
	s.srv.Shutdown()
	s.direct.Wait()
	s.hushed.Wait()
	s.broker.mu.Lock()
	delete(s.broker.live, s)
	s.broker.mu.Unlock()
	close(s.stopped)
}

// logger passes asynq's messages on. Fatal does not end the program.
type logger struct {
	log  *slog.Logger
	full atomic.Int64 // when it last said that the memory of Redis is full: Unix seconds
}

func (l *logger) say(level slog.Level, args []any) {
	text := "asynq: " + strings.TrimSpace(fmt.Sprint(args...))
	if strings.Contains(text, oom) { // asynq says so several times each few seconds
		now, last := time.Now().Unix(), l.full.Load()
		if now-last < fullEvery || !l.full.CompareAndSwap(last, now) {
			return
		}
		text = "Redis: " + FullAdvice
	}
	l.log.Log(context.Background(), level, text)
}

func (l *logger) Debug(args ...any) { l.say(slog.LevelDebug, args) }
func (l *logger) Info(args ...any)  { l.say(slog.LevelInfo, args) }
func (l *logger) Warn(args ...any)  { l.say(slog.LevelWarn, args) }
func (l *logger) Error(args ...any) { l.say(slog.LevelError, args) }
func (l *logger) Fatal(args ...any) { l.say(slog.LevelError, args) }
