package trigger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
)

// Type is the worker type of triggers.
const Type = "trigger"

// Kind says what makes a trigger fire.
type Kind string

// The kinds.
const (
	Scheduled Kind = "schedule" // the times of a schedule
	Event     Kind = "event"    // messages that are published to a channel
	Webhook   Kind = "webhook"  // messages that are written to its In port
)

// What becomes of firings beyond Limits.Parallel and Limits.Queue.
const (
	Wait = "wait" // messages stay unread and ticks come late, until a tree has ended; the default
	Drop = "drop" // they are dropped, counted and logged
)

// What a firing says after Throttle or Debounce joined several messages.
const (
	Original = "original" // the first of them; the default
	Append   = "append"   // {"payloads": [MESSAGE, …]}
)

// Bounds of a trigger.
const (
	MaxParallel = 1_000     // launched trees that have not ended
	MaxQueue    = 1_000     // firings that wait
	MaxJoined   = 1_000     // messages that one firing says
	maxHeld     = 128 << 10 // bytes of messages that are joined, or that wait in the queue
)

// Definition says when a trigger fires, and what a firing does. Its zero value is a webhook trigger that only
// writes to its Out port.
type Definition struct {
	// Schedule is a cron expression, or a schedule of another dialect with its tag, such as "every:10m" or "natural:in 5
	// minutes": see package schedule. Empty: the trigger has none.
	Schedule string `json:"schedule,omitempty"`
	// Zone is the time zone of the schedule. Empty means UTC.
	Zone string `json:"zone,omitempty"`
	// Missed is what becomes of ticks that were due while no engine ran: one (default), skip, all, or the most to take.
	Missed string `json:"missed,omitempty"`
	// Count is how many ticks there are. Zero means as many as the schedule has.
	Count int `json:"count,omitempty"`
	// Channel makes the trigger one of events: it fires for each message published there, or below it.
	Channel string `json:"channel,omitempty"`
	// Filter is an expression over it, the message: of a webhook or event trigger only messages for which it is true fire.
	Filter string `json:"filter,omitempty"`
	// Verify has messages refused that are sent over HTTP and not signed; nil: those of everybody with a token are taken.
	Verify *Verify `json:"verify,omitempty"`
	// Launch is the tree that a firing launches; nil: none.
	Launch *Launch `json:"launch,omitempty"`
	// Limits hold firings back.
	Limits Limits `json:"limits,omitzero"`
}

// Launch is a tree to launch: a job of a registered type, or what a plan says, such as that of a graph.
type Launch struct {
	Type  string          `json:"type,omitempty"`
	Queue string          `json:"queue,omitempty"` // of jobs that name none
	Args  json.RawMessage `json:"args,omitempty"`  // of a type
	Plan  *Plan           `json:"plan,omitempty"`  // instead of Type and Args
	// Port is the In port of the root that gets what the firing says, and then ends. Empty means "in" if the root has
	// such a port, else its only one, if it has just one, else none.
	Port string `json:"port,omitempty"`
	// Message is what that port gets in place of what the firing says; empty: nothing.
	Message  json.RawMessage `json:"message,omitempty"`
	Priority *int            `json:"priority,omitempty"`
	// Tries, Backoff, MaxBackoff and Timeout are about the runs of launched jobs whose nodes have no such options, see job.RunOptions.
	Tries      int                `json:"tries,omitempty"`
	Backoff    component.Duration `json:"backoff,omitempty"`
	MaxBackoff component.Duration `json:"max_backoff,omitempty"`
	Timeout    component.Duration `json:"timeout,omitempty"`
	// Memo is kept with the root, see job.Memo.
	Memo json.RawMessage `json:"memo,omitempty"`
	// MemoMessage is the key of Memo, an object, under which the memo of each tree has the message that its port gets, if that has at most
	// MaxMemoMessage bytes; empty: none does.
	MemoMessage string `json:"memo_message,omitempty"`

	Labels map[string]string          `json:"labels,omitempty"` // of the root, besides trigger=ID
	Params map[string]json.RawMessage `json:"params,omitempty"` // what the graph was made with: for people
	Retain string                     `json:"retain,omitempty"` // for how long the tree is kept after its end, as job.ParseRetention reads it
	// SequentialKey lets launched trees be active one after the other, see job.SequentialKey.
	SequentialKey string `json:"sequential_key,omitempty"`
	// Unique has a tree launched unless one with the same unique key is there, see job.Unique; nil: it has no such key. A firing whose
	// tree is not launched is dropped as "duplicate".
	Unique *Unique `json:"unique,omitempty"`
}

// Unique is by what launched trees are unique.
type Unique struct {
	Key string             `json:"key,omitempty"` // empty: that of type and args, of a plan of its definition
	For component.Duration `json:"for,omitempty"` // zero: until the tree is done
}

// by is what job.Unique takes.
func (u Unique) by() job.UniqueBy { return job.UniqueBy{Key: u.Key, For: time.Duration(u.For)} }

// Limits hold firings back. What they drop is counted, and named in the trigger's log.
type Limits struct {
	// Parallel is how many launched trees may be unfinished at a time: one that has completed, failed or been terminated is
	// finished. Zero means no limit.
	Parallel int `json:"parallel,omitempty"`
	// Queue is how many firings wait for such a tree to end.
	Queue int `json:"queue,omitempty"`
	// Overflow is what becomes of firings beyond Queue: Wait or Drop.
	Overflow string `json:"overflow,omitempty"`
	// Throttle joins all that comes in a span of time, which begins with the first message or tick, into one firing at its end.
	Throttle component.Duration `json:"throttle,omitempty"`
	// Debounce joins what comes until nothing has come for so long, into one firing then.
	Debounce component.Duration `json:"debounce,omitempty"`
	// Payload is what such a firing says: Original or Append.
	Payload string `json:"payload,omitempty"`
}

// Kind is what makes the trigger fire.
func (d *Definition) Kind() Kind {
	switch {
	case d.Schedule != "":
		return Scheduled
	case d.Channel != "":
		return Event
	}
	return Webhook
}

// Validate names every bad field. The error wraps job.ErrConfig. now is the moment of creation.
func (d *Definition) Validate(now time.Time) error {
	var bad []error
	is := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	if d.Schedule != "" {
		_, err := clockwork.Parse(d.Schedule, d.Zone, now)
		is(err == nil, "schedule: %w", err)
	}
	is(d.Schedule == "" || d.Channel == "", "schedule and channel: a trigger has one of them")
	is(d.Schedule != "" || d.Zone == "" && d.Missed == "" && d.Count == 0, "zone, missed and count are for a schedule: give one")
	is(d.Schedule == "" || d.Filter == "", "filter is for messages: a schedule has none")
	is(d.Count >= 0, "count %d is negative", d.Count)
	if err := clockwork.CheckMissed(d.Missed); err != nil {
		bad = append(bad, err)
	}
	if d.Channel != "" {
		bad = append(bad, port.CheckChannel(d.Channel))
	}
	if d.Filter != "" {
		err := component.CheckCondition(d.Filter)
		is(err == nil, "filter: %w", err)
	}
	bad = append(bad, d.Verify.check(d.Kind()), d.Limits.check(d.Launch != nil), d.Launch.check())
	if err := errors.Join(bad...); err != nil {
		return fmt.Errorf("%w of %s: %s", job.ErrConfig, Type, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

func (l *Limits) check(launches bool) error {
	var bad []error
	is := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	is(l.Parallel >= 0 && l.Parallel <= MaxParallel, "parallel %d: use 1 to %d, or 0 for no limit", l.Parallel, MaxParallel)
	is(l.Parallel == 0 || launches, "parallel limits the trees that the trigger launches: it launches none")
	is(l.Queue >= 0 && l.Queue <= MaxQueue, "queue %d: use 0 to %d", l.Queue, MaxQueue)
	is(l.Parallel > 0 || l.Queue == 0 && l.Overflow == "", "queue and overflow say what becomes of firings beyond parallel: give it")
	is(l.Overflow == "" || l.Overflow == Wait || l.Overflow == Drop, "overflow %q: use %s or %s", l.Overflow, Wait, Drop)
	for name, d := range map[string]component.Duration{"throttle": l.Throttle, "debounce": l.Debounce} {
		is(d >= 0 && time.Duration(d)%time.Millisecond == 0, "%s %s: use a positive number of whole milliseconds", name, time.Duration(d))
	}
	is(l.Throttle == 0 || l.Debounce == 0, "throttle and debounce: use one of them")
	is(l.Payload == "" || l.Payload == Original || l.Payload == Append, "payload %q: use %s or %s", l.Payload, Original, Append)
	is(l.Payload == "" || l.joins(), "payload says what throttle or debounce make of several messages: give one of these")
	return errors.Join(bad...)
}

// joins tells whether several messages may become one firing.
func (l *Limits) joins() bool { return l.Throttle > 0 || l.Debounce > 0 }

func (l *Launch) check() error {
	if l == nil {
		return nil
	}
	var bad []error
	switch {
	case (l.Type == "") == (l.Plan == nil):
		bad = append(bad, errors.New("launch needs either a type or a plan"))
	case l.Plan != nil && len(l.Args) > 0:
		bad = append(bad, errors.New("launch: args are those of a type: the jobs of a plan have their own"))
	case l.Plan != nil:
		bad = append(bad, store.CheckLaunch((*job.Plan)(l.Plan)), (*job.Plan)(l.Plan).Validate())
	default:
		bad = append(bad, job.CheckName("type", l.Type))
	}
	if l.Queue != "" {
		bad = append(bad, job.CheckName("queue", l.Queue))
	}
	if l.Priority != nil {
		bad = append(bad, job.CheckPriority(*l.Priority))
	}
	if err := l.runOptions().Validate(); err != nil {
		bad = append(bad, fmt.Errorf("launch: %w", err))
	}
	if n := len(l.Args) + len(l.Message) + len(l.Memo); n > job.MaxLaunch {
		bad = append(bad, fmt.Errorf("%w: args, message and memo have %d bytes, at most %d are allowed", job.ErrTooLarge, n, job.MaxLaunch))
	}
	if _, err := l.memoWith(json.RawMessage("0")); err != nil {
		bad = append(bad, err)
	}
	if l.SequentialKey != "" {
		bad = append(bad, job.CheckSequentialKey(l.SequentialKey))
	}
	if l.Unique != nil {
		bad = append(bad, l.Unique.by().Validate())
	}
	if l.Retain != "" {
		_, err := job.ParseRetention(l.Retain)
		bad = append(bad, err)
	}
	return errors.Join(append(bad, job.CheckLabels(l.Labels))...)
}

// into is the In port of a root that gets what a firing says; empty: none.
func (l *Launch) into(root *job.Node) (string, error) {
	var ins []string
	for _, p := range root.Ports {
		if p.Dir == port.Input && p.Name == cmp.Or(l.Port, "in") {
			return p.Name, nil
		}
		if p.Dir == port.Input && p.Name != port.Any {
			ins = append(ins, p.Name)
		}
	}
	switch {
	case l.Port != "":
		return "", fmt.Errorf("%w %q: %s has the In ports %q", job.ErrPort, l.Port, root.Type, ins)
	case len(ins) == 1:
		return ins[0], nil
	}
	return "", nil
}

// MaxMemoMessage is how many bytes a message has at most that a memo gets.
const MaxMemoMessage = 64 << 10

// memoWith is the memo of a tree that gets a message.
func (l *Launch) memoWith(message json.RawMessage) (json.RawMessage, error) {
	if l.MemoMessage == "" || len(message) > MaxMemoMessage {
		return l.Memo, nil
	}
	memo := map[string]json.RawMessage{}
	if err := json.Unmarshal(l.Memo, &memo); err != nil || memo == nil {
		return nil, fmt.Errorf("%w: launch: the memo is not an object, which memo_message needs", job.ErrValue)
	}
	memo[l.MemoMessage] = message
	return port.Encode(memo)
}

// runOptions are those of launched jobs that have none.
func (l *Launch) runOptions() job.RunOptions {
	return job.RunOptions{
		Tries: l.Tries, Backoff: time.Duration(l.Backoff), MaxBackoff: time.Duration(l.MaxBackoff), Timeout: time.Duration(l.Timeout),
	}
}

// options are those that a tree is launched with.
func (l *Launch) options() []job.Option {
	var all []job.Option
	if l.Queue != "" {
		all = append(all, job.InQueue(l.Queue))
	}
	if l.Priority != nil {
		all = append(all, job.WithPriority(*l.Priority))
	}
	if o := l.runOptions(); o != (job.RunOptions{}) {
		all = append(all, job.WithRunOptions(o))
	}
	if l.SequentialKey != "" {
		all = append(all, job.SequentialKey(l.SequentialKey))
	}
	if l.Unique != nil {
		all = append(all, job.Unique(l.Unique.by()))
	}
	for k, v := range l.Labels {
		all = append(all, job.Label(k, v))
	}
	if l.Retain != "" {
		if d, err := job.ParseRetention(l.Retain); err == nil { // which check has seen to
			all = append(all, job.Retain(d))
		}
	}
	return all
}

// clock follows the schedule. from is the moment that a schedule without all of its meaning counts from; zero: the first run.
func (d *Definition) clock() clockwork.Clock {
	return clockwork.Clock{
		Name: d.Zone + " " + d.Schedule, Count: d.Count, Missed: d.Missed,
		Parse: func(now time.Time) (schedule.Schedule, error) { return clockwork.Parse(d.Schedule, d.Zone, now) },
	}
}
