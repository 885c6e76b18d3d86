package bedrock

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// maxEnds is how often the end of a run is tried that others change meanwhile.
const maxEnds = 5

// end ends the run that a client has of a job, as how says of that.
func (s *Service) end(ctx context.Context, q *Request, refused error, how func(k *known, d *store.Delta) error) (*Response, error) {
	n, err := q.number()
	if err != nil {
		return nil, err
	}
	data, err := q.data()
	if err != nil {
		return nil, err
	}
	for tries := 0; ; tries++ {
		k, err := s.find(ctx, n)
		if err != nil {
			return nil, err
		}
		if k.lost() {
			if err := s.regain(ctx, k); err != nil {
				return nil, err
			}
		}
		if k.Status != job.Running || k.Token == "" {
			return nil, refused
		}
		d := store.Delta{Job: k.ID, Token: k.Token, Next: rand.Text()} // as others may end the run in the same moment
		if err := how(k, &d); err != nil {
			return nil, err
		}
		if data != nil {
			if d.Set == nil {
				d.Set = map[string]json.RawMessage{}
			}
			d.Set[keyData] = data
		}
		err = s.commit(ctx, d)
		if err == nil {
			return said(nil)
		}
		if tries == maxEnds || !errors.Is(err, job.ErrFenced) && !errors.Is(err, job.ErrMoved) {
			return nil, missing(err)
		}
	}
}

// regain begins a run of a job again that the client lost which ends it, if nobody else has it yet.
func (s *Service) regain(ctx context.Context, k *known) error {
	snap, err := s.store.Begin(ctx, k.ID, store.Begin{Token: rand.Text(), Lease: handover})
	if err == nil {
		k.Info = &snap.Info
		k.Token = snap.Token
	}
	if errors.Is(err, job.ErrStatus) {
		k.Info, err = s.store.Info(ctx, k.ID)
	}
	return missing(err)
}

// begun is what of a child was to be read before it began.
func (k *known) begun() []store.Take {
	p, ok := k.Port(port.Input, goPort)
	if !ok || p.Waiting == 0 {
		return nil
	}
	return []store.Take{{Job: k.ID, Dir: port.Input, Port: goPort, Head: p.Total - p.Waiting, N: int(p.Waiting)}}
}

// finishJob ends a job that a client has: it is gone, or runs again if it repeats. If it has children that are not over it waits for them.
// The children of one that runs again are gone then, too: the commit says so, and what is left is to delete them.
func (s *Service) finishJob(ctx context.Context, q *Request) (*Response, error) {
	var over kids
	r, err := s.end(ctx, q, errEnd, func(k *known, d *store.Delta) error {
		d.Outcome, d.Takes, over = statemachine.Complete, k.begun(), nil
		var every kids
		if k.state[keyChildren] != nil {
			var err error
			if every, err = s.everyChild(ctx, k.ID); err != nil {
				return err
			}
			now := slices.DeleteFunc(slices.Clone(every), k.past)
			if open := now.open(); open != "" {
				d.Outcome, d.Writes, d.Set = statemachine.Suspend, now.goes(), waitsFor(open)
				return nil
			}
		}
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		repeats, err := k.repeats(now)
		if err != nil || repeats == nil {
			return err
		}
		if next, ok := repeats.After(k.Info, now); ok {
			d.Outcome, d.Repeat, d.Delay = statemachine.Reschedule, next, max(next.Scheduled.Sub(now), 0)
			if over = every; len(over) > 0 {
				d.Set = over.pastFor()
			}
		}
		return nil
	})
	if err == nil {
		s.forget(ctx, over)
	}
	return r, err
}

// failJob lets a job fail that a client has.
func (s *Service) failJob(ctx context.Context, q *Request) (*Response, error) {
	return s.end(ctx, q, errFail, func(k *known, d *store.Delta) error {
		d.Outcome, d.Reason = statemachine.Fail, "FailJob"
		d.Failure = &job.Failure{At: time.Now().UTC(), Began: k.Ran, Step: k.Steps, Try: k.Tries + 1, Error: d.Reason}
		return nil
	})
}

// at is how far the repetition of a job is that is to run at a time.
func at(k *known, t time.Time) *job.Repeats {
	if k.Repeat == nil {
		return &job.Repeats{Scheduled: t}
	}
	next := *k.Repeat
	next.Scheduled = t
	return &next
}

// retryJob puts a job back that a client has.
func (s *Service) retryJob(ctx context.Context, q *Request) (*Response, error) {
	if _, err := q.number(); err != nil {
		return nil, err
	}
	name, err := q.name(false)
	if err != nil {
		return nil, err
	}
	priority, err := q.priority()
	if err != nil {
		return nil, err
	}
	nextRun, err := q.at("nextRun")
	if err != nil {
		return nil, err
	}
	delay, _, err := q.whole("delay", 0, 1<<31)
	if err != nil {
		return nil, refuse(402, "Must specify a non-negative delay when retrying")
	}
	ignore, err := q.flag("ignoreRepeat", false)
	if err != nil {
		return nil, err
	}
	var was *known
	r, err := s.end(ctx, q, errEnd, func(k *known, d *store.Delta) error {
		was = k
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		when := now.Add(time.Duration(delay) * time.Second)
		if !nextRun.IsZero() {
			when = nextRun
		}
		repeats, err := k.repeats(now)
		if err != nil {
			return err
		}
		if repeats != nil && !ignore {
			if next, ok := repeats.After(k.Info, now); ok {
				when = next.Scheduled
			}
		}
		d.Outcome, d.Handed, d.Repeat, d.Unset = statemachine.Reschedule, true, at(k, when), []string{keyWaiting, keyOpen}
		if name != "" {
			needs := k.NeedsOf()
			needs.Type = typeOf(name)
			d.Needs = &needs
		}
		return nil
	})
	if err == nil && name != "" {
		err = s.renamed(ctx, was, typeOf(name))
	}
	if err == nil && priority != nil {
		err = missing(s.store.SetPriority(ctx, []job.ID{was.ID}, *priority))
	}
	return r, err
}

// deleteJob removes all trace of a job that nobody has.
func (s *Service) deleteJob(ctx context.Context, q *Request) (*Response, error) {
	k, err := s.terminateSeen(ctx, q, func(k *known) (bool, error) {
		state, err := s.stateOf(ctx, k)
		switch {
		case err != nil:
			return false, err
		case k.Status == job.Running:
			return false, refuse(405, "Can't delete a %s job", state)
		case state == paused:
			return false, refuse(405, "Can't delete a PAUSED job")
		}
		return true, nil
	})
	if err == nil {
		err = s.erase(ctx, k.ID)
	}
	if err != nil {
		return nil, missing(err)
	}
	return said(nil)
}

// cancelJob cancels a child that nobody has. One that is over, or that a client has, stays as it is.
func (s *Service) cancelJob(ctx context.Context, q *Request) (*Response, error) {
	k, err := s.terminateSeen(ctx, q, func(k *known) (bool, error) {
		if k.ID.IsRoot() {
			return false, refuse(402, "Invalid jobID. Can only cancel a child job")
		}
		return isOpen(k.Info) && k.Status != job.Terminating && k.Status != job.Running, nil
	})
	if err == nil && k != nil {
		err = s.settle(ctx, k.ID)
	}
	if err != nil {
		return nil, missing(err)
	}
	return said(nil)
}

// terminateSeen begins the end of the job that a request names, and of all below it, if it is still as it was when may said that it may end:
// so a client gets it, or it ends, and never both. It returns no job if it may not.
func (s *Service) terminateSeen(ctx context.Context, q *Request, may func(*known) (bool, error)) (*known, error) {
	for tries := 0; ; tries++ {
		k, err := s.named(ctx, q)
		if err != nil {
			return nil, err
		}
		if ok, err := may(k); err != nil || !ok {
			return nil, err
		}
		err = s.store.TerminateSeen(ctx, k.Info)
		if err == nil || tries == maxEnds || !errors.Is(err, job.ErrMoved) {
			return k, err
		}
	}
}

// remove ends a job and all below it, and deletes them.
func (s *Service) remove(ctx context.Context, id job.ID) error {
	if err := s.store.Terminate(ctx, id); err != nil {
		return err
	}
	return s.erase(ctx, id)
}

// erase deletes a job whose end has begun, and all below it.
func (s *Service) erase(ctx context.Context, id job.ID) error {
	if err := s.settle(ctx, id); err != nil {
		return err
	}
	return s.store.Delete(ctx, id)
}

// settle waits until a job whose end has begun is over, and all below it. No client is asked: its type has no end of its own.
func (s *Service) settle(ctx context.Context, id job.ID) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		tree, err := s.ending(ctx, id)
		if err != nil {
			return err
		}
		open := false
		for _, i := range tree {
			if i.Status == job.Terminated {
				continue
			}
			open = true
			snap, err := s.store.Begin(ctx, i.ID, store.Begin{Token: rand.Text(), Lease: handover})
			if err == nil && snap.Shutdown {
				err = s.commit(ctx, store.Delta{Job: i.ID, Token: snap.Token, Outcome: statemachine.Shutdown})
			}
			if err != nil && !errors.Is(err, job.ErrStatus) && !errors.Is(err, job.ErrFenced) {
				return err
			}
		}
		if !open {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// ending are the jobs that end with one: all of its tree, or only itself, as children have no children here.
func (s *Service) ending(ctx context.Context, id job.ID) ([]*job.Info, error) {
	if id.IsRoot() {
		return s.store.Tree(ctx, id)
	}
	i, err := s.store.Info(ctx, id)
	return []*job.Info{i}, err
}
