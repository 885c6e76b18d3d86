package redisstore

import (
	"context"
	"sync"
	"time"
)

const (
	// typesAge is how old what is known of the living engines may be.
	typesAge = time.Second
	// endingGrace is how long a job that is to end waits for an engine that has its type, and runs its Shutdown.
	endingGrace = 10 * time.Second
)

// lack notes of jobs that have been ready for long, given as job, queue and type in turn, that no engine that lives has
// their types, where that is so. While no engine serves their queue at all, nobody takes any.
func (s *Store) lack(ctx context.Context, due string, late []string) error {
	if len(late) == 0 {
		return nil
	}
	has, err := s.types(ctx)
	if err != nil {
		return err
	}
	args := []any{endingGrace.Milliseconds(), 0}
	for i := 0; i+2 < len(late); i += 3 {
		if types := has[late[i+1]]; len(types) > 0 && !types[late[i+2]] {
			args = append(args, late[i])
		}
	}
	if args[1] = len(args) - 2; len(args) == 2 {
		return nil
	}
	reply, err := s.run(ctx, scriptLack, due, args...)
	if err != nil {
		return err
	}
	var d decoder
	return s.deliver(ctx, due, &d, reply)
}

// living is what was last known of the engines that live.
type living struct {
	sync.Mutex
	at    time.Time
	types map[string]map[string]bool // by queue
}

// types returns which types the engines that live run, by queue.
func (s *Store) types(ctx context.Context) (map[string]map[string]bool, error) {
	s.living.Lock()
	defer s.living.Unlock()
	if time.Since(s.living.at) < typesAge {
		return s.living.types, nil
	}
	engines, err := s.Engines(ctx)
	if err != nil {
		return nil, err
	}
	s.living.types, s.living.at = map[string]map[string]bool{}, time.Now()
	for i := range engines {
		if engines[i].Stopping {
			continue
		}
		for queue := range engines[i].Queues {
			if s.living.types[queue] == nil {
				s.living.types[queue] = map[string]bool{}
			}
			for _, typ := range engines[i].Types {
				s.living.types[queue][typ] = true
			}
		}
	}
	return s.living.types, nil
}
