package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

const (
	// mostChanges is how many jobs that have changed are told at a time, to each listener, and mostTold to all of them together, but for
	// leastChanges: of more than that nothing is told but that there are.
	mostChanges  = 500
	mostTold     = 10_000
	leastChanges = 10
	// resetPause is how long nothing is read after that.
	resetPause = 2 * time.Second
)

// changesInput says which changes of jobs are followed.
type changesInput struct {
	JobFilter
	Last string `header:"Last-Event-ID" doc:"the ID of the event that was read last; without it, what changes from now on"`
}

// changeOperations are those that follow the list of jobs.
func (s *Server) changeOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/events/jobs", id: "jobs-events", group: groupJobs, role: read, summary: "Follow the list of jobs as server-sent events",
		about: "Events are `job`, a job that was created or got another status, as GET /v1/jobs lists it, without its children, aliases and errors; `gone`, with the `id` of a job that was removed, or, without `all`, became a child, whatever the filters; and `reset`: " +
			"more has changed than is told, so read the list again. Each change is told at least once, or by a `reset`: of a job that changes often only what it is now. Without filters root jobs are followed. " +
			"A job is told while it passes the filters: of one that no longer has a status asked for nothing is told. alias, path and state cannot be filters here. " +
			"A client that comes back within a minute with Last-Event-ID is told what has changed meanwhile.",
	}, func(ctx context.Context, s *session, in *changesInput) (*huma.StreamResponse, error) {
		if in.Alias != "" || in.Path != "" || len(in.State) > 0 {
			return nil, wrong("query: alias, path and state cannot be followed: use type, queue, label, name or status")
		}
		filter, err := in.filter()
		if err != nil {
			return nil, err
		}
		key, err := json.Marshal(&in.JobFilter)
		if err != nil {
			return nil, err
		}
		filter.All = filter.All || filter.Name != "" || filter.Blocked // as they include it
		feed := s.jobFeed(filter.All)
		want := jobsWanted{string(key), &filter}
		since, known := redisstore.Place{}, in.Last != ""
		if known {
			if since, err = s.store.ParsePlace(in.Last); err != nil {
				return nil, wrong("header.Last-Event-ID: %v", err)
			}
		}
		l, err := feed.join(&s.feeds, want, func(first bool) error { return feed.begin(ctx, first) })
		if err != nil {
			return nil, err
		}
		return s.streaming(func(ctx context.Context, out *sse) {
			if catchUp(ctx, feed, want, since, known, out) != nil {
				feed.leave(l)
				return
			}
			follow(ctx, &feed.feed, l, out, func() string { return feed.at().String() })
		}), nil
	})
}

// jobsWanted says which jobs a listener wants to hear of.
type jobsWanted struct {
	key    string // the same for the same filters
	filter *job.Filter
}

// changesOf names a feed: all jobs of a store, or those without parent.
type changesOf struct {
	store *redisstore.Store
	all   bool
}

// jobFeed reads which jobs have changed.
type jobFeed struct {
	feed[jobsWanted]
	of    changesOf
	feeds *feeds
	place redisstore.Place
}

// jobFeed returns the feed of the session's store.
func (s *session) jobFeed(all bool) *jobFeed {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	of := changesOf{s.store, all}
	f := s.feeds.jobs[of]
	if f == nil {
		f = &jobFeed{of: of, feeds: &s.feeds}
		f.read = f.step
		if s.feeds.jobs == nil {
			s.feeds.jobs = map[changesOf]*jobFeed{}
		}
		s.feeds.jobs[of] = f
	}
	return f
}

// begin lets the first listener hear of what changes from now on; with mu held.
func (f *jobFeed) begin(ctx context.Context, first bool) error {
	if !first {
		return nil
	}
	changes, err := f.of.store.Changes(ctx, f.of.all, redisstore.Place{}, 0)
	f.place = changes.Next
	return err
}

// at is how far the feed has read.
func (f *jobFeed) at() redisstore.Place {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.place
}

// step tells all listeners what has changed. A store that does not answer is asked again with the next step.
func (f *jobFeed) step(ctx context.Context) time.Duration {
	batch, err := f.readFrom(ctx, f.place, len(f.listeners))
	if err != nil {
		return f.feeds.pace(0)
	}
	f.place = batch.next
	made := map[string][]byte{} // by filters
	for l := range f.listeners {
		events, ok := made[l.wants.key]
		if !ok {
			events = batch.events(l.wants.filter)
			made[l.wants.key] = events
		}
		if len(events) > 0 {
			f.offer(l, events)
		}
	}
	if batch.reset {
		return f.feeds.pace(resetPause)
	}
	return f.feeds.pace(0)
}

// jobBatch is what has changed.
type jobBatch struct {
	jobs  []*job.Info
	gone  []job.ID
	reset bool // more than is told
	next  redisstore.Place
}

// readFrom reads what has changed since, for that many listeners.
func (f *jobFeed) readFrom(ctx context.Context, place redisstore.Place, listeners int) (b jobBatch, err error) {
	most := max(leastChanges, min(mostChanges, mostTold/max(listeners, 1)))
	changes, err := f.of.store.Changes(ctx, f.of.all, place, most+1)
	if err == nil && (changes.Lost || len(changes.IDs) > most) {
		changes, err = f.of.store.Changes(ctx, f.of.all, redisstore.Place{}, 0)
		return jobBatch{reset: true, next: changes.Next}, err
	}
	b.next = changes.Next
	if err != nil || len(changes.IDs) == 0 {
		return b, err
	}
	infos, err := f.of.store.Infos(ctx, changes.IDs)
	if err != nil {
		return b, err
	}
	there := make(map[job.ID]bool, len(infos))
	for _, i := range infos {
		if f.of.all || i.Parent == "" {
			there[i.ID] = true
			b.jobs = append(b.jobs, i)
		}
	}
	for _, id := range changes.IDs {
		if !there[id] {
			b.gone = append(b.gone, id)
		}
	}
	return b, nil
}

// events are those of a batch for who has a filter; the last one has the place behind all of them as its ID.
func (b *jobBatch) events(filter *job.Filter) []byte {
	type one struct {
		kind string
		data any
	}
	var all []one
	if b.reset {
		all = append(all, one{"reset", struct{}{}})
	}
	for _, i := range b.jobs {
		if filter.Match(i) {
			all = append(all, one{"job", JobOf(i)})
		}
	}
	for _, id := range b.gone {
		all = append(all, one{"gone", map[string]job.ID{"id": id}})
	}
	var out bytes.Buffer
	for n, e := range all {
		place := ""
		if n == len(all)-1 {
			place = b.next.String()
		}
		if err := putEvent(&out, place, e.kind, e.data); err != nil {
			return nil
		}
	}
	return out.Bytes()
}

// catchUp sends what has changed since a listener was there last, or the place where it begins.
func catchUp(ctx context.Context, f *jobFeed, want jobsWanted, since redisstore.Place, known bool, out *sse) error {
	batch := jobBatch{}
	var err error
	if known {
		batch, err = f.readFrom(ctx, since, f.size())
	} else {
		batch.next = f.at()
	}
	if err != nil {
		return err
	}
	events := append(batch.events(want.filter), "id: "+batch.next.String()+"\n\n"...)
	return out.write(ctx, events, "")
}
