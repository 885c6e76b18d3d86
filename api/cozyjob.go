package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
)

// CozyJob are the attributes of a job under /jobs.
type CozyJob struct {
	Worker     string                       `json:"worker"`
	WorkerID   string                       `json:"worker_id" doc:"the engine that executes it, if one does"`
	Launcher   string                       `json:"launcher" doc:"the type of its launcher; empty without one"`
	LauncherID string                       `json:"launcher_id"`
	Options    CozyOptions                  `json:"options"`
	State      string                       `json:"state" enum:"queued,running,done,errored"`
	TryCount   int                          `json:"try_count" doc:"executions, with one that goes on"`
	QueuedAt   time.Time                    `json:"queued_at"`
	StartedAt  *time.Time                   `json:"started_at" doc:"of the first execution; null before"`
	Errors     []CozyFailure                `json:"errors" doc:"the first is the oldest; the last 20 are kept"`
	Output     map[string][]json.RawMessage `json:"output,omitzero" doc:"the oldest messages of its Out ports; not in lists"`
}

// CozyFailure is an execution that failed.
type CozyFailure struct {
	TryCount int       `json:"try_count" doc:"which execution it was"`
	At       time.Time `json:"at"`
	Message  string    `json:"message"`
}

// cozyStates are the states of jobs by their status; one that has not run yet is queued whatever it waits for.
var cozyStates = map[job.Status]string{
	job.Queued: "queued", job.Scheduled: "queued", job.Waiting: "queued", job.Running: "running", job.Suspended: "running",
	job.Terminating: "running", job.Completed: "done", job.Failed: "errored", job.Terminated: "errored",
}

// unfinished are the statuses of jobs that are still in the queue, or being executed.
var unfinished = []job.Status{job.Queued, job.Scheduled, job.Waiting, job.Running, job.Suspended, job.Terminating}

// cozyJobOf is a job as it is told under /jobs.
func cozyJobOf(i *job.Info, failures []job.Failure, engines map[job.ID]string) CozyJob {
	memo := cozyMemoOf(i)
	v := CozyJob{
		Worker: i.Type, WorkerID: engines[i.ID], Launcher: memo.Launcher, LauncherID: i.Labels[trigger.LabelTrigger],
		State: cozyStates[i.Status], QueuedAt: i.Created, StartedAt: timeOrNull(i.Ran), Errors: []CozyFailure{},
	}
	var options job.RunOptions
	if i.Options != nil {
		options = *i.Options
	}
	v.Options = cozyOptionsOf(i.Priority, options, memo.Arguments)
	if i.Ran.IsZero() && v.State == "running" {
		v.State = "queued"
	}
	if v.TryCount = int(i.Steps) + max(i.Tries, len(failures)); i.Status == job.Running {
		v.TryCount++
	}
	for _, f := range slices.Backward(failures) { // the newest was the first
		v.Errors = append(v.Errors, CozyFailure{f.Try, f.At.UTC(), f.Error})
	}
	if n := len(failures); n > 0 && !failures[n-1].Began.IsZero() {
		v.StartedAt = timeOrNull(failures[n-1].Began)
	}
	return v
}

// cozyJobsOf are jobs as resources.
func (s *session) cozyJobsOf(ctx context.Context, list []*job.Info) ([]CozyResource[CozyJob], error) {
	ids := make([]job.ID, len(list))
	running := false
	for n, i := range list {
		ids[n] = i.ID
		running = running || i.Status == job.Running
	}
	details, err := s.client.Details(ctx, ids...)
	if err != nil {
		return nil, err
	}
	engines := map[job.ID]string{}
	if running {
		all, err := s.store.Engines(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			for _, r := range e.Runs {
				engines[r.Job] = e.ID
			}
		}
	}
	out := make([]CozyResource[CozyJob], len(list))
	for n, i := range list {
		out[n] = CozyResource[CozyJob]{Type: cozyJobs, ID: i.ID, Attributes: cozyJobOf(i, details[n].Failures, engines), Links: CozyLinks{Self: "/jobs/" + string(i.ID)}}
		if out[n].Rev, err = revOf(i.Version, out[n].Attributes); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cozyJobDocument is the document of one job, with its output.
func (s *session) cozyJobDocument(ctx context.Context, h *client.Handle, info *job.Info) (doc CozyOne[CozyJob], err error) {
	all, err := s.cozyJobsOf(ctx, []*job.Info{info})
	if err != nil {
		return doc, err
	}
	output := map[string][]json.RawMessage{}
	for _, p := range info.Ports {
		if p.Dir != port.Output || p.Waiting == 0 {
			continue
		}
		if output[p.Name], err = h.Peek(ctx, p.Name, cozyOutputs); err != nil {
			return doc, err
		}
	}
	doc.Data = all[0]
	doc.Data.Attributes.Output = output
	return doc, nil
}

// cozyOutputs is how many messages of an Out port are shown.
const cozyOutputs = 100

// isCozyJob tells whether a root job is one of those under /jobs: triggers are launchers there.
func isCozyJob(i *job.Info) bool { return i.Type != trigger.Type }

// cozyOperations are those under /jobs.
func (s *Server) cozyOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/jobs/{job}", id: "cozy-job", group: groupCozy, role: read, summary: "Show a job",
		about: "One that has finished is shown while it is kept, with the state done; then the answer is 404.",
	}, func(ctx context.Context, s *session, in *CozyPath) (*reply[CozyOne[CozyJob]], error) {
		h, info, err := s.cozyFind(ctx, in.Job, "job", isCozyJob)
		if err != nil {
			return nil, err
		}
		return answer(s.cozyJobDocument(ctx, h, info))
	})
	add(s, operation{
		method: http.MethodPost, path: "/jobs/queue/{worker}", id: "cozy-enqueue", group: groupCozy, role: operate, status: http.StatusAccepted, summary: "Queue a job of a worker",
		about: "The job is a root job of that type; its arguments are one message for the In port in, or the first, which ends behind it. A reserved worker answers 403, an unknown one 404, a queue that is full 429.",
	}, cozyEnqueue)
	add(s, operation{
		method: http.MethodGet, path: "/jobs/queue", id: "cozy-queue", group: groupCozy, role: read, summary: "List the jobs that have not finished, the oldest first",
	}, func(ctx context.Context, s *session, in *CozyPage) (*reply[CozyMany[CozyJob]], error) {
		return s.cozyJobPage(ctx, "/jobs/queue", *in, job.Filter{Status: unfinished})
	})
	s.cozyLauncherOperations()
}

// cozyJobPage is a page of jobs.
func (s *session) cozyJobPage(ctx context.Context, path string, p CozyPage, f job.Filter) (*reply[CozyMany[CozyJob]], error) {
	list, links, err := s.cozyList(ctx, path, p, f, isCozyJob)
	if err != nil {
		return nil, err
	}
	data, err := s.cozyJobsOf(ctx, list)
	return answer(CozyMany[CozyJob]{Links: links, Data: data}, err)
}

// CozyKey is what makes a request safe to repeat.
type CozyKey struct {
	Key string `header:"Idempotency-Key" maxLength:"128" doc:"a repeat within an hour makes nothing more, and answers with the same"`
}

func cozyEnqueue(ctx context.Context, s *session, in *struct {
	CozyWorker
	CozyKey
	Body *cozyJobBody
},
) (*reply[CozyOne[CozyJob]], error) {
	typ, err := s.cozyType(ctx, in.Worker)
	if err != nil {
		return nil, err
	}
	raw, wish := given(in.Body).RawMessage, newCozyWish()
	if err := cozyBody(raw, cozyJobs, func(o *cozyObject) {
		wish.read(o)
		if options, ok := o.take("options"); ok {
			nested := o.object(o.at+"/options", options)
			wish.read(nested)
			nested.end()
		}
	}); err != nil {
		return nil, err
	}
	plan, err := s.cozyPlan(ctx, typ, &wish)
	if err != nil {
		return nil, err
	}
	// In one shard, the jobs of a queue run strictly in the order of their priorities, and those of a worker then of their creation.
	id, err := s.store.NewIDIn(typ.Queue)
	if err != nil {
		return nil, err
	}
	var h *client.Handle
	if err := s.once(ctx, "cozy-enqueue", in.Key, []any{in.Worker, raw}, func() (err error) {
		if in.Key != "" {
			if id, err = s.store.Once(ctx, "cozy-enqueue "+in.Key, id); err != nil {
				return err
			}
		}
		if err := s.cozyRoom(ctx, typ.Queue); err != nil {
			return err
		}
		h, err = s.client.Start(ctx, plan, job.WithID(id), job.By(s.principal.Name), job.WithRunOptions(wish.options),
			job.Memo(cozyMemo{Arguments: wish.arguments}.raw()))
		return err
	}); err != nil {
		return nil, err
	}
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	return answer(s.cozyJobDocument(ctx, h, info))
}

// cozyPlan is the job that is wanted, with its arguments in the port that they go to.
func (s *session) cozyPlan(ctx context.Context, typ *job.TypeInfo, w *cozyWish) (*job.Plan, error) {
	into, message, err := cozyMessage(typ, w)
	if err != nil {
		return nil, err
	}
	plan, err := s.client.PlanNew(ctx, job.New{Type: typ.Type, Queue: typ.Queue, Priority: w.priority})
	if err != nil {
		return nil, err
	}
	ports := plan.Nodes[0].Ports
	for n := range ports {
		if p := &ports[n]; p.Dir == port.Input && p.Name == into {
			p.Closed = true
			sealed, err := port.Seal(message, port.Context{port.ContextBy: s.principal.Name})
			if err != nil {
				return nil, err
			}
			p.Initial = []json.RawMessage{sealed}
		}
	}
	if w.arguments == nil && into != "" {
		w.arguments = message
	}
	return plan, nil
}

// cozyRoom refuses a job of a queue that is full.
func (s *session) cozyRoom(ctx context.Context, queue string) error {
	n, err := s.store.Pending(ctx, queue)
	if err == nil && n >= s.cfg.MaxPending {
		err = problem(Kind{"full", http.StatusTooManyRequests, 6}, "queue %s is full: %d jobs are ready, limit %d; send it again later", queue, n, s.cfg.MaxPending)
	}
	return err
}
