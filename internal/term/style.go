package term

import (
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	xterm "golang.org/x/term"

	"github.com/weirworks/weir/statemachine"
)

// defaultWidth is assumed for what needs a width where there is none.
const defaultWidth = 80

// Style says how to draw. The zero value is plain text of any width.
type Style struct {
	// Color allows colours and other attributes.
	Color bool
	// Width is the number of columns at which tables and trees are cut. Zero is for no limit;
	// what fills a line takes 80 then.
	Width int
	// Height is the number of lines of the terminal; zero if there is none.
	Height int
	// ASCII draws with ASCII characters only, and writes others as \u escapes.
	ASCII bool
	// ISO writes times as RFC 3339 in UTC, rather than how long ago they were.
	ISO bool
	// Now is the time that ages count to; zero means when they are written.
	Now time.Time
}

// When to use colours.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// Wish is what a user asks for, beyond what fits the terminal. Its zero value is nothing.
type Wish struct {
	Color string // one of ColorAuto, ColorAlways and ColorNever; empty is ColorAuto
	ASCII bool
	ISO   bool
}

// StyleOf returns the style that fits a writer. Colours are for terminals, unless NO_COLOR is
// set and not empty; CLICOLOR_FORCE, if it is neither empty nor 0, has them anywhere. The width is that in
// COLUMNS, or the terminal's; there is no limit where there is neither. Only ASCII is used
// where the locale names another character set than UTF-8, or the terminal is dumb. The
// wish of a Screen goes before the environment.
func StyleOf(w io.Writer) Style {
	w, wish := origin(w)
	fd, ok := terminal(w)
	s := Style{Color: ok, ASCII: wish.ASCII || !unicodeLocale() || os.Getenv("TERM") == "dumb", ISO: wish.ISO}
	switch {
	case wish.Color == ColorAlways || wish.Color == ColorNever:
		s.Color = wish.Color == ColorAlways
	case os.Getenv("NO_COLOR") != "":
		s.Color = false
	case os.Getenv("CLICOLOR_FORCE") != "" && os.Getenv("CLICOLOR_FORCE") != "0":
		s.Color = true
	}
	if ok {
		if width, height, err := xterm.GetSize(fd); err == nil {
			s.Width, s.Height = width, height
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s
}

// unicodeLocale tells whether the locale allows any character. One that names no character
// set does.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		locale := os.Getenv(name)
		if locale == "" {
			continue
		}
		locale, _, _ = strings.Cut(locale, "@")
		_, charset, named := strings.Cut(locale, ".")
		if named {
			return strings.ReplaceAll(strings.ToLower(charset), "-", "") == "utf8"
		}
		return locale != "C" && locale != "POSIX"
	}
	return true
}

// IsTerminal tells whether w is a terminal on which lines can be redrawn.
func IsTerminal(w io.Writer) bool {
	if s, ok := w.(*Screen); ok {
		w = s.out
	}
	_, ok := terminal(w) // a Sheet is none
	return ok
}

func terminal(w io.Writer) (fd int, ok bool) {
	f, isFile := w.(interface{ Fd() uintptr })
	if !isFile || os.Getenv("TERM") == "dumb" {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, xterm.IsTerminal(fd)
}

// Columns is the width of what fills a line.
func (s Style) Columns() int {
	if s.Width > 0 {
		return s.Width
	}
	return defaultWidth
}

// Faint is for what matters less.
func (s Style) Faint(text string) string { return s.render(ansi.NewStyle().Faint(), text) }

// Bold is for headings.
func (s Style) Bold(text string) string { return s.render(ansi.NewStyle().Bold(), text) }

// Accent is for bars.
func (s Style) Accent(text string) string {
	return s.render(ansi.NewStyle().ForegroundColor(ansi.Cyan), text)
}

// Good is for what went well.
func (s Style) Good(text string) string {
	return s.render(ansi.NewStyle().ForegroundColor(ansi.Green), text)
}

// Warn is for what needs attention.
func (s Style) Warn(text string) string {
	return s.render(ansi.NewStyle().ForegroundColor(ansi.Yellow), text)
}

// Bad is for what went wrong.
func (s Style) Bad(text string) string {
	return s.render(ansi.NewStyle().ForegroundColor(ansi.Red), text)
}

func (s Style) render(style ansi.Style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return style.Styled(text)
}

// look is how a status is shown.
type look struct {
	symbol string
	style  ansi.Style
}

func lookOf(status statemachine.Status) look {
	plain := ansi.NewStyle()
	switch status {
	case statemachine.Running:
		return look{"●", plain.ForegroundColor(ansi.Cyan)}
	case statemachine.Completed:
		return look{"✓", plain.ForegroundColor(ansi.Green)}
	case statemachine.Failed:
		return look{"✗", plain.Bold().ForegroundColor(ansi.Red)}
	case statemachine.Suspended:
		return look{"◌", plain.ForegroundColor(ansi.Blue)}
	case statemachine.Terminating, statemachine.Terminated:
		return look{"■", plain.Faint()}
	default:
		return look{"○", plain.ForegroundColor(ansi.Yellow)}
	}
}

// Symbol stands for a status, in one column.
func Symbol(status statemachine.Status) string { return lookOf(status).symbol }

// Status is the symbol and the name of a status, in its colour.
func (s Style) Status(status statemachine.Status) string {
	return s.Colored(status, s.Text(Symbol(status)+" "+Clean(status.String())))
}

// Colored is a text in the colour of a status.
func (s Style) Colored(status statemachine.Status, text string) string {
	return s.render(lookOf(status).style, text)
}
