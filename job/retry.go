package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Attempts has jobs run again, or no more, as somebody outside decides.
type Attempts interface {
	// Retry has a job run again as r says, all of it or nothing. ErrMoved says that r.Repeat follows from a run that was not the last one.
	Retry(ctx context.Context, id ID, r Retry) error
	// Fail fails a job without another try.
	Fail(ctx context.Context, id ID, f ByHand) error
	// Now is the store's clock.
	Now(ctx context.Context) (time.Time, error)
}

// Retry is how a job is retried by hand. The zero value is a retry now, of the job as it is.
type Retry struct {
	By          string          // who retries it, for its log; empty: that is not known
	Args        json.RawMessage // replace those of the job; nil: it keeps them
	TypeVersion int             // of its type that Args are of, see Versioned; 0 is 1
	Name        string          // empty: it keeps its own
	Priority    *int            // nil: it keeps its own
	Later       bool            // at a time: At or, if that is zero, after Delay
	At          time.Time
	Delay       time.Duration
	Running     bool // a run in progress loses the job
	// Repeat is how far the repetition of the job is then, which follows from its Version and the start of its last run; nil: as far as it is.
	Repeat  *Repeats
	Version int64
	Ran     time.Time
}

// ByHand is that somebody fails a job, see Handle.Fail.
type ByHand struct {
	Reason string // may be empty
	By     string // who it is, if that is known
}

// MaxReason is how many bytes the reason of a failure by hand has at most.
const MaxReason = 4096

// Validate refuses a reason that is too long, or that people could not read.
func (f ByHand) Validate() error {
	if len(f.Reason) > MaxReason {
		return fmt.Errorf("%w: the reason has %d bytes, at most %d are allowed", ErrTooLarge, len(f.Reason), MaxReason)
	}
	if !utf8.ValidString(f.Reason) || strings.ContainsFunc(f.Reason, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return fmt.Errorf("%w: the reason %.80q has control characters, or is not UTF-8: use text, with line ends and tabs", ErrValue, f.Reason)
	}
	return nil
}

// FailedByHand is how the reason begins of a job that was failed by hand.
const FailedByHand = "by hand"

// String is what the job says of it: by hand (anna): no longer needed.
func (f ByHand) String() string {
	text := FailedByHand
	if f.By != "" {
		text += " (" + f.By + ")"
	}
	if f.Reason != "" {
		text += ": " + f.Reason
	}
	return text
}

// RetryOption says how a job is retried.
type RetryOption func(*retryOptions)

type retryOptions struct {
	Retry
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

// RetryPriority gives the job a priority from 0 to MaxPriority.
func RetryPriority(n int) RetryOption { return func(o *retryOptions) { o.Priority = &n } }

// RetryName gives the job another name: a root any, a child one that no other child of its parent has. A node of a graph, and a
// child that was adopted from another tree, keeps its name: the error wraps ErrStatus.
func RetryName(name string) RetryOption {
	return func(o *retryOptions) { o.Name, o.named = name, true }
}

// RetryRunning retries a running job, too: its run loses the job, as one does whose lease ended, and nothing that it still does is
// stored. Its code goes on until it notices.
func RetryRunning() RetryOption { return func(o *retryOptions) { o.Running = true } }

// IgnoreRepeat lets RetryAt and RetryAfter say when a job runs that repeats. It repeats from then on.
func IgnoreRepeat() RetryOption { return func(o *retryOptions) { o.ignoreRepeat = true } }

// Retry gives a job that failed, or whose next try or first run is scheduled, another run: now, or when an option says. Its failures in
// a row are forgotten, and its log says what was done and, see WithContext and port.ContextBy, who did it. All that the options say happens together, once, or not at all. A queued job that waits as engines
// could not decode its args gets others by RetryArgs, without a time. Other jobs are refused with ErrStatus: Run is for those that sleep or
// completed, Force for terminated ones.
//
// With RetryAt or RetryAfter a job that repeats runs when its repeat says, unless IgnoreRepeat is given: counted from when the run
// that failed was due and when it started, and from now as its end. If its schedule has no further time it runs now. One that waits for
// its next repetition goes on waiting. Without a time the run that failed is tried again now. It repeats afterwards in all cases.
func (h *Handle) Retry(ctx context.Context, opts ...RetryOption) error {
	var o retryOptions
	o.By = Actor(ctx)
	for _, opt := range opts {
		opt(&o)
	}
	if err := o.check(); err != nil {
		return fmt.Errorf("retrying job %s: %w", h.id, err)
	}
	for {
		err := h.retry(ctx, o)
		if !errors.Is(err, ErrMoved) || ctx.Err() != nil { // else it ran meanwhile
			return err
		}
	}
}

// RetryFailed retries every failed job of the tree that has a worker, as Retry does, and returns how many. Args and a name are of one
// job: they are refused with ErrValue.
func (h *Handle) RetryFailed(ctx context.Context, opts ...RetryOption) (int, error) {
	var o retryOptions
	for _, opt := range opts {
		opt(&o)
	}
	if o.newArgs || o.named {
		return 0, fmt.Errorf("%w: args and a name are of one job, and not of all failed jobs in tree %s: retry that job alone", ErrValue, h.id)
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
		if err := h.at(i.ID).Retry(ctx, opts...); err != nil && !errors.Is(err, ErrStatus) {
			return n, err
		}
		n++
	}
	return n, nil
}

// check refuses what no job can have.
func (o *retryOptions) check() error {
	if o.Delay < 0 {
		return fmt.Errorf("%w: a retry after %s: use a delay that is not negative", ErrValue, o.Delay)
	}
	if o.newArgs {
		raw, err := port.Encode(o.args)
		if err != nil {
			return fmt.Errorf("args: %w", err)
		}
		o.Args = raw
	}
	if o.named && o.Name == "" {
		return CheckName("job name", "")
	}
	return o.Validate()
}

// String says who retries the job, and with what: by hand (anna), with other args.
func (r *Retry) String() string {
	text := ByHand{By: r.By}.String()
	if r.Running {
		text += ", also if it is running"
	}
	if len(r.Args) > 0 {
		text += ", with other args"
	}
	if r.Priority != nil {
		text += fmt.Sprintf(", with priority %d", *r.Priority)
	}
	if r.Name != "" {
		text += ", with the name " + r.Name
	}
	switch {
	case r.Later && !r.At.IsZero():
		text += ", at " + r.At.UTC().Format(time.RFC3339)
	case r.Later:
		text += ", in " + r.Delay.String()
	}
	return text
}

// Validate reports the first field that no job can have.
func (r *Retry) Validate() error {
	if r.Delay < 0 {
		return fmt.Errorf("%w: a delay of %s: use one that is not negative", ErrValue, r.Delay)
	}
	if r.Name != "" {
		if err := CheckName("job name", r.Name); err != nil {
			return err
		}
		if strings.Contains(r.Name, "/") {
			return fmt.Errorf("%w: job name %.80q: a / stands between the names of a path: leave it out", ErrName, r.Name)
		}
	}
	if r.Priority != nil {
		if err := CheckPriority(*r.Priority); err != nil {
			return err
		}
	}
	return errors.Join(CheckSize("args", len(r.Args)), checkTime(r.At))
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
func (h *Handle) checkArgs(ctx context.Context, info *Info, o *retryOptions) error {
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
func (h *Handle) livingVersion(ctx context.Context, typ *TypeInfo) (int, error) {
	store, ok := h.store.(interface {
		Engines(ctx context.Context) ([]EngineInfo, error)
	})
	if typ.TypeVersion <= 1 || !ok {
		return typ.TypeVersion, nil
	}
	engines, err := store.Engines(ctx)
	if err != nil {
		return 0, err
	}
	for version := typ.TypeVersion; version > 0; version-- {
		needs := Needs{Type: typ.Type, Version: version}
		if slices.ContainsFunc(engines, func(e EngineInfo) bool { return e.Takes(typ.Queue, needs.String()) }) {
			return version, nil
		}
	}
	return typ.TypeVersion, nil
}

// repeat says when a job runs that repeats, and how far its repetition is then.
func (o *retryOptions) repeat(info *Info, now time.Time) {
	o.Version, o.Ran = info.Version, info.Ran
	if !o.Later {
		begun := *info
		begun.Ran = now
		if next, again := info.Repeat.Waits(&begun); !again || next != nil { // the run would pass its time over
			o.Repeat = info.Repeat.dueAt(now)
		}
		return
	}
	at := now.Add(o.Delay)
	if !o.At.IsZero() {
		at = o.At
	}
	switch next, again := info.Repeat.Retried(info, now); {
	case o.ignoreRepeat:
		o.Repeat = info.Repeat.dueAt(at)
	case info.Status == statemachine.Scheduled && info.Tries == 0: // it waits for its next time
		o.Repeat = info.Repeat.dueAt(cmp.Or(info.Repeat.Scheduled, info.Next, now))
	case !again:
		o.Repeat = info.Repeat.dueAt(now)
	default:
		o.Repeat = next
	}
	o.At = o.Repeat.Scheduled
}

// Fail fails a job by hand, without another try: one that is queued, scheduled, waiting, suspended or running. Others are refused with
// ErrStatus: those that settled stay as they are, and a graph fails with the jobs in it. Of a running job the run loses the
// job, as one does whose lease ended: nothing that it still does is stored. Everything else is as for any failed job: its parent is
// told, its graph follows its failure policy, and it can be retried. The reason, which may be empty and has at most MaxReason bytes, and who it was, see
// WithContext and port.ContextBy, are in its Info, its Failures and the log.
func (h *Handle) Fail(ctx context.Context, reason string) error {
	by := Actor(ctx)
	f := ByHand{Reason: reason, By: by}
	if err := f.Validate(); err != nil {
		return fmt.Errorf("failing job %s: %w", h.id, err)
	}
	return h.store.Fail(ctx, h.id, f)
}
