package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// ignoredAfter is how long after the end of its context a run that goes on is told of.
	ignoredAfter = 3 * time.Second
	// abandonAfter is how long after the drain time a run that goes on is waited for.
	abandonAfter = 5 * time.Second
	// namedRuns is how many abandoned runs an error names.
	namedRuns = 10
)

// tellIgnored logs, once for each, which runs have ignored for long that their context has ended.
func (e *Engine) tellIgnored(now time.Time) {
	for _, r := range e.presence.ignoring(now) {
		e.cfg.Logger.Warn("a run goes on though its context has ended: its slot stays taken until it returns",
			"job", r.Job, "type", r.Type, "began", r.Since, "ended", r.Ignores)
	}
}

// ignoring returns, once, each run whose context was seen to have ended ignoredAfter ago.
func (p *presence) ignoring(now time.Time) (all []inProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t, r := range p.turns {
		switch {
		case r.Job == "" || r.Ignores != "" || r.ctx.Err() == nil:
			continue
		case r.ignored.IsZero():
			r.ignored = now
		case now.Sub(r.ignored) >= ignoredAfter:
			r.Ignores = strings.TrimSuffix(context.Cause(r.ctx).Error(), ": "+context.DeadlineExceeded.Error())
			all = append(all, r)
		}
		p.turns[t] = r
	}
	return all
}

// awaitRuns waits until all has ended that the engine does. Runs that have not when it is late are left to themselves, and their
// leases end: the error names their jobs.
func (e *Engine) awaitRuns(late <-chan time.Time) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.active.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-late:
	}
	if names := e.presence.abandon(); len(names) > 0 {
		return fmt.Errorf("the engine stopped, but %d of its runs did not return when their contexts had ended, and were abandoned: %s; "+
			"these jobs are run again when their leases end: let Run return when its context ends", len(names), some(names))
	}
	<-ended // what has run is being committed, which takes lastWords at most
	return nil
}

// abandon lets the leases of the runs in progress end, and returns what they are called.
func (p *presence) abandon() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t, r := range p.turns {
		if r.Job != "" {
			t.leaseKeeper.stop()
			names = append(names, fmt.Sprintf("job %s of type %s", r.Job, r.Type))
		}
	}
	slices.Sort(names)
	return names
}

// some are the first of some names, and how many more there are.
func some(names []string) string {
	if n := len(names) - namedRuns; n > 0 {
		names = append(names[:namedRuns:namedRuns], fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}
