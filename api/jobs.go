package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// jobOperations are those that look at jobs, and create them.
func (s *Server) jobOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs", id: "list-jobs", group: groupJobs, role: read, summary: "List jobs",
		about: "Without filters root jobs are listed, the newest first. A job must pass all filters. `next` is the `after` of the next page. In an order of creation one request looks at some 20,000 jobs at most: where few pass the filters a page may have fewer than `limit`, or none, and a `next`.",
	}, listJobs)
	add(s, operation{
		method: http.MethodGet, path: "/v1/count", id: "count-jobs", group: groupJobs, role: read, summary: "Count jobs that pass filters",
	}, func(ctx context.Context, s *session, in *JobFilter) (*reply[Count], error) {
		f, err := in.filter()
		if err != nil {
			return nil, err
		}
		n, err := s.client.Count(ctx, f)
		return answer(Count{n}, err)
	})
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs", id: "create-job", group: groupJobs, role: operate, status: http.StatusCreated, summary: "Create a job by its type",
		about: "The type must be one that an engine has registered for the queue. With an alias that exists already nothing is created: 409. With `unique` and a job that is the same work nothing is created, either: 200, and that job.",
	}, createJob)
	s.batchOperations()
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}", id: "show-job", group: groupJobs, role: read, summary: "Show one job: status, ports, state, children, errors",
		about: "ETag changes with what is shown; If-None-Match of the last one answers 304.",
	}, showJob)
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/tree", id: "show-tree", group: groupJobs, role: read, summary: "Show the tree of a job, nested, with its wires",
	}, func(ctx context.Context, s *session, in *JobPath) (*reply[*Job], error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		tree, err := h.Tree(ctx)
		return answer(TreeOf(tree), err)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/why", id: "why", group: groupJobs, role: read, summary: "Say in words what a job waits for, and what would move it",
	}, func(ctx context.Context, s *session, in *JobPath) (*reply[[]explain.Because], error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		return answer(explain.Ask(ctx, s.store, h, in.Job, true))
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/log", id: "show-log", group: groupJobs, role: read, summary: "Show what the last runs of a job, or of its tree, read, wrote and logged",
		about: "`position` is where GET /v1/jobs/{job}/events?after= goes on, and `earlier` the `before` of the page before this one.",
	}, showLog)
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/wait", id: "wait", group: groupJobs, role: read, summary: "Wait until a job is completed, or something else",
		about: "Answers when the job has reached what is waited for, or cannot reach it any more by itself, or when the timeout is over: `reached` tells which. Ask again for as long as you like.",
	}, waitJob)
}

// JobFilter says which jobs are meant.
type JobFilter struct {
	Status        []string  `query:"status" doc:"one of these statuses, with commas between them"`
	Type          string    `query:"type" doc:"a worker type, or the name of a graph"`
	Queue         string    `query:"queue"`
	Label         []string  `query:"label" doc:"KEY=VALUE, KEY for any value, or !KEY for jobs without such a label; several with commas: all of them"`
	Alias         string    `query:"alias" doc:"a pattern of aliases: * stands for any characters, ? for one"`
	Path          string    `query:"path" doc:"a path of names with patterns: shop/pay/* are the children of shop/pay, shop/** is shop and all below it; the first name may be a pattern of aliases"`
	Name          string    `query:"name" doc:"a pattern of the name as a child; it includes all"`
	State         []string  `query:"state" doc:"keys that the state of the job has, with commas between them: all of these"`
	SequentialKey string    `query:"sequential_key" doc:"of the job's tree"`
	UniqueKey     string    `query:"unique_key" doc:"of a root"`
	Blocked       bool      `query:"blocked" doc:"jobs that wait because a port that they wrote to is full; it includes all"`
	Since         time.Time `query:"since" doc:"created then, or later"`
	Until         time.Time `query:"until" doc:"created before"`
	All           bool      `query:"all" doc:"jobs below others, too"`
}

func (q *JobFilter) filter() (job.Filter, error) {
	f := job.Filter{
		Type: q.Type, Queue: q.Queue, Alias: q.Alias, Path: q.Path, Name: q.Name, StateKeys: q.State,
		SequentialKey: q.SequentialKey, UniqueKey: q.UniqueKey, Blocked: q.Blocked, Since: q.Since, Until: q.Until, All: q.All, Labels: map[string]string{},
	}
	statuses := statemachine.Statuses()
	for _, text := range q.Status {
		if !slices.Contains(statuses, statemachine.Status(text)) {
			return f, wrong("query.status: unknown status %.80q: %s", text, port.Suggest(text, texts(statuses)))
		}
		f.Status = append(f.Status, statemachine.Status(text))
	}
	for _, label := range q.Label {
		if without, not := strings.CutPrefix(label, "!"); not {
			f.Without = append(f.Without, without)
			continue
		}
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			f.Keys = append(f.Keys, key)
			continue
		}
		f.Labels[key] = value
	}
	if err := f.Validate(); err != nil {
		return f, wrong("%v", err)
	}
	return f, nil
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

type listInput struct {
	JobFilter
	Order string `query:"order" doc:"-created (the default), created, -ran, ran, status or type"`
	After string `query:"after" doc:"only what comes behind the job with this ID"`
	Limit int    `query:"limit" default:"50" minimum:"1" maximum:"1000"`
}

// JobPage is a page of jobs.
type JobPage struct {
	Jobs []*Job `json:"jobs"`
	Next job.ID `json:"next,omitempty" doc:"the after of the next page; missing if this is the last one"`
}

// Count is how many there are.
type Count struct {
	Count int `json:"count"`
}

func listJobs(ctx context.Context, s *session, in *listInput) (*reply[JobPage], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if orders := texts(job.Orders()); in.Order != "" && !slices.Contains(orders, in.Order) {
		return nil, wrong("query.order: unknown order %.80q: %s", in.Order, port.Suggest(in.Order, orders))
	}
	f.Order = job.Order(in.Order)
	if in.After != "" {
		if f.After, err = job.ParseID(in.After); err != nil {
			return nil, wrong("query.after: %v", err)
		}
	}
	page := JobPage{Jobs: []*Job{}}
	list, next, err := s.client.JobsPage(ctx, f, in.Limit)
	page.Next = next
	if len(list) > 0 {
		page.Jobs, err = JobsOf(ctx, s.store, list)
	}
	return answer(page, err)
}

// NewJob describes a job that is to be created.
type NewJob struct {
	Type          string            `json:"type" doc:"a type that an engine has registered: GET /v1/types"`
	Queue         string            `json:"queue,omitempty" doc:"default if empty"`
	Priority      *int              `json:"priority,omitempty" minimum:"0" maximum:"1000" doc:"of the ready jobs of a queue those of a higher one run first; 500 without it"`
	Args          json.RawMessage   `json:"args,omitempty" doc:"the parameters of the worker, an object"`
	Parent        *string           `json:"parent,omitempty" doc:"the job that it becomes a child of, with name"`
	Name          *string           `json:"name,omitempty" doc:"the name as a child"`
	Alias         *string           `json:"alias,omitempty" doc:"a name that is unique in the namespace"`
	Labels        map[string]string `json:"labels,omitempty"`
	Retain        string            `json:"retain,omitempty" doc:"for how long the job is kept after it has settled, like 12h or 7d, or forever"`
	SequentialKey *string           `json:"sequential_key,omitempty" maxLength:"128" doc:"of the trees with one key one is active at a time, in the order of their creation; the others wait. A child has none"`
	Unique        *NewUnique        `json:"unique,omitempty" doc:"create the job unless one that is the same work is there, and answer with that one; {} is enough. It goes with neither alias nor parent"`
	Failure       job.FailurePolicy `json:"failure,omitempty" enum:"fail,restart,dead_letter,ignore" doc:"what follows when the job has no tries left: it fails (the default), is tried again indefinitely, or puts the message aside that it cannot handle; ignore: of a child, its graph goes on without it"`
	In            *duration         `json:"in,omitempty" doc:"not to run before this time has passed"`
	At            *time.Time        `json:"at,omitempty" doc:"not to run before"`
	Repeat        *NewRepeat        `json:"repeat,omitempty" doc:"when the job runs again after it has completed"`
}

type created struct {
	Status   int
	Location string `header:"Location"`
	Body     *Job
}

// createInput is a job that is to be created, once for a key.
type createInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"a repeat within an hour creates nothing more, and answers with the same job"`
	Body NewJob
}

func createJob(ctx context.Context, s *session, in *createInput) (*created, error) {
	n, err := in.Body.New(ctx, s.client, s.store.Now)
	if err != nil {
		return nil, err
	}
	n.By, n.Key = s.principal.Name, in.Key
	var h *client.Handle
	if err := s.once(ctx, "create", in.Key, in.Body, func() (err error) {
		h, err = s.client.Create(ctx, n)
		return err
	}); err != nil {
		return nil, err
	}
	v, err := FullJob(ctx, h)
	if v != nil {
		v.Outcome = Outcome(h)
	}
	out := &created{Status: http.StatusCreated, Location: "/v1/jobs/" + string(h.ID()), Body: v}
	if n.Unique != nil && !h.Created() {
		out.Status = http.StatusOK
	}
	return out, err
}

// What became of a job that was to be created.
const (
	OutcomeCreated = "created"
	OutcomeFound   = "found"  // it was there under its key or unique key
	OutcomeMerged  = "merged" // found, and the args were merged into its own
)

// Outcome says what became of the job for which a handle was returned.
func Outcome(h *client.Handle) string {
	switch {
	case h.Created():
		return OutcomeCreated
	case h.Merged():
		return OutcomeMerged
	}
	return OutcomeFound
}

// New returns what is to be created. now is the clock of the store.
func (b *NewJob) New(ctx context.Context, client *client.Client, now func(context.Context) (time.Time, error)) (n job.New, err error) {
	if b.Type == "" {
		return n, wrong("type is missing: name a worker type that an engine has registered")
	}
	n = job.New{Type: b.Type, Queue: b.Queue, Priority: b.Priority, Labels: b.Labels, Repeat: b.Repeat.repeatRule(), OnFailure: b.Failure}
	parent := ""
	for _, text := range []struct {
		name string
		from *string
		to   *string
	}{{"sequential_key", b.SequentialKey, &n.SequentialKey}, {"alias", b.Alias, &n.Alias}, {"name", b.Name, &n.Name}, {"parent", b.Parent, &parent}} {
		if *text.to, err = textOf(text.name, text.from); err != nil {
			return n, err
		}
	}
	if n.Unique, err = b.Unique.by(); err != nil {
		return n, err
	}
	if len(b.Args) > 0 {
		if b.Args[0] != '{' {
			return n, wrong("args: use an object, like {\"Width\": 640}")
		}
		n.Args = b.Args
	}
	if b.Retain != "" {
		if n.Retain, err = job.ParseRetention(b.Retain); err != nil {
			return n, err
		}
	}
	switch {
	case b.In != nil && b.At != nil:
		return n, wrong("in and at both say when: use one of them")
	case b.At != nil:
		n.At = *b.At
	case b.In != nil:
		began, err := now(ctx)
		if err != nil {
			return n, err
		}
		n.At = began.Add(time.Duration(*b.In))
	}
	if parent != "" {
		h, err := client.Find(ctx, parent)
		if err != nil {
			return n, err
		}
		n.Parent = h.ID()
	}
	return n, nil
}

type showInput struct {
	JobPath
	IfNoneMatch string `header:"If-None-Match"`
}

type shown struct {
	ETag string `header:"ETag"`
	Body *Job
}

func showJob(ctx context.Context, s *session, in *showInput) (*shown, error) {
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	v, err := FullJob(ctx, h)
	if err != nil {
		return nil, err
	}
	tag, err := tagOf(v)
	if err == nil && tag == in.IfNoneMatch {
		return nil, notModified{tag}
	}
	return &shown{ETag: tag, Body: v}, err
}

type logInput struct {
	JobPath
	Tree  bool      `query:"tree" doc:"the log of all jobs below it, too; of a graph it always is"`
	Since time.Time `query:"since" doc:"only entries of then, or later"`
	Limit int       `query:"limit" default:"100" minimum:"1" maximum:"1000" doc:"at most N, the last ones"`
	// Before is where an earlier page ends.
	Before string `query:"before" doc:"only entries before this place, the earlier of another answer"`
}

// LogPage are entries of a log.
type LogPage struct {
	Entries  []LogLine `json:"entries" doc:"oldest first"`
	Position string    `json:"position" doc:"where the log goes on"`
	Earlier  string    `json:"earlier,omitempty" doc:"the before of the page of earlier entries; missing if there are none"`
	// Trimmed are the logs that have lost their first entries.
	Trimmed []job.Trimmed `json:"trimmed,omitempty" doc:"the logs, one of each tree that is read, that have lost their first entries: how many, and since when it is whole"`
}

func showLog(ctx context.Context, s *session, in *logInput) (*reply[LogPage], error) {
	r, err := s.openLog(ctx, in.Job, in.Tree)
	if err != nil {
		return nil, err
	}
	entries, earlier, err := r.Back(ctx, in.Limit, in.Since, in.Before)
	if errors.Is(err, job.ErrValue) {
		return nil, wrong("query.before: %v", err)
	}
	if err != nil {
		return nil, err
	}
	trimmed, err := r.Trimmed(ctx)
	return answer(LogPage{LogLines(entries), r.Position(), earlier, trimmed}, err)
}

// openLog returns a reader of the log of a job: of a graph, of all jobs in it.
func (s *session) openLog(ctx context.Context, name string, below bool) (*client.LogReader, error) {
	h, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	return h.OpenLog(ctx, below || info.Graph)
}

// maxWait is how long one request waits.
const maxWait = 5 * time.Minute

type waitInput struct {
	JobPath
	For     string `query:"for" default:"completed" enum:"completed,failed,terminated,suspended,settled" doc:"settled is completed, failed or terminated"`
	Timeout string `query:"timeout" default:"30s" doc:"at most 5m"`
}

// Waited is how a wait ended.
type Waited struct {
	Reached bool   `json:"reached" doc:"the job is what was waited for"`
	Over    bool   `json:"over" doc:"it is something else, and will not become that by itself"`
	Error   string `json:"error,omitempty" doc:"which job failed, and why"`
	Job     *Job   `json:"job"`
}

func waitJob(ctx context.Context, s *session, in *waitInput) (*reply[Waited], error) {
	h, err := s.find(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	var limit duration
	if err := limit.UnmarshalText([]byte(in.Timeout)); err != nil {
		return nil, wrong("query.timeout: %v", err)
	}
	if time.Duration(limit) > maxWait {
		return nil, wrong("query.timeout %s: at most 5m; ask again for as long as you like", in.Timeout)
	}
	long, cancel := s.until(ctx)
	defer cancel()
	short, stop := context.WithTimeout(long, time.Duration(limit))
	defer stop()
	reached := func(status statemachine.Status) bool {
		return string(status) == in.For || in.For == "settled" && status.Settled() || in.For == "settled" && status == statemachine.Failed
	}
	info, err := h.WaitFor(short, func(i *job.Info) bool {
		return reached(i.Status) || i.Status == statemachine.Failed || i.Status == statemachine.Terminated
	})
	if err != nil && short.Err() == nil {
		return nil, err
	}
	if err != nil {
		if info, err = h.Info(ctx); err != nil {
			return nil, err
		}
	}
	w := Waited{Reached: reached(info.Status), Job: JobOf(info)}
	w.Over = !w.Reached && (info.Status == statemachine.Failed || info.Status == statemachine.Terminated)
	if info.Status == statemachine.Failed {
		if _, err := h.Wait(ctx); err != nil {
			w.Error = err.Error()
		}
	}
	return answer(w, nil)
}

// until is a context for what may take long: it ends with the server, too, and when the client has gone.
func (s *session) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-left(ctx):
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
