package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/job"
)

// Events of one job are looked for so often, and a stream without any is kept alive so often.
const (
	eventsEvery = 250 * time.Millisecond
	aliveEvery  = 15 * time.Second
)

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
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			_, w := unwrap(hc)
			ctx, cancel := s.until(hc.Context())
			defer cancel()
			(&stream{w: w, control: http.NewResponseController(w), log: r, handle: h}).follow(ctx)
		}}, nil
	})
}

// stream sends events of a job until its context ends or the client is gone.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	log     *job.LogReader
	handle  *job.Handle
	status  string // that was sent last
}

func (s *stream) follow(ctx context.Context) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
	alive := time.Now()
	for ctx.Err() == nil {
		sent, err := s.step(ctx)
		if err != nil {
			return
		}
		if !sent && time.Since(alive) > aliveEvery {
			sent = true
			if _, err := fmt.Fprint(s.w, ": alive\n\n"); err != nil {
				return
			}
		}
		if sent {
			alive = time.Now()
			if s.control.SetWriteDeadline(alive.Add(2*aliveEvery)) != nil || s.control.Flush() != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(eventsEvery):
		}
	}
}

// step sends what is new. A store that does not answer is asked again with the next step.
func (s *stream) step(ctx context.Context) (sent bool, err error) {
	info, err := s.handle.Info(ctx)
	if errors.Is(err, job.ErrNotFound) {
		_ = s.send(s.log.Position(), "deleted", map[string]job.ID{"id": s.handle.ID()})
		_ = s.control.Flush()
		return true, err
	}
	if err != nil {
		return false, nil //nolint:nilerr // it is asked again
	}
	entries, err := s.log.Next(ctx)
	if err != nil {
		return false, nil //nolint:nilerr // it is asked again
	}
	if n := s.log.Missed(); n > 0 {
		if err := s.send("", "trimmed", map[string]int64{"entries": n}); err != nil {
			return true, err
		}
	}
	for n, line := range LogLines(entries) {
		kind := "note"
		if line.Run != nil {
			kind = "run"
		}
		if err := s.send(s.log.Passed(entries[n]), kind, line); err != nil {
			return true, err
		}
	}
	if now := string(info.Status); now != s.status {
		s.status = now
		return true, s.send(s.log.Position(), "status", JobOf(info))
	}
	return len(entries) > 0, nil
}

func (s *stream) send(position, kind string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if position != "" { // else who comes back goes on behind what was sent before
		position = "id: " + position + "\n"
	}
	_, err = fmt.Fprintf(s.w, "%sevent: %s\ndata: %s\n\n", position, kind, raw)
	return err
}
