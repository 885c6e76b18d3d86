package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxKey is how much of a path, or of a client's name, is told apart.
const maxKey = 200

// Record is what is kept of one line.
type Record struct {
	Status int    `json:"s"`
	Path   string `json:"p"`
	Hour   string `json:"h"` // in UTC, as in 2026-01-31T23
	Client string `json:"c"`
	Bytes  int64  `json:"b"`
	Micros *int64 `json:"us,omitempty"` // nil if the line does not say how long it took
}

const (
	logTime  = "02/Jan/2006:15:04:05 -0700"
	hourTime = "2006-01-02T15"
)

// parseLine reads a line of the common or the combined format:
//
//	host ident user [time] "request" status bytes
//	host ident user [time] "request" status bytes "referer" "agent"
//
// either of them with the seconds that the request took behind it, as servers are often
// told to add.
func parseLine(line string) (Record, error) {
	var r Record
	s := scanner{rest: strings.TrimSuffix(line, "\r")}
	r.Client = clip(s.word("client"))
	s.word("ident")
	s.word("user")
	at, err := time.Parse(logTime, s.between('[', ']', "time"))
	if err != nil {
		s.fail("its time is not like [10/Oct/2026:13:55:36 +0200]")
	}
	r.Hour = at.UTC().Format(hourTime)
	r.Path = pathOf(s.between('"', '"', "request"))
	if r.Status, err = strconv.Atoi(s.word("status")); err != nil || r.Status < 100 || r.Status > 599 {
		s.fail("its status is not from 100 to 599")
	}
	if size := s.word("bytes"); size != "-" {
		if r.Bytes, err = strconv.ParseInt(size, 10, 64); err != nil || r.Bytes < 0 {
			s.fail("its number of bytes is none")
		}
	}
	if strings.HasPrefix(s.rest, `"`) {
		s.between('"', '"', "referer")
		s.between('"', '"', "agent")
	}
	if s.rest != "" {
		const day = 24 * 60 * 60
		seconds, err := strconv.ParseFloat(s.word("seconds"), 64)
		if err != nil || !(seconds >= 0 && seconds <= day) || s.rest != "" {
			s.fail("something follows that is not the seconds it took")
		}
		micros := int64(seconds*1e6 + 0.5)
		r.Micros = &micros
	}
	return r, s.err
}

// pathOf takes the path out of a request such as GET /a?b=c HTTP/1.1. What is no request,
// such as what strangers send to a port, stands for itself.
func pathOf(request string) string {
	path := request
	if parts := strings.Fields(request); len(parts) >= 2 {
		path, _, _ = strings.Cut(parts[1], "?")
	}
	return clip(path)
}

// clip cuts a key that is too long between two runes.
func clip(s string) string {
	if len(s) <= maxKey {
		return s
	}
	n := maxKey
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// scanner takes a line apart, and remembers the first thing that is wrong with it.
type scanner struct {
	rest string
	err  error
}

func (s *scanner) fail(why string) {
	if s.err == nil {
		s.err = errors.New(why)
	}
}

// word takes what goes to the next space.
func (s *scanner) word(what string) string {
	word, rest, _ := strings.Cut(s.rest, " ")
	if word == "" {
		s.fail("it has no " + what)
	}
	s.rest = rest
	return word
}

// between takes what is between two marks, of which the second may be escaped by a
// backslash inside.
func (s *scanner) between(begin, end byte, what string) string {
	if s.rest == "" || s.rest[0] != begin {
		s.fail(fmt.Sprintf("it has no %s between %c and %c", what, begin, end))
		return ""
	}
	for i := 1; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case end:
			text := s.rest[1:i]
			s.rest = strings.TrimPrefix(s.rest[i+1:], " ")
			return text
		}
	}
	s.fail(fmt.Sprintf("the end of its %s is missing", what))
	s.rest = ""
	return ""
}
