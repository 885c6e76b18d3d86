package handler

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
)

// Code is the class of how a run of a payload ended.
type Code string

// The codes. OK and FAILED are done, RETRY and ERROR are tried again.
const (
	Retry  Code = "retry"  // 1xx: it could not be done now, as was to be expected at times
	OK     Code = "ok"     // 2xx
	Failed Code = "failed" // 4xx: it ran, and cannot succeed
	Error  Code = "error"  // 5xx: something unexpected
)

// CodeOf returns the code of a status; empty if it has none.
func CodeOf(status int) Code {
	switch {
	case status >= 100 && status < 200:
		return Retry
	case status >= 200 && status < 300:
		return OK
	case status >= 400 && status < 500:
		return Failed
	case status >= 500 && status < 600:
		return Error
	}
	return ""
}

// Done tells whether a payload with that code is not tried again.
func (c Code) Done() bool { return c == OK || c == Failed }

// StatusOfExit returns the status of a process that ended with an exit code, which exits may say.
func StatusOfExit(code int, exits map[string]int) int {
	if status, ok := exits[strconv.Itoa(code)]; ok {
		return status
	}
	switch code {
	case 0:
		return 200
	case 75: // EX_TEMPFAIL
		return 199
	}
	return 500
}

// MaxResult is the size of the greatest result that is kept.
const MaxResult = 16 << 20

// StateResult is the key of a job's state that has what came of its last payload, if that ended as OK or FAILED.
const StateResult = "result"

// Result is what came of the run of a payload.
type Result struct {
	Status int             `json:"status"`
	Value  json.RawMessage `json:"result,omitempty"` // nil: none
	Error  string          `json:"error,omitempty"`  // what was wrong, of codes other than OK
	Output []Line          `json:"-"`                // lines that were printed
	Notes  []string        `json:"-"`                // what else the log of its job is to say
	After  time.Duration   `json:"-"`                // how long at least until it is tried again, if it is
}

// Line is a line that a payload printed, without its newline.
type Line struct {
	Text   string
	Stderr bool // on standard error: it is one of the log, whatever it says
}

// Follow returns the job that the line asks for, as ParseLine does. ok is false if it is a line of the log.
func (l Line) Follow() (f Follow, ok bool) {
	if l.Stderr {
		return f, false
	}
	return ParseLine(l.Text)
}

// Follow is a job that a line of output asks for.
type Follow struct {
	Type    string
	Payload string
}

// jobMark is what a line begins with that asks for a job.
const jobMark = "J: "

// Wrong says what is wrong with a line that begins like one which asks for a job, and asks for none. It is empty for all others.
func (l Line) Wrong() string {
	rest, looks := strings.CutPrefix(l.Text, "J:")
	if _, asks := l.Follow(); asks || !looks || l.Stderr {
		return ""
	}
	typ, _, bar := strings.Cut(rest, "|")
	why := "a blank is missing behind J:"
	switch {
	case !bar:
		why = "it has no | behind the type"
	case strings.HasPrefix(typ, " "):
		why = job.CheckName("type", typ[1:]).Error()
	}
	return fmt.Sprintf("the line %.80q starts no job: %s; write it as J: TYPE|PAYLOAD", l.Text, why)
}

// ParseLine reads a line of output, without its newline. ok is false if it asks for no job: then it is one of the log.
func ParseLine(line string) (f Follow, ok bool) {
	rest, ok := strings.CutPrefix(line, jobMark)
	if !ok {
		return f, false
	}
	f.Type, f.Payload, ok = strings.Cut(rest, "|")
	if !ok || job.CheckName("type", f.Type) != nil {
		return Follow{}, false
	}
	return f, true
}
