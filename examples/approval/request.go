package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Keys of a request's state.
const (
	filedAt   = "filed"
	yesAt     = "yes"
	nextAt    = "next"
	outcomeAt = "outcome"
)

// Results of a request.
const (
	approved = "approved"
	rejected = "rejected"
	expired  = "expired"
)

// Policy says who has to agree to what.
type Policy struct {
	Small  Cents         `json:"small"`  // up to this nobody is asked
	Large  Cents         `json:"large"`  // above this two people must agree
	Remind time.Duration `json:"remind"` // how long people may be silent
	Expire time.Duration `json:"expire"` // how long a request lives
}

// Decision is what one person says to a request. It comes by the port decisions:
//
//	{"by": "Grace", "yes": true}
type Decision struct {
	By   string `json:"by"`
	Yes  bool   `json:"yes"`
	Note string `json:"note,omitempty"`
}

// Outcome is how a request ended.
type Outcome struct {
	Result string    `json:"result"`
	By     []string  `json:"by,omitempty"` // who decided; nobody if nobody had to
	Note   string    `json:"note,omitempty"`
	At     time.Time `json:"at"`
}

// Request is a request to spend money.
type Request struct {
	Amount    Cents
	Purpose   string
	By        string
	Policy    Policy
	Decisions port.In[Decision]
	Outcome   port.Out[Outcome]

	people *people // who are asked; shared by all runs of a process
}

// JobType implements job.Typer.
func (*Request) JobType() string { return "approval/request" }

// needed is how many people must agree.
func (r *Request) needed() int {
	switch {
	case r.Amount <= r.Policy.Small:
		return 0
	case r.Amount <= r.Policy.Large:
		return 1
	}
	return 2
}

// Start files the request: it happens once, before the first Run.
func (r *Request) Start(_ context.Context, run *worker.Run) error {
	if err := run.State().Set(filedAt, run.Now()); err != nil {
		return err
	}
	if r.needed() == 0 {
		return r.end(run, Outcome{Result: approved, Note: "small"})
	}
	return r.ask(run, run.Now(), "")
}

// Run takes what people have said meanwhile, and what time it is, into account. Then the
// job sleeps: no process has to remember it.
func (r *Request) Run(_ context.Context, run *worker.Run) error {
	over, err := run.State().Get(outcomeAt, new(Outcome))
	if err != nil {
		return err
	}
	for r.Decisions.Len() > 0 {
		d, _, err := r.Decisions.Read()
		switch {
		case errors.Is(err, port.ErrEncoding):
			r.people.tell("request %s: what is no decision does not count: %v", run.Info().Name, err)
		case err != nil:
			return err
		case over:
			r.people.tell("request %s: %s is too late", run.Info().Name, d.By)
		default:
			if over, err = r.hear(run, d); err != nil {
				return err
			}
		}
	}
	if over {
		return nil
	}
	var filed, next time.Time
	if _, err := run.State().Get(filedAt, &filed); err != nil {
		return err
	}
	if _, err := run.State().Get(nextAt, &next); err != nil {
		return err
	}
	switch now := run.Now(); {
	case !now.Before(filed.Add(r.Policy.Expire)):
		return r.end(run, Outcome{Result: expired})
	case !now.Before(next):
		if err := r.ask(run, filed, "reminder: "); err != nil {
			return err
		}
	}
	return worker.ErrSuspend
}

// hear takes one decision; over tells whether it was the last one needed. Who asks, or has
// agreed already, is thanked for nothing.
func (r *Request) hear(run *worker.Run, d Decision) (over bool, err error) {
	var yes []string
	if _, err := run.State().Get(yesAt, &yes); err != nil {
		return false, err
	}
	switch {
	case d.By == "" || d.By == r.By || slices.Contains(yes, d.By):
		r.people.tell("request %s: the word of %q does not count (again)", run.Info().Name, d.By)
		return false, nil
	case !d.Yes:
		return true, r.end(run, Outcome{Result: rejected, By: []string{d.By}, Note: d.Note})
	}
	yes = append(yes, d.By)
	if err := run.State().Set(yesAt, yes); err != nil {
		return false, err
	}
	if len(yes) < r.needed() {
		r.people.tell("request %s: %s agrees; one more person must", run.Info().Name, d.By)
		return false, nil
	}
	return true, r.end(run, Outcome{Result: approved, By: yes, Note: d.Note})
}

// ask tells people what to do, and sees to it that the job runs when it is time to remind
// them or to give up. Each reminder asks for the next one, so there is one timer at a time.
// A process that dies here has told them and will do so again: what it says has no other
// effect.
func (r *Request) ask(run *worker.Run, filed time.Time, why string) error {
	name := run.Info().Name
	r.people.tell("%srequest %s: %s asks for %s for %s; decide with: approval decide %s yes|no --as NAME",
		why, name, r.By, r.Amount, r.Purpose, name)
	wait := min(r.Policy.Remind, filed.Add(r.Policy.Expire).Sub(run.Now()))
	if err := run.State().Set(nextAt, run.Now().Add(wait)); err != nil {
		return err
	}
	return run.WakeAfter(wait)
}

// end ends the request.
func (r *Request) end(run *worker.Run, o Outcome) error {
	o.At = run.Now()
	r.people.tell("request %s: %s%s", run.Info().Name, o.Result, o.people())
	if err := run.State().Set(outcomeAt, o); err != nil {
		return err
	}
	return r.Outcome.Write(o)
}

func (o Outcome) people() string {
	if len(o.By) == 0 {
		return ""
	}
	return " by " + strings.Join(o.By, " and ")
}

// Desk is the parent of all requests: it has their list, and gives each a short name.
type Desk struct{}

// JobType implements job.Typer.
func (*Desk) JobType() string { return "approval/desk" }

// Run has nothing to do.
func (*Desk) Run(context.Context, *worker.Run) error { return worker.ErrSuspend }

// people are told what to do, on a terminal here. A nil *people hears nothing.
type people struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *people) tell(format string, args ...any) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.w, term.Clean(fmt.Sprintf(format, args...)))
}
