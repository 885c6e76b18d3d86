package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

const (
	// handover is for how long a job is a client's whose answer is on its way: if the process dies before it is there, the job is ready again
	// then. It is long enough for a client that ends its job at once through another process.
	handover = 15 * time.Second
	// forever is for how long a job is a client's that may have it as long as it wants.
	forever = 100 * 365 * 24 * time.Hour
	// maxWait is for how long clients wait at most, and those that do not say for how long.
	maxWait = 5 * time.Minute
	// maxPatterns is how many patterns of names a client gives at most.
	maxPatterns = 100
)

// given is a job that a client gets.
type given struct {
	id    job.ID
	token string
	lease time.Duration // from when it has the answer
}

func (s *Service) getJob(ctx context.Context, q *Request) (*Response, error) {
	jobs, r, err := s.take(ctx, q, 1)
	if err != nil {
		return nil, err
	}
	return answered(r, jobs[0])
}

func (s *Service) getJobs(ctx context.Context, q *Request) (*Response, error) {
	n, ok, err := q.whole("numResults", 1, worker.MaxLeased)
	if err == nil && !ok {
		err = refuse(402, "Missing numResults")
	}
	if err != nil {
		return nil, err
	}
	jobs, r, err := s.take(ctx, q, int(n))
	if err != nil {
		return nil, err
	}
	return answered(r, map[string]any{"jobs": jobs})
}

// answered puts what a client is told into the answer that gives it jobs.
func answered(r *Response, v any) (*Response, error) {
	text, err := said(v)
	if err == nil {
		r.Status, r.Text, r.Body = text.Status, text.Text, text.Body
	}
	return r, err
}

// lease is what a request asks for.
func (q *Request) lease(most int) (req worker.LeaseRequest, err error) {
	text := q.Params["name"]
	if text == "" {
		return req, refuse(402, "Missing name")
	}
	patterns := strings.Split(text, ",")
	if len(patterns) > maxPatterns {
		return req, refuse(402, "Malformed name: give at most %d patterns", maxPatterns)
	}
	for i, p := range patterns {
		if patterns[i] = strings.TrimSpace(p); !readable(p) {
			return req, refuse(402, "Malformed name")
		}
	}
	if req.Priority, err = q.priority(); err != nil {
		return req, err
	}
	mock, err := q.flag("mockRequest", false)
	if err != nil {
		return req, err
	}
	ms, ok, err := q.whole("timeout", 0, maxWait.Milliseconds())
	if err != nil {
		return req, err
	}
	if q.waits() {
		if req.Wait = maxWait; ok {
			req.Wait = time.Duration(ms) * time.Millisecond
		}
	}
	req.Queues, req.Types, req.Max, req.Lease = []string{Queue}, []string{"*"}, most, handover
	if mock {
		req.Queues = []string{MockQueue}
	}
	req.Only = func(typ string) bool {
		name := nameOf(typ)
		return slices.ContainsFunc(patterns, func(p string) bool { return Match(p, name) })
	}
	return req, nil
}

// take waits for up to that many jobs, and says what of each the client is told.
func (s *Service) take(ctx context.Context, q *Request, most int) (jobs []map[string]any, r *Response, err error) {
	req, err := q.lease(most)
	if err != nil {
		return nil, nil, err
	}
	r = &Response{}
	defer func() {
		if err != nil {
			s.Undelivered(ctx, r)
		}
	}()
	for end := time.Now().Add(req.Wait); ; req.Wait = max(time.Until(end), 0) {
		all, err := s.leases.Take(ctx, req)
		if err != nil {
			return nil, r, err
		}
		if len(all) == 0 {
			return nil, r, errNoJob
		}
		for _, one := range all {
			r.given = append(r.given, given{id: one.Info.ID, token: one.Token})
		}
		kept := r.given[:0]
		for n, one := range all {
			told, lease, err := s.give(ctx, &one)
			if err != nil {
				return nil, r, err
			}
			if told != nil {
				g := r.given[n]
				g.lease = lease
				kept = append(kept, g)
				jobs = append(jobs, told)
			}
		}
		if r.given = kept; len(jobs) > 0 {
			return jobs, r, nil
		}
	}
}

// give says what a client is told of a job whose run has begun, and for how long it may have it; nil: nobody gets it now.
func (s *Service) give(ctx context.Context, run *worker.Leased) (told map[string]any, lease time.Duration, err error) {
	k := &known{Info: &run.Info, state: run.State}
	m, ok := memoOf(k.Info)
	switch k.memo = m; {
	case run.Shutdown:
		return nil, 0, s.commit(ctx, store.Delta{Job: k.ID, Token: run.Token, Outcome: statemachine.Shutdown})
	case !ok: // somebody else made it, and no client could name it
		reason := "it was not made through the Bedrock surface: put it into another queue"
		return nil, 0, s.commit(ctx, store.Delta{
			Job: k.ID, Token: run.Token, Outcome: statemachine.Fail, Reason: reason,
			Failure: &job.Failure{At: k.Ran, Step: k.Steps, Try: 1, Error: reason},
		})
	case k.Above != 0 && k.Due.After(k.Ran): // its parent let it go before its time
		return nil, 0, s.commit(ctx, store.Delta{Job: k.ID, Token: run.Token, Outcome: statemachine.Reschedule, Handed: true, Repeat: at(k, k.Due)})
	}
	if !run.Whole {
		if k.state, err = s.store.State(ctx, k.ID); err != nil {
			return nil, 0, err
		}
	}
	told = map[string]any{"data": k.data(), "jobID": k.Number, "name": nameOf(k.Type)}
	if k.Above != 0 {
		told["parentJobID"] = k.Above
	}
	if n := k.given(); n > 0 {
		told["retryAfterCount"] = n
	}
	if k.state[keyChildren] != nil {
		if ready, err := s.family(ctx, k, run, told); err != nil || !ready {
			return nil, 0, err
		}
	}
	lease = forever
	if k.RetryAfter != "" {
		lease, err = spanOf(k.RetryAfter)
	}
	return told, lease, err
}

// family tells a client of the children of its job. One that waits for children which are not over sleeps on: then it is false.
func (s *Service) family(ctx context.Context, k *known, run *worker.Leased, told map[string]any) (bool, error) {
	if k.waits() {
		open, err := s.awaited(ctx, k)
		if err != nil {
			return false, err
		}
		if open != "" {
			return false, s.commit(ctx, store.Delta{Job: k.ID, Token: run.Token, Outcome: statemachine.Suspend, Woken: run.WokenTo, Set: waitsFor(open)})
		}
	}
	kids, err := s.children(ctx, k)
	if err != nil {
		return false, err
	}
	if k.waits() {
		if err := s.store.SetState(ctx, k.ID, nil, []string{keyWaiting, keyOpen}); err != nil {
			return false, err
		}
	}
	told["finishedChildJobs"], err = s.told(ctx, kids.with(job.Completed))
	if err == nil {
		told["cancelledChildJobs"], err = s.told(ctx, kids.with(job.Terminated))
	}
	return err == nil, err
}

// waitsFor is what is kept of a job that waits for its children, of which one is not over.
func waitsFor(open job.ID) map[string]json.RawMessage {
	return map[string]json.RawMessage{keyWaiting: json.RawMessage("true"), keyOpen: json.RawMessage(strconv.Quote(string(open)))}
}

// awaited returns a child of a job that is not over; empty: all are. The end of each child wakes the job, so as long as the child that
// was found last time is not over nobody looks at the others. It is chosen by chance: in whatever order n children end, all are looked
// at some ln n times.
func (s *Service) awaited(ctx context.Context, k *known) (job.ID, error) {
	var last job.ID
	if raw := k.state[keyOpen]; raw != nil && json.Unmarshal(raw, &last) == nil {
		i, err := s.store.Info(ctx, last)
		if err == nil && i.Parent == k.ID && isOpen(i) {
			return last, nil
		}
		if err != nil && !errors.Is(err, job.ErrNotFound) {
			return "", err
		}
	}
	all, err := s.children(ctx, k)
	return all.open(), err
}

// Delivered says that the client has got the answer: what it was given is its own now.
func (s *Service) Delivered(ctx context.Context, r *Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handover)
	defer cancel()
	for _, g := range r.given {
		if g.lease == forever {
			_ = s.store.Refresh(ctx, g.id, g.token, g.lease, nil) // that failed if it has ended its job already; else the job is ready again
			continue
		}
		_ = s.store.Lend(ctx, g.id, g.token, g.lease)
	}
}

// Undelivered says that it has not: what it was given is ready again.
func (s *Service) Undelivered(ctx context.Context, r *Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handover)
	defer cancel()
	for _, g := range r.given {
		_ = s.commit(ctx, store.Delta{Job: g.id, Token: g.token, Outcome: statemachine.Requeue, Handed: true}) // else its lease ends
	}
	r.given = nil
}
