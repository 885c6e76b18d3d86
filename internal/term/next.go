package term

import (
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Next says when a job that waits runs by itself, as a timer, a schedule or its repetition has it; empty: it does not.
func (s Style) Next(i *job.Info) string {
	if i.Next.IsZero() || i.Status != statemachine.Scheduled && i.Status != statemachine.Suspended {
		return ""
	}
	text := "next run " + s.In(i.Next)
	if r := i.Repeat; r != nil && r.Count > 0 {
		text += ", completed " + Times(r.Count)
	}
	return text
}

// Times is how often something happened: once, 3 times.
func Times(n int64) string {
	if n == 1 {
		return "once"
	}
	return Number(n) + " times"
}
