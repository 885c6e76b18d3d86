package job

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Forever is a retention: what has it is kept until somebody deletes it.
const Forever time.Duration = 1<<63 - 1

// Retention says for how long the trees of a namespace are kept after they have settled, unless they were started with
// Retain.
type Retention struct {
	Ended  time.Duration `json:"ended"`  // of trees that have completed, or were terminated
	Failed time.Duration `json:"failed"` // of trees that have failed
	// Log is for how long entries of the trees' logs are kept: what is older goes as others come, a little later. However
	// young they are, a log keeps some 10,000 entries at most.
	Log time.Duration `json:"log"`
}

// DefaultRetention is what holds for a namespace that nobody has set another one for.
var DefaultRetention = Retention{Ended: 7 * 24 * time.Hour, Failed: 30 * 24 * time.Hour, Log: Forever}

// MinRetention is the shortest retention but none: the store counts milliseconds.
const MinRetention = time.Millisecond

// CheckRetention reports whether trees can be kept for so long. The error wraps ErrName.
func CheckRetention(d time.Duration) error {
	if d < MinRetention {
		return fmt.Errorf("%w: a retention of %s: use at least %s, or job.Forever", ErrName, d, MinRetention)
	}
	return nil
}

// Retain says for how long the tree is kept after it has settled: its root has completed, failed or been terminated, and
// nothing below it can run. Then it is deleted, with all below it and its aliases. Without Retain the namespace says how
// long, see Retention; with Forever the tree is kept until somebody deletes it. If it comes to life before, the time begins
// anew when it has settled again.
//
// A tree is kept longer while its Out ports, or those of its graph's jobs, hold messages that nobody has read: then the time
// begins anew when they are read. A job that subscribes to channels, that has asked to run later, or that somebody has
// locked keeps its tree, too, unless the tree has failed. A job that has completed and never got a message, though it has
// open In ports, is kept for a minute at least: the first may be on its way.
//
// What nobody has read of In ports goes with the tree: a failed job whose input is still needed is to be retried, or its
// messages moved, while it is retained.
//
// A child goes with its tree. With Retain it goes so long after it has settled, but not before its parent was told of that;
// then its name is free again. What its Out ports hold goes with it.
//
// A tree that exists already keeps what it was started with.
func Retain(d time.Duration) ChildOption {
	return childOption(func(o *Choices) { o.retain, o.retained = d, true })
}

// Release deletes a child, and all below it, as soon as a run of its parent that was told of its end, see worker.Run.WokenBy,
// is committed without a failure. What the parent is to know of the child later, such as that there was one, belongs into
// its state or into messages: the child's name is free again. It is for parents with very many children.
func Release() ChildOption { return childOption(func(o *Choices) { o.release = true }) }

// keep puts what was chosen into a plan: for a child if it is one.
func (o *Choices) keep(plan *Plan, child bool) (*Plan, error) {
	if o.release && !child {
		return nil, fmt.Errorf("%w: job.Release is for children: give a root job.Retain", ErrName)
	}
	if o.release && o.retained {
		return nil, fmt.Errorf("%w: job.Release and job.Retain contradict each other: use one of them", ErrName)
	}
	if !o.release && !o.retained {
		return plan, nil
	}
	if o.retained {
		if err := CheckRetention(o.retain); err != nil {
			return nil, err
		}
	}
	changed := *plan
	changed.Retain, changed.Release = o.retain, o.release
	return &changed, nil
}

// ParseRetention reads a time like 90s, 12h, 7d or 1d12h, or "forever".
func ParseRetention(text string) (time.Duration, error) {
	bad := fmt.Errorf("%w: %.40q is not a retention: use a time like 90s, 12h or 7d, or forever", ErrValue, text)
	if text == "forever" {
		return Forever, nil
	}
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil || !ok && rest == "" {
		return 0, bad
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil || more < 0 || d+more < d {
			return 0, bad
		}
		d += more
	}
	if d < MinRetention {
		return 0, bad
	}
	return d, nil
}

// RetentionText writes a retention as ParseRetention reads it.
func RetentionText(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == Forever:
		return "forever"
	case d < day:
		return d.String()
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dd%s", d/day, d%day)
}
