package handler

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/weirworks/weir/job"
)

// progressMark is what a line begins with that tells how far its payload is.
const progressMark = "P: "

// Progress returns how far the line says that its payload is, with a few words behind that: "P: 3/5 pages", "P: 40% of the file", which is
// also 0.4, or "P: 1200 rows" where the total is not known. ok is false if it is a line of the log.
func (l Line) Progress() (p job.Progress, ok bool) {
	rest, ok := strings.CutPrefix(l.Text, progressMark)
	if !ok || l.Stderr {
		return p, false
	}
	number, text, _ := strings.Cut(rest, " ")
	if p.Done, p.Total, ok = parseProgress(number); !ok {
		return job.Progress{}, false
	}
	p.Text = oneLine(text)
	return p, true
}

// parseProgress reads 3/5, 40%, 0.4 or 1200.
func parseProgress(text string) (done, total int, ok bool) {
	const percent = 100
	if first, second, both := strings.Cut(text, "/"); both {
		done, err := strconv.Atoi(first)
		total, wrong := strconv.Atoi(second)
		return done, total, err == nil && wrong == nil && done >= 0 && total >= 0
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n, 0, n >= 0
	}
	part, of := text, 1.0
	if before, isPercent := strings.CutSuffix(text, "%"); isPercent {
		part, of = before, percent
	}
	n, err := strconv.ParseFloat(part, 64)
	if err != nil || !(n >= 0 && n <= of) { // which NaN is not
		return 0, 0, false
	}
	return int(n * percent / of), percent, true
}

// oneLine is a text as the text of a progress: without control characters, and not too long.
func oneLine(text string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
	if len(text) > job.MaxProgressText {
		text = strings.ToValidUTF8(text[:job.MaxProgressText], "")
	}
	return text
}
