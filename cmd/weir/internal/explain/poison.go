package explain

import (
	"fmt"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Poison is a message that a failed run read last: often it is to blame, and the next run fails, too.
type Poison struct {
	Port  string
	Place int   // among those that wait there, from 1
	Of    int64 // that wait there
	Data  string
}

// beginning is how much is shown of a message.
const beginning = 60

// poison names the message that a job may be stuck on, and how it is taken out.
func (t *Tree) poison(i *job.Info, level int) {
	if t.Poison == nil {
		return
	}
	m, ok := t.Poison(i)
	if !ok {
		return
	}
	place := fmt.Sprintf("the %s of %s messages", ordinal(m.Place), term.Number(m.Of))
	if m.Of == 1 {
		place = "the only message"
	}
	id := t.call(i)
	text := fmt.Sprintf("that run had read %s at port %s last: %s; if that is to blame, ", place, m.Port, term.Fit(m.Data, beginning))
	read := fmt.Sprintf("weir read %s %s", id, m.Port)
	if m.Place > 1 {
		text += fmt.Sprintf("put the first %d into a file, of which the last line is the message, and send the others back:", m.Place)
		read += fmt.Sprintf(" -n %d -o jsonl > aside.jsonl", m.Place)
	} else {
		text += "take it out:"
	}
	if i.Status == statemachine.Failed {
		read += " && weir retry " + id
	}
	t.say(i, level, Because{Text: text, Command: read})
}
