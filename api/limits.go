package api

import (
	"context"
	"net/http"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Limit is how a limit of runs at once, or a rate, is used.
type Limit struct {
	Limit   string   `json:"limit" doc:"type:<type> or rate:<type>, with the value of an argument behind it if each has its own, or queue:<queue>"`
	Places  int      `json:"places"`
	Per     string   `json:"per,omitempty" doc:"of a rate: within what time no more runs begin, such as 1s"`
	By      string   `json:"by,omitempty" doc:"the argument of which each value has its own places; those in use are listed besides"`
	Running int64    `json:"running" doc:"places that are taken: of a rate by runs that began within that time, or are about to"`
	Waiting int64    `json:"waiting" doc:"ready jobs that wait for a place"`
	Waited  int64    `json:"waited_ms" doc:"for how long the first of these is ready, in ms"`
	Holders []job.ID `json:"holders" doc:"the first of those that have a place"`
	Next    []job.ID `json:"next" doc:"the first of those that wait"`
	Free    int64    `json:"free_in_ms,omitempty" doc:"of a rate that has no place: in how long, in ms, the next one is free"`
}

// LimitsOf are limits as other programs see them.
func LimitsOf(all []redisstore.LimitInfo) []Limit {
	views := []Limit{}
	for _, l := range all {
		v := Limit{l.Name, l.Max, "", l.By, l.Running, l.Waiting, l.Waited.Milliseconds(), some(l.Holders), some(l.Next), l.Free.Milliseconds()}
		if l.Per > 0 {
			v.Per = l.Per.String()
		}
		views = append(views, v)
	}
	return views
}

// limitOperations are those on how many runs go on at once, or begin within a time.
func (s *Server) limitOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/limits", id: "list-limits", group: groupSystem, role: read, summary: "List the limits of runs at once and the rates: of queues and of types, and how they are used",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[[]Limit], error) {
		all, err := s.store.Limits(ctx)
		return answer(LimitsOf(all), err)
	})
	add(s, operation{
		method: http.MethodPut, path: "/v1/queues/{queue}/limit", id: "limit-queue", group: groupSystem, role: operate, status: http.StatusNoContent, summary: "Let at most N runs of a queue go on at once, over all engines",
		about: "The queue is one of GET /v1/queues, or has a limit that is to end. A program that limits its queue before it has jobs does so with `QueueLimits` of its engine.",
	}, func(ctx context.Context, s *session, in *struct {
		Queue string `path:"queue"`
		Body  struct {
			Limit  *int `json:"limit,omitempty" minimum:"0" doc:"how many, as GET /v1/queues shows it; 0 for no limit"`
			Places *int `json:"places,omitempty" minimum:"0" deprecated:"true" doc:"the same: what limit was called before"`
		}
	},
	) (*nothing, error) {
		n := in.Body.Limit
		if n == nil {
			n = in.Body.Places
		}
		if n == nil || in.Body.Limit != nil && in.Body.Places != nil {
			return nil, wrong(`body: give {"limit": N}, with 0 for no limit`)
		}
		if err := s.limitable(ctx, in.Queue, *n); err != nil {
			return nil, err
		}
		return done(s.store.SetQueueLimit(ctx, in.Queue, *n))
	})
}

// limitable returns an error if a queue is not known, unless a limit that it has is to end.
func (s *session) limitable(ctx context.Context, queue string, n int) error {
	if n == 0 {
		limits, err := s.store.QueueLimits(ctx)
		if err != nil || limits[queue] > 0 {
			return err
		}
	}
	return s.knownQueue(ctx, queue)
}
