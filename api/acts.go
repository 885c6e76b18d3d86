package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// actOperations are those that change what a job does, or whose it is.
func (s *Server) actOperations() {
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/run", id: "run-job", group: groupJobs, role: operate, summary: "Ask for a run of a job",
		about: "The run begins after this request, whatever the job waits for. A failed or terminated job needs `force`. With `in` or `at` the run is asked for later.",
	}, runJob)
	s.retryOperations()
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/terminate", id: "terminate-job", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "End a job",
		about: "A run in progress finishes, then the Shutdown of the worker gets its chance. With `recursive` all jobs below it end, too.",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Body *Recursive
	},
	) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		switch {
		case err != nil:
		case given(in.Body).Recursive:
			err = h.TerminateAll(s.acting(ctx))
		default:
			err = h.Terminate(s.acting(ctx))
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodDelete, path: "/v1/jobs/{job}", id: "delete-job", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Remove a terminated job and all below it, with everything they have",
	}, func(ctx context.Context, s *session, in *JobPath) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.Delete(ctx)
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/adopt", id: "adopt-job", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Make a root job a child of this one",
	}, adoptJob)
	add(s, operation{
		method: http.MethodDelete, path: "/v1/jobs/{job}/children/{name}", id: "disown-job", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Make the child of that name a root job",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Name string `path:"name"`
	},
	) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.Disown(ctx, in.Name)
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodPut, path: "/v1/jobs/{job}/priority", id: "set-priority", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Change when a job's turn comes among those that are ready",
		about: "Of the ready jobs of a queue those of a higher priority, from 0 to 1000, run first; 500 is the default. All jobs below it get the same.",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Body Priority
	},
	) (*nothing, error) {
		if in.Body.Priority == nil {
			return nil, wrong("priority is missing: give a number from 0 (last) to %d (first)", job.MaxPriority)
		}
		if n := *in.Body.Priority; n < 0 || n > job.MaxPriority {
			return nil, wrong("body.priority: %d: use 0 (last) to %d (first); %d is the default", n, job.MaxPriority, job.DefaultPriority)
		}
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.SetPriority(s.acting(ctx), *in.Body.Priority)
		}
		return done(err)
	})
	s.nameOperations()
}

// Priority says whose turn is first.
type Priority struct {
	Priority *int `json:"priority" required:"true" minimum:"0" maximum:"1000"`
}

// nameOperations are those on the aliases and the lock of a job.
func (s *Server) nameOperations() {
	add(s, operation{
		method: http.MethodPut, path: "/v1/jobs/{job}/aliases/{alias}", id: "add-alias", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Give a job one more name",
	}, func(ctx context.Context, s *session, in *aliasInput) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.AddAlias(ctx, in.Alias)
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodDelete, path: "/v1/jobs/{job}/aliases/{alias}", id: "remove-alias", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Take a name of a job away",
	}, func(ctx context.Context, s *session, in *aliasInput) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.RemoveAlias(ctx, in.Alias)
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodPut, path: "/v1/jobs/{job}/lock", id: "lock-job", group: groupJobs, role: operate, summary: "Keep a job from beginning runs, for some time",
		about: "A run in progress ends first. What the job gets meanwhile waits. The token unlocks it.",
	}, lockJob)
	add(s, operation{
		method: http.MethodDelete, path: "/v1/jobs/{job}/lock", id: "unlock-job", group: groupJobs, role: operate, status: http.StatusNoContent, summary: "Let a locked job run again",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Token string `query:"token" doc:"what locking it answered"`
		Force bool   `query:"force" doc:"end the lock whoever holds it"`
	},
	) (*nothing, error) {
		if in.Force == (in.Token != "") {
			return nil, wrong("give the token that locking answered, or force=true to end somebody else's lock")
		}
		h, err := s.find(ctx, in.Job)
		switch {
		case err != nil:
		case in.Force:
			err = h.BreakLock(ctx)
		default:
			err = h.Unlock(ctx, in.Token)
		}
		return done(err)
	})
}

// Recursive says whether jobs below are meant, too.
type Recursive struct {
	Recursive bool `json:"recursive,omitempty" doc:"all jobs below it, too"`
}

// RunWish says how a job is to run.
type RunWish struct {
	Force bool       `json:"force,omitempty" doc:"also if it failed or is terminated"`
	In    *duration  `json:"in,omitempty" doc:"after this time"`
	At    *time.Time `json:"at,omitempty" doc:"at this time"`
}

func runJob(ctx context.Context, s *session, in *struct {
	JobPath
	Body *RunWish
},
) (*reply[*Job], error) {
	b := given(in.Body)
	if b.In != nil && b.At != nil || b.Force && (b.In != nil || b.At != nil) {
		return nil, wrong("force, in and at each say how to run the job: use one of them")
	}
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	switch {
	case b.Force:
		err = h.Force(s.acting(ctx))
	case b.In != nil:
		err = h.RunAfter(ctx, time.Duration(*b.In))
	case b.At != nil:
		err = h.RunAt(ctx, *b.At)
	default:
		err = h.Run(s.acting(ctx))
	}
	if err != nil {
		return nil, s.refused(ctx, h, err)
	}
	return answer(FullJob(ctx, h))
}

// refused adds to the refusal of a run what would be possible instead.
func (s *session) refused(ctx context.Context, h *client.Handle, err error) error {
	if !errors.Is(err, job.ErrStatus) {
		return err
	}
	if info, other := h.Info(ctx); other == nil && info.Graph {
		p := problemOf(err)
		p.Detail = "job " + string(h.ID()) + " is a graph, and only the jobs in it run: retry with {\"tree\": true} retries those that failed"
		return p
	}
	return err
}

// Adoption says which job becomes a child, under which name.
type Adoption struct {
	Child string `json:"child" doc:"an ID or alias of a root job"`
	Name  string `json:"name" doc:"what it is called as a child"`
}

func adoptJob(ctx context.Context, s *session, in *struct {
	JobPath
	Body Adoption
},
) (*nothing, error) {
	if in.Body.Child == "" || in.Body.Name == "" {
		return nil, wrong("child and name are required: which job is adopted, and what it is called as a child")
	}
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	child, err := s.find(ctx, in.Body.Child)
	if err != nil {
		return nil, err
	}
	return done(h.Adopt(ctx, child, in.Body.Name))
}

type aliasInput struct {
	JobPath
	Alias string `path:"alias"`
}

// LockWish says for how long a job is to be locked.
type LockWish struct {
	TTL  *duration `json:"ttl,omitempty" doc:"how long, if nobody unlocks it before; 10m if it is missing"`
	Wait *duration `json:"wait,omitempty" doc:"how long to wait for a run in progress, or another lock, to end; at most 1m"`
}

// Locked is a lock that was taken.
type Locked struct {
	Token string    `json:"token" doc:"unlocks the job"`
	Until time.Time `json:"until"`
}

func lockJob(ctx context.Context, s *session, in *struct {
	JobPath
	Body *LockWish
},
) (*reply[Locked], error) {
	ttl, wait := 10*time.Minute, time.Duration(0)
	wish := given(in.Body)
	if wish.TTL != nil {
		ttl = time.Duration(*wish.TTL)
	}
	if wish.Wait != nil {
		wait = min(time.Duration(*wish.Wait), time.Minute)
	}
	if ttl < time.Second {
		return nil, wrong("ttl %s: a lock lasts a second or more", ttl)
	}
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	if info.Graph {
		return nil, problem(KindOf(job.ErrStatus), "job %s is a graph and has no runs of its own: lock the jobs in it", h.ID())
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	if wait > 0 { // nobody would release the lock of a client that has gone meanwhile
		var stop func()
		ctx, stop = s.until(ctx)
		defer stop()
	}
	lock, err := h.Lock(s.acting(ctx), ttl, wait)
	if err != nil {
		return nil, err
	}
	return answer(Locked{lock.Token(), now.Add(ttl).UTC()}, nil)
}
