package delivery

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/job"
)

const (
	// pollInterval is how long a server sleeps that nobody notifies.
	pollInterval = 2500 * time.Millisecond
	// deafPollInterval is how long if it does not hear notifications of other processes.
	deafPollInterval = 20 * time.Millisecond
	// lookEvery is how often a server that sleeps looks at least which queues are paused: it hears
	// of it, but not if a tool of asynq did so.
	lookEvery = 5 * time.Second
)

// sleeper is the client of one asynq server, which it lets sleep when all queues are empty.
// asynq asks for wakes from one goroutine only.
type sleeper struct {
	redis.UniversalClient
	notifier     *notifier
	prefix       string   // of the queues, as asynq calls them
	queues       []string // as their jobs do
	pollInterval time.Duration
	subscription chan struct{}
	quiet        <-chan struct{} // closed when the server is to take no more
	slots        chan struct{}   // holds a value for each wake that is taken and not yet done with
	empty        map[string]bool
	lowest       func() bool                                 // of ServeConfig
	hurry        func(ctx context.Context, list string) bool // uses a slot for what is more urgent, if anything is
	looked       *quiescence
	suspended    atomic.Pointer[quiescence] // nil while it is awake
}

// quiescence is what a server knows that sleeps.
type quiescence struct {
	open  map[string]bool // queues that it serves and that are not paused
	turns int64           // of the notification
	at    time.Time
}

// EvalSha gives a command to Redis. If it is the one by which asynq takes a wake, it waits for a
// free slot first; and if no queue has any, it returns only when it is time to ask again.
func (s *sleeper) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return s.eval(ctx, keys, func() *redis.Cmd { return s.UniversalClient.EvalSha(ctx, sha, keys, args...) })
}

// Eval is EvalSha for a server that has forgotten the script.
func (s *sleeper) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return s.eval(ctx, keys, func() *redis.Cmd { return s.UniversalClient.Eval(ctx, script, keys, args...) })
}

func (s *sleeper) eval(ctx context.Context, keys []string, call func() *redis.Cmd) *redis.Cmd {
	if len(keys) == 4 && strings.HasSuffix(keys[1], ":paused") {
		return s.take(ctx, keys[0], call)
	}
	cmd := call()
	if len(keys) == 5 && strings.HasSuffix(keys[0], ":active") { // a wake is done
		failpoint.Hit(failpoint.AfterAck)
	}
	return cmd
}

// take takes a wake of a queue. Whoever handles it gives the slot back.
func (s *sleeper) take(ctx context.Context, queue string, call func() *redis.Cmd) *redis.Cmd {
	for hurried := true; hurried; hurried = s.hurry(ctx, queue) {
		select {
		case s.slots <- struct{}{}:
		case <-s.quiet:
			cmd := redis.NewCmd(ctx)
			cmd.SetErr(redis.Nil)
			return cmd
		}
	}
	failpoint.Hit(failpoint.BeforeDequeue)
	if s.lowest != nil && s.lowest() {
		stem := strings.TrimSuffix(queue, "pending")
		_ = raise.Run(ctx, s.UniversalClient, []string{queue, stem + "paused"}, job.DefaultPriority, stem+"t:").Err() // else it has its turn later
	}
	cmd := call()
	err := cmd.Err()
	if err != nil {
		<-s.slots
	}
	switch {
	case err == nil:
		clear(s.empty)
	case errors.Is(err, redis.Nil):
		if s.empty[queue] = true; len(s.empty) == len(s.queues) {
			clear(s.empty)
			s.rest(ctx)
		}
	case !redis.HasErrorPrefix(err, "NOSCRIPT"):
		s.sleep(troubled)
	}
	return cmd
}

// rest sleeps as long as it may when there are no wakes.
func (s *sleeper) rest(ctx context.Context) {
	if s.notifier.hears.Load() == 0 {
		s.sleep(deafPollInterval)
		return
	}
	s.suspended.Store(s.look(ctx))
	s.sleep(s.pollInterval)
	s.suspended.Store(nil)
}

func (s *sleeper) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.subscription:
	case <-s.quiet:
	case <-timer.C:
	}
}

// look returns which queues are not paused: nil if that cannot be known.
func (s *sleeper) look(ctx context.Context) *quiescence {
	turns := s.notifier.turns.Load() // first: what turns meanwhile is not known
	if s.looked != nil && s.looked.turns == turns && time.Since(s.looked.at) < lookEvery {
		return s.looked
	}
	now := &quiescence{turns: turns, at: time.Now()}
	var err error
	if now.open, err = openOf(ctx, s.UniversalClient, s.prefix, s.queues); err != nil {
		s.looked = nil
		return nil
	}
	s.looked = now
	return now
}

// open returns the queues of the server that are not paused, if it sleeps, so that nothing is queued
// in them.
func (s *sleeper) open() map[string]bool {
	l := s.suspended.Load()
	if l == nil || l.turns != s.notifier.turns.Load() || s.notifier.hears.Load() == 0 {
		return nil
	}
	return l.open
}

// claim takes a slot for what does not come through asynq, if one is free.
func (s *sleeper) claim() bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
		return false
	}
}
