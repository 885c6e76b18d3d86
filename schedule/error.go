package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// Error says why a text is not a schedule.
type Error struct {
	// Kind and Text are what was parsed.
	Kind Kind
	Text string
	// Field is the part of the text that is wrong; empty if it is the whole.
	Field string
	// Word is what was not understood, and Known is what could stand in its place; both may be empty.
	Word  string
	Known []string
	// Reason says what is wrong, and what would be right.
	Reason string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Kind != "" {
		b.WriteString(string(e.Kind) + " ")
	}
	b.WriteString(quote(e.Text) + ": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

// about says what was parsed. An error of what English became is one of the English.
func (e *Error) about(kind Kind, text string) *Error {
	e.Kind, e.Text = kind, text
	return e
}

// refuse is an error in a field.
func refuse(field, format string, args ...any) *Error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// unknown is an error about a word that is none of those that are known.
func unknown(field, word, why string, known []string) *Error {
	e := refuse(field, "%s %s: use %s", quote(word), why, listed(known, "or"))
	e.Word, e.Known = word, known
	return e
}

// quote quotes a text, and cuts one that is long.
func quote(s string) string {
	const most = 100
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

// listed joins words as English does.
func listed(list []string, and string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " " + and + " " + list[last]
}
