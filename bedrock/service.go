package bedrock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Store is what the surface needs of a store.
type Store interface {
	store.Store
	worker.Store
	// Numbers counts under a name: it sets n numbers aside, and returns the first.
	Numbers(ctx context.Context, name string, n int64) (first int64, err error)
	// TerminateSeen ends a job and all below it, if it is as it was seen; else the error wraps job.ErrMoved.
	TerminateSeen(ctx context.Context, seen *job.Info) error
	// Lend gives a run to a client for a time. If it has not ended it by then that is no crash, and the job is ready again.
	Lend(ctx context.Context, id job.ID, token string, lease time.Duration) error
	// Shards is how many shards the namespace has.
	Shards() int
}

// Service carries out commands on the jobs of a namespace. It holds nothing of them: any number of services may be running at once.
// It is safe for concurrent use.
type Service struct {
	store  Store
	leases *worker.Leases
}

// New returns a service of a store, that takes runs from leases of the same one, whose Run is running.
func New(store Store, leases *worker.Leases) *Service { return &Service{store, leases} }

// Role is what a client may do.
type Role string

// The roles: to look, to make and change jobs, and to take and end them.
const (
	Read    Role = "read"
	Operate Role = "operate"
	Work    Role = "work"
)

// Command is one that clients can send.
type Command struct {
	Name    string
	Role    Role
	Summary string
	Params  string // the names of its parameters
	run     func(s *Service, ctx context.Context, q *Request) (*Response, error)
}

// Commands are all that there are, by name.
func Commands() []Command {
	all := slices.Collect(maps.Values(commands))
	slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// commands are those by their names in lower case.
var commands = byName(
	Command{"CreateJob", Operate, "Create a job", createParams, (*Service).createJob},
	Command{"CreateJobs", Operate, "Create jobs, from a list of objects with the parameters of CreateJob", "jobs", (*Service).createJobs},
	Command{"GetJob", Work, "Take the first job whose name matches", "name connection timeout jobPriority mockRequest", (*Service).getJob},
	Command{"GetJobs", Work, "Take several of them", "name numResults connection timeout jobPriority mockRequest", (*Service).getJobs},
	Command{"QueryJob", Read, "Show a job", "jobID", (*Service).queryJob},
	Command{"UpdateJob", Work, "Change a job", "jobID data repeat jobPriority", (*Service).updateJob},
	Command{"FinishJob", Work, "End a job that was taken, or have it repeat", "jobID data", (*Service).finishJob},
	Command{"FailJob", Work, "Let a job that was taken fail", "jobID data", (*Service).failJob},
	Command{"RetryJob", Work, "Put a job back that was taken", "jobID delay nextRun name data jobPriority ignoreRepeat", (*Service).retryJob},
	Command{"CancelJob", Operate, "Cancel a child", "jobID", (*Service).cancelJob},
	Command{"DeleteJob", Operate, "Remove all trace of a job", "jobID", (*Service).deleteJob},
)

func byName(all ...Command) map[string]Command {
	out := make(map[string]Command, len(all))
	for _, c := range all {
		c.Summary += ": " + strings.ReplaceAll(c.Params, " ", ", ")
		out[strings.ToLower(c.Name)] = c
	}
	return out
}

// CommandOf returns the command that a request is for; its error is what the client is answered.
func CommandOf(method string) (Command, error) {
	c, ok := commands[strings.ToLower(method)]
	if strings.EqualFold(method, "Query") {
		return c, refuse(400, "Query is not served, as there is no SQL here: QueryJob shows a job, and weir jobs lists them")
	}
	if !ok {
		var names []string
		for _, known := range Commands() {
			names = append(names, known.Name)
		}
		return c, refuse(400, "Unknown command %.40q: %s", method, port.Suggest(method, names))
	}
	return c, nil
}

// Do carries out a command. Whoever sends the answer says with Delivered or Undelivered what became of it.
func (s *Service) Do(ctx context.Context, c Command, q *Request) *Response {
	if err := q.known(c.Params); err != nil {
		return Refused(err)
	}
	r, err := c.run(s, ctx, q)
	if err != nil {
		return Refused(err)
	}
	return r
}

// Refused is the answer to a request that went wrong.
func Refused(err error) *Response {
	var r *refusal
	var m *malformedError
	switch {
	case errors.As(err, &r):
		return &Response{Status: r.status, Text: r.text}
	case errors.As(err, &m):
		return &Response{Status: m.status, Text: m.text}
	case errors.Is(err, context.Canceled):
		return &Response{Status: 503, Text: "The server stops, or the client is gone"}
	case errors.Is(err, job.ErrTooLarge), errors.Is(err, port.ErrEncoding):
		return &Response{Status: 402, Text: oneLine(err)}
	case errors.Is(err, job.ErrStatus), errors.Is(err, job.ErrFenced):
		return &Response{Status: 405, Text: oneLine(err)}
	}
	return &Response{Status: 500, Text: oneLine(err)}
}

// oneLine is what an error says, as a line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// said answers with JSON; nil: with nothing.
func said(v any) (*Response, error) {
	r := &Response{Status: 200, Text: "OK"}
	if v == nil {
		return r, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	r.Body = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	return r, nil
}

// memo is what is kept with a job from its creation on.
type memo struct {
	Number     int64  `json:"jobID"`
	Above      int64  `json:"parentJobID,omitempty"` // its parent
	Key        string `json:"sequentialKey,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"`
}

// memoOf is that of a job; ok is false if the surface did not make it.
func memoOf(i *job.Info) (m memo, ok bool) {
	return m, json.Unmarshal(i.Memo, &m) == nil && m.Number > 0
}

// Keys of a job's state.
const (
	keyData     = "data"
	keyRepeat   = "repeat"   // in place of the one that it was created with, as UpdateJob said
	keyChildren = "children" // there once a child was created
	keyWaiting  = "waiting"  // it was finished, and waits for its children
	keyOpen     = "open"     // the ID of one of these that was not over then
	keyPast     = "past"     // children with numbers up to this one that are over belong to earlier repetitions, and are gone for clients
)

// known is a job, with its state.
type known struct {
	*job.Info
	memo
	state map[string]json.RawMessage
}

// find returns the job with a number.
func (s *Service) find(ctx context.Context, number int64) (*known, error) {
	id, err := s.store.Resolve(ctx, aliasOf(number))
	if err != nil {
		return nil, missing(err)
	}
	return s.look(ctx, id)
}

// look returns a job by its ID. Those that are over are not there.
func (s *Service) look(ctx context.Context, id job.ID) (*known, error) {
	info, err := s.store.Info(ctx, id)
	if err != nil {
		return nil, missing(err)
	}
	m, ok := memoOf(info)
	gone := info.ID.IsRoot() && (info.Status.Settled() || info.Status == job.Terminating)
	if !ok || gone {
		return nil, errNoNumber
	}
	k := &known{Info: info, memo: m}
	if !id.IsRoot() {
		p, err := s.look(ctx, id.Tree()) // it goes with its parent
		if err != nil {
			return nil, err
		}
		if p.past(info) {
			return nil, errNoNumber
		}
	}
	k.state, err = s.store.State(ctx, id)
	return k, missing(err)
}

// missing makes of the error that there is no such job the one that a client is told.
func missing(err error) error {
	if errors.Is(err, job.ErrNotFound) {
		return errNoNumber
	}
	return err
}

// named returns the job that a request names.
func (s *Service) named(ctx context.Context, q *Request) (*known, error) {
	n, err := q.number()
	if err != nil {
		return nil, err
	}
	return s.find(ctx, n)
}

// data is that of the job.
func (k *known) data() json.RawMessage {
	switch {
	case k.state[keyData] != nil:
		return k.state[keyData]
	case k.Args != nil:
		return k.Args
	}
	return json.RawMessage(`{}`)
}

// repeats says when the job runs again; nil: it does not.
func (k *known) repeats(now time.Time) (*job.Repeats, error) {
	var text string
	if raw, ok := k.state[keyRepeat]; ok {
		if err := json.Unmarshal(raw, &text); err != nil || text == "" {
			return nil, err
		}
		r, err := repeatOf(text, now)
		if err == nil {
			r.Scheduled = k.Due
		}
		return r, err
	}
	return k.Repeat, nil
}

// waits tells whether the job was finished and its children were to end first.
func (k *known) waits() bool { return k.state[keyWaiting] != nil }

// The states of jobs.
const (
	queued    = "QUEUED"
	waiting   = "WAITING"
	running   = "RUNNING"
	runqueued = "RUNQUEUED"
	paused    = "PAUSED"
	finished  = "FINISHED"
	failed    = "FAILED"
	cancelled = "CANCELLED"
)

// state tells the state of a job.
func (s *Service) stateOf(ctx context.Context, k *known) (string, error) {
	switch k.Status {
	case job.Queued, job.Scheduled:
		if k.waits() {
			open, err := s.awaited(ctx, k)
			if err != nil || open != "" {
				return paused, err
			}
		}
		if k.lost() {
			return runqueued, nil
		}
		return queued, nil
	case job.Waiting:
		return waiting, nil
	case job.Running:
		if k.RetryAfter != "" {
			return runqueued, nil
		}
		return running, nil
	case job.Suspended:
		return paused, nil
	case job.Failed:
		return failed, nil
	case job.Completed:
		return finished, nil
	case statemachine.New, job.Terminating, job.Terminated:
	}
	return cancelled, nil
}

// lost tells whether the client that had the job did not end it in time, and nobody has got it since.
func (k *known) lost() bool { return k.Status == job.Queued && k.RetryAfter != "" && k.given() > 0 }

// given is how many clients were given the job since the last command that ended its run, and have not ended it.
func (k *known) given() int { return k.Lapses + k.Crashes }

// queryJob shows a job. Of one that a client has the four things are told that it may change meanwhile; of others also when and how they are
// to run.
func (s *Service) queryJob(ctx context.Context, q *Request) (*Response, error) {
	k, err := s.named(ctx, q)
	if err != nil {
		return nil, err
	}
	state, err := s.stateOf(ctx, k)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"data": k.data(), "jobID": k.Number, "name": nameOf(k.Type), "state": state}
	if state == running {
		return said(out)
	}
	out["created"], out["priority"] = stamp(k.Created), job.DefaultPriority
	if k.Priority != nil {
		out["priority"] = *k.Priority
	}
	if at := k.nextRun(); !at.IsZero() {
		out["nextRun"] = stamp(at)
	}
	if !k.Ran.IsZero() {
		out["lastRun"] = stamp(k.Ran)
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	if r, err := k.repeats(now); err == nil && r != nil {
		out["repeat"] = r.Schedule.Text()
	}
	if k.Above != 0 {
		out["parentJobID"] = k.Above
	}
	if k.Key != "" {
		out["sequentialKey"] = k.Key
	}
	if k.RetryAfter != "" {
		out["retryAfter"] = k.RetryAfter
	}
	return said(out)
}

// stamp is a time as clients read it.
func stamp(t time.Time) string { return t.UTC().Format(time.DateTime) }

// nextRun is when the job is to run; zero if it is not.
func (k *known) nextRun() time.Time {
	switch {
	case k.RetryAfter != "" && (k.Status == job.Running || k.lost()):
		span, _ := spanOf(k.RetryAfter) // as it was checked
		return k.Ran.Add(span)
	case k.Status == job.Failed, k.Status.Settled():
		return time.Time{}
	}
	return k.Due
}

// updateJob changes a job.
func (s *Service) updateJob(ctx context.Context, q *Request) (*Response, error) {
	n, err := q.number()
	if err != nil {
		return nil, err
	}
	data, err := q.data()
	if err != nil {
		return nil, err
	}
	priority, err := q.priority()
	if err != nil {
		return nil, err
	}
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	repeat, given := q.Params["repeat"]
	if _, err := q.repeat(now); err != nil {
		return nil, err
	}
	k, err := s.find(ctx, n)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, refuse(402, "Missing data")
	}
	if err := unrepeatable(repeat != "", k.Key != "", k.Above != 0); err != nil {
		return nil, err
	}
	set := map[string]json.RawMessage{keyData: data}
	if given {
		if set[keyRepeat], err = json.Marshal(repeat); err != nil {
			return nil, err
		}
	}
	if err := s.store.SetState(ctx, k.ID, set, nil); err != nil {
		return nil, missing(err)
	}
	if priority != nil {
		if err := s.store.SetPriority(ctx, []job.ID{k.ID}, *priority); err != nil {
			return nil, missing(err)
		}
	}
	return said(nil)
}

// commit ends a run: nothing of it happens, and the error wraps job.ErrFenced, if it is over already.
func (s *Service) commit(ctx context.Context, d store.Delta) error {
	all, err := s.store.Commit(ctx, []store.Tx{{Deltas: []store.Delta{d}}})
	if err != nil {
		return fmt.Errorf("ending the run of job %s: %w", d.Job, err)
	}
	return all[0].Refused
}
