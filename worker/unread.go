package worker

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// leftUnread looks at a run that returned nil. If it read nothing and left messages in closed ports,
// nothing may ever wake its job: it is to run again, with the reason that is returned, or fails if that was
// the second such run. r.mu is held.
func (r *Run) leftUnread() (again string, err error) {
	left := r.unread()
	if left == "" || !strings.HasPrefix(r.info.Reason, left) {
		return left, nil
	}
	var info *job.Info
	if err := r.ask(func(ctx context.Context) (err error) {
		info, err = r.store.Info(ctx, r.info.ID)
		return err
	}); err != nil {
		return left, nil //nolint:nilerr // nothing is known: it runs once more
	}
	if !info.Next.IsZero() {
		return "", nil // an earlier run has set a timer
	}
	return "", fmt.Errorf("%s: read them, or return worker.ErrSuspend to wait for something else", left)
}

// unread says which messages of closed ports a run left that read nothing, if nothing else of what it knows
// will wake its job. r.mu is held.
func (r *Run) unread() string {
	if r.most() > 0 || r.took || r.hides() || len(r.delta.Wakes) > 0 || len(r.children) > 0 {
		return ""
	}
	var ports []string
	for _, in := range r.ins.all {
		switch p, _ := r.info.Port(port.Input, in.name); {
		case !in.closed && (in.fed || in.fallback == nil || len(p.Channels) > 0):
			return "" // a message may come
		case in.closed && in.opened && in.left > 0:
			what := fmt.Sprintf("%d messages", in.left)
			if in.left == 1 {
				what = "1 message"
			}
			ports = append(ports, what+" of the closed port "+in.name)
		}
	}
	if len(ports) == 0 {
		return ""
	}
	return "returned nil but left " + strings.Join(ports, ", ") + " unread"
}
