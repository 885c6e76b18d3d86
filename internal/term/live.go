package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Live is some lines at the bottom of a terminal that are drawn again and again.
type Live struct {
	w     io.Writer
	drawn int
}

// NewLive returns a Live that draws on a terminal.
func NewLive(w io.Writer) *Live { return &Live{w: w} }

// Draw replaces what was drawn before. Lines are cut at the width of the style, since a
// line that wraps would be two to go back over; and those for which the terminal is not high
// enough are left out, since there is no going back above it.
func (l *Live) Draw(s Style, lines ...string) {
	var b strings.Builder
	l.back(&b)
	if room := s.Height - 1; room > 0 && len(lines) > room {
		rest := fmt.Sprintf("… %s more lines", Number(int64(len(lines)-room+1)))
		lines = append(slices.Clone(lines[:room-1]), s.Faint(s.Text(rest)))
	}
	for _, line := range lines {
		b.WriteString(ansi.Truncate(line, s.Columns(), "") + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	l.drawn = len(lines)
	fmt.Fprint(l.w, b.String())
}

// Keep leaves what was drawn: the next Draw begins below it.
func (l *Live) Keep() { l.drawn = 0 }

// Clear removes what was drawn.
func (l *Live) Clear() {
	var b strings.Builder
	l.back(&b)
	b.WriteString("\x1b[J")
	l.drawn = 0
	fmt.Fprint(l.w, b.String())
}

func (l *Live) back(b *strings.Builder) {
	b.WriteByte('\r')
	if l.drawn > 0 {
		fmt.Fprintf(b, "\x1b[%dA", l.drawn)
	}
}
