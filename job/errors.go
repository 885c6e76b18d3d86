package job

import (
	"errors"
	"fmt"
)

// The kinds of failure that callers tell apart with errors.Is.
var (
	// ErrID: the text is not a job ID.
	ErrID = errors.New("not a job ID")
	// ErrNotFound: no such job (any more), or no such alias.
	ErrNotFound = errors.New("job not found")
	// ErrFenced: the run no longer owns its job; nothing it did was stored.
	ErrFenced = errors.New("run was fenced off: its lease ended and another run may have the job")
	// ErrMoved: what a run has seen holds no more. Somebody outside took messages that it had read, a patch fed a
	// job whose input had ended, or a Redis that lost its last writes gave a number that its child was to have to another job. The run must repeat.
	ErrMoved = errors.New("messages were taken from outside during the run, a patch fed the job again, or a Redis that lost writes gave out the number of a child again")
	// ErrStatus: the job's status does not allow what was asked.
	ErrStatus = errors.New("not possible in the job's status")
	// ErrPort: the job has no such port, or the port does not allow what was asked.
	ErrPort = errors.New("port")
	// ErrName: a job, type, queue or alias name that is not allowed.
	ErrName = errors.New("invalid name")
	// ErrValue: a value that a job cannot have, such as a priority or a schedule.
	ErrValue = errors.New("invalid value")
	// ErrExists: the name is already taken.
	ErrExists = errors.New("already exists")
	// ErrServed: an engine that lives has the type, or uses the namespace, see redisstore.Store.Migrate.
	ErrServed = errors.New("an engine that lives has the type")
	// ErrUnknownType: no engine has registered a worker of that type for that queue.
	ErrUnknownType = errors.New("unknown worker type")
	// ErrAmbiguous: several jobs have IDs that begin so.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrFull: the port has as many messages as its limit allows; nothing was written.
	ErrFull = errors.New("port is full")
	// ErrClosed: somebody writes to a port from outside that is closed. It wraps ErrPort.
	ErrClosed = fmt.Errorf("%w is closed", ErrPort)
	// ErrRate: the job has run too often this minute; it is throttled until the next.
	ErrRate = errors.New("too many runs")
	// ErrLimit: so many runs go on already, or have begun, that a limit of runs at once or a rate lets no other one begin; the job
	// waits for its turn.
	ErrLimit = errors.New("too many runs at once")
	// ErrHotLoop: the job has run too often in a row this minute without reading, writing or spawning anything.
	// It wraps ErrRate.
	ErrHotLoop = fmt.Errorf("%w in a hot loop", ErrRate)
	// ErrLocked: somebody outside holds the job's lock.
	ErrLocked = errors.New("job is locked")
	// ErrTooLarge: a message, a commit, a tree or a time over its limit.
	ErrTooLarge = errors.New("too large")
	// ErrUnreachable: the store does not answer; it may be asked again.
	ErrUnreachable = errors.New("cannot reach Redis")
	// ErrUnavailable: the store answers that it cannot do it now; it may be asked again.
	ErrUnavailable = errors.New("not now")
	// ErrRefused: the store understood the request and will never grant it.
	ErrRefused = errors.New("refused by the store")
	// ErrForbidden: who asks, through a server, may not do this or is not known.
	ErrForbidden = errors.New("not permitted")
	// ErrCodec: what was stored cannot be decoded here: its key is missing, or it was changed.
	ErrCodec = errors.New("cannot be decoded")
	// ErrFailed: the job that was waited for failed.
	ErrFailed = errors.New("job failed")
	// ErrConfig: the store cannot be used as it is configured.
	ErrConfig = errors.New("configuration")
)

// Temporary tells whether the store may answer when it is asked again: err is ErrUnreachable or ErrUnavailable.
func Temporary(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnavailable)
}
