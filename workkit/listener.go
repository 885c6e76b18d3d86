package workkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

const (
	pollEvery = time.Second     // how often a schedule is looked at in which nothing is due: others add to it without telling
	tryAgain  = 5 * time.Second // after how long an entry is looked at again that was refused
	tidyEvery = time.Minute     // how often what nobody was told of is put right
	patience  = time.Minute     // for how long a member is looked at that has no entry, until it is dropped
	collision = 20 * time.Millisecond
	maxPages  = 20     // of members that are due and cannot be launched, which are passed over
	maxPassed = 10_000 // of them that are remembered
)

// Config says what a Listener serves.
type Config struct {
	// Store holds the jobs; the schedules lie in the same database of its Redis. Required.
	Store *redisstore.Store
	// Schedules are their names. Required.
	Schedules []string
	// Logger is told what cannot be launched, and when Redis cannot be reached. Nil means slog.Default.
	Logger *slog.Logger
}

// Listener serves schedules: it moves what is due into Weir. Any number of them may serve the same schedules. It runs no jobs: an engine does.
type Listener struct{ schedules []*served }

// New returns a listener. A name that none can have, and a Redis Cluster, are errors.
func New(cfg Config) (*Listener, error) {
	if cfg.Store == nil || len(cfg.Schedules) == 0 {
		return nil, fmt.Errorf("%w of a listener: give a Store, and the names of Schedules", job.ErrConfig)
	}
	l := &Listener{}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	for _, name := range cfg.Schedules {
		kit, err := cfg.Store.WorkKit(name)
		if err != nil {
			return nil, err
		}
		l.schedules = append(l.schedules, &served{
			kit: kit, types: catalogue{store: cfg.Store}, log: logger.With("workkit", name), passed: map[string]pass{}, patience: patience,
		})
	}
	return l, nil
}

// Run serves the schedules until the context ends. What goes wrong is logged, and tried again.
func (l *Listener) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, s := range l.schedules {
		all.Go(func() { s.run(ctx) })
	}
	all.Wait()
	return nil
}

// served is a schedule that is served.
type served struct {
	kit    *redisstore.WorkKit
	types  catalogue
	log    *slog.Logger
	passed map[string]pass // members that cannot be launched
	tidied time.Time
	cursor uint64
	known  bool // the schedule is noted as one that is served
	broken bool // the last look failed

	patience time.Duration
}

// pass is a member that is passed over for a while.
type pass struct {
	score string
	until time.Time
	since time.Time // when it was passed over first
}

func (s *served) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			wait = pollEvery
			if !s.broken {
				s.log.Error("the schedule cannot be served now", "error", err)
			}
		} else if s.broken {
			s.log.Info("the schedule is served again")
		}
		s.broken = err != nil
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// look moves what is due, and says when to look again.
func (s *served) look(ctx context.Context) (wait time.Duration, err error) {
	if err := s.keep(ctx); err != nil {
		return 0, err
	}
	now, first, err := s.kit.Head(ctx)
	if err != nil || first.IsZero() || first.After(now) {
		return until(first, now), err
	}
	for page := range maxPages {
		now, due, later, err := s.kit.Due(ctx, page*redisstore.WorkKitPage)
		if err != nil {
			return 0, err
		}
		moved, stale, err := s.move(ctx, now, due)
		switch {
		case err != nil:
			return 0, err
		case stale: // others are at it, too
			return time.Duration(rand.Int64N(int64(collision))), nil
		case moved > 0: // what is due now comes in another order
			return 0, nil
		case len(due) < redisstore.WorkKitPage:
			return until(later, now), nil
		}
	}
	return pollEvery, nil
}

// keep does what is to be done once, and once in a while.
func (s *served) keep(ctx context.Context) (err error) {
	if !s.known {
		if err := s.kit.Enroll(ctx); err != nil {
			return err
		}
		s.known = true
	}
	if time.Since(s.tidied) < tidyEvery {
		return nil
	}
	s.tidied = time.Now()
	s.cursor, err = s.kit.Tidy(ctx, s.cursor)
	return err
}

// until is how long to wait for something at a time, zero for nothing.
func until(at, now time.Time) time.Duration {
	if at.IsZero() {
		return pollEvery
	}
	return min(max(at.Sub(now), time.Millisecond), pollEvery)
}

// move moves members that are due, in their order. stale: one was not as it was read.
func (s *served) move(ctx context.Context, now time.Time, due []redisstore.WorkKitMember) (moved int, stale bool, err error) {
	var fresh []redisstore.WorkKitMember
	ids := map[string]redisstore.WorkKitMember{}
	for _, m := range due {
		if p, ok := s.passed[m.Member]; !ok || p.score != m.Score || time.Now().After(p.until) {
			fresh = append(fresh, m)
		}
	}
	for from := 0; from < len(fresh) && !stale; from += redisstore.WorkKitMoves {
		n, other, err := s.batch(ctx, now, fresh[from:min(len(fresh), from+redisstore.WorkKitMoves)], ids)
		if err != nil {
			return moved, false, err
		}
		moved += n
		stale = other
	}
	return moved, stale, nil
}

// batch is move for a few.
func (s *served) batch(ctx context.Context, now time.Time, due []redisstore.WorkKitMember, ids map[string]redisstore.WorkKitMember) (moved int, stale bool, err error) {
	moves, err := s.decide(ctx, now, due, ids)
	if err != nil {
		return 0, false, err
	}
	for len(moves) > 0 {
		done, err := s.kit.Move(ctx, moves)
		if err != nil {
			return moved, false, fmt.Errorf("moving what is due: %w", err)
		}
		for i, ok := range done {
			switch refused := moves[i].Refused; {
			case !ok:
				stale = true
			case refused == nil:
				moved++
			}
		}
		moves = moves[len(done):]
	}
	return moved, stale, nil
}

// decide says what is to become of members. before has those that were decided upon, by their IDs.
func (s *served) decide(ctx context.Context, now time.Time, due []redisstore.WorkKitMember, before map[string]redisstore.WorkKitMember) ([]redisstore.WorkKitMove, error) {
	if err := s.types.read(ctx); err != nil {
		return nil, err
	}
	moves := make([]redisstore.WorkKitMove, len(due))
	ids := make([]string, len(due))
	wrong := make([]error, len(due))
	for i, m := range due {
		if ids[i], wrong[i] = idOf(m.Member); wrong[i] != nil {
			ids[i] = m.Member
		}
		moves[i] = redisstore.WorkKitMove{WorkKitMember: m, ID: ids[i]}
	}
	payloads, err := s.kit.Payloads(ctx, ids)
	if err != nil {
		return nil, err
	}
	decided := moves[:0]
	for i, m := range moves {
		m.Payload = payloads[i]
		if wrong[i] == nil && m.Payload == nil { // whoever put it there may be about to add its entry
			if s.pass(m.WorkKitMember) >= s.patience {
				decided = append(decided, m)
			}
			continue
		}
		if other, twice := before[m.ID]; wrong[i] == nil && twice && other.Score == m.Score {
			s.log.Warn("an entry is in the queue twice: one goes", "entry", m.ID, "member", m.Member, "stays", other.Member)
			decided = append(decided, m)
			continue
		}
		before[m.ID] = m.WorkKitMember
		e, err := &Entry{}, wrong[i]
		if err == nil {
			e, err = parse(m.Payload)
		}
		if err == nil {
			err = s.plan(&m, e, now)
		}
		if err != nil {
			s.refuse(&m, e, now, err)
		}
		decided = append(decided, m)
	}
	return decided, nil
}

// plan plans what an entry launches, and when it comes again.
func (s *served) plan(m *redisstore.WorkKitMove, e *Entry, now time.Time) (err error) {
	if m.Next, err = e.after(m.Due(), now); err != nil {
		return err
	}
	plan, err := s.types.plan(e)
	if err == nil {
		m.Launch, err = launch(s.kit.Name(), m.ID, e, m.Due(), plan)
	}
	return err
}

// refuse leaves an entry as it is, and says why.
func (s *served) refuse(m *redisstore.WorkKitMove, e *Entry, now time.Time, why error) {
	m.Refused = &redisstore.WorkKitRefusal{Member: m.Member, Why: why.Error(), Since: now}
	if e != nil {
		m.Refused.Job = e.Job
	}
	if p, ok := s.passed[m.Member]; !ok || p.score != m.Score {
		log := s.log.Warn
		if !errors.Is(why, job.ErrUnknownType) {
			log = s.log.Error
		}
		log("an entry is due and cannot be launched: it stays as it is", "entry", m.ID, "job", m.Refused.Job, "error", why)
	}
	s.pass(m.WorkKitMember)
}

// pass passes a member over for a while, and returns for how long it has been so.
func (s *served) pass(m redisstore.WorkKitMember) time.Duration {
	now := time.Now()
	if len(s.passed) >= maxPassed {
		for member, p := range s.passed {
			if now.After(p.until) {
				delete(s.passed, member)
			}
		}
	}
	since := now
	if p, ok := s.passed[m.Member]; ok && p.score == m.Score {
		since = p.since
	}
	s.passed[m.Member] = pass{m.Score, now.Add(tryAgain), since}
	return now.Sub(since)
}
