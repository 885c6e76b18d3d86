package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Level says how bad a Finding is.
type Level string

// The levels. What was not looked at is Skipped, with the reason.
const (
	OK      Level = "ok"
	Warning Level = "warning" // works, but not as well or as safely as it could
	Problem Level = "problem" // jobs do not run, or may be lost
	Skipped Level = "skipped"
)

// Finding is the result of one check.
type Finding struct {
	Check   string `json:"check"`
	Level   Level  `json:"level"`
	Finding string `json:"finding"`
	Fix     string `json:"fix"` // what to do about it; empty unless it is a warning or a problem
}

// Examination says how to examine a Redis and a namespace.
type Examination struct {
	// Deep looks at all keys of the namespace, in batches with pauses between them.
	Deep bool
	// Progress is told of a deep look at how many of about how many keys it has looked.
	// Nil means nobody wants to know.
	Progress func(done, all int64)
}

// Examine looks whether jobs of a namespace are in good hands, and changes nothing. It also
// examines what Open refuses. The error wraps job.ErrConfig if cfg is wrong; all that
// is wrong with the Redis is a Finding.
func Examine(ctx context.Context, cfg Config, x Examination) ([]Finding, error) {
	s, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Examine(ctx, x)
}

// Examine is the function Examine for the namespace of a store that is open.
func (s *Store) Examine(ctx context.Context, x Examination) ([]Finding, error) {
	e := &examiner{Store: s, x: x}
	for _, c := range e.checks() {
		e.check = c.name
		if err := e.attempt(ctx, c.look); err != nil {
			return e.findings, err
		}
		if e.hopeless {
			break
		}
	}
	return e.findings, ctx.Err()
}

// examiner is one examination.
type examiner struct {
	*Store
	x        Examination
	check    string // that is going on
	findings []Finding
	hopeless bool // nothing more can be found out

	now     time.Time // by Redis's clock
	all     []server
	engines []store.EngineInfo
	types   []job.TypeInfo
	queues  []QueueInfo
	sample  []sampled // of what is in `due`
	unread  []unread  // found by a deep look
}

// check is one thing to look at.
type check struct {
	name string
	look func(context.Context) error
}

// checks are all, in the order in which one depends on another.
func (e *examiner) checks() []check {
	all := []check{
		{"connection", e.connection},
		{"encryption", func(context.Context) error { e.encryption(); return nil }},
		{"version", e.version},
		{"eviction", e.eviction},
		{"memory", e.memory},
		{"persistence", e.persistence},
		{"replication", e.replication},
		{"cluster", e.cluster},
		{"clock", e.clock},
		{"latency", e.latency},
		{"permissions", e.permissions},
		{"namespace", e.layout},
		{"engines", e.alive},
		{"sweeper", e.sweeping},
		{"due", e.overdue},
		{"outbox", e.orders},
		{"background tasks", e.leftToDo},
		{"retention", e.retention},
		{"dead letters", e.deadLetters},
		{"queues", e.lines},
		{"types", e.unserved},
		{"limits", e.limits},
		{"ready", e.waiting},
		{"throttled", e.throttled},
		{"locks", e.oldLocks},
		{"workkit", e.workkits},
		{"keys", e.sequences},
	}
	if e.x.Deep {
		return append(all, check{"orphans", e.orphans}, check{"ports", e.outputs})
	}
	return append(all, check{"ports", e.outputs})
}

// attempt makes a finding of what goes wrong while looking.
func (e *examiner) attempt(ctx context.Context, look func(context.Context) error) error {
	err := look(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case strings.Contains(err.Error(), "NOPERM"): // asynq's errors are texts
		e.add(Skipped, "", "the user of the URL may not look: "+err.Error())
	case errors.Is(err, errOtherServer):
		e.add(Skipped, "", err.Error())
	default:
		e.add(Problem, "look at Redis and its log, and try again", "it could not be looked at: "+err.Error())
	}
	return nil
}

// errOtherServer: the server does not tell what is asked.
var errOtherServer = errors.New("this server does not tell")

func (e *examiner) add(level Level, fix, finding string) {
	e.findings = append(e.findings, Finding{Check: e.check, Level: level, Finding: finding, Fix: fix})
}

func (e *examiner) ok(format string, args ...any) { e.add(OK, "", fmt.Sprintf(format, args...)) }

func (e *examiner) warn(fix, format string, args ...any) {
	e.add(Warning, fix, fmt.Sprintf(format, args...))
}

func (e *examiner) problem(fix, format string, args ...any) {
	e.add(Problem, fix, fmt.Sprintf(format, args...))
}

// worse adds a problem if somebody should have prevented it: if engines live.
func (e *examiner) worse(fix, format string, args ...any) {
	if len(e.engines) == 0 {
		e.warn("start an engine: it puts this right", format, args...)
		return
	}
	e.problem(fix, format, args...)
}

// found tells whether the check that is going on has found anything.
func (e *examiner) found() bool {
	return slices.ContainsFunc(e.findings, func(f Finding) bool { return f.Check == e.check })
}

// of names a server in a finding, if there are several.
func (e *examiner) of(v server) string {
	if len(e.all) == 1 {
		return ""
	}
	return v.addr + ": "
}

// counted is a number of things.
func counted[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// shown is how many of many things a finding names.
const shown = 10

// few names some of many things.
func few[T any](all []T) string {
	var words []string
	for _, one := range all[:min(len(all), shown)] {
		words = append(words, fmt.Sprint(one))
	}
	text := strings.Join(words, ", ")
	if more := len(all) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
