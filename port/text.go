package port

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxShown is how much of a foreign text an error message shows, in bytes.
const maxShown = 60

// shorten cuts a text that is too long for an error message, between runes.
func shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for i := cut; i > cut-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			cut = i
			break
		}
	}
	return s[:cut] + "…"
}

// excerpt shows the beginning of a message, quoted only when it would not print.
func excerpt(raw []byte) string {
	if len(raw) == 0 {
		return "(empty)"
	}
	s := shorten(string(raw[:min(len(raw), maxShown+utf8.UTFMax)]))
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}

// Suggest returns a hint for a word that is none of the known ones: the nearest
// of them, or all.
func Suggest(word string, known []string) string {
	best, distance := "", 1+max(1, min(len(word), maxShown)/3)
	for _, k := range known {
		if strings.EqualFold(k, word) {
			best = k
			break
		}
		d := editDistance(shorten(word), k)
		if len(word) > 1 && strings.HasPrefix(k, word) {
			d = min(d, 1)
		}
		if d < distance || d == distance && best != "" && alike(k, word) > alike(best, word) {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return "did you mean " + strconv.Quote(best) + "?"
	case len(known) == 0:
		return "there are none"
	default:
		return "use one of: " + strings.Join(known, ", ")
	}
}

// alike is how many bytes a known word and another one have in common at their beginnings and ends, and one more if all of the latter
// is the beginning: of queue and queues the second is more like queus.
func alike(a, b string) (n int) {
	if strings.HasPrefix(a, b) {
		return len(b) + 1
	}
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for rest := n; n-rest < min(len(a), len(b))-rest && a[len(a)-1-(n-rest)] == b[len(b)-1-(n-rest)]; n++ {
	}
	return n
}

// editDistance counts the bytes to insert, delete, replace or exchange with their neighbours to get from a to b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost = 1 + min(last[j], row[j], last[j+1])
				if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
					cost = min(cost, 1+before[j-1])
				}
			}
			row[j+1] = cost
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// snake turns the name of a Go field into a port name: InBox is in_box, ID is
// id, HTTPServer is http_server, URLs is urls.
func snake(field string) string {
	runes := []rune(field)
	var b strings.Builder
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) {
			prev, rest := runes[i-1], runes[i+1:]
			starts := len(rest) > 0 && unicode.IsLower(rest[0]) && string(rest) != "s"
			if unicode.IsLower(prev) || unicode.IsDigit(prev) || unicode.IsUpper(prev) && starts {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
