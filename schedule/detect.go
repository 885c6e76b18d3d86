package schedule

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// tagged is a text with a tag: letters, a colon, and no blank before it.
var tagged = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*:`)

// cronLike is a field of a cron expression, or is close to one.
var cronLike = regexp.MustCompile(`^(?i)([\d*?/,#LW-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat|sunday|monday)+$`)

// Detect tells which dialect a person most likely means, and the text without its tag. A tag
// (cron:…) decides; @cron, @interval, @every and @at are read as tags, too. A tag that is not
// known is returned as it is, for Parse to refuse.
func Detect(text string) (Kind, string) {
	text = strings.TrimSpace(text)
	upper := strings.ToUpper(text)
	if strings.HasPrefix(text, "@") {
		return atWord(text)
	}
	if strings.Contains(upper, "FREQ=") && !strings.HasPrefix(upper, "NATURAL:") || strings.HasPrefix(upper, "DTSTART") || strings.HasPrefix(upper, "RDATE") {
		rest, ok := strings.CutPrefix(upper, "RRULE:")
		if ok {
			return RRule, text[len(text)-len(rest):]
		}
		return RRule, text
	}
	if tag := tagged.FindString(text); tag != "" {
		return Kind(strings.ToLower(strings.TrimSuffix(tag, ":"))), strings.TrimSpace(text[len(tag):])
	}
	if strings.HasPrefix(upper, "TZ=") || strings.HasPrefix(upper, "CRON_TZ=") {
		return Cron, text
	}
	fields := strings.Fields(text)
	base, _, _ := strings.Cut(upper, ",")
	base = strings.TrimSpace(base)
	switch {
	case slices.Contains(bases, base) || canned[base] != "" && base == upper:
		return Repeat, text
	case isMoment(text):
		return At, text
	case len(fields) > 3 && !slices.ContainsFunc(fields, func(f string) bool { return !cronLike.MatchString(f) }):
		if len(fields) == len(cron7Fields) {
			return Cron7, text
		}
		return Cron, text
	case len(fields) == 1 && strings.Trim(text, "0123456789.hmsdw+-") == "" && strings.ContainsAny(text, "0123456789"):
		return Every, text
	}
	return Natural, text
}

// atWord reads Cozy's types as tags, and names of cron expressions.
func atWord(text string) (Kind, string) {
	word, rest, _ := strings.Cut(text, " ")
	switch strings.ToLower(word) {
	case "@cron":
		return Cron, strings.TrimSpace(rest)
	case "@interval", "@every":
		return Every, strings.TrimSpace(rest)
	case "@at":
		return At, strings.TrimSpace(rest)
	case "@in":
		return Natural, "in " + strings.TrimSpace(rest)
	}
	return Cron, text
}

// isMoment tells whether a text is one of the dialect at, or begins as one.
func isMoment(text string) bool {
	if _, err := parseAt(text, time.UTC); err == nil {
		return true
	}
	if len(text) < len(time.DateOnly) {
		return false
	}
	_, err := time.Parse(time.DateOnly, text[:len(time.DateOnly)])
	_, rest, more := strings.Cut(text, " ")
	return err == nil && (!more || strings.Trim(rest, "0123456789:. ") == "")
}
