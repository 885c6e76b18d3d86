package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// overdue is after how long without a heartbeat an engine, which sends one each second, may be dead.
const overdue = 2 * time.Second

// living tells which engines that live have the type of a job, of so many that serve its queue.
func (t *Tree) living(i *job.Info, engines int, program, command string) Because {
	var have, cannot []string
	late, remote, slots, running, full := 0, 0, 0, 0, 0
	var runs []store.RunningJob
	needs := i.NeedsOf()
	for n := range t.Living {
		e := &t.Living[n]
		name := fmt.Sprintf("process %d on %s", e.PID, cmp.Or(e.Host, "-"))
		switch {
		case e.Stopping || !e.Takes(i.Queue, i.Type) && !e.Takes(i.Queue, needs.String()):
		case e.Takes(i.Queue, needs.String()):
			if seen := t.late(e); seen != "" {
				name, late = name+" ("+seen+")", late+1
			}
			if e.OverHTTP() {
				name, remote = "workers over HTTP (through "+name+")", remote+1
			}
			have, slots, running = append(have, name), slots+e.Concurrency, running+e.Running
			if slices.Contains(e.Full, i.Type) {
				full++
			}
			runs = append(runs, e.Runs...)
		case needs.Version > max(e.Versions[i.Type], 1):
			cannot = append(cannot, fmt.Sprintf("%s has version %d", name, max(e.Versions[i.Type], 1)))
		default:
			cannot = append(cannot, name+" could not")
		}
	}
	if len(have) == 0 && len(cannot) > 0 {
		return Because{
			Text: fmt.Sprintf("of %s now, none can run the job, which needs type %s (%s): start a program that can, such as a newer one, or one with other settings",
				serving(engines, i.Queue), needs.Words(), listed(t.some(cannot))),
		}
	}
	if len(have) == 0 {
		return Because{Text: fmt.Sprintf("of %s now, none has type %s: start %s", serving(engines, i.Queue), i.Type, program), Command: command}
	}
	then := "; it is run when " + one(len(have)) + " has a slot free"
	if running >= slots {
		then = fmt.Sprintf("; %s busy%s, and %s ready in the queue: it is run when its turn comes%s", busy(slots), t.longest(runs), jobsAre(t.Pending[i.Queue]), byPriority(i.Priority))
	}
	if full == len(have) {
		then = fmt.Sprintf("; %s as many jobs of the type as may at once there (of a handler by --handler-processes, else by MaxRunningHere): it is run when "+
			"one of these has ended", eachRuns(full))
	}
	if remote == len(have) {
		return Because{Text: fmt.Sprintf("type %s for queue %s is run by %s, which asked for runs within the last minutes: it begins when one of them does again", i.Type, i.Queue, listed(t.some(have)))}
	}
	if late == len(have) {
		then = "; each engine that lives tells of itself once a second: if none does again, start " + program
	}
	return Because{Text: fmt.Sprintf("%s with type %s for queue %s: %s%s", engineCount(len(have)), i.Type, i.Queue, listed(t.some(have)), then)}
}

// byPriority says which priority decides when it is a job's turn, if that is not the default.
func byPriority(own *int) string {
	if own == nil {
		return ""
	}
	return fmt.Sprintf(", by its priority of %d (the default is %d; weir priority changes it)", *own, job.DefaultPriority)
}

// busy says that so many slots are busy.
func busy(slots int) string {
	if slots == 1 {
		return "its slot is"
	}
	return fmt.Sprintf("all %s slots are", term.Number(int64(slots)))
}

// long is how long a run takes at least that others are told to wait for.
const long = 10 * time.Second

// longest names the run that has taken longest of some, if that is long.
func (t *Tree) longest(runs []store.RunningJob) string {
	if len(runs) == 0 {
		return ""
	}
	r := slices.MinFunc(runs, func(a, b store.RunningJob) int { return a.Since.Compare(b.Since) })
	if t.style.Since(r.Since) < long && r.Ignores == "" {
		return ""
	}
	text := fmt.Sprintf(" (the longest with job %s of type %s, %s", r.Job, r.Type, t.lasting(r.Since))
	if r.Ignores != "" {
		text += ", which ignores that its context has ended: " + r.Ignores
	}
	return text + ")"
}

// eachRuns says that so many engines run something.
func eachRuns(engines int) string {
	if engines == 1 {
		return "it runs"
	}
	return "each runs"
}

// one is what a text calls any of so many engines.
func one(engines int) string {
	if engines == 1 {
		return "it"
	}
	return "one of them"
}

// jobsAre is "1 job is" or "n jobs are".
func jobsAre(n int) string {
	if n == 1 {
		return "1 job is"
	}
	return term.Number(int64(n)) + " jobs are"
}

// late says when an engine was last seen, if its heartbeat is overdue.
func (t *Tree) late(e *store.EngineInfo) string {
	if e.Seen.IsZero() || t.style.Since(e.Seen) <= overdue {
		return ""
	}
	return "last seen " + t.style.Ago(e.Seen)
}

// overlooked says why a job does not begin whose time has come.
func (t *Tree) overlooked(i *job.Info) string {
	if i.Next.IsZero() || t.style.Since(i.Next) <= overdue {
		return ""
	}
	late := ", and has been " + t.lasting(i.Next) + ": "
	if t.Living != nil && len(t.Living) == 0 {
		return late + "no engine lives that would begin it: start the program that has type " + i.Type
	}
	return late + "the engine that was to begin it may be gone, and another one looks every five seconds"
}

// silent tells of a run whose process has not been seen for long, or is gone, and of one of a worker over HTTP when its lease ends.
func (t *Tree) silent(i *job.Info) string {
	if t.Living == nil || i.Lease.IsZero() || i.Token == "" {
		return ""
	}
	ends := "; if it is dead, its lease ends" + t.in(i.Lease) + ", and the job is run again"
	at := t.owner(i)
	switch {
	case len(t.Living) == 0:
		return ", but no engine lives now: start one, which sees to it when the lease of the run has ended"
	case at < 0:
		return ", by a process that is not seen any more" + ends
	}
	e := &t.Living[at]
	name := fmt.Sprintf(" by process %d on %s", e.PID, cmp.Or(e.Host, "-"))
	if seen := t.late(e); seen != "" {
		return name + ", " + seen + ends
	}
	if e.OverHTTP() {
		return " by a worker over HTTP, whose lease ends" + t.in(i.Lease) + " unless it renews it"
	}
	return ""
}

// owner returns which of those that live runs a job; -1: none.
func (t *Tree) owner(i *job.Info) int {
	if i.Token == "" {
		return -1
	}
	return slices.IndexFunc(t.Living, func(e store.EngineInfo) bool { return strings.HasPrefix(e.ID, i.Owner()) })
}

// ignoring tells of a run whose context ended seconds ago, but which has not returned.
func (t *Tree) ignoring(i *job.Info) string {
	at := t.owner(i)
	if at < 0 {
		return ""
	}
	for _, r := range t.Living[at].Runs {
		if r.Job == i.ID && r.Ignores != "" {
			return fmt.Sprintf("; it ignores that its context has ended (%s): its slot stays taken until it returns", r.Ignores)
		}
	}
	return ""
}
