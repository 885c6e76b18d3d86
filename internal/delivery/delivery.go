// Package delivery sends notifications: it tells engines through asynq that jobs of a queue are ready in a
// shard. A notification is only a hint: which jobs these are is in the store, so one that is lost, late or
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
	"github.com/weirworks/weir/internal/store"
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
	// retriedEvery is how often asynq looks for notifications whose handler gave an error.
	retriedEvery = 5 * time.Second
)

// FullAdvice says what to do about a Redis that answers OOM.
const FullAdvice = "its memory is full: delete what is done (weir delete), or raise maxmemory"

// Notification says that jobs of a queue are ready in a shard.
type Notification struct {
	Queue string
	Shard int
	Gen   int64    // counts how often it was heard, which makes it unique; Direct if asynq has not had it
	Types []string // of the jobs, when it was sent
	// Priorities are those of the first jobs of Types. Nil: all have the default.
	Priorities []int
	// Heard has the handler begin no job of a lower priority than the notification's, by which it had its turn: it is an old one then.
	Heard bool

	rests time.Time // until when it gives way to what asynq has, while it is pending
}

// Priority is that of the first job.
func (b Notification) Priority() int {
	if len(b.Priorities) == 0 {
		return job.DefaultPriority
	}
	return slices.Max(b.Priorities)
}

// Only returns the notification for those of its types that keep says; ok is false if these are none.
func (b Notification) Only(keep func(typ string) bool) (some Notification, ok bool) {
	some = b
	some.Types, some.Priorities = nil, nil
	for i, t := range b.Types {
		if !keep(t) {
			continue
		}
		some.Types = append(some.Types, t)
		if i < len(b.Priorities) {
			some.Priorities = append(some.Priorities, b.Priorities[i])
		}
	}
	return some, len(some.Types) > 0
}

// ErrStopping is what a handler answers that takes no more notifications.
var ErrStopping = errors.New("the engine is stopping")

// AnyType stands in a notification for jobs that any engine may have.
const AnyType = "*"

// Direct is the generation of a notification that does not come through asynq.
const Direct = -1

func (b Notification) taskID() string {
	return strconv.Itoa(b.Shard) + "#" + strconv.FormatInt(b.Gen, 10)
}

// priorityHeader is the header of a task with the priority of its notification, if that is not the default.
const priorityHeader = "priority"

// notificationOf returns the notification of a task.
func notificationOf(queue string, t *asynq.Task) (Notification, error) {
	shard, gen, _ := strings.Cut(string(t.Payload()), "#")
	n, err := strconv.Atoi(shard)
	g, err2 := strconv.ParseInt(gen, 10, 64)
	b := Notification{Queue: queue, Shard: n, Gen: g, Heard: true}
	if text := t.Headers()[priorityHeader]; text != "" {
		p, err3 := strconv.Atoi(text)
		b.Priorities, err2 = []int{p}, errors.Join(err2, err3)
	}
	return b, errors.Join(err, err2)
}

// taskOf returns the task of a notification. It is no method: those that see Notification would see asynq.
func taskOf(b Notification) *asynq.Task {
	headers := map[string]string{}
	if p := b.Priority(); p != job.DefaultPriority {
		headers[priorityHeader] = strconv.Itoa(p)
	}
	return asynq.NewTaskWithHeaders(taskType, []byte(b.taskID()), headers)
}

// Source is what engines need of a Broker. It names no type of go-redis or asynq: each package that is compiled with those takes
// seconds more, and those that import worker are many, most of them other people's.
type Source interface {
	// Serve starts a server. The caller must Stop it.
	Serve(cfg ServeConfig) (Server, error)
	// Listen calls heard whenever jobs may have become ready, until ctx ends.
	Listen(ctx context.Context, heard func())
	// CatchUp sends notifications for what is ready in the queues of the servers of this process.
	CatchUp(ctx context.Context)
	// DueAnywhere tells those who sweep that something may be due soon in any shard, which they may not know of.
	DueAnywhere(ctx context.Context)
	// Open returns those of some queues that are not paused.
	Open(ctx context.Context, queues []string) ([]string, error)
	// Ready returns notifications for what is ready in a queue.
	Ready(ctx context.Context, queue string) ([]Notification, error)
}

// Broker sends notifications and serves them. It is safe for concurrent use and does not
// close the client that it was given.
type Broker struct {
	rdb      redis.UniversalClient
	client   *asynq.Client
	inspect  *asynq.Inspector
	prefix   string
	notifier *notifier
	// FindReady is what Ready does.
	FindReady func(ctx context.Context, queue string) ([]Notification, error)
	// SendReady sends notifications for jobs that are ready in a queue and that a server runs. Servers call it when they begin to hear
	// other processes: an engine without the types may have passed notifications on before. Nil: they do not.
	SendReady func(ctx context.Context, queue string, runs func(typ string) bool) error
	// Renew sends notifications anew that asynq holds, but that no server will hear. Nil: asynq brings them after some seconds.
	Renew func(ctx context.Context, held []Notification) error

	rung rung
	mu   sync.Mutex
	live map[*server]struct{} // servers not yet stopped; nil once the broker is closed
}

// New returns a broker for the queues of a namespace.
func New(rdb redis.UniversalClient, namespace string) *Broker {
	wrongClock(rdb)
	b := &Broker{
		rdb:      rdb,
		client:   asynq.NewClientFromRedisClient(enqueuer{rdb}),
		inspect:  asynq.NewInspectorFromRedisClient(rdb),
		prefix:   "weir:" + namespace + ":",
		notifier: newNotifier(rdb, "weir:{"+namespace+"}:nudge"),
		rung:     rung{last: map[queueShard]given{}},
		live:     map[*server]struct{}{},
	}
	b.notifier.told, b.notifier.joined = b.offer, b.CatchUp
	return b
}

// Close tells those who serve notifications to stop and waits until they have: asynq does not
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
	b.notifier.flush(context.Background())
}

// Ready implements Source.
func (b *Broker) Ready(ctx context.Context, queue string) ([]Notification, error) {
	return b.FindReady(ctx, queue)
}

// Waiting tells of some notifications, in one round trip, whether asynq still has them queued for a server. One that is
// not was taken by a server, which may have died with it.
func (b *Broker) Waiting(ctx context.Context, notifications []Notification) ([]bool, error) {
	p := b.rdb.Pipeline()
	states := make([]*redis.StringCmd, len(notifications))
	for i, l := range notifications {
		states[i] = p.HGet(ctx, asynqKey(b.prefix+l.Queue, "t:"+l.taskID()), "state")
	}
	_, _ = p.Exec(ctx) // each command has its own error
	waiting := make([]bool, len(notifications))
	for i, s := range states {
		state, err := s.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, fmt.Errorf("looking for notification %s: %w", notifications[i].taskID(), err)
		}
		waiting[i] = state == asynq.TaskStatePending.String()
	}
	return waiting, nil
}

// ServeConfig says how to serve notifications.
type ServeConfig struct {
	Concurrency int            // notifications handled at a time
	Queues      map[string]int // weight of each queue
	Drain       time.Duration  // how long Stop waits for handlers
	Logger      *slog.Logger
	// Handle is called with a notification. Only an error makes it come again; ErrStopping brings it to another server at once.
	Handle func(ctx context.Context, notification Notification) error
	// Runs tells whether Handle runs jobs of a type. Notifications for others come through asynq only.
	Runs func(typ string) bool
	// Next returns how runs of which types begin in the call of the store that makes their job ready,
	// and Begun runs what began so, not before since. Without Next none do.
	Next  func() (b store.Begin, types []string)
	Begun func(snap *store.Snapshot, since time.Time)
	// Lowest tells, each time that a notification is to be taken, whether it is to be one of those of the lowest priority. Nil: it never is.
	Lowest func() bool
	// Closing is called when the broker is closed. The caller must then stop the server.
	Closing func()

	pollInterval time.Duration // of tests; zero means pollInterval
}

// Server hands notifications to a handler.
type Server interface {
	// Reserve takes slots that are free now, n at most, and returns how many.
	Reserve(n int) int
	// Release gives reserved slots back.
	Release(n int)
	// CatchUp has the server hear of what is ready of some types in its queues, but those that are paused, without asynq: in so many
	// shards at most, those with the most urgent jobs, else by lot. It tells whether there may be more.
	CatchUp(ctx context.Context, types func(typ string) bool, shards int) (more bool)
	// StopTaking stops taking notifications; those being handled go on.
	StopTaking()
	// Stop stops taking notifications and returns when the handlers have, at most after the drain time. To be called once.
	Stop()
}

// server implements Server by one of asynq.
type server struct {
	broker  *Broker
	srv     *asynq.Server
	line    *sleeper
	cfg     ServeConfig
	hush    func() // ends the server's sleep for good
	hushed  sync.WaitGroup
	stopped chan struct{}
	direct  sync.WaitGroup // notifications that did not come through asynq
	pending *pending       // notifications that did not come through asynq, and wait for a slot
	next    chan func()    // is read by goroutines that wait for something to do
	idle    atomic.Int64   // how many these are
	over    bool           // it takes no more of those; of the broker's mutex

	catching sync.Mutex
	ready    []Notification // what was found ready when the server caught up, but what it was told of
	foundAt  time.Time
}

// Serve implements Source.
func (b *Broker) Serve(cfg ServeConfig) (Server, error) {
	queues := make(map[string]int, len(cfg.Queues))
	for name, weight := range cfg.Queues {
		queues[b.prefix+name] = weight
	}
	ctx, cancel := context.WithCancel(context.Background())
	subscription, giveBack := b.notifier.subscription(false)
	line := &sleeper{
		UniversalClient: b.rdb, notifier: b.notifier, prefix: b.prefix, queues: slices.Collect(maps.Keys(cfg.Queues)), pollInterval: cmp.Or(cfg.pollInterval, pollInterval),
		subscription: subscription, quiet: ctx.Done(), slots: make(chan struct{}, cfg.Concurrency), empty: map[string]bool{}, lowest: cfg.Lowest,
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
	s := &server{
		broker: b, srv: srv, line: line, cfg: cfg, hush: cancel, stopped: make(chan struct{}), pending: newPending(), next: make(chan func()),
	}
	line.hurry = s.hurry
	handler := asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		defer func() { <-line.slots }()
		queue, _ := asynq.GetQueueName(ctx)
		notification, err := notificationOf(strings.TrimPrefix(queue, b.prefix), t)
		if err != nil {
			return nil //nolint:nilerr // of a program that knew no notifications: what it was for is in the ready sets
		}
		err = s.handle(ctx, notification)
		failpoint.Hit(failpoint.AfterCommitBeforeAck)
		if errors.Is(err, ErrStopping) && b.Renew != nil {
			return b.Renew(ctx, []Notification{notification})
		}
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
		b.notifier.listen(ctx)
	})
	return s, nil
}

// Reserve implements Server.
func (s *server) Reserve(n int) int {
	for i := range n {
		select {
		case s.line.slots <- struct{}{}:
		default:
			return i
		}
	}
	return n
}

// Release implements Server.
func (s *server) Release(n int) {
	for range n {
		<-s.line.slots
	}
}

func (s *server) handle(ctx context.Context, notification Notification) error {
	failpoint.Hit(failpoint.AfterDequeueBeforeBegin)
	return s.cfg.Handle(ctx, notification)
}

// StopTaking implements Server.
func (s *server) StopTaking() {
	s.broker.mu.Lock()
	s.over = true
	s.broker.mu.Unlock()
	s.hush() // asynq waits for whoever asks for a task
	s.srv.Stop()
}

// Stop implements Server.
func (s *server) Stop() {
	s.StopTaking()
	late := time.After(s.cfg.Drain)
	s.srv.Shutdown()
	direct := make(chan struct{})
	go func() {
		defer close(direct)
		s.direct.Wait()
	}()
	select {
	case <-direct:
	case <-late:
	}
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
