package top

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/trigger"
)

// Source finds what is shown, and changes it. It is asked from several goroutines.
type Source interface {
	// List returns the first n jobs that pass a filter.
	List(ctx context.Context, f job.Filter, n int) ([]*job.Info, error)
	// Find finds a job by its ID or alias, or returns job.ErrNotFound.
	Find(ctx context.Context, name string) (Job, error)
	// Stats counts; it costs the same however many jobs there are.
	Stats(ctx context.Context) (*redisstore.Stats, error)
	// Triggers returns up to n triggers, those that fire no more too.
	Triggers(ctx context.Context, n int) ([]*trigger.Status, error)
	PauseQueue(ctx context.Context, queue string) error
	ResumeQueue(ctx context.Context, queue string) error
	SetQueueLimit(ctx context.Context, queue string, n int) error
	// Trigger does something to a trigger.
	Trigger(ctx context.Context, id job.ID, do TriggerAct, by string) error
}

// TriggerAct is what can be done to a trigger.
type TriggerAct string

// What can be done to a trigger.
const (
	FireTrigger   TriggerAct = "fire"
	PauseTrigger  TriggerAct = "pause"
	ResumeTrigger TriggerAct = "resume"
)

// Job is all that is asked and wanted of a job: what a *client.Handle does.
type Job interface {
	Reader
	Actor
}

// Reader tells about a job.
type Reader interface {
	ID() job.ID
	Tree(ctx context.Context) ([]*job.Info, error)
	Aliases(ctx context.Context) ([]string, error)
	Locked(ctx context.Context) (lock job.LockInfo, locked bool, err error)
	State(ctx context.Context, keys ...string) (map[string]json.RawMessage, error)
	Runs(ctx context.Context, limit int) ([]job.RunEntry, error)
	Logs(ctx context.Context, limit int) ([]job.LogEntry, error)
	Messages(ctx context.Context, dir port.Dir, name string, n int) ([]job.Message, error)
}

// Actor changes a job.
type Actor interface {
	Write(ctx context.Context, in string, messages ...any) error
	Run(ctx context.Context) error
	Retry(ctx context.Context, opts ...client.RetryOption) error
	Terminate(ctx context.Context) error
	TerminateAll(ctx context.Context) error
	Delete(ctx context.Context) error
}

// Store returns the source of what a store holds.
func Store(s storecall.Store) Source { return storeSource{s, client.New(s)} }

type storeSource struct {
	store  storecall.Store
	client *client.Client
}

func (s storeSource) List(ctx context.Context, f job.Filter, n int) ([]*job.Info, error) {
	var list []*job.Info
	for i, err := range s.client.Jobs(ctx, f) {
		if err != nil {
			return nil, err
		}
		if list = append(list, i); len(list) == n {
			break
		}
	}
	return list, nil
}

func (s storeSource) Find(ctx context.Context, name string) (Job, error) {
	h, err := s.client.Find(ctx, name)
	if err != nil {
		return nil, err // not a nil *client.Handle, which is a Job
	}
	return h, nil
}

func (s storeSource) Stats(ctx context.Context) (*redisstore.Stats, error) { return s.store.Stats(ctx) }

func (s storeSource) Triggers(ctx context.Context, n int) ([]*trigger.Status, error) {
	var all []*trigger.Status
	for t, err := range trigger.List(ctx, s.client, true, 3) {
		if err != nil {
			return nil, err
		}
		if all = append(all, t); len(all) == n {
			break
		}
	}
	return all, nil
}

func (s storeSource) PauseQueue(ctx context.Context, queue string) error {
	_, err := s.store.PauseQueue(ctx, queue)
	return err
}

func (s storeSource) ResumeQueue(ctx context.Context, queue string) error {
	_, err := s.store.ResumeQueue(ctx, queue)
	return err
}

func (s storeSource) SetQueueLimit(ctx context.Context, queue string, n int) error {
	return s.store.SetQueueLimit(ctx, queue, n)
}

func (s storeSource) Trigger(ctx context.Context, id job.ID, do TriggerAct, by string) error {
	h := s.client.At(id)
	switch do {
	case FireTrigger:
		return trigger.Fire(ctx, h, by, nil)
	case PauseTrigger:
		return trigger.Pause(ctx, h, by)
	case ResumeTrigger:
		return trigger.Resume(ctx, h, by)
	}
	return fmt.Errorf("nothing is known of %q for a trigger", do)
}
