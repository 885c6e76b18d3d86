// Package term draws what the command-line programs show: trees of jobs, bars, and
// progress that is redrawn in place. Texts are measured in the columns they take on a
// terminal, so wide letters line up. Nothing here is safe for concurrent use.
package term

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	xterm "golang.org/x/term"

	"github.com/weirworks/weir/statemachine"
)

// defaultWidth is assumed where there is no terminal to ask.
const defaultWidth = 80

// Style says how to draw. The zero value is plain text for 80 columns.
type Style struct {
	// Color allows colours and other attributes.
	Color bool
	// Width is the number of columns; zero means 80.
	Width int
}

// StyleOf returns the style that fits a writer: colours and its width if it is a
// terminal, plain text otherwise. A NO_COLOR that is not empty in the environment
// forbids colours, a CLICOLOR_FORCE that is neither empty nor 0 wants them everywhere.
func StyleOf(w io.Writer) Style {
	forbidden, force := os.Getenv("NO_COLOR") != "", os.Getenv("CLICOLOR_FORCE")
	fd, ok := terminal(w)
	if !ok {
		return Style{Color: !forbidden && force != "" && force != "0"}
	}
	s := Style{Color: !forbidden}
	if width, _, err := xterm.GetSize(fd); err == nil {
		s.Width = width
	}
	return s
}

// IsTerminal tells whether w is a terminal on which lines can be redrawn.
func IsTerminal(w io.Writer) bool {
	_, ok := terminal(w)
	return ok
}

func terminal(w io.Writer) (fd int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, xterm.IsTerminal(fd)
}

// Columns is the width in effect.
func (s Style) Columns() int {
	if s.Width > 0 {
		return s.Width
	}
	return defaultWidth
}

// Faint is for what matters less.
func (s Style) Faint(text string) string { return s.render(lipgloss.NewStyle().Faint(true), text) }

// Bold is for headings.
func (s Style) Bold(text string) string { return s.render(lipgloss.NewStyle().Bold(true), text) }

// Accent is for bars.
func (s Style) Accent(text string) string {
	return s.render(lipgloss.NewStyle().Foreground(lipgloss.Cyan), text)
}

func (s Style) render(style lipgloss.Style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return style.Render(text)
}

// look is how a status is shown.
type look struct {
	symbol string
	style  lipgloss.Style
}

func lookOf(status statemachine.Status) look {
	plain := lipgloss.NewStyle()
	switch status {
	case statemachine.Running:
		return look{"●", plain.Foreground(lipgloss.Cyan)}
	case statemachine.Completed:
		return look{"✓", plain.Foreground(lipgloss.Green)}
	case statemachine.Failed:
		return look{"✗", plain.Foreground(lipgloss.Red).Bold(true)}
	case statemachine.Suspended:
		return look{"◌", plain.Foreground(lipgloss.Blue)}
	case statemachine.Terminating, statemachine.Terminated:
		return look{"■", plain.Faint(true)}
	default:
		return look{"○", plain.Foreground(lipgloss.Yellow)}
	}
}

// Status is the symbol and the name of a status, in its colour.
func (s Style) Status(status statemachine.Status) string {
	l := lookOf(status)
	return s.render(l.style, l.symbol+" "+status.String())
}

// Number writes n with a comma between thousands.
func Number(n int64) string {
	text := strconv.FormatInt(n, 10)
	digits := strings.TrimPrefix(text, "-")
	var b strings.Builder
	b.WriteString(text[:len(text)-len(digits)])
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Bytes writes a size in the unit that fits it.
func Bytes(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/1000, 0
	for value >= 999.95 && unit < len(units)-1 {
		value /= 1000
		unit++
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit]
}

var units = []string{"kB", "MB", "GB", "TB", "PB", "EB"}

// Clean makes a foreign text harmless on a terminal: one line, without control characters.
func Clean(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i]), 16))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// Fit cuts a text without colours to so many columns.
func Fit(s string, columns int) string {
	if lipgloss.Width(s) <= columns {
		return s
	}
	return lipgloss.NewStyle().MaxWidth(columns-1).Render(s) + "…"
}

// pad fills a text, which may have colours, up to so many columns.
func pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(0, columns-lipgloss.Width(s)))
}

func padLeft(s string, columns int) string {
	return strings.Repeat(" ", max(0, columns-lipgloss.Width(s))) + s
}
