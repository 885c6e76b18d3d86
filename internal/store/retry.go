package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirworks/weir/job"
)

// Attempts has jobs run again, or no more, as somebody outside decides.
type Attempts interface {
	// Retry has a job run again as r says, all of it or nothing. job.ErrMoved says that r.Repeat follows from a run that was not the last one.
	Retry(ctx context.Context, id job.ID, r Retry) error
	// Fail fails a job without another try.
	Fail(ctx context.Context, id job.ID, f ByHand) error
	// Now is the store's clock.
	Now(ctx context.Context) (time.Time, error)
}

// Retry is how a job is retried by hand. The zero value is a retry now, of the job as it is.
type Retry struct {
	By          string          // who retries it, for its log; empty: that is not known
	Args        json.RawMessage // replace those of the job; nil: it keeps them
	TypeVersion int             // of its type that Args are of, see job.Versioned; 0 is 1
	Name        string          // empty: it keeps its own
	Priority    *int            // nil: it keeps its own
	Later       bool            // at a time: At or, if that is zero, after Delay
	At          time.Time
	Delay       time.Duration
	Running     bool // a run in progress loses the job
	// Repeat is how far the repetition of the job is then, which follows from its Version and the start of its last run; nil: as far as it is.
	Repeat  *job.Repeats
	Version int64
	Ran     time.Time
}

// ByHand is that somebody fails a job, see client.Handle.Fail.
type ByHand struct {
	Reason string // may be empty
	By     string // who it is, if that is known
}

// Validate refuses a reason that is too long, or that people could not read.
func (f ByHand) Validate() error {
	if len(f.Reason) > job.MaxReason {
		return fmt.Errorf("%w: the reason has %d bytes, at most %d are allowed", job.ErrTooLarge, len(f.Reason), job.MaxReason)
	}
	if !utf8.ValidString(f.Reason) || strings.ContainsFunc(f.Reason, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return fmt.Errorf("%w: the reason %.80q has control characters, or is not UTF-8: use text, with line ends and tabs", job.ErrValue, f.Reason)
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
		return fmt.Errorf("%w: a delay of %s: use one that is not negative", job.ErrValue, r.Delay)
	}
	if r.Name != "" {
		if err := job.CheckName("job name", r.Name); err != nil {
			return err
		}
		if strings.Contains(r.Name, "/") {
			return fmt.Errorf("%w: job name %.80q: a / stands between the names of a path: leave it out", job.ErrName, r.Name)
		}
	}
	if r.Priority != nil {
		if err := job.CheckPriority(*r.Priority); err != nil {
			return err
		}
	}
	return errors.Join(job.CheckSize("args", len(r.Args)), job.CheckTime(r.At))
}
