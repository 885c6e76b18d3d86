package term

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Sizes of a bar chart, in columns.
const (
	maxBar   = 50
	minBar   = 8
	maxLabel = 40
)

// Bar is a labelled number.
type Bar struct {
	Label string
	Value int64
}

// Bars draws numbers that are not negative as bars below each other. Labels that are
// too long are cut.
func Bars(w io.Writer, bars []Bar, s Style) error {
	var label, number int
	var longest int64
	for _, b := range bars {
		label = max(label, ansi.StringWidth(s.Fit(Clean(b.Label), maxLabel)))
		number = max(number, len(Number(b.Value)))
		longest = max(longest, b.Value)
	}
	room := min(maxBar, max(minBar, s.Columns()-label-number-4))
	var out strings.Builder
	for _, b := range bars {
		text := Pad(s.Fit(Clean(b.Label), maxLabel), label)
		out.WriteString(text + "  " + padLeft(Number(b.Value), number))
		if drawn := Meter(b.Value, longest, room); drawn != "" {
			out.WriteString("  " + s.Accent(s.Text(drawn)))
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// eighths are the parts of a block, from one eighth on.
var eighths = []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// Meter returns a bar for value of all as part of that many columns. Anything above zero
// shows at least as a sliver.
func Meter(value, all int64, columns int) string {
	if value <= 0 || all <= 0 {
		return ""
	}
	n := int(float64(min(value, all)) / float64(all) * float64(columns*8))
	n = max(n, 1)
	bar := strings.Repeat("█", n/8)
	if n%8 > 0 {
		bar += eighths[n%8-1]
	}
	return bar
}

// Gauge is Meter with what is missing to its end.
func Gauge(value, all int64, columns int) string {
	bar := Meter(value, all, columns)
	return bar + strings.Repeat("░", max(columns-ansi.StringWidth(bar), 0))
}
