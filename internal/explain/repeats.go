package explain

import (
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// repeats says how a job repeats and, unless that has been said, when it runs next.
func (t *Tree) repeats(i *job.Info, level int) {
	r := i.Repeat
	waits := i.Status == statemachine.Scheduled && i.Tries == 0
	if r == nil || i.Status.Settled() || i.Status == statemachine.Terminating || waits && r.Count > 0 {
		return
	}
	text, at := "it repeats ("+r.Schedule.String()+")", time.Time{}
	if i.Status == statemachine.Failed {
		text += " when it has been retried and completed"
	} else if next, again := r.Retried(i, t.style.Now); !waits && again {
		at = next.Scheduled
		text += ": the run after this one is due" + t.in(at)
	} else if !waits {
		text += ": there is no run after this one"
	}
	t.say(i, level, Because{Text: text, Next: at})
}

// deaf names the In ports of a job that repeats which are closed for all its runs to come.
func (t *Tree) deaf(i *job.Info, level int) {
	for _, p := range i.Ports {
		if p.Dir == port.Input && p.Closed {
			t.say(i, level, Because{Text: fmt.Sprintf("port %s was closed: the runs to come read what waits in it, and get no more messages", p.Name)})
		}
	}
}
