package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Work is all that a client's run did: the same as a Go worker does through its Run. It is committed as one transaction.
type Work struct {
	// Read is how many messages the run read, by In port: from the first that it was shown, and no more than it was shown.
	Read map[string]int
	// Write are messages for Out ports, in this order.
	Write []Written
	// Close are Out ports that get no more messages.
	Close []string
	// Set and Unset change the job's state.
	Set   map[string]json.RawMessage
	Unset []string
	// Spawn are children.
	Spawn []Spawned
	// WakeAfter asks for more runs, so long after the commit, besides those that happen before.
	WakeAfter []time.Duration
	// Log are entries for the job's log.
	Log []json.RawMessage
	// Progress is how far the job is; nil: it says nothing of that.
	Progress *job.Progress
	// End says how the run ends: nil, ErrSuspend or ErrAgain, as for [Worker].Run.
	End error
}

// Written are messages that a client's run wrote to an Out port.
type Written struct {
	Port     string
	Messages []json.RawMessage
	Key      string       // says to which of several consumers they go; empty: they are dealt out in turn
	Context  port.Context // keys that travel with them
}

// Spawned is a child that a client's run made: a job of a type that some engine or client has registered.
type Spawned struct {
	Name string
	New  job.New // Parent, Name, By and Key are left empty
}

// RunFailure says why a client's run failed.
type RunFailure struct {
	Error string
	Stack string // of a panic or exception; may be empty
	// Read is as for Work: with the failure policy dead_letter a run that read one message puts that aside.
	Read map[string]int
	// Log are entries for the job's log.
	Log []json.RawMessage
	// RetryAfter is after how long there is another try. Nil: none, the job fails, or what its policy says happens.
	RetryAfter *time.Duration
}

// Refresh prolongs the lease of a run, notes how far that is unless it is nil, and returns until when. If another run has begun since, the
// error wraps job.ErrFenced.
func (l *Leases) Refresh(ctx context.Context, ticket string, lease time.Duration, far *job.Progress) (until time.Time, err error) {
	t, err := ticketOf(ticket)
	if err == nil && (lease < minClientLease || lease > maxClientLease) {
		err = fmt.Errorf("%w: lease %s: use %s to %s", job.ErrName, lease, minClientLease, maxClientLease)
	}
	if err == nil && far != nil {
		err = far.Validate()
	}
	if err == nil {
		err = l.cfg.Store.Refresh(ctx, t.Job, t.Token, lease, far)
	}
	return time.Now().UTC().Add(lease), err
}

// Commit ends a run with what it did: all of it, once, or nothing. A repeat changes nothing and succeeds. An error that
// wraps job.ErrFenced says that the run lost its job, as its lease ended, or has failed or been handed back before; job.ErrMoved that
// somebody else took messages which it read, so that the job is run again. After any other error the client still has the run: it may
// commit something else, or Fail.
func (l *Leases) Commit(ctx context.Context, ticket string, w Work) error {
	t, err := ticketOf(ticket)
	if err != nil {
		return err
	}
	return l.settle(ctx, &t, true, func(info *job.Info) error {
		return l.conclude(ctx, &t, info, w.Read, 1, func(r *Run) (error, error) { return w.End, l.replay(ctx, r, w) })
	})
}

// Fail ends a run that failed. Nothing that it did is kept; its job gets another try, or fails. A repeat changes nothing.
func (l *Leases) Fail(ctx context.Context, ticket string, f RunFailure) error {
	t, err := ticketOf(ticket)
	if err != nil {
		return err
	}
	failure, tries := errors.New(f.Error), 1
	if f.Stack != "" {
		failure = &raised{failure, f.Stack}
	}
	if f.RetryAfter != nil {
		failure, tries = RetryAfter(*f.RetryAfter, failure), math.MaxInt
	}
	return l.settle(ctx, &t, false, func(info *job.Info) error {
		return l.conclude(ctx, &t, info, f.Read, tries, func(r *Run) (error, error) { return failure, r.logAll(f.Log) })
	})
}

// Release hands a run back untouched: its job is ready at once. It counts neither as a run nor as a try.
func (l *Leases) Release(ctx context.Context, ticket string) error {
	t, err := ticketOf(ticket)
	if err != nil {
		return err
	}
	_, err = commit(ctx, l.cfg.Store, *handBack(&store.Snapshot{Info: job.Info{ID: t.Job}, Token: t.Token}, 0, ""))
	return err
}

// settle ends a run with end, unless it has ended already: a repetition succeeds, also one beside the first sending, which may be
// carried out between any two steps of end.
func (l *Leases) settle(ctx context.Context, t *ticket, commits bool, end func(*job.Info) error) error {
	var refused error
	for tries := 0; ; tries++ {
		info, err := l.cfg.Store.Info(ctx, t.Job)
		if err != nil {
			return err
		}
		switch ended, committed := t.ended(info); {
		case ended && commits && !committed:
			return fmt.Errorf("%w: the run of job %s has failed, or was handed back, before", job.ErrFenced, t.Job)
		case ended:
			return nil
		case tries > 0:
			return l.lost(ctx, t, refused)
		}
		if refused = end(info); refused == nil {
			return nil
		}
	}
}

// raised is an error with the stack of the code in another language that raised it.
type raised struct {
	error
	stack string
}

// conclude ends a run of a job that has that many tries: do repeats on a Run what the client's run did, and returns how that ended.
// Its second error refuses it.
func (l *Leases) conclude(ctx context.Context, t *ticket, info *job.Info, read map[string]int, tries int, do func(*Run) (end, refused error)) error {
	r := newRun(ctx, l.cfg.Store, t.snapshot(info), 0)
	r.remote = true
	for _, in := range r.boxes {
		in.opened = true
	}
	if err := t.show(r, read); err != nil {
		return err
	}
	end, err := l.around(ctx, r, func() (end, refused error) {
		if err := t.read(r, read); err != nil {
			return nil, err
		}
		return do(r)
	})
	if err != nil {
		l.tell(&concluded{run: r, info: info, end: end}, err)
		return err
	}
	var took time.Duration
	if info.Repeat != nil || l.hooks != nil {
		now, err := l.cfg.Store.Now(ctx)
		if err != nil {
			return err
		}
		took = max(now.Sub(info.Ran), 0)
	}
	k := &kind{name: info.Type, options: Options{Tries: tries}}
	r.mu.Lock()
	if !info.Started && end == nil {
		r.delta.Started = true
	}
	c := &concluded{run: r, info: info, delta: r.conclude(k, end, t.End, took), end: end, took: took}
	r.over = true
	r.mu.Unlock()
	began := time.Now()
	res, err := commit(ctx, l.cfg.Store, *c.delta)
	c.full, c.committed = res.Full, time.Since(began)
	if err == nil {
		tally := l.tally(info.Queue)
		tally.ran(info, false, time.Since(info.Ran))
		tally.committed(c.delta, info, 1)
	}
	l.tell(c, err)
	return err
}

// around calls hooks around what repeats a client's run.
func (l *Leases) around(ctx context.Context, r *Run, do func() (end, refused error)) (end, refused error) {
	if l.hooks == nil {
		return do()
	}
	end = l.hooks.Run(ctx, r, func(context.Context) error {
		end, refused = do()
		return end
	})
	return end, refused
}

// concluded is what became of what a client said that its run did.
type concluded struct {
	run       *Run
	info      *job.Info
	delta     *store.Delta // nil: there is none, as what the client said is wrong
	end       error        // of the run
	took      time.Duration
	committed time.Duration // how long that took
	full      bool          // a port that was written to is
}

// tell tells hooks what became of a client's run. Its err is why nothing of it was committed.
func (l *Leases) tell(c *concluded, err error) {
	if l.hooks == nil {
		return
	}
	end := endOf(c.run, c.info.Type, c.info, c.delta, c.end, c.took)
	switch {
	case err == nil:
	case errors.Is(err, job.ErrFenced):
		end.Outcome, end.Err, end.Failure = Lost, err, nil
	case errors.Is(err, job.ErrMoved):
		end.Outcome, end.Err, end.Failure = HandedBack, err, nil
	default:
		end.Outcome, end.Err, end.Failure = Refused, err, nil
	}
	if l.hooks.wantEnd(c.run) {
		l.hooks.Ended(end)
	}
	if c.delta == nil {
		return
	}
	one := committedJob(c.delta, c.info, 1)
	one.Applied = err == nil
	l.hooks.Committed(&Commit{Jobs: []CommittedJob{one}, Took: c.committed, Bytes: c.run.size, Blocked: err == nil && c.full, Err: err, Secret: end.Secret})
}

// lost hands a run back of which somebody else took messages, as nothing of it can be committed.
func (l *Leases) lost(ctx context.Context, t *ticket, err error) error {
	if errors.Is(err, job.ErrMoved) {
		l.end(ctx, handBack(&store.Snapshot{Info: job.Info{ID: t.Job}, Token: t.Token}, 0, ""))
		return fmt.Errorf("%w: the job is run again", err)
	}
	return err
}

// show gets what the client's run read, or says what is wrong with that.
func (t *ticket) show(r *Run, read map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(read)) {
		n := read[name]
		in, at := r.ins.get(name), t.of(name)
		switch {
		case in == nil:
			return fmt.Errorf("%w: job %s has no In port %q: %s", job.ErrPort, t.Job, name, port.Suggest(name, portNames(r.ins.all)))
		case n < 0 || n > at.Items:
			return fmt.Errorf("%w: %d messages were read of port %q, of which the run was shown %d", job.ErrName, n, name, at.Items)
		}
		if n > 0 {
			if err := in.fetch(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads on a Run what the client's run read.
func (t *ticket) read(r *Run, read map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(read)) {
		in := r.ins.get(name)
		for range read[name] {
			if _, _, err := in.next(true); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetch gets the first messages that came with the snapshot, which has none itself.
func (in *inbox) fetch(n int) error {
	items, head, err := in.run.page(in.owner(), in.dir, in.name, 0, n)
	if err == nil && (head != in.head || len(items) == 0) {
		err = fmt.Errorf("%w: port %q of job %s", job.ErrMoved, in.name, in.owner())
	}
	in.items = items
	return err
}

// portNames are the names of ports.
func portNames[P interface{ called() string }](all []P) (names []string) {
	for _, p := range all {
		names = append(names, p.called())
	}
	return names
}

// replay repeats on a Run what the client's run did besides reading. Errors name what is wrong with it.
func (l *Leases) replay(ctx context.Context, r *Run, w Work) error {
	for _, m := range w.Write {
		if err := r.rewrite(m); err != nil {
			return err
		}
	}
	for _, name := range w.Close {
		out, err := r.outOf(name)
		if err == nil {
			err = out.Close()
		}
		if err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.Set)) {
		if err := r.State().Set(key, w.Set[key]); err != nil {
			return err
		}
	}
	r.State().Unset(w.Unset...)
	for _, d := range w.WakeAfter {
		if err := r.WakeAfter(d); err != nil {
			return err
		}
	}
	if err := r.logAll(w.Log); err != nil {
		return err
	}
	if p := w.Progress; p != nil {
		if err := r.Progress(p.Done, p.Total, p.Text); err != nil {
			return err
		}
	}
	for _, c := range w.Spawn {
		if err := l.spawn(ctx, r, c); err != nil {
			return err
		}
	}
	return nil
}

// logAll adds the entries that a client's run logged.
func (r *Run) logAll(entries []json.RawMessage) error {
	for _, entry := range entries {
		if err := r.Log(entry); err != nil {
			return err
		}
	}
	return nil
}

// outOf returns an Out port by its name.
func (r *Run) outOf(name string) (*outbox, error) {
	if out := r.outs.get(name); out != nil {
		return out, nil
	}
	return nil, fmt.Errorf("%w: job %s has no Out port %q: %s", job.ErrPort, r.ID(), name, port.Suggest(name, portNames(r.outs.all)))
}

// rewrite writes messages as a client's run did.
func (r *Run) rewrite(m Written) error {
	out, err := r.outOf(m.Port)
	if err != nil {
		return err
	}
	write := func() error {
		for _, raw := range m.Messages {
			if m.Key != "" {
				err = out.WriteKey(m.Key, raw)
			} else {
				err = out.Write(raw)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if len(m.Context) == 0 {
		return write()
	}
	return r.WithContext(m.Context, write)
}

// spawn makes a child as a client's run did.
func (l *Leases) spawn(ctx context.Context, r *Run, c Spawned) error {
	plan, err := job.PlanNew(ctx, l.cfg.Store.Type, c.New)
	if err != nil {
		return fmt.Errorf("spawning %.80q: %w", c.Name, err)
	}
	var opts []job.ChildOption
	if c.New.Alias != "" {
		opts = append(opts, job.Alias(c.New.Alias))
	}
	_, err = r.Spawn(c.Name, plan, opts...)
	return err
}

// oneShown keeps from a run what it is not to see: a job whose messages are tried one by one gets one of each port.
func oneShown(snap *store.Snapshot) {
	if snap.Info.Single <= 0 {
		return
	}
	for i := range snap.In {
		snap.In[i].Items = slices.Clip(snap.In[i].Items[:min(1, len(snap.In[i].Items))])
	}
}
