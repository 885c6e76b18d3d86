package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/weirworks/weir/client"
)

// retryOperations are retries and failures by hand.
func (s *Server) retryOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/retry", id: "retry-job", group: groupJobs, role: operate, summary: "Give a job that failed another run, now or later",
		about: "Also one whose next try is scheduled and, with `running`, a running one, whose run loses it. What the body gives the job takes effect together with the retry, or not at all. With `in` or `at` a job that repeats runs when its repeat says, counted from its last run, unless `ignore_repeat` is given; without them it is tried now. Of a graph, and with `tree` of any job, all failed jobs of the tree are retried: `args` and `name` are for one job.",
	}, retryJob)
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/fail", id: "fail-job", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Fail a job without another try",
		about: "One that is queued, scheduled, waiting, suspended or running: the run of a running one loses it, and nothing that it still does is stored. What follows is what follows from any failure, and the job can be retried. A graph fails with the jobs in it.",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Body *FailWish
	},
	) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.Fail(s.acting(ctx), given(in.Body).Reason)
		}
		return done(err)
	})
}

// RetryWish says which jobs are to be retried, and how.
type RetryWish struct {
	Tree         bool            `json:"tree,omitempty" doc:"all failed jobs of its tree"`
	Args         json.RawMessage `json:"args,omitempty" doc:"other parameters of the worker, an object"`
	Name         *string         `json:"name,omitempty" doc:"another name: of a root any, of a child one that is free under its parent; nodes of graphs keep theirs"`
	Priority     *int            `json:"priority,omitempty" minimum:"0" maximum:"1000" doc:"another priority"`
	In           *duration       `json:"in,omitempty" doc:"after this time"`
	At           *time.Time      `json:"at,omitempty" doc:"at this time, which wins over in"`
	IgnoreRepeat bool            `json:"ignore_repeat,omitempty" doc:"run a job that repeats at the time given, and not when its repeat says"`
	Running      bool            `json:"running,omitempty" doc:"also a running job: nothing that its run still does is stored"`
}

// options are those of a retry.
func (w *RetryWish) options() ([]client.RetryOption, error) {
	var opts []client.RetryOption
	if len(w.Args) > 0 {
		if w.Args[0] != '{' {
			return nil, wrong("args: use an object, like {\"Width\": 640}")
		}
		opts = append(opts, client.RetryArgs(w.Args))
	}
	if w.Name != nil {
		opts = append(opts, client.RetryName(*w.Name))
	}
	if w.Priority != nil {
		opts = append(opts, client.RetryPriority(*w.Priority))
	}
	if w.In != nil {
		opts = append(opts, client.RetryAfter(time.Duration(*w.In)))
	}
	if w.At != nil {
		opts = append(opts, client.RetryAt(*w.At))
	}
	if w.IgnoreRepeat {
		if w.In == nil && w.At == nil {
			return nil, wrong("ignore_repeat goes with in or at: without them a job that repeats is tried now")
		}
		opts = append(opts, client.IgnoreRepeat())
	}
	if w.Running {
		opts = append(opts, client.RetryRunning())
	}
	return opts, nil
}

// Retried is how many jobs were retried.
type Retried struct {
	Retried int `json:"retried"`
}

func retryJob(ctx context.Context, s *session, in *struct {
	JobPath
	Body *RetryWish
},
) (*reply[Retried], error) {
	wish := given(in.Body)
	opts, err := wish.options()
	if err != nil {
		return nil, err
	}
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	if wish.Tree || info.Graph {
		n, err := h.RetryFailed(s.acting(ctx), opts...)
		return answer(Retried{n}, err)
	}
	return answer(Retried{1}, h.Retry(s.acting(ctx), opts...))
}

// FailWish says why a job is to fail.
type FailWish struct {
	Reason string `json:"reason,omitempty" doc:"why, for those who look"`
}
