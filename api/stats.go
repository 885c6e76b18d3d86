package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/redisstore"
)

// Stats are the counters of a namespace.
type Stats struct {
	At              time.Time          `json:"at"`
	Namespace       string             `json:"namespace"`
	Shards          int                `json:"shards"`
	Roots           int64              `json:"roots" doc:"root jobs"`
	Failed          int64              `json:"failed" doc:"jobs, those below others too"`
	Dead            int64              `json:"dead" doc:"jobs with dead letters: GET /v1/dead/count counts the dead letters"`
	Due             int64              `json:"due" doc:"jobs to be looked at later"`
	Overdue         int64              `json:"overdue" doc:"of these, late ones"`
	Orders          int64              `json:"orders" doc:"between shards, that are not carried out yet"`
	BackgroundTasks int64              `json:"chores" doc:"background tasks that are left to do"`
	Aliases         int64              `json:"aliases"`
	Retained        int64              `json:"retained" doc:"settled trees that are removed later"`
	Kept            int64              `json:"kept" doc:"settled trees past their retention whose output nobody has read"`
	Removed         int64              `json:"removed" doc:"trees that were removed after their retention"`
	Running         int                `json:"running" doc:"runs in progress"`
	Recent          Rates              `json:"recent" doc:"what runs do now: in the last 10 to 20 seconds"`
	Activity        []Activity         `json:"activity" doc:"what runs did in each ten seconds of the last 15 minutes in which there were some, the oldest first"`
	Queues          []Queue            `json:"queues"`
	Engines         []store.EngineInfo `json:"engines"`
}

// Activity is what runs did in a span of time.
type Activity struct {
	At      time.Time `json:"at" doc:"when the span began, by the clock of Redis"`
	Runs    int64     `json:"runs" doc:"that were committed"`
	Failed  int64     `json:"failed" doc:"runs that failed, whether their jobs try again or not"`
	Read    int64     `json:"read" doc:"messages"`
	Written int64     `json:"written" doc:"messages"`
	Waited  Spread    `json:"waited" doc:"for how long jobs were queued before their runs began"`
	Took    Spread    `json:"took" doc:"how long the code of runs took"`
}

// Rates are what runs do, for each second.
type Rates struct {
	Since   time.Time `json:"since" doc:"by the clock of Redis"`
	Runs    float64   `json:"runs_per_second"`
	Failed  float64   `json:"failed_per_second"`
	Read    float64   `json:"read_per_second" doc:"messages"`
	Written float64   `json:"written_per_second" doc:"messages"`
	Waited  Spread    `json:"waited" doc:"for how long jobs were queued before their runs began"`
	Took    Spread    `json:"took" doc:"how long the code of runs took"`
}

// Spread tells of durations how long half of them were at most, and 95 of 100; 0 if there were none.
type Spread struct {
	P50 float64 `json:"p50_seconds" doc:"about"`
	P95 float64 `json:"p95_seconds" doc:"about"`
}

func spreadOf(d *store.Durations) Spread {
	return Spread{d.Quantile(.5).Seconds(), d.Quantile(.95).Seconds()}
}

func ratesOf(a *store.Activity, now time.Time) Rates {
	each := func(n int64) float64 { return float64(n) / now.Sub(a.At).Seconds() }
	return Rates{
		Since: a.At, Runs: each(a.Runs), Failed: each(a.Failed), Read: each(a.Read), Written: each(a.Written),
		Waited: spreadOf(&a.Waited), Took: spreadOf(&a.Took),
	}
}

func activitiesOf(all []store.Activity) []Activity {
	out := make([]Activity, len(all))
	for i := range all {
		a := &all[i]
		out[i] = Activity{a.At, a.Runs, a.Failed, a.Read, a.Written, spreadOf(&a.Waited), spreadOf(&a.Took)}
	}
	return out
}

// StatsOf are the counters of a namespace as other programs see them.
func StatsOf(st *redisstore.Stats) Stats {
	v := Stats{
		At: st.At, Namespace: st.Namespace, Shards: st.Shards, Roots: st.Roots, Failed: st.Failed, Dead: st.Dead, Due: st.Due,
		Overdue: st.Overdue, Orders: st.Orders, BackgroundTasks: st.BackgroundTasks, Aliases: st.Aliases,
		Retained: st.Retained, Kept: st.Kept, Removed: st.Removed, Queues: QueuesOf(st.Queues), Engines: some(st.Engines),
	}
	recent := store.Recent(st.Activity, st.At)
	v.Recent, v.Activity = ratesOf(&recent, st.At), activitiesOf(st.Activity)
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
		about: "The run that sent it, those that sent what that run had read, and so on, nearest first, as far as the log of the tree goes back. Of a run that read several messages all are followed: the log does not tell which of them one that it wrote was made of.",
	}, trace)
}

func trace(ctx context.Context, s *session, in *traceInput) (*reply[*Origin], error) {
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
		return nil, noPort(info, dir, in.Port)
	}
	n := p.Total - p.Waiting
	if in.Message != "" {
		if n, err = strconv.ParseInt(in.Message, 10, 64); err != nil || n < 0 {
			return nil, wrong("query.message: %.40q is not the number of a message: the first is 0", in.Message)
		}
	}
	if n >= p.Total {
		return nil, problem(Kind{"not_found", http.StatusNotFound, 3}, "port %s of job %s has had %d messages: none has number %d", in.Port, info.ID, p.Total, n)
	}
	o, err := h.Origin(ctx, dir, in.Port, n)
	if err != nil {
		return nil, err
	}
	return answer(OriginOf(o), nil)
}
