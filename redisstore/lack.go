package redisstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/job"
)

const (
	// typesAge is how old what is known of the living engines may be.
	typesAge = time.Second
	// endingGrace is how long a job that is to end waits for an engine that has its type, and runs its Shutdown.
	endingGrace = 10 * time.Second
)

// lack notes of jobs that have been ready for long, given as job, queue and type in turn, that no engine that lives has
// their types, or what else they need, where that is so. While no engine serves their queue at all, nobody takes any.
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
		if engines.lack(late[i+1], late[i+2]) {
			args = append(args, late[i], engines.why(late[i+1], late[i+2]))
		}
	}
	if args[1] = len(args)/2 - 1; len(args) == 2 {
		return nil
	}
	reply, err := s.run(ctx, scriptLack, due, args...)
	if err != nil {
		return err
	}
	var d decoder
	return s.deliver(ctx, due, &d, reply)
}

// living is what was last known of the engines that live and do not stop.
type living struct {
	sync.Mutex
	at      time.Time
	engines []job.EngineInfo
}

// serving are engines, and of which types it is known whether they lack them, by queue and type.
type serving struct {
	engines []job.EngineInfo
	known   map[[2]string]bool
}

// lack tells whether engines serve a queue, and none of them has a type.
func (s serving) lack(queue, typ string) bool {
	at := [2]string{queue, typ}
	lack, known := s.known[at]
	if !known {
		serves := func(e job.EngineInfo) bool { return e.Queues[queue] > 0 }
		takes := func(e job.EngineInfo) bool { return e.Takes(queue, typ) }
		lack = slices.ContainsFunc(s.engines, serves) && !slices.ContainsFunc(s.engines, takes)
		s.known[at] = lack
	}
	return lack
}

// why is why that is so, unless the jobs say so themselves: that they cannot be decoded.
func (s serving) why(queue, typ string) string {
	needs := job.ParseNeeds(typ, "")
	version := job.Needs{Type: needs.Type, Version: needs.Version}
	if !s.lack(queue, version.String()) {
		return ""
	}
	return fmt.Sprintf("%s %q in any engine that lives", delivery.NoWorker, needs.Words())
}

// serving returns the engines that live and do not stop.
func (s *Store) serving(ctx context.Context) (serving, error) {
	s.living.Lock()
	defer s.living.Unlock()
	if time.Since(s.living.at) < typesAge {
		return serving{s.living.engines, map[[2]string]bool{}}, nil
	}
	engines, err := s.Engines(ctx)
	if err != nil {
		return serving{}, err
	}
	s.living.engines = slices.DeleteFunc(engines, func(e job.EngineInfo) bool { return e.Stopping })
	s.living.at = time.Now()
	return serving{s.living.engines, map[[2]string]bool{}}, nil
}
