package storecall

import (
	"errors"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// sentinels are the errors that callers tell apart, by the names that they have on their way. What wraps another one comes first.
var sentinels = []struct {
	name string
	err  error
}{
	{"closed", job.ErrClosed},
	{"hot_loop", job.ErrHotLoop},
	{"id", job.ErrID},
	{"not_found", job.ErrNotFound},
	{"fenced", job.ErrFenced},
	{"moved", job.ErrMoved},
	{"status", job.ErrStatus},
	{"port", job.ErrPort},
	{"value", job.ErrValue},
	{"name", job.ErrName},
	{"exists", job.ErrExists},
	{"served", job.ErrServed},
	{"unknown_type", job.ErrUnknownType},
	{"ambiguous", job.ErrAmbiguous},
	{"full", job.ErrFull},
	{"rate", job.ErrRate},
	{"limit", job.ErrLimit},
	{"locked", job.ErrLocked},
	{"too_large", job.ErrTooLarge},
	{"unreachable", job.ErrUnreachable},
	{"unavailable", job.ErrUnavailable},
	{"refused", job.ErrRefused},
	{"codec", job.ErrCodec},
	{"failed", job.ErrFailed},
	{"config", job.ErrConfig},
	{"forbidden", job.ErrForbidden},
	{"port_name", port.ErrName},
	{"encoding", port.ErrEncoding},
	{"params", port.ErrParams},
}

// Refusal is an error on its way over HTTP: its text, and which errors it wraps. As an error it wraps them again.
type Refusal struct {
	Text  string
	Wraps []string `json:",omitempty"`
	// Letter is which of several letters was refused, from 1; 0 for none.
	Letter int `json:",omitempty"`
	// Duplicate is the tree that has the unique key of one that was to be created; empty if it is not about that.
	Duplicate job.ID `json:",omitempty"`
}

// RefusedLetter is an error that says which of several letters was refused.
type RefusedLetter struct {
	Letter int // from 0
	Err    error
}

// Error implements error.
func (r *RefusedLetter) Error() string { return r.Err.Error() }

// Unwrap returns why.
func (r *RefusedLetter) Unwrap() error { return r.Err }

// RefusalOf is what an error becomes on its way; nil is nil.
func RefusalOf(err error) *Refusal {
	if err == nil {
		return nil
	}
	r := &Refusal{Text: err.Error()}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			r.Wraps = append(r.Wraps, s.name)
		}
	}
	var letter *RefusedLetter
	if errors.As(err, &letter) {
		r.Letter = letter.Letter + 1
	}
	var same *job.DuplicateError
	if errors.As(err, &same) {
		r.Duplicate = same.ID
	}
	return r
}

// LetterOf returns which of several letters an error says was refused, from 0, or -1.
func LetterOf(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Letter - 1
	}
	return -1
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Unwrap returns the errors that it wrapped where it comes from.
func (r *Refusal) Unwrap() (all []error) {
	if r.Duplicate != "" {
		all = append(all, &job.DuplicateError{ID: r.Duplicate})
	}
	for _, s := range sentinels {
		for _, name := range r.Wraps {
			if s.name == name {
				all = append(all, s.err)
			}
		}
	}
	return all
}

// refusals are several errors on their way.
func refusals(errs []error) []*Refusal {
	all := make([]*Refusal, len(errs))
	for i, err := range errs {
		all[i] = RefusalOf(err)
	}
	return all
}

// Errors are what several refusals were.
func Errors(all []*Refusal) []error {
	errs := make([]error, len(all))
	for i, r := range all {
		if r != nil {
			errs[i] = r
		}
	}
	return errs
}
