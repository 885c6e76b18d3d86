// Package term draws what the command-line programs show: trees of jobs, bars, and
// progress that is redrawn in place. Texts are measured in the columns they take on a
// terminal, so wide letters line up. Nothing here is safe for concurrent use.
package term

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

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

// Rate writes how often something happens.
func Rate(n float64) string {
	if n > 0 && n < 10 {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	return Number(int64(math.Round(n)))
}

// Short writes a duration with two digits or three: 0.25 ms, 3.2 ms, 41 s.
func Short(d time.Duration) string {
	value, unit := d.Seconds(), " s"
	if d < time.Second {
		value, unit = 1000*value, " ms"
	}
	digits := 0
	switch {
	case value < 1:
		digits = 2
	case value < 10:
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + unit
}

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

// Width is the number of columns that a text takes, colours not counted.
func Width(s string) int { return ansi.StringWidth(s) }

// Pad fills a text, which may have colours, up to that many columns.
func Pad(s string, columns int) string {
	return s + strings.Repeat(" ", max(0, columns-ansi.StringWidth(s)))
}

func padLeft(s string, columns int) string {
	return strings.Repeat(" ", max(0, columns-ansi.StringWidth(s))) + s
}
