package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

const (
	// typesAge is how old what is known of the living engines may be.
	typesAge = time.Second
	// endingGrace is how long a job that is to end waits for an engine that has its type, and runs its Shutdown.
	endingGrace = 10 * time.Second
)

// lack notes of jobs that have been ready for long, given as job, queue and type in turn, that no engine that lives has
// their types, or what else they need, where that is so. While no engine serves their queue at all, nobody takes any. Those
// that nobody will begin, as their queue is paused or no engine may have them, give back the places of limits that they hold.
func (s *Store) lack(ctx context.Context, due string, late []string) error {
	if len(late) == 0 {
		return nil
	}
	engines, err := s.serving(ctx)
	if err != nil {
		return err
	}
	args := []any{endingGrace.Milliseconds(), 0}
	for i := 0; i+2 < len(late); i += 3 {
		id, queue, typ := late[i], late[i+1], late[i+2]
		switch takers := engines.of(queue, typ); {
		case takers.lack():
			args = append(args, id, "1", engines.why(queue, typ))
		case !takers.take || slices.Contains(engines.paused, queue):
			args = append(args, id, "", "")
		}
	}
	if args[1] = (len(args) - 2) / 3; len(args) == 2 {
		return nil
	}
	reply, err := s.run(ctx, scriptLack, due, args...)
	if err != nil {
		return err
	}
	var d decoder
	return s.deliver(ctx, due, &d, reply)
}

// living is what was last known of the engines that live and do not stop, and of the queues that are paused.
type living struct {
	sync.Mutex
	at      time.Time
	engines []store.EngineInfo
	paused  []string
}

// serving are engines, which of them may run jobs of a queue and type as far as that was asked, and queues that are paused.
type serving struct {
	engines []store.EngineInfo
	known   map[[2]string]takers
	paused  []string
}

// takers tells whether any engine serves a queue, and whether any takes jobs of a type from it.
type takers struct{ serve, take bool }

// lack tells whether engines serve the queue, and none of them has the type.
func (t takers) lack() bool { return t.serve && !t.take }

func (s serving) of(queue, typ string) takers {
	at := [2]string{queue, typ}
	of, known := s.known[at]
	if !known {
		of.serve = slices.ContainsFunc(s.engines, func(e store.EngineInfo) bool { return e.Queues[queue] > 0 })
		of.take = slices.ContainsFunc(s.engines, func(e store.EngineInfo) bool { return e.Takes(queue, typ) })
		s.known[at] = of
	}
	return of
}

// why is why that is so, unless the jobs say so themselves: that they cannot be decoded.
func (s serving) why(queue, typ string) string {
	needs := job.ParseNeeds(typ, "")
	version := job.Needs{Type: needs.Type, Version: needs.Version}
	if !s.of(queue, version.String()).lack() {
		return ""
	}
	return fmt.Sprintf("%s %q in any engine that lives", delivery.NoWorker, needs.Words())
}

// serving returns what is known of who may run ready jobs.
func (s *Store) serving(ctx context.Context) (serving, error) {
	s.living.Lock()
	defer s.living.Unlock()
	if time.Since(s.living.at) >= typesAge {
		engines, err := s.Engines(ctx)
		if err != nil {
			return serving{}, err
		}
		if s.living.paused, err = s.rdb.SMembers(ctx, s.keys.paused()).Result(); err != nil {
			return serving{}, s.explain(err)
		}
		s.living.engines = slices.DeleteFunc(engines, func(e store.EngineInfo) bool { return e.Stopping })
		s.living.at = time.Now()
	}
	return serving{s.living.engines, map[[2]string]takers{}, s.living.paused}, nil
}
