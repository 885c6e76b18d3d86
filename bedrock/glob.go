package bedrock

import (
	"strings"
	"unicode/utf8"
)

// Match tells whether a name matches a pattern as SQLite's GLOB has it: * stands for any characters, ? for one, [a-z] for one of these
// and [^a-z] for another one. Case matters, and a slash is a character as any other.
func Match(pattern, name string) bool {
	back, from := -1, 0 // behind the last * of the pattern, and where it was tried to end
	p, n := 0, 0
	for n < len(name) || p < len(pattern) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			back, from = p, n
			continue
		}
		if n < len(name) && p < len(pattern) {
			char, width := utf8.DecodeRuneInString(name[n:])
			if behind, ok := matchOne(pattern, p, char, name[n:n+width]); ok {
				p, n = behind, n+width
				continue
			}
		}
		if back < 0 || from >= len(name) {
			return false
		}
		_, width := utf8.DecodeRuneInString(name[from:])
		from += width
		p, n = back, from
	}
	return true
}

// matchOne tells whether a character matches what a pattern has at p, and where the pattern goes on.
func matchOne(pattern string, p int, char rune, text string) (behind int, ok bool) {
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return matchSet(pattern, p+1, char)
	}
	_, width := utf8.DecodeRuneInString(pattern[p:])
	return p + width, pattern[p:p+width] == text
}

// matchSet does so for a set whose [ stands before p. A ] that comes first is one of its characters.
func matchSet(pattern string, p int, char rune) (behind int, ok bool) {
	not := strings.HasPrefix(pattern[p:], "^")
	if not {
		p++
	}
	for first, last := true, rune(-1); p < len(pattern); first = false {
		c, width := utf8.DecodeRuneInString(pattern[p:])
		p += width
		switch {
		case c == ']' && !first:
			return p, ok != not
		case c == '-' && last >= 0 && p < len(pattern) && pattern[p] != ']':
			high, width := utf8.DecodeRuneInString(pattern[p:])
			p += width
			ok = ok || last <= char && char <= high
			last = -1
		default:
			ok = ok || c == char
			last = c
		}
	}
	return p, false // it has no end
}
