package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/job"
)

// QueueInfo is what is known of a queue at one moment.
type QueueInfo struct {
	Name      string
	Paused    bool
	Pending   int           // jobs that are ready and in line
	Active    int           // runs in progress, as engines tell each second
	Scheduled int           // wakes to be delivered later
	Retry     int           // wakes whose engine could not begin the run
	Archived  int           // wakes that asynq gave up
	Latency   time.Duration // since when the first one is in line
	Types     []string      // that engines have registered for it
	Engines   int           // that live and serve it
	Slots     int           // runs that these can have in progress, of all their queues
}

// Queues returns the queues that are known, sorted by name: those that engines have
// registered types for, serve now, or have ever had jobs in.
func (s *Store) Queues(ctx context.Context) ([]QueueInfo, error) {
	engines, err := s.Engines(ctx)
	if err != nil {
		return nil, err
	}
	return s.queuesOf(ctx, engines)
}

func (s *Store) queuesOf(ctx context.Context, engines []job.EngineInfo) ([]QueueInfo, error) {
	types, err := s.Types(ctx)
	if err != nil {
		return nil, err
	}
	names, err := s.broker.QueueNames()
	if err != nil {
		return nil, s.explain(err)
	}
	queues := map[string]*QueueInfo{}
	known := func(name string) *QueueInfo {
		if queues[name] == nil {
			queues[name] = &QueueInfo{Name: name, Types: []string{}}
		}
		return queues[name]
	}
	for _, name := range names {
		known(name)
	}
	for _, t := range types {
		q := known(t.Queue)
		q.Types = append(q.Types, t.Type)
	}
	for i := range engines {
		for name := range engines[i].Queues {
			q := known(name)
			q.Engines++
			q.Slots += engines[i].Concurrency
			q.Active += engines[i].Busy[name]
		}
	}
	out := []QueueInfo{}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := queues[name]
		line, err := s.broker.Queue(ctx, name)
		if err != nil {
			return nil, s.explain(err)
		}
		q.in(line)
		out = append(out, *q)
	}
	return out, nil
}

// in adds what asynq has of the queue.
func (q *QueueInfo) in(line delivery.Queue) {
	q.Paused, q.Pending, q.Scheduled = line.Paused, line.Pending, line.Scheduled
	q.Retry, q.Archived, q.Latency = line.Retry, line.Archived, line.Latency
}

// PauseQueue keeps engines from beginning runs of jobs of a queue, also of one that nobody
// has heard of yet. Runs in progress end, and what they make ready in the queue waits. An
// engine that has just begun a run may go on from job to job for a tenth of a second, and one
// that has nothing to do may begin runs until it hears of the pause. changed is false if the
// queue was paused already.
func (s *Store) PauseQueue(ctx context.Context, queue string) (changed bool, err error) {
	if err := job.CheckName("queue", queue); err != nil {
		return false, err
	}
	if delivery.IsPrivate(queue) {
		return false, fmt.Errorf("%w: queue %s is private to the program that serves it and cannot be paused: stop that program", job.ErrName, queue)
	}
	if changed, err = s.broker.Pause(ctx, queue); err != nil {
		return false, fmt.Errorf("pausing queue %s: %w", queue, s.explain(err))
	}
	return changed, nil
}

// ResumeQueue lets jobs of a queue run again: those that became ready meanwhile are in
// line. changed is false if the queue was not paused.
func (s *Store) ResumeQueue(ctx context.Context, queue string) (changed bool, err error) {
	if changed, err = s.broker.Resume(ctx, queue); err != nil {
		return false, fmt.Errorf("resuming queue %s: %w", queue, s.explain(err))
	}
	return changed, nil
}
