package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Stats are the counters of a namespace.
type Stats struct {
	At        time.Time        `json:"at"`
	Namespace string           `json:"namespace"`
	Shards    int              `json:"shards"`
	Roots     int64            `json:"roots" doc:"jobs without parent"`
	Failed    int64            `json:"failed" doc:"jobs, those below others too"`
	Due       int64            `json:"due" doc:"jobs to be looked at later"`
	Overdue   int64            `json:"overdue" doc:"of these, late ones"`
	Orders    int64            `json:"orders" doc:"between shards, that are not carried out yet"`
	Chores    int64            `json:"chores" doc:"background tasks that are left to do"`
	Aliases   int64            `json:"aliases"`
	Retained  int64            `json:"retained" doc:"settled trees that are removed later"`
	Kept      int64            `json:"kept" doc:"settled trees past their retention whose output nobody has read"`
	Removed   int64            `json:"removed" doc:"trees that were removed after their retention"`
	Running   int              `json:"running" doc:"runs in progress"`
	Queues    []Queue          `json:"queues"`
	Engines   []job.EngineInfo `json:"engines"`
}

// StatsOf are the counters of a namespace as other programs see them.
func StatsOf(st *redisstore.Stats) Stats {
	v := Stats{
		At: time.Now().UTC(), Namespace: st.Namespace, Shards: st.Shards, Roots: st.Roots, Failed: st.Failed, Due: st.Due,
		Overdue: st.Overdue, Orders: st.Orders, Chores: st.Chores, Aliases: st.Aliases,
		Retained: st.Retained, Kept: st.Kept, Removed: st.Removed, Queues: QueuesOf(st.Queues), Engines: some(st.Engines),
	}
	for i := range st.Engines {
		v.Running += st.Engines[i].Running
	}
	return v
}

type traceInput struct {
	PortPath
	Message string `query:"message" doc:"the number of the message, of all that ever came to the port: the first is 0; without it, the oldest that waits"`
}

// statsOperations are those that look at a namespace as a whole, and where messages came from.
func (s *Server) statsOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/stats", id: "stats", group: groupSystem, role: read, summary: "Count what the namespace has",
		about: "Nothing is scanned: it costs the same however many jobs there are.",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[Stats], error) {
		st, err := s.store.Stats(ctx)
		if err != nil {
			return nil, err
		}
		return answer(StatsOf(st), nil)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/ports/{dir}/{port}/trace", id: "trace", group: groupPorts, role: read, summary: "Tell where a message came from",
		about: "The run that sent it, those that sent what that run had read, and so on, nearest first, as far as the log of the tree goes back.",
	}, trace)
}

func trace(ctx context.Context, s *session, in *traceInput) (*reply[[]LogLine], error) {
	h, dir, err := s.port(ctx, &in.PortPath)
	if err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	p, ok := info.Port(dir, in.Port)
	if !ok {
		return nil, wrong("path.port: job %s has no such port: GET /v1/jobs/{job}/ports lists them", info.ID)
	}
	n := p.Total - p.Waiting
	if in.Message != "" {
		if n, err = strconv.ParseInt(in.Message, 10, 64); err != nil || n < 0 {
			return nil, wrong("query.message: %.40q is not the number of a message: the first is 0", in.Message)
		}
	}
	if n >= p.Total {
		return nil, problem(Kind{"not_found", http.StatusNotFound, 3}, "port %s of job %s has had %d messages: there is no number %d", in.Port, info.ID, p.Total, n)
	}
	lines, err := h.Trace(ctx, dir, in.Port, n)
	return answer(TraceLines(lines), err)
}
