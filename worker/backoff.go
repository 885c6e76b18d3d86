package worker

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Permanent marks an error that another try cannot help, such as an order that does not exist: the job fails at once,
// whatever tries it has left and also where its graph restarts it. A job with dead letters puts the message aside at once.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// RetryAfter marks an error after which the next try, if there is one, comes after d instead of the backoff, as when a
// server says when to ask again. It counts as a try. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryError{err, d}
}

type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

// AtMessage says that the n-th message, from 1, is to blame for an error, of those that the run has read at the port that it read last. Without it
// that is the last one: for a worker that reads several messages and then works on them. Failure has its number, and weir why names it.
// AtMessage(n, nil) is nil.
func AtMessage(n int, err error) error {
	if err == nil {
		return nil
	}
	return &messageError{err, n}
}

type messageError struct {
	error
	n int
}

func (e *messageError) Unwrap() error { return e.error }

// Backoff tells how long to wait after some failures in a row, of which the last one was err. It may be called for several
// jobs at a time. What is below zero counts as zero.
type Backoff func(failures int, err error) time.Duration

// ConstantBackoff waits for the same time before each try.
func ConstantBackoff(d time.Duration) Backoff {
	return func(int, error) time.Duration { return d }
}

// Jittered shortens each delay by up to a fifth at random, so that jobs that failed together do not all come again
// together.
func (b Backoff) Jittered() Backoff {
	return func(failures int, err error) time.Duration {
		d := b(failures, err)
		return d - rand.N(max(d/5, 1)) //nolint:gosec // nobody gains from knowing it
	}
}

// ExponentialBackoff waits for first before the second try, and for twice as long before each further one, up to most.
func ExponentialBackoff(first, most time.Duration) Backoff {
	return func(failures int, _ error) time.Duration {
		d := min(first, most)
		for range failures - 1 {
			if d > most/2 {
				d = most
				break
			}
			d *= 2
		}
		return d
	}
}

// longestBackoff is the longest delay unless somebody says another one.
const longestBackoff = time.Hour

// defaultBackoff is that of a type that names none.
var defaultBackoff = ExponentialBackoff(time.Second, longestBackoff)

// delay is how long to wait before the try after the given number of failures.
func (o Options) delay(failures int, err error) (d time.Duration) {
	if at := new(retryError); errors.As(err, &at) {
		return max(at.after, 0)
	}
	defer func() {
		if recover() != nil { // a Backoff of the user: the failure that it was asked about is what matters
			d = defaultBackoff(failures, err)
		}
	}()
	if o.Backoff == nil {
		return defaultBackoff(failures, err)
	}
	return max(o.Backoff(failures, err), 0)
}
