package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// Throttled says why a job is throttled: by which option, or what to change. It is empty of one that is not: a queued job with a
// timer goes on by itself at a time, too.
func Throttled(i *job.Info) string {
	text, rated := strings.CutPrefix(i.Reason, "rate: ")
	switch {
	case !rated || i.Status != statemachine.Queued || i.Next.IsZero():
		return ""
	case strings.HasSuffix(text, " nothing"):
		return text + ": its worker should ask for a later run (WakeAfter)"
	}
	return text + ", as often as MaxRunsPerMinute of its type allows"
}

// limited says of a limit, by the reason that a job has, what a job waits for, and how the limit is used.
func (t *Tree) limited(reason string) string {
	name := reason[:max(strings.LastIndex(reason, " has "), 0)]
	var l redisstore.LimitInfo
	known := false
	if t.Limit != nil {
		l, known = t.Limit(name)
	}
	switch rate := strings.HasPrefix(name, "rate:"); {
	case rate && known && l.Running == 0:
		return fmt.Sprintf("waits for its turn, as at most %s of %s within %s: none did lately, so it is next", begins(l.Max), name, l.Per)
	case rate && known:
		return fmt.Sprintf("waits for its turn, as at most %s of %s within %s: %d did, or are about to", begins(l.Max), name, l.Per, l.Running) + t.free(l)
	case rate:
		return "waits for its turn in " + name
	case known:
		return fmt.Sprintf("waits for a place of limit %s: %d of %d running", name, l.Running, l.Max)
	}
	return "waits for a place of limit " + name
}

// begins says how many runs begin.
func begins(n int) string {
	if n == 1 {
		return "1 run begins"
	}
	return fmt.Sprintf("%d runs begin", n)
}

// free says when a rate that has no place has the next one.
func (t *Tree) free(l redisstore.LimitInfo) string {
	if l.Free < time.Second {
		return ""
	}
	return "; the next place is free" + t.in(t.style.Now.Add(l.Free))
}
