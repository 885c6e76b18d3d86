package top

import (
	"context"
	"encoding/json"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Source finds the jobs that are shown. It is asked from several goroutines.
type Source interface {
	// Newest returns up to n jobs without parent, the newest first.
	Newest(ctx context.Context, n int) ([]*job.Info, error)
	// Find finds a job by its ID, or returns job.ErrNotFound.
	Find(ctx context.Context, id job.ID) (Job, error)
}

// Job is all that is asked and wanted of a job: what a *job.Handle does.
type Job interface {
	Reader
	Actor
}

// Reader tells about a job.
type Reader interface {
	Tree(ctx context.Context) ([]*job.Info, error)
	Aliases(ctx context.Context) ([]string, error)
	State(ctx context.Context, keys ...string) (map[string]json.RawMessage, error)
	Runs(ctx context.Context, limit int) ([]job.RunEntry, error)
	Logs(ctx context.Context, limit int) ([]job.LogEntry, error)
	Messages(ctx context.Context, dir port.Dir, name string, n int) ([]job.Message, error)
}

// Actor changes a job.
type Actor interface {
	Write(ctx context.Context, in string, messages ...any) error
	Run(ctx context.Context) error
	Retry(ctx context.Context, opts ...job.RetryOption) error
	Terminate(ctx context.Context) error
	TerminateAll(ctx context.Context) error
}

// Jobs returns the source of the jobs that a client knows.
func Jobs(c *job.Client) Source { return clientSource{c} }

type clientSource struct{ client *job.Client }

func (s clientSource) Newest(ctx context.Context, n int) ([]*job.Info, error) {
	var list []*job.Info
	for i, err := range s.client.Jobs(ctx, job.Filter{}) {
		if err != nil {
			return nil, err
		}
		if list = append(list, i); len(list) == n {
			break
		}
	}
	return list, nil
}

func (s clientSource) Find(ctx context.Context, id job.ID) (Job, error) {
	h, err := s.client.Find(ctx, string(id))
	if err != nil {
		return nil, err // not a nil *job.Handle, which is a Job
	}
	return h, nil
}
