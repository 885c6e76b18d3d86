// Package statemachine says which statuses a job can have and which events
// move it from one to another. It is the only place where either is spelled:
// the stores' scripts get the same table through [Lua], and people get it
// through [Markdown], which is kept in docs/state_machine.md.
//
// The package is pure: no clock, no I/O, no goroutines. Everything in it is
// safe for concurrent use, and every slice it returns belongs to the caller.
package statemachine

//go:generate go run ./internal/gendoc ../docs/state_machine.md

import (
	"fmt"
	"slices"
	"strings"
)

// Transition is one legal move of a job.
type Transition struct {
	From  Status
	Event Event
	To    Status
}

// TransitionError reports an event that the job's status does not accept, or
// a status or event that does not exist.
type TransitionError struct {
	Status Status
	Event  Event
}

// Error names the events that the status does accept.
func (e *TransitionError) Error() string {
	if !slices.Contains(Events(), e.Event) {
		return fmt.Sprintf("unknown event %q", string(e.Event))
	}
	accepted := Accepts(e.Status)
	if len(accepted) == 0 {
		return fmt.Sprintf("unknown status %q", string(e.Status))
	}
	return fmt.Sprintf("a %s job does not accept the event %s; it accepts %s",
		e.Status.label(), e.Event, join(accepted))
}

// Next returns the status that a job in status s has after event e. When s
// does not accept e it returns s unchanged and a [*TransitionError].
func Next(s Status, e Event) (Status, error) {
	for _, r := range rules {
		if r.event == e && slices.Contains(r.from, s) {
			return r.to, nil
		}
	}
	return s, &TransitionError{Status: s, Event: e}
}

// ParseStatus returns the stored status spelled exactly name. The empty
// string is an error: [New] is never stored.
func ParseStatus(name string) (Status, error) {
	s := Status(name)
	if !slices.Contains(Statuses(), s) {
		return "", fmt.Errorf("unknown status %q: want one of %s", name, join(Statuses()))
	}
	return s, nil
}

// Statuses returns the stored statuses, that is all but [New], in the order
// of a job's life.
func Statuses() []Status {
	return all()[1:]
}

// Events returns every event in the order of the table.
func Events() []Event {
	events := make([]Event, len(rules))
	for i, r := range rules {
		events[i] = r.event
	}
	return events
}

// Accepts returns the events that a job in status s accepts, in the order of
// [Events]. It is empty only for a status that does not exist.
func Accepts(s Status) []Event {
	var events []Event
	for _, r := range rules {
		if slices.Contains(r.from, s) {
			events = append(events, r.event)
		}
	}
	return events
}

// Transitions returns every legal move, ordered by the status it starts from
// ([New] first, then [Statuses]) and then by event.
func Transitions() []Transition {
	var moves []Transition
	for _, from := range all() {
		for _, r := range rules {
			if slices.Contains(r.from, from) {
				moves = append(moves, Transition{From: from, Event: r.event, To: r.to})
			}
		}
	}
	return moves
}

// all returns New followed by the stored statuses.
func all() []Status {
	statuses := make([]Status, len(facts))
	for i, f := range facts {
		statuses[i] = f.status
	}
	return statuses
}

func join[T ~string](names []T) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}
