package explain

import (
	"fmt"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/trigger"
)

// trigger explains a trigger that is suspended: what keeps it from firing, if anything does.
func (t *Tree) trigger(i *job.Info, level int) {
	who, id := "trigger "+t.Path(i), t.Call(i)
	var s *trigger.Status
	known := false
	if t.Trigger != nil {
		s, known = t.Trigger(i)
	}
	if known && s.Paused {
		t.say(i, level, Because{Text: who + " is paused, and drops what would fire it; to let it fire again:", Command: "weir trigger resume " + id})
	}
	if known && s.Full() {
		t.full(i, s, level)
		return
	}
	if known && s.Paused {
		return
	}
	text := who + " waits for what fires it"
	if !i.Next.IsZero() {
		text = fmt.Sprintf("%s waits for its time%s", who, t.next(i))
	}
	if known {
		text += "; what it does:"
	} else {
		text += "; what it does, and whether it is paused:"
	}
	t.say(i, level, Because{Text: text, Command: "weir trigger show " + id, Next: i.Next})
}

// full explains a trigger that has launched as many trees as may be unfinished at a time, and goes on to the first of these.
func (t *Tree) full(i *job.Info, s *trigger.Status, level int) {
	var trees []string
	for _, id := range s.Running {
		trees = append(trees, string(id))
	}
	what := "what fires it waits"
	switch {
	case s.Waiting == 1:
		what = "1 firing waits"
	case s.Waiting > 1:
		what = term.Number(s.Waiting) + " firings wait"
	case s.Definition.Limits.Overflow == trigger.Drop && s.Definition.Limits.Queue == 0:
		what = "what fires it is dropped"
	default:
	}
	has := "have"
	if len(trees) == 1 {
		has = "has"
	}
	t.say(i, level, Because{
		Text: fmt.Sprintf("trigger %s: %s, as %d of %d trees that may be unfinished at a time (limits.parallel) %s not ended: %s",
			t.Path(i), what, len(trees), s.Definition.Limits.Parallel, has, listed(t.some(trees))),
		Command: "weir trigger show " + t.Call(i),
	})
	first := s.Running[0]
	var reasons []Because
	if t.Other != nil {
		reasons = t.Other(first)
	}
	for _, r := range reasons {
		r.Level += level + 1
		t.reasons = append(t.reasons, r)
	}
	if len(reasons) == 0 {
		t.say(i, level+1, Because{Text: "to see what that one does:", Command: "weir why " + string(first)})
	}
}
