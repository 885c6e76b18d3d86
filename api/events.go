package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/job"
)

// logCost is the time between two looks of a stream at its log that each stream of the server adds, when there are many.
const logCost = 2 * time.Millisecond

type eventsInput struct {
	JobPath
	Tree  bool   `query:"tree" doc:"of all jobs below it, too; of a graph it always is"`
	After string `query:"after" doc:"a position, as GET /v1/jobs/{job}/log answers it; without it, what comes from now on"`
	Last  string `header:"Last-Event-ID" doc:"the position that was read last: it takes precedence over after"`
}

// eventOperations are those that answer with a stream.
func (s *Server) eventOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/events", id: "job-events", group: groupJobs, role: read, summary: "Follow the log of a job, or of its tree, as server-sent events",
		about: "Events are `run` and `note`, each an entry as GET /v1/jobs/{job}/log has it, and `status`, the job itself, when its status has changed; `trimmed` says how many entries were gone before they could be sent. The ID of an event is a position: a client that comes back with Last-Event-ID misses nothing that the log still has.",
	}, func(ctx context.Context, s *session, in *eventsInput) (*huma.StreamResponse, error) {
		r, err := s.openLog(ctx, in.Job, in.Tree)
		if err != nil {
			return nil, err
		}
		after := in.After
		if in.Last != "" {
			after = in.Last
		}
		if after == "" {
			_, err = r.Last(ctx, 0, time.Time{})
		} else if err = r.Seek(after); err != nil {
			err = wrong("%v", err)
		}
		if err != nil {
			return nil, err
		}
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		return s.streaming(func(ctx context.Context, out *sse) {
			(&stream{out: out, log: r, handle: h}).follow(ctx)
		}), nil
	})
}

// stream sends events of a job until its context ends or the client is gone.
type stream struct {
	out    *sse
	log    *job.LogReader
	handle *job.Handle
	status string // that was sent last
	events bytes.Buffer
}

func (s *stream) follow(ctx context.Context) {
	following := &s.out.session.following
	following.Add(1)
	defer following.Add(-1)
	for ctx.Err() == nil {
		s.events.Reset()
		err := s.step(ctx)
		if s.out.write(ctx, s.events.Bytes(), "") != nil || err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pace(int(following.Load()), logCost)):
		}
	}
}

// step looks for what is new. A store that does not answer is asked again with the next step.
func (s *stream) step(ctx context.Context) error {
	info, err := s.handle.Info(ctx)
	if errors.Is(err, job.ErrNotFound) {
		_ = putEvent(&s.events, s.log.Position(), "deleted", map[string]job.ID{"id": s.handle.ID()})
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // it is asked again
	}
	entries, err := s.log.Next(ctx)
	if err != nil {
		return nil //nolint:nilerr // it is asked again
	}
	if n := s.log.Missed(); n > 0 {
		if err := putEvent(&s.events, "", "trimmed", map[string]int64{"entries": n}); err != nil {
			return err
		}
	}
	for n, line := range LogLines(entries) {
		kind := "note"
		if line.Run != nil {
			kind = "run"
		}
		if err := putEvent(&s.events, s.log.Passed(entries[n]), kind, line); err != nil {
			return err
		}
	}
	if now := string(info.Status); now != s.status {
		s.status = now
		return putEvent(&s.events, s.log.Position(), "status", JobOf(info))
	}
	return nil
}
