package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// systemOperations are those on what is there besides jobs.
func (s *Server) systemOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/engines", id: "list-engines", group: groupSystem, role: read, summary: "List the engines that live, and what they run",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[[]store.EngineInfo], error) {
		all, err := s.store.Engines(ctx)
		return answer(some(all), err)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/queues", id: "list-queues", group: groupSystem, role: read, summary: "List the queues: what is queued, who serves them, which are paused",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[[]Queue], error) {
		all, err := s.store.Queues(ctx)
		return answer(QueuesOf(all), err)
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/queues/{queue}/pause", id: "pause-queue", group: groupSystem, role: operate, summary: "Let no job of a queue begin a run, on any engine",
	}, pausing(func(ctx context.Context, s *session, queue string) (bool, error) {
		return s.store.PauseQueue(ctx, queue)
	}))
	add(s, operation{
		method: http.MethodPost, path: "/v1/queues/{queue}/resume", id: "resume-queue", group: groupSystem, role: operate, summary: "Let jobs of a paused queue run again",
	}, pausing(func(ctx context.Context, s *session, queue string) (bool, error) {
		return s.store.ResumeQueue(ctx, queue)
	}))
	add(s, operation{
		method: http.MethodPost, path: "/v1/channels/publish", id: "publish", group: groupPorts, role: operate, summary: "Publish messages to a channel",
		about: "They go to the In ports that subscribe to it, or to a channel above it.",
	}, func(ctx context.Context, s *session, in *struct{ Body Publication }) (*reply[Sent], error) {
		if len(in.Body.Messages) == 0 {
			return nil, wrong("messages is empty: there is nothing to publish")
		}
		messages := make([]any, len(in.Body.Messages))
		for i, m := range in.Body.Messages {
			messages[i] = m
		}
		return answer(Sent{len(messages)}, s.client.Publish(s.acting(ctx), in.Body.Channel, messages...))
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/doctor", id: "doctor", group: groupSystem, role: operate, summary: "Examine the Redis and the namespace, and say what to do about what is found",
		about: "A finding of the level `problem` says that jobs are not safe, or do not go on; `fix` says what to do. With `deep` all keys of the namespace are looked at, which takes its time.",
	}, func(ctx context.Context, s *session, in *struct {
		Deep bool `query:"deep" doc:"look at all keys of the namespace, too"`
	},
	) (*reply[[]redisstore.Finding], error) {
		all, err := s.store.Examine(ctx, redisstore.Examination{Deep: in.Deep})
		return answer(some(all), err)
	})
	s.retentionOperations()
	s.limitOperations()
	s.tokenOperations()
	s.auditOperations()
	add(s, operation{
		method: http.MethodGet, path: "/v1/me", id: "me", group: groupSystem, role: read, summary: "Say who asks, and what he may do",
	}, func(_ context.Context, s *session, _ *struct{}) (*reply[Me], error) {
		return answer(Me{Name: s.principal.Name, Role: s.principal.Role, Tenant: s.principal.Tenant}, nil)
	})
}

// some is a list that is not null.
func some[T any](all []T) []T { return append([]T{}, all...) }

// Queue is a queue as other programs see it.
type Queue struct {
	Queue     string   `json:"queue"`
	Paused    bool     `json:"paused"`
	Limit     int      `json:"limit,omitempty" doc:"how many of its jobs run at once at most, over all engines; missing: any number"`
	Pending   int      `json:"pending" doc:"ready jobs whose run may begin"`
	Limited   int      `json:"limited" doc:"ready jobs that wait for a place of a limit; they are not among the pending ones"`
	LimitedMS int64    `json:"limited_ms" doc:"since when the first of these is ready"`
	Active    int      `json:"active"`
	Scheduled int      `json:"scheduled"`
	Retry     int      `json:"retry"`
	Archived  int      `json:"archived"`
	LatencyMS int64    `json:"latency_ms" doc:"since when the first pending one waits"`
	Engines   int      `json:"engines"`
	Slots     int      `json:"slots"`
	Types     []string `json:"types"`
	Ready     []Ready  `json:"ready" doc:"the pending ones by type, of types that have some"`
}

// Ready are the ready jobs of a type in a queue.
type Ready struct {
	Type     string `json:"type" doc:"empty for jobs that are to end and whose type no engine has"`
	Jobs     int    `json:"jobs"`
	OldestMS int64  `json:"oldest_ms" doc:"since when the first one waits"`
}

// QueuesOf are queues as other programs see them.
func QueuesOf(all []redisstore.QueueInfo) []Queue {
	views := []Queue{}
	for _, q := range all {
		ready := []Ready{}
		for _, r := range q.Ready {
			ready = append(ready, Ready{r.Type, r.Jobs, r.Oldest.Milliseconds()})
		}
		views = append(views, Queue{
			Queue: q.Name, Paused: q.Paused, Limit: q.Limit, Pending: q.Pending, Limited: q.Limited, LimitedMS: q.LimitedFor.Milliseconds(), Active: q.Active, Scheduled: q.Scheduled, Retry: q.Retry,
			Archived: q.Archived, LatencyMS: q.Latency.Milliseconds(), Engines: q.Engines, Slots: q.Slots, Types: q.Types, Ready: ready,
		})
	}
	return views
}

type queueInput struct {
	Queue string `path:"queue"`
}

// Pausing is what became of a queue.
type Pausing struct {
	Queue   string `json:"queue"`
	Changed bool   `json:"changed" doc:"false: it was so already"`
}

// pausing is an operation that pauses or resumes a queue that is known.
func pausing(act func(ctx context.Context, s *session, queue string) (bool, error)) func(context.Context, *session, *queueInput) (*reply[Pausing], error) {
	return func(ctx context.Context, s *session, in *queueInput) (*reply[Pausing], error) {
		if err := s.knownQueue(ctx, in.Queue); err != nil {
			return nil, err
		}
		changed, err := act(ctx, s, in.Queue)
		return answer(Pausing{in.Queue, changed}, err)
	}
}

// knownQueue returns an error unless a queue is known.
func (s *session) knownQueue(ctx context.Context, queue string) error {
	all, err := s.store.Queues(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(all))
	for i, q := range all {
		names[i] = q.Name
	}
	if !slices.Contains(names, queue) {
		return problem(KindOf(job.ErrNotFound), "no queue %.80q is known: %s", queue, port.Suggest(queue, names))
	}
	return nil
}

// Publication is what is published to a channel.
type Publication struct {
	Channel  string            `json:"channel" doc:"such as /orders/new"`
	Messages []json.RawMessage `json:"messages"`
}

// Me is who asks.
type Me struct {
	Name   string `json:"name"`
	Role   Role   `json:"role"`
	Tenant string `json:"tenant" doc:"the namespace"`
}
