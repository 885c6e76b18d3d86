package term

import (
	"fmt"

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
		text += fmt.Sprintf(", completed %s times", Number(r.Count))
	}
	return text
}
