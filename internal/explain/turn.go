package explain

import (
	"fmt"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// waits explains a job whose tree waits for its sequential key.
func (t *Tree) waits(i *job.Info, level int) {
	who := "job " + t.Path(i)
	if !i.ID.IsRoot() {
		who = "job " + t.Path(i) + " begins when its tree does, which"
	}
	var turn job.Turn
	known := false
	if t.Turn != nil {
		turn, known = t.Turn(i)
	}
	if !known || turn.Holder == "" {
		t.say(i, level, Because{Text: fmt.Sprintf("%s waits until the tree that holds the sequential key %s is over", who, i.SequentialKey)})
		return
	}
	t.say(i, level, Because{
		Text:    fmt.Sprintf("%s waits for job %s, which holds key %s: %s before it. To see what that one does:", who, turn.Holder, turn.Key, term.Number(turn.Before)),
		Command: "weir why " + string(turn.Holder),
	})
}
