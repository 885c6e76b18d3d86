package explain

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
)

// overdue is after how long without a heartbeat an engine, which sends one each second, may be dead.
const overdue = 2 * time.Second

// living tells which engines that live have the type of a job, of so many that serve its queue.
func (t *Tree) living(i *job.Info, engines int, program, command string) Because {
	var have, cannot []string
	late := 0
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
			have = append(have, name)
		case needs.Version > max(e.Versions[i.Type], 1):
			cannot = append(cannot, fmt.Sprintf("%s has version %d", name, max(e.Versions[i.Type], 1)))
		default:
			cannot = append(cannot, name+" could not")
		}
	}
	if len(have) == 0 && len(cannot) > 0 {
		return Because{
			Text: fmt.Sprintf("of %s now, none can decode what the job holds, which needs type %s (%s): start a program that can, such as a newer one",
				serving(engines, i.Queue), needs.Words(), listed(t.some(cannot))),
		}
	}
	if len(have) == 0 {
		return Because{Text: fmt.Sprintf("of %s now, none has type %s: start %s", serving(engines, i.Queue), i.Type, program), Command: command}
	}
	then := "; it is run when one of them has a slot free"
	if late == len(have) {
		then = "; each engine that lives tells of itself once a second: if none does again, start " + program
	}
	return Because{Text: fmt.Sprintf("%s with type %s for queue %s: %s%s", engineCount(len(have)), i.Type, i.Queue, listed(t.some(have)), then)}
}

// late says when an engine was last seen, if its heartbeat is overdue.
func (t *Tree) late(e *job.EngineInfo) string {
	if e.Seen.IsZero() || t.style.Since(e.Seen) <= overdue {
		return ""
	}
	return "last seen " + t.style.Ago(e.Seen)
}
