package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// RetryOption says how a job is retried.
type RetryOption func(*retryOptions)

type retryOptions struct {
	store.Retry
	args         any
	newArgs      bool
	named        bool
	ignoreRepeat bool
}

// RetryArgs gives the job other parameters: any value that encodes to JSON. They are checked as Create does, unless all engines that live have an
// older version of the type than was registered: then they are of that one, and it may run the job.
func RetryArgs(args any) RetryOption {
	return func(o *retryOptions) { o.args, o.newArgs = args, true }
}

// RetryAt has the job run at a time, now if it is past. Its year is at most 9999. A job that repeats ignores it, see IgnoreRepeat.
func RetryAt(at time.Time) RetryOption {
	return func(o *retryOptions) { o.At, o.Later = at, true }
}

// RetryAfter has the job run after a delay, which is not below zero; a time of RetryAt wins over it. A job that repeats ignores it, see
// IgnoreRepeat.
func RetryAfter(d time.Duration) RetryOption {
	return func(o *retryOptions) { o.Delay, o.Later = d, true }
}

// RetryPriority gives the job a priority from 0 to job.MaxPriority.
func RetryPriority(n int) RetryOption { return func(o *retryOptions) { o.Priority = &n } }

// RetryName gives the job another name: a root any, a child one that no other child of its parent has. A node of a graph, and a
// child that was adopted from another tree, keeps its name: the error wraps job.ErrStatus.
func RetryName(name string) RetryOption {
	return func(o *retryOptions) { o.Name, o.named = name, true }
}

// RetryRunning retries a running job, too: its run loses the job, as one does whose lease ended, and nothing that it still does is
// stored. Its code goes on until it notices.
func RetryRunning() RetryOption { return func(o *retryOptions) { o.Running = true } }

// IgnoreRepeat lets RetryAt and RetryAfter say when a job runs that repeats. It repeats from then on.
func IgnoreRepeat() RetryOption { return func(o *retryOptions) { o.ignoreRepeat = true } }

// Retry gives a job that failed, or whose next try or first run is scheduled, another run: now, or when an option says. Its failures in
// a row are forgotten, and its log says what was done and, see job.WithContext and port.ContextBy, who did it. All that the options say happens together, once, or not at all. A queued job that waits as engines
// could not decode its args gets others by RetryArgs, without a time. Other jobs are refused with job.ErrStatus: Run is for those that sleep or
// completed, Force for terminated ones.
//
// With RetryAt or RetryAfter a job that repeats runs when its repeat says, unless IgnoreRepeat is given: counted from when the run
// that failed was due and when it started, and from now as its end. If its schedule has no further time it runs now. One that waits for
// its next repetition goes on waiting. Without a time the run that failed is tried again now. It repeats afterwards in all cases.
func (h *Handle) Retry(ctx context.Context, opts ...RetryOption) error {
	var o retryOptions
	o.By = job.Actor(ctx)
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("retrying job %s: %w", h.id, err)
	}
	for {
		err := h.retry(ctx, o)
		if !errors.Is(err, job.ErrMoved) || ctx.Err() != nil { // else it ran meanwhile
			return err
		}
	}
}

// RetryFailed retries every failed job of the tree that has a worker, as Retry does, and returns how many. Args and a name are of one
// job: they are refused with job.ErrValue.
func (h *Handle) RetryFailed(ctx context.Context, opts ...RetryOption) (int, error) {
	var o retryOptions
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.newArgs || o.named {
		return 0, fmt.Errorf("%w: args and a name are of one job, and not of all failed jobs in tree %s: retry that job alone", job.ErrValue, h.id)
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, i := range tree {
		if i.Status != statemachine.Failed || i.Graph {
			continue
		}
		if err := h.at(i.ID).Retry(ctx, opts...); err != nil && !errors.Is(err, job.ErrStatus) {
			return n, err
		}
		n++
	}
	return n, nil
}

// check refuses what no job can have.
func (o *retryOptions) check() error {
	if o.Delay < 0 {
		return fmt.Errorf("%w: a retry after %s: use a delay that is not negative", job.ErrValue, o.Delay)
	}
	if o.newArgs {
		raw, err := port.Encode(o.args)
		if err != nil {
			return fmt.Errorf("args: %w", err)
		}
		o.Args = raw
	}
	if o.named && o.Name == "" {
		return job.CheckName("job name", "")
	}
	return o.Validate()
}

// retry is Retry for valid options, of the job as it is at one moment.
func (h *Handle) retry(ctx context.Context, o retryOptions) error {
	if o.newArgs || h.id.IsRoot() {
		info, err := h.Info(ctx)
		if err != nil {
			return err
		}
		if err := h.checkArgs(ctx, info, &o); err != nil {
			return fmt.Errorf("retrying job %s: %w", h.id, err)
		}
		if info.Repeat != nil {
			now, err := h.store.Now(ctx)
			if err != nil {
				return err
			}
			o.repeat(info, now)
		}
	}
	return h.store.Retry(ctx, h.id, o.Retry)
}

// checkArgs refuses args that the job's type does not take.
func (h *Handle) checkArgs(ctx context.Context, info *job.Info, o *retryOptions) error {
	if !o.newArgs || info.Graph { // which the store refuses
		return nil
	}
	typ, err := h.store.Type(ctx, info.Queue, info.Type)
	if err != nil {
		return err
	}
	if o.TypeVersion, err = h.livingVersion(ctx, typ); err != nil {
		return err
	}
	if typ.Params == nil || o.TypeVersion != typ.TypeVersion { // else engines tell what they cannot decode
		return nil
	}
	return port.CheckParams(typ.Params, o.Args)
}

// livingVersion is the version of a type that engines which live can decode: that which was registered, unless all that have that one are gone.
func (h *Handle) livingVersion(ctx context.Context, typ *job.TypeInfo) (int, error) {
	engines, ok := h.store.(interface {
		Engines(ctx context.Context) ([]store.EngineInfo, error)
	})
	if typ.TypeVersion <= 1 || !ok {
		return typ.TypeVersion, nil
	}
	living, err := engines.Engines(ctx)
	if err != nil {
		return 0, err
	}
	for version := typ.TypeVersion; version > 0; version-- {
		needs := job.Needs{Type: typ.Type, Version: version}
		if slices.ContainsFunc(living, func(e store.EngineInfo) bool { return e.Takes(typ.Queue, needs.String()) }) {
			return version, nil
		}
	}
	return typ.TypeVersion, nil
}

// repeat says when a job runs that repeats, and how far its repetition is then.
func (o *retryOptions) repeat(info *job.Info, now time.Time) {
	o.Version, o.Ran = info.Version, info.Ran
	if !o.Later {
		begun := *info
		begun.Ran = now
		if next, again := info.Repeat.Waits(&begun); !again || next != nil { // the run would pass its time over
			o.Repeat = info.Repeat.DueAt(now)
		}
		return
	}
	at := now.Add(o.Delay)
	if !o.At.IsZero() {
		at = o.At
	}
	switch next, again := info.Repeat.Retried(info, now); {
	case o.ignoreRepeat:
		o.Repeat = info.Repeat.DueAt(at)
	case info.Status == statemachine.Scheduled && info.Tries == 0: // it waits for its next time
		o.Repeat = info.Repeat.DueAt(cmp.Or(info.Repeat.Scheduled, info.Next, now))
	case !again:
		o.Repeat = info.Repeat.DueAt(now)
	default:
		o.Repeat = next
	}
	o.At = o.Repeat.Scheduled
}

// Fail fails a job by hand, without another try: one that is queued, scheduled, waiting, suspended or running. Others are refused with
// job.ErrStatus: those that settled stay as they are, and a graph fails with the jobs in it. Of a running job the run loses the
// job, as one does whose lease ended: nothing that it still does is stored. Everything else is as for any failed job: its parent is
// told, its graph follows its failure policy, and it can be retried. The reason, which may be empty and has at most job.MaxReason bytes, and who it was, see
// job.WithContext and port.ContextBy, are in its Info, its Failures and the log.
func (h *Handle) Fail(ctx context.Context, reason string) error {
	by := job.Actor(ctx)
	f := store.ByHand{Reason: reason, By: by}
	if err := f.Validate(); err != nil {
		return fmt.Errorf("failing job %s: %w", h.id, err)
	}
	return h.store.Fail(ctx, h.id, f)
}
