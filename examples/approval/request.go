package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Up to small nobody is asked, above large two people must agree.
const small, large = 50, 1000

// Decision is what one person says to a request: {"By": "Grace", "Yes": true}.
type Decision struct {
	By  string
	Yes bool
}

// Request is a request to spend money.
type Request struct {
	Amount         int
	Purpose, By    string
	Remind, Expire time.Duration // how long people may be silent, and how long it lives
	Decisions      port.In[Decision]
	Outcome        port.Out[string]

	tell func(text string) // shared by all runs of a process
}

// progress is what a request remembers, as the value of one key of its state.
type progress struct {
	Filed, Next time.Time // when it was filed, and when it has something to say again
	Yes         []string  // who has agreed
	Outcome     string    // how it ended
}

// needed is how many people must agree.
func (r *Request) needed() int {
	switch {
	case r.Amount <= small:
		return 0
	case r.Amount <= large:
		return 1
	}
	return 2
}

// Run takes into account what people have said meanwhile, and what time it is. Then the job
// sleeps: no process has to remember it. What is told may be told again, should the process
// die in between; all else happens once.
func (r *Request) Run(_ context.Context, run *worker.Run) error {
	now := run.Now()
	p := progress{Filed: now, Next: now}
	if _, err := run.State().Get("progress", &p); err != nil {
		return err
	}
	over := p.Outcome != ""
	for d, err := range r.Decisions.All() {
		switch {
		case errors.Is(err, port.ErrEncoding):
			r.say(run, "what is no decision does not count: %v", err)
		case err != nil:
			return err
		case p.Outcome != "":
			r.say(run, "%s is too late", d.By)
		case d.By == "" || d.By == r.By || slices.Contains(p.Yes, d.By):
			r.say(run, "the word of %q does not count (again)", d.By)
		case !d.Yes:
			p.Outcome = "rejected by " + d.By
		default:
			r.say(run, "%s agrees", d.By)
			if p.Yes = append(p.Yes, d.By); len(p.Yes) == r.needed() {
				p.Outcome = "approved by " + strings.Join(p.Yes, " and ")
			}
		}
	}
	switch end := p.Filed.Add(r.Expire); {
	case p.Outcome != "":
	case r.needed() == 0:
		p.Outcome = "approved"
	case !now.Before(end):
		p.Outcome = "expired"
	case !now.Before(p.Next): // each reminder asks for the next one: there is one timer at a time
		r.say(run, "%s asks for %d for %s; decide with: approval decide -by NAME %s yes|no", r.By, r.Amount, r.Purpose, run.Info().Name)
		if p.Next = now.Add(r.Remind); p.Next.After(end) {
			p.Next = end
		}
		if err := run.WakeAfter(p.Next.Sub(now)); err != nil {
			return err
		}
	}
	if err := run.State().Set("progress", p); err != nil {
		return err
	}
	switch {
	case p.Outcome == "":
		return worker.ErrSuspend
	case over:
		return nil
	}
	r.say(run, "%s", p.Outcome)
	return r.Outcome.Write(p.Outcome)
}

func (r *Request) say(run *worker.Run, format string, args ...any) {
	r.tell(fmt.Sprintf("request %s: ", run.Info().Name) + fmt.Sprintf(format, args...))
}

// Desk is the parent of all requests: it has their list, and gives each a short name.
type Desk struct{}

// Run has nothing to do.
func (*Desk) Run(context.Context, *worker.Run) error { return worker.ErrSuspend }
