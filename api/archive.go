package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/job"
)

// Statuses of jobs that are done, and of the others.
var (
	doneJobs = []job.Status{job.Completed, job.Failed, job.Terminated}
	openJobs = []job.Status{job.Queued, job.Scheduled, job.Waiting, job.Running, job.Suspended, job.Terminating}
)

const (
	maxPurge   = 1000 // jobs that one request purges
	maxEntries = 1000
	codesLook  = 100             // jobs that are looked at together for those of a code, at least
	maxReading = 16              // states that one request reads at a time
	pageTime   = 2 * time.Second // for which one request looks for more of a type
)

// entryOperations are those on a client's jobs of one type.
func (s *Server) entryOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/{client}/job/{type}/list", id: "list-entries", group: groupPayloads, role: read, summary: "List a client's jobs of a type",
		about: "The oldest first. Each has its ID, its type, `dt` and `lock`: of one that waits `lock` is empty, and `dt` is when it may run; of one that runs it is the beginning of the ID of the engine, and `dt` is when its lease ends; " +
			"of one that is done, and kept for its retention, `__done`, and `dt` is a thousand years after its end. Those that are done have the `code` and `exitcode` of their last try, if code ran; `code=failed` lists those whose payloads failed, which are completed jobs. `next` is the `after` of the next page.",
	}, listEntries)
	add(s, operation{
		method: http.MethodGet, path: "/{client}/job/{type}/get/{job}", id: "get-entry", group: groupPayloads, role: read, summary: "Show a client's job of a type, with the code and exit code of one that is done",
		about: "As in the list.",
	}, getEntry)
	add(s, operation{
		method: http.MethodPost, path: "/{client}/job/{type}/purge", id: "purge-entries", group: groupPayloads, role: operate, summary: "Remove a client's jobs of a type that are done",
		about: "As if they were past their retention: those that wrote messages that nobody has read stay, those that failed go with the payloads that they did not do. Without `until` all that are done are meant. Up to 1,000 are removed; `next`, if it is there, is the `after` that goes on. They are gone within seconds.",
	}, purgeEntries)
}

// EntryPath is a type of a client, in a path.
type EntryPath struct {
	Client string `path:"client" maxLength:"128" doc:"with tokens the namespace; without any name of letters, digits, _ and ., which is a tenant of its own"`
	Type   string `path:"type" maxLength:"512" doc:"the type; without tokens it is stored as {client}-{type}"`
	After  job.ID `query:"after" doc:"only those created behind the job with this ID"`
}

// filter is which of the jobs are meant.
func (in *EntryPath) filter(s *session, statuses []job.Status) (f job.Filter, err error) {
	typ, err := ClientType(s.cfg.Tokens, s.store.Namespace(), in.Client, in.Type)
	if err != nil {
		return f, err
	}
	if in.After != "" {
		if in.After, err = job.ParseID(string(in.After)); err != nil {
			return f, wrong("query.after: %v", err)
		}
	}
	return job.Filter{Type: typ, Status: statuses, Order: job.Oldest, After: in.After}, nil
}

// Entries is a page of jobs.
type Entries struct {
	Entries []PhasedEntry `json:"entries"`
	Next    job.ID        `json:"next,omitempty" doc:"the after of the next page; missing if this is the last one"`
}

// PhasedEntry is a job, and where it is in its life.
type PhasedEntry struct {
	handler.Entry
	State handler.Phase `json:"state" enum:"deferred,ready,running,abandoned,done"`
}

func listEntries(ctx context.Context, s *session, in *struct {
	EntryPath
	Done  string       `query:"done" enum:"true,false" doc:"true: only those that are done; false: only the others"`
	Code  handler.Code `query:"code" enum:"retry,ok,failed,error" doc:"only those that are done, and whose last try had this code"`
	Since time.Time    `query:"since" doc:"created then, or later"`
	Until time.Time    `query:"until" doc:"created before"`
	Limit int          `query:"limit" default:"100" minimum:"1" maximum:"1000"`
},
) (*reply[Entries], error) {
	statuses := map[string][]job.Status{"true": doneJobs, "false": openJobs}[in.Done]
	if in.Code != "" && in.Done == "" {
		statuses = doneJobs
	}
	f, err := in.filter(s, statuses)
	if err != nil {
		return nil, err
	}
	f.Since, f.Until = in.Since, in.Until
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	page, most := Entries{Entries: []PhasedEntry{}}, min(in.Limit, maxEntries)
	for began := time.Now(); ; { // others' jobs may lie between
		look := most - len(page.Entries)
		if in.Code != "" {
			look = max(look, codesLook)
		}
		jobs, next, err := s.client.JobsPage(ctx, f, look)
		if err != nil {
			return nil, err
		}
		entries, err := s.entriesOf(ctx, jobs)
		if err != nil {
			return nil, err
		}
		for n, e := range entries {
			if in.Code != "" && e.Code != in.Code {
				continue
			}
			page.Entries = append(page.Entries, PhasedEntry{e, e.Phase(now)})
			if len(page.Entries) == most && n < len(entries)-1 {
				page.Next = jobs[n].ID
				return answer(page, nil)
			}
		}
		page.Next, f.After = next, next
		if next == "" || len(page.Entries) == most || time.Since(began) > pageTime {
			return answer(page, nil)
		}
	}
}

func getEntry(ctx context.Context, s *session, in *struct {
	Client string `path:"client" maxLength:"128" doc:"with tokens the namespace; without any name of letters, digits, _ and ., which is a tenant of its own"`
	Type   string `path:"type" maxLength:"512" doc:"the type; without tokens it is stored as {client}-{type}"`
	Job    string `path:"job" doc:"the ID of the job"`
},
) (*reply[PhasedEntry], error) {
	typ, err := ClientType(s.cfg.Tokens, s.store.Namespace(), in.Client, in.Type)
	if err != nil {
		return nil, err
	}
	id, err := job.ParseID(in.Job)
	if err != nil {
		return nil, wrong("path.job: %v", err)
	}
	info, err := s.store.Info(ctx, id)
	if errors.Is(err, job.ErrNotFound) || err == nil && info.Type != typ {
		return nil, problem(KindOf(job.ErrNotFound), "client %s has no job %s of type %.80q: it may be past its retention, or not be moved from the journal yet", in.Client, id, in.Type)
	}
	if err != nil {
		return nil, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	e, err := s.entryOf(ctx, info)
	if err != nil {
		return nil, err
	}
	return answer(PhasedEntry{e, e.Phase(now)}, nil)
}

// entryOf is the entry of a job, with the code that is in its state if it completed.
func (s *session) entryOf(ctx context.Context, info *job.Info) (handler.Entry, error) {
	e := handler.EntryOf(info)
	if info.Status != job.Completed {
		return e, nil
	}
	state, err := s.store.State(ctx, info.ID, handler.StateResult)
	if err != nil {
		return e, err
	}
	var kept struct {
		Code   handler.Code `json:"code"`
		Status int          `json:"exitcode"`
	}
	if json.Unmarshal(state[handler.StateResult], &kept) == nil { // one of a program has something else there, or nothing
		e.Code, e.Status = kept.Code, kept.Status
	}
	return e, nil
}

// entriesOf are those of several jobs. One that is gone meanwhile has no code.
func (s *session) entriesOf(ctx context.Context, jobs []*job.Info) ([]handler.Entry, error) {
	entries := make([]handler.Entry, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxReading)
	for n, info := range jobs {
		group.Go(func() (err error) {
			entries[n], err = s.entryOf(ctx, info)
			if errors.Is(err, job.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	return entries, group.Wait()
}

// Purged is how many jobs are removed.
type Purged struct {
	Count int    `json:"count"`
	Next  job.ID `json:"next,omitempty" doc:"the after that goes on; missing if these were the last ones"`
}

func purgeEntries(ctx context.Context, s *session, in *struct {
	EntryPath
	Until time.Time `query:"until" doc:"only those that were done before"`
},
) (*reply[Purged], error) {
	f, err := in.filter(s, doneJobs)
	if err != nil {
		return nil, err
	}
	f.Until = in.Until // what was created later was not done before
	var ids []job.ID
	for began := time.Now(); ; {
		jobs, next, err := s.client.JobsPage(ctx, f, maxPurge-len(ids))
		if err != nil {
			return nil, err
		}
		for _, i := range jobs {
			if in.Until.IsZero() || i.Ended.Before(in.Until) {
				ids = append(ids, i.ID)
			}
		}
		if f.After = next; next == "" || len(ids) == maxPurge || time.Since(began) > pageTime {
			break
		}
	}
	n, err := s.store.Purge(ctx, ids...)
	return answer(Purged{n, f.After}, err)
}
