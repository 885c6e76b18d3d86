package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// portCost is the time between two looks at ports that each job adds, when there are many.
const portCost = 500 * time.Microsecond

type portEventsInput struct {
	PortPath
	Last string `header:"Last-Event-ID" doc:"the ID of the event that was read last: what it said is not said again"`
}

// PortCounts are what a port has had.
type PortCounts struct {
	Written int64 `json:"written" doc:"messages that ever came: the number of the next one"`
	Read    int64 `json:"read" doc:"how many of them were read, or have gone on along edges: the number of the first that waits"`
	Waiting int64 `json:"waiting"`
	Closed  bool  `json:"closed" doc:"no message will come any more"`
}

// place is the ID of the event that tells the counts.
func (c PortCounts) place() string {
	end := ""
	if c.Closed {
		end = "-closed"
	}
	return fmt.Sprintf("%d-%d%s", c.Written, c.Read, end)
}

// portEventOperations are those that follow ports.
func (s *Server) portEventOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/ports/{dir}/{port}/events", id: "port-events", group: groupPorts, role: read, summary: "Follow how many messages come to a port and are read, as server-sent events",
		about: "Events are `port`, at once and whenever its counts have changed, and `deleted` when the job or the port is no longer there. Between two events any number of messages may have come: those with the numbers from the earlier `written` on. " +
			"What they were is read with GET …/messages while they wait, and with GET /v1/jobs/{job}/log later.",
	}, func(ctx context.Context, s *session, in *portEventsInput) (*huma.StreamResponse, error) {
		h, dir, err := s.port(ctx, &in.PortPath)
		if err != nil {
			return nil, err
		}
		info, err := h.Info(ctx)
		if err != nil {
			return nil, err
		}
		if _, ok := info.Port(dir, in.Port); !ok {
			return nil, noPort(info, dir, in.Port)
		}
		feed := s.portFeed()
		l, err := feed.join(&s.feeds, &portWanted{h.ID(), dir, in.Port, in.Last}, func(bool) error { return nil })
		if err != nil {
			return nil, err
		}
		return s.streaming(func(ctx context.Context, out *sse) {
			follow(ctx, &feed.feed, l, out, func() string { return "" })
		}), nil
	})
}

// noPort says which ports there are.
func noPort(i *job.Info, dir port.Dir, name string) *Problem {
	var names []string
	for _, p := range i.Ports {
		if p.Dir == dir {
			names = append(names, p.Name)
		}
	}
	return problem(KindOf(job.ErrPort), "job %s has no %s port %.80q: %s", i.ID, dir, name, port.Suggest(name, names))
}

// portWanted is a port that a listener follows.
type portWanted struct {
	job  job.ID
	dir  port.Dir
	name string
	last string // what was said last
}

// portFeed reads the counts of ports.
type portFeed struct {
	feed[*portWanted]
	store *redisstore.Store
	feeds *feeds
}

// portFeed returns the feed of the session's store.
func (s *session) portFeed() *portFeed {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	f := s.feeds.ports[s.store]
	if f == nil {
		f = &portFeed{store: s.store, feeds: &s.feeds}
		f.read = f.step
		if s.feeds.ports == nil {
			s.feeds.ports = map[*redisstore.Store]*portFeed{}
		}
		s.feeds.ports[s.store] = f
	}
	return f
}

// step tells each listener what its port has had since. A store that does not answer is asked again with the next step.
func (f *portFeed) step(ctx context.Context) time.Duration {
	followed := map[job.ID]*job.Info{}
	var ids []job.ID
	for l := range f.listeners {
		if _, twice := followed[l.wants.job]; !twice {
			followed[l.wants.job] = nil
			ids = append(ids, l.wants.job)
		}
	}
	wait := f.feeds.pace(time.Duration(len(ids)) * portCost)
	infos, err := f.store.Infos(ctx, ids)
	if err != nil {
		return wait
	}
	for _, i := range infos {
		followed[i.ID] = i
	}
	made := map[portPlace][]byte{}
	for l := range f.listeners {
		f.tell(l, followed[l.wants.job], made)
	}
	return wait
}

// portPlace names an event: what a port has had.
type portPlace struct {
	job    job.ID
	dir    port.Dir
	name   string
	counts PortCounts
}

// tell offers a listener what its port has had, if that is something else than before; made has the events that were made for others. A
// job that is not there is nil.
func (f *portFeed) tell(l *listener[*portWanted], i *job.Info, made map[portPlace][]byte) {
	var p job.PortInfo
	there := i != nil
	if there {
		p, there = i.Port(l.wants.dir, l.wants.name)
	}
	if !there {
		var out bytes.Buffer
		if putEvent(&out, "", "deleted", map[string]job.ID{"id": l.wants.job}) == nil {
			f.offer(l, out.Bytes())
		}
		f.drop(l)
		return
	}
	counts := PortCounts{Written: p.Total, Read: p.Total - p.Waiting, Waiting: p.Waiting, Closed: p.Closed}
	place := counts.place()
	if place == l.wants.last {
		return
	}
	of := portPlace{i.ID, l.wants.dir, l.wants.name, counts}
	if made[of] == nil {
		var out bytes.Buffer
		if putEvent(&out, place, "port", counts) != nil {
			return
		}
		made[of] = out.Bytes()
	}
	l.wants.last = place
	f.offer(l, made[of])
}
