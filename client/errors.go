package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
)

// FailedError tells which job of a tree failed, and why.
type FailedError struct {
	Job    job.ID
	Path   string // names from the root down, joined by "/"
	Reason string // the first line of the job's last error
}

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("job %s (%s) failed: %s", e.Path, e.Job, e.Reason)
}

// Unwrap makes errors.Is(err, job.ErrFailed) true.
func (e *FailedError) Unwrap() error { return job.ErrFailed }

// DeadLettersError tells with which dead letters something could not be done, and why. Its text says equal reasons once.
type DeadLettersError struct {
	Doing  string // requeuing, changing or discarding
	All    int    // how many it was to be done with
	Failed []*DeadLetterError
}

// DeadLetterError tells why something could not be done with a dead letter.
type DeadLetterError struct {
	Letter string      // its ID
	In     job.PortRef // where it lies
	Err    error
}

// toldReasons is how many reasons the text of a DeadLettersError tells.
const toldReasons = 3

// doneTo is what dead letters are after what was done.
var doneTo = map[string]string{"requeuing": "requeued", "changing": "changed", "discarding": "discarded"}

// Error implements error.
func (e *DeadLetterError) Error() string {
	return fmt.Sprintf("dead letter %s of job %s: %v", e.Letter, e.In.Job, e.Err)
}

// Unwrap returns why.
func (e *DeadLetterError) Unwrap() error { return e.Err }

// Error implements error.
func (e *DeadLettersError) Error() string {
	if len(e.Failed) == 1 {
		return e.Doing + " " + e.Failed[0].Error()
	}
	counts := map[string]int{}
	var reasons []string
	for _, f := range e.Failed {
		text := f.Err.Error()
		if counts[text]++; counts[text] == 1 {
			reasons = append(reasons, text)
		}
	}
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	text := fmt.Sprintf("%d of %d dead letters were not %s: ", len(e.Failed), e.All, doneTo[e.Doing])
	if len(reasons) == 1 {
		return text + reasons[0]
	}
	told := reasons[:min(len(reasons), toldReasons)]
	rest := len(e.Failed)
	for i, reason := range told {
		rest -= counts[reason]
		told[i] = fmt.Sprintf("%s (%d)", reason, counts[reason])
	}
	if rest > 0 {
		told = append(told, fmt.Sprintf("and %d more", rest))
	}
	return text + strings.Join(told, "; ")
}

// Unwrap returns what it tells of each.
func (e *DeadLettersError) Unwrap() []error {
	all := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		all[i] = f
	}
	return all
}

// AdvisedError is an error of Client.Start that ends with advice in the words of Go programs, which no user of the HTTP API or of the
// command can follow. These say it in their own words, see Advised.
type AdvisedError struct {
	Err    error
	Advice string // with its punctuation
	// Existing tells that it is about a tree under the alias, which may be taken, and Patch that it may be patched, too.
	Existing, Patch bool
}

// Error implements error.
func (e *AdvisedError) Error() string { return e.Err.Error() + e.Advice }

// Unwrap returns the error without the advice.
func (e *AdvisedError) Unwrap() error { return e.Err }

// Advised is the text of an error that is, or wraps, an AdvisedError with other words in place of the advice: take and patch say how these are asked for
// where a tree is there under the alias, later what to do if the engine of a job is not there.
func Advised(err error, take, patch, later string) string {
	var e *AdvisedError
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := strings.TrimSuffix(err.Error(), e.Advice)
	switch {
	case e.Patch:
		return text + ": change it into this one with " + patch + ", or take it as it is with " + take
	case e.Existing:
		return text + ", or take it as it is with " + take
	}
	return text + later
}
