package top

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"

	"github.com/weirworks/weir/internal/term"
)

// clean makes a foreign text harmless on a terminal and as wide there as it is measured:
// terminals do not agree about the width of letters that are put together from several.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Variation_Selector, r) || r >= 0x1f3fb && r <= 0x1f3ff {
			return -1
		}
		return r
	}, term.Clean(s))
}

func indent(raw json.RawMessage) (string, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return "", err
	}
	return string(term.Spread(b.Bytes(), "  ")), nil
}

// wrap breaks a text without colours into lines of that many columns.
func wrap(s string, columns int) []string {
	return strings.Split(lipgloss.Wrap(s, max(columns, 1), " "), "\n")
}

// count writes a number in at most six columns.
func count(n int64) string {
	if n < 100_000 {
		return term.Number(n)
	}
	value, unit := float64(n)/1000, "kMGTPE"
	for value >= 999.5 && len(unit) > 1 {
		value, unit = value/1000, unit[1:]
	}
	if value < 99.95 {
		return strconv.FormatFloat(value, 'f', 1, 64) + unit[:1]
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + unit[:1]
}

// line is a line of the screen that is written from left to right and never gets wider
// than it may.
type line struct {
	text    strings.Builder
	columns int // that are left
}

func newLine(columns int) *line { return &line{columns: columns} }

// add appends a text without colours, cut to what is left, in the given look.
func (l *line) add(text string, look ...func(string) string) *line {
	text = term.Fit(text, l.columns)
	l.columns -= lipgloss.Width(text)
	for _, f := range look {
		text = f(text)
	}
	l.text.WriteString(text)
	return l
}

// cell appends a text that takes that many columns, or fewer if fewer are left.
func (l *line) cell(text string, columns int, look ...func(string) string) *line {
	columns = min(columns, l.columns)
	text = term.Fit(text, columns)
	rest := columns - lipgloss.Width(text)
	return l.add(text, look...).space(rest)
}

// right is cell with the text at the right end.
func (l *line) right(text string, columns int, look ...func(string) string) *line {
	columns = min(columns, l.columns)
	text = term.Fit(text, columns)
	return l.space(columns-lipgloss.Width(text)).add(text, look...)
}

func (l *line) space(columns int) *line {
	columns = max(min(columns, l.columns), 0)
	l.columns -= columns
	l.text.WriteString(strings.Repeat(" ", columns))
	return l
}

// String is the line, filled up to its width.
func (l *line) String() string { return l.text.String() + strings.Repeat(" ", max(l.columns, 0)) }

// columnsOf is how wide a text is, colours or not.
func columnsOf(s string) int { return lipgloss.Width(s) }
