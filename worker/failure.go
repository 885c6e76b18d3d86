package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// conclude turns the end of the user's code into a delta. r.mu is held.
// took is how long the code ran.
func (r *Run) conclude(k *kind, err error, shutdown bool, took time.Duration) *store.Delta {
	again := "" // why there is to be another run, though the worker did not ask for one
	if err == nil && !shutdown {
		again, err = r.leftUnread()
	}
	fine := err == nil || errors.Is(err, ErrSuspend) || errors.Is(err, ErrFull) || errors.Is(err, ErrAgain)
	if fine && shutdown {
		return r.take(statemachine.Shutdown)
	}
	if fine {
		read, hidden := r.most() > 0 || r.took, r.hides()
		outcome := statemachine.Requeue
		if again == "" {
			outcome = r.outcome(err)
		}
		d := r.take(outcome)
		d.Reason, d.Woken, d.Looked = again, r.wokenTo, r.looked()
		if d.Outcome == statemachine.Suspend || d.Outcome == statemachine.Complete {
			d.Reason = r.stray()
		}
		if d.Outcome == statemachine.Suspend && d.Reason != "" {
			d.Wakes = append(d.Wakes, -strayDelay)
		}
		if d.Outcome == statemachine.Complete {
			r.repeat(d, r.info.Ran.Add(took))
		}
		d.Idle = k.options.MaxRunsPerMinute == 0 && !r.moved && !progress(d) && asksAgain(d)
		switch single := r.info.Single; {
		case single > 0 && read:
			d.Single = strconv.Itoa(single - 1)
		case single > 0 && hidden: // it needs several messages at once: the one to blame cannot be told
			d.Single, d.Outcome = together, statemachine.Requeue
		case single < 0 && read:
			d.Single = "0"
		}
		return d
	}
	d := &store.Delta{Job: r.info.ID, Token: r.token, Outcome: statemachine.Fail, Failure: r.failure(err)}
	d.Reason = firstLine(d.Failure.Error)
	d.Entry, d.Log = r.journal.failure(r.step, d.Failure), r.delta.Log
	tries, options := r.info.Tries+1, k.options.of(r.info.Options)
	switch {
	case shutdown:
		d.Outcome = statemachine.Shutdown
	case r.info.Policy == job.DeadLetter && r.most() > 1 && r.info.Single >= 0:
		// One of these messages is to blame: they are tried one by one.
		return r.oneByOne(d)
	case errors.Is(err, job.ErrTooLarge) && r.most() > 1 && r.info.Single >= 0:
		// They are too much together.
		d.Failure = nil
		return r.oneByOne(d)
	case (tries < options.Tries || r.info.Policy == job.Restart) && !errors.As(err, new(*permanentError)):
		d.Outcome, d.Delay = statemachine.Backoff, options.delay(tries, err)
	case r.info.Policy == job.DeadLetter && r.most() == 1:
		r.letter(d)
	}
	return d
}

// oneByOne lets the messages that a failed run has read be read again, each by a run of its own.
func (r *Run) oneByOne(d *store.Delta) *store.Delta {
	return &store.Delta{
		Job: r.info.ID, Token: r.token, Outcome: statemachine.Requeue, Handed: true,
		Entry: d.Entry, Log: d.Log, Failure: d.Failure, Reason: d.Reason, Single: strconv.Itoa(r.most()),
	}
}

// progress tells whether a run did something that others notice.
func progress(d *store.Delta) bool {
	return len(d.Takes)+len(d.Writes)+len(d.Spawns)+len(d.Launches)+len(d.Defaults) > 0
}

// asksAgain tells whether a run asked for another at once.
func asksAgain(d *store.Delta) bool {
	atOnce := func(after time.Duration) bool { return after >= 0 && after < time.Millisecond }
	return d.Outcome == statemachine.Requeue || slices.ContainsFunc(d.Wakes, atOnce)
}

// strayDelay is after how long a job that sleeps beside such messages is run again, maybe by an
// engine of a version that reads them.
var strayDelay = 10 * time.Second

// stray tells of messages that this version of the worker has no port for: they stay where
// they are until one comes that has. Ports that a port `*` admits are no version's: which of them a run reads is its own affair.
func (r *Run) stray() string {
	if _, any := r.info.Port(port.Input, port.Any); any {
		return ""
	}
	for _, in := range r.boxes {
		if in.job == "" && !in.opened && in.left+in.hidden > 0 {
			return fmt.Sprintf("messages wait in port %q, which this version of the worker does not read", in.name)
		}
	}
	return ""
}

// together marks a job whose messages were to be read one a run, but which reads none of them
// alone: it gets all again, and if it fails with them it fails.
const together = "-1"

// hides tells whether messages were held back from the run.
func (r *Run) hides() bool {
	for _, in := range r.ins.all {
		if in.hidden > 0 {
			return true
		}
	}
	return false
}

// most is how many messages the run has read of the port of which it read most.
func (r *Run) most() int {
	n := 0
	for _, in := range r.ins.all {
		n = max(n, in.taken)
	}
	return n
}

// letter turns the failure of a run that read a message into a commit that moves the
// message to the port for errors. A letter may be larger than a message: it holds those that were read, and more.
func (r *Run) letter(d *store.Delta) {
	l := job.Letter{Job: r.info.ID, Step: r.step, Error: d.Reason, At: r.Now(), Messages: map[string]json.RawMessage{}}
	for _, in := range r.boxes {
		if in.taken == 0 || in.job != "" {
			continue
		}
		l.Messages[in.name] = in.last
		if in.context != nil {
			if l.Contexts == nil {
				l.Contexts = map[string]json.RawMessage{}
			}
			l.Contexts[in.name] = in.context
		}
		d.Takes = append(d.Takes, store.Take{Dir: in.dir, Port: in.name, Head: in.head, N: in.taken})
	}
	raw, err := port.Encode(l)
	head, unsealed := r.sealed()
	err = errors.Join(err, unsealed)
	if err == nil && len(raw) > MaxCommit {
		err = fmt.Errorf("%w: it has %d bytes, at most %d are allowed", job.ErrTooLarge, len(raw), MaxCommit)
	}
	if err != nil { // it cannot be moved: the job fails with it
		d.Takes, d.Reason = nil, fmt.Sprintf("%s (and no dead letter could be written: %s)", d.Reason, firstLine(err.Error()))
		return
	}
	d.Writes = []store.Write{{Dir: port.Output, Port: job.ErrorsPort, Items: []json.RawMessage{slices.Concat(head, raw)}}}
	d.Outcome, d.Reason = statemachine.Requeue, ""
	d.Single = strconv.Itoa(max(r.info.Single-1, 0))
}

func (r *Run) failure(err error) *job.Failure {
	f := &job.Failure{At: time.Now().UTC(), Began: r.info.Ran, Step: r.step, Try: r.info.Tries + 1, Error: clip(err.Error(), 4096), Trace: r.trace.at.String()}
	var p *panicked
	if errors.As(err, &p) {
		f.Stack = clip(string(p.stack), 16384)
	}
	if e := new(raised); errors.As(err, &e) {
		f.Stack = clip(e.stack, 16384)
	}
	if len(r.latest) == 1 && r.latest[0].job == "" && r.latest[0].taken > 0 {
		in, n := r.latest[0], r.latest[0].taken
		if m := new(messageError); errors.As(err, &m) && m.n >= 1 {
			n = min(m.n, n)
		}
		f.Port, f.Number = in.name, in.head+int64(n)-1
	}
	return f
}
