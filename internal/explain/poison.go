package explain

import (
	"cmp"
	"fmt"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Poison is the message that a failed run read last, or that its worker has named: often it is to blame, and the next run fails, too.
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
	text := fmt.Sprintf("that run had come to %s at port %s: %s; if that is to blame, ", place, m.Port, term.Fit(m.Data, beginning))
	advice, command := t.cure(i, m)
	t.say(i, level, Because{Text: text + advice, Command: command})
}

// cure says how a job gets past a message, with none of the others lost.
func (t *Tree) cure(i *job.Info, m Poison) (advice, command string) {
	id := t.Call(i)
	retry := ""
	if i.Status == statemachine.Failed {
		retry = "weir retry " + id
	}
	read := fmt.Sprintf("weir read %s %s", id, m.Port)
	p, _ := i.Port(port.Input, m.Port)
	switch {
	case m.Place == 1:
		advice, command = "take it out:", read
	case p.Closed: // nothing can be sent to it
		return fmt.Sprintf("fix the worker so that it skips what it cannot use (a loop over All goes on after a message that does not decode), "+
			"restart its engines, and run the job again; port %s is closed, so messages that are taken out could not be sent back:", m.Port), cmp.Or(retry, "weir run "+id)
	default:
		advice = fmt.Sprintf("put the first %d into a file, of which the last line is the message, and send the others back; they come after those that wait:", m.Place)
		command = fmt.Sprintf("%s -n %d -o jsonl > aside.jsonl && sed '$d' aside.jsonl | weir send %s %s -", read, m.Place, id, m.Port)
	}
	if retry != "" {
		command += " && " + retry
	}
	return advice, command
}
