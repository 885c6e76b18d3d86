package job

import (
	"errors"
	"strings"
)

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
