package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// path is a job's names from the root down.
func (e *explainer) path(i *job.Info) string {
	name := cmp.Or(i.Name, i.Type)
	if up := e.jobs[i.Parent]; up != nil {
		return e.path(up) + "/" + name
	}
	return name
}

// call is what commands call a job: as the user does, or its ID.
func (e *explainer) call(i *job.Info) string { return cmp.Or(e.called[i.ID], string(i.ID)) }

// sources returns the ports where what comes to a port is written: through graphs, whose
// ports only pass on.
func (e *explainer) sources(ref job.PortRef) []job.PortRef {
	var out []job.PortRef
	seen := map[job.PortRef]bool{}
	var follow func(ref job.PortRef)
	follow = func(ref job.PortRef) {
		if seen[ref] {
			return
		}
		seen[ref] = true
		for _, from := range e.feeds[ref] {
			switch {
			case !e.jobs[from.Job].Graph:
				out = append(out, from)
			case from.Dir == port.Input && len(e.feeds[from]) == 0:
				out = append(out, from) // comes from outside
			default:
				follow(from)
			}
		}
	}
	follow(ref)
	return out
}

// reaches returns the ports that keep what a job writes.
func (e *explainer) reaches(i *job.Info) []job.PortRef {
	var out []job.PortRef
	seen := map[job.PortRef]bool{}
	var follow func(p job.PortInfo)
	follow = func(p job.PortInfo) {
		for _, edge := range p.Edges {
			for _, end := range edge {
				at := e.jobs[end.Job]
				if at == nil || seen[end] {
					continue
				}
				seen[end] = true
				if q, _ := at.Port(end.Dir, end.Port); q.Wired {
					follow(q)
				} else {
					out = append(out, end)
				}
			}
		}
	}
	for _, p := range i.Ports {
		if p.Dir == port.Output {
			follow(p)
		}
	}
	return out
}

// lasting is how long something has been so: "for 3m".
func (e *explainer) lasting(since time.Time) string {
	if e.style.ISO {
		return "since " + e.style.Age(since)
	}
	return "for " + e.style.Age(since)
}

// slept says since when a job has been doing nothing, as far as is known.
func (e *explainer) slept(i *job.Info) string {
	if i.Ran.IsZero() {
		return ""
	}
	return ", since its last run " + e.style.Ago(i.Ran) + ","
}

// in is a time to come: " in 24s, at 13:52:07Z".
func (e *explainer) in(t time.Time) string {
	if e.style.ISO {
		return " at " + e.style.Age(t)
	}
	now := e.style.Now
	if now.IsZero() {
		now = time.Now()
	}
	return fmt.Sprintf(" in %s, at %s", term.Duration(max(t.Sub(now).Round(time.Second), time.Second)), t.UTC().Format("15:04:05Z"))
}

func (e *explainer) next(i *job.Info) string {
	if i.Next.IsZero() {
		return ""
	}
	return ", which is" + e.in(i.Next)
}

// tries says how often a job has failed in a row, if more than once.
func tries(i *job.Info) string {
	if i.Tries < 2 {
		return ""
	}
	return fmt.Sprintf(", for the %s time in a row", ordinal(i.Tries))
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}

// wait is "1 message waits" or "n messages wait".
func wait(n int64) string {
	if n == 1 {
		return "1 message waits"
	}
	return term.Number(n) + " messages wait"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// joinedBy joins words: a, b and c.
func joinedBy(words []string, last string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + last + words[len(words)-1]
}
