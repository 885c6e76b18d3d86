package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
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
		about: "Events are `run` and `note`, each an entry as GET /v1/jobs/{job}/log has it, and `status`, the job itself, when its status has changed; `trimmed` says how many entries are left out: they were gone before they could be sent, or are more than that many listeners can be told, and then GET …/log still has them. " +
			"The ID of an event is a position: a client that comes back with Last-Event-ID misses nothing that the log still has.",
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
		feed := s.logFeed(h, in.Tree, r)
		begun, l, err := feed.enter(ctx, &s.feeds, r)
		if err != nil {
			s.feeds.release(feed)
			return nil, err
		}
		return s.streaming(func(ctx context.Context, out *sse) {
			defer s.feeds.release(feed)
			if out.write(ctx, begun, "") != nil {
				feed.leave(l)
				return
			}
			follow(ctx, &feed.feed, l, out, func() string { return "" })
		}), nil
	})
}
