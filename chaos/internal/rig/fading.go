package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// fade is a tree that is removed soon after it has completed.
type fade struct {
	name string
	root *client.Handle
	gone bool
}

// fading starts a graph of many jobs, and waits until it is past its retention and removed.
func (r *rig) fading(ctx context.Context) {
	f := &fade{name: r.name("fading")}
	f.root = r.start(ctx, f.name, crew.Large(250+r.intn(300)), job.Retain(time.Second))
	if f.root == nil {
		return
	}
	r.add(f)
	end, cancel := r.toEnd(ctx)
	defer cancel()
	for pause(end, 200*time.Millisecond) {
		if _, err := f.root.Info(end); errors.Is(err, job.ErrNotFound) {
			f.gone = true
			r.count(deleted, 1)
			return
		}
	}
}

// check implements round.
func (f *fade) check(ctx context.Context, r *rig) error {
	i, err := f.root.Info(ctx)
	switch {
	case errors.Is(err, job.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", f.name, err)
	case f.gone:
		r.bad(resurrected, "%s was removed, and is there: %s", f.name, i.Status)
	default:
		r.bad(stuck, "%s is past its retention, and not removed: %s, to go at %s", f.name, i.Status, i.Expires)
	}
	return nil
}
