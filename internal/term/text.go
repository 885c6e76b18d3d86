package term

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// ascii is what characters that this package and others draw with become without Unicode.
// Those of one column stay so.
var ascii = map[rune]string{
	'│': "|", '├': "|", '└': "`", '─': "-",
	'●': "*", '✓': "+", '✗': "x", '◌': "~", '■': "#", '○': "o", '∎': "!",
	'█': "#", '▏': "-", '▎': "-", '▍': "-", '▌': "=", '▋': "=", '▊': "=", '▉': "=", '░': ".",
	'×': "x", '←': "<-", '→': "->", '≤': "<=", '…': "...", '—': "-", '·': ".",
}

// Text returns a text as it can be shown: without Unicode, what is drawn is put in other
// characters, and all others are written as JSON writes them, \u00e9.
func (s Style) Text(text string) string {
	if !s.ASCII {
		return text
	}
	return toASCII(text)
}

func toASCII(text string) string {
	var b strings.Builder
	for i, c := range text {
		switch instead, drawn := ascii[c]; {
		case c < utf8.RuneSelf:
			b.WriteRune(c)
		case drawn:
			b.WriteString(instead)
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// Fit cuts a text to that many columns.
func Fit(s string, columns int) string { return Style{}.Fit(s, columns) }

// Fit cuts a text, which may have colours, to that many columns, and shows that it did.
func (s Style) Fit(text string, columns int) string {
	text = s.Text(text)
	if ansi.StringWidth(text) <= columns {
		return text
	}
	dots := s.Text("…")
	if columns <= ansi.StringWidth(dots) {
		return strings.Repeat(".", max(0, columns))
	}
	return ansi.Truncate(text, columns-ansi.StringWidth(dots), "") + dots
}

// Wrap breaks a text into lines, of which that many columns are taken already: between words
// where it can. The text has no colours, or is short. Without a width it stays one line.
func (s Style) Wrap(text string, taken int) []string {
	text = s.Text(text)
	if s.Width == 0 {
		return []string{text}
	}
	room := max(s.Width-taken, s.Width/2, 2)
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case ansi.StringWidth(*last)+1+ansi.StringWidth(word) <= room:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
		for {
			word := lines[len(lines)-1]
			n := prefix(word, room)
			if n == len(word) {
				break
			}
			lines[len(lines)-1] = word[:n]
			lines = append(lines, word[n:])
		}
	}
	return lines
}

// Line is a head, which may have colours, and a text behind it. What of the text is too long
// for the line goes on below, indented.
func (s Style) Line(head, text string) []string {
	lines := s.Wrap(text, ansi.StringWidth(head))
	for n := range lines {
		lines[n] = head + lines[n]
		head = strings.Repeat(" ", ansi.StringWidth(head))
	}
	return lines
}

// prefix is how many bytes of a text fit that many columns, but at least one character.
func prefix(text string, columns int) int {
	part := text
	if most := 16 * columns; len(text) > most { // the rest is not measured again and again
		for !utf8.RuneStart(text[most]) {
			most--
		}
		part = text[:most]
	}
	if n := len(ansi.Truncate(part, columns, "")); n > 0 {
		return n
	}
	return len(part)
}

// Age writes how long ago something was, in one unit; with ISO when it was. A zero time is "-".
func (s Style) Age(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case s.ISO:
		return t.UTC().Format(time.RFC3339)
	}
	return span(s.Since(t))
}

// Since is how long ago something was, by Now; never less than nothing.
func (s Style) Since(t time.Time) time.Duration {
	now := s.Now
	if now.IsZero() {
		now = time.Now()
	}
	return max(now.Sub(t), 0)
}

// Ago is Age in a sentence: "3m ago", or "at" and the time.
func (s Style) Ago(t time.Time) string {
	if s.ISO {
		return "at " + s.Age(t)
	}
	return s.Age(t) + " ago"
}

// In is when something is to be, in a sentence: "in 3m20s", "now" if it should have been, or "at" and the time.
func (s Style) In(t time.Time) string {
	if s.ISO {
		return "at " + s.Age(t)
	}
	now := s.Now
	if now.IsZero() {
		now = time.Now()
	}
	if d := t.Sub(now); d > 0 {
		return "in " + Duration((d + time.Second - 1).Truncate(time.Second)) // never in 0s
	}
	return "now"
}

// span writes a time span in one unit, rounded down.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Duration writes how long something takes, in at most two units.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours()/24), int(d.Hours())%24)
}
