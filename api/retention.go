package api

import (
	"context"
	"net/http"

	"github.com/weirworks/weir/job"
)

// Retention says for how long trees are kept after they have settled, as job.ParseRetention reads it.
type Retention struct {
	Ended  string `json:"ended,omitempty" doc:"of trees that have completed, or were terminated: like 12h or 7d, or forever"`
	Failed string `json:"failed,omitempty" doc:"of trees that have failed"`
	Log    string `json:"log,omitempty" doc:"of entries of logs: older ones go as others come; forever: a log keeps its last 10,000"`
}

// RetentionOf is a retention as other programs see it.
func RetentionOf(r job.Retention) Retention {
	return Retention{job.RetentionText(r.Ended), job.RetentionText(r.Failed), job.RetentionText(r.Log)}
}

// retentionOperations are those on what holds for trees that name no retention of their own.
func (s *Server) retentionOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/retention", id: "get-retention", group: groupSystem, role: read, summary: "Say for how long trees are kept after they have settled, and entries of logs",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[Retention], error) {
		r, err := s.client.Retention(ctx)
		return answer(RetentionOf(r), err)
	})
	add(s, operation{
		method: http.MethodPut, path: "/v1/retention", id: "set-retention", group: groupSystem, role: operate, summary: "Set for how long trees are kept after they have settled, and entries of logs",
		about: "It holds for trees that settle from now on and were not started with a retention of their own, and for all logs. What is left out stays as it is.",
	}, func(ctx context.Context, s *session, in *struct{ Body Retention }) (*reply[Retention], error) {
		r, err := in.Body.parse()
		if err == nil {
			err = s.client.SetRetention(ctx, r)
		}
		if err == nil {
			r, err = s.client.Retention(ctx)
		}
		return answer(RetentionOf(r), err)
	})
}

// parse reads the texts; an empty one is no retention.
func (r Retention) parse() (out job.Retention, err error) {
	if r.Ended != "" {
		out.Ended, err = job.ParseRetention(r.Ended)
	}
	if r.Failed != "" && err == nil {
		out.Failed, err = job.ParseRetention(r.Failed)
	}
	if r.Log != "" && err == nil {
		out.Log, err = job.ParseRetention(r.Log)
	}
	return out, err
}
