package rig

import (
	"context"
	"slices"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// hand is a job that only people bring to its end: it fails until it is retried with other args, and is failed by hand as well.
type hand struct {
	name string
	n    int
	root *client.Handle
}

// handed starts such a job, and has actors fail and retry it until it has completed.
func (r *rig) handed(ctx context.Context) {
	name := r.name("handed")
	d := &hand{name: name, n: 1 + r.intn(100000)}
	if d.root = r.start(ctx, name, job.Single(&crew.Handed{N: d.n}, "")); d.root == nil {
		return
	}
	r.add(d)
	end, cancel := r.toEnd(ctx)
	defer cancel()
	once := func(crew.Answer) bool { return true } // what came of it is seen in the job
	for pause(end, r.between(time.Millisecond, 50*time.Millisecond)) {
		i, err := d.root.Info(end)
		switch {
		case err != nil:
		case i.Status == job.Completed:
			r.count(handedJobs, 1)
			return
		case i.Status == job.Failed:
			r.act(end, crew.Order{What: crew.Mend, Job: d.root.ID(), N: d.n}, once)
			r.fault("retry_by_hand")
		case r.inStorm() && r.intn(3) == 0:
			r.act(end, crew.Order{What: crew.Fail, Job: d.root.ID()}, once)
			r.fault("fail_by_hand")
		}
	}
}

// check implements round.
func (d *hand) check(ctx context.Context, r *rig) error {
	i, err := d.root.Info(ctx)
	if err != nil {
		return err
	}
	r.settled(d.name, i, true)
	said, err := drain[int](ctx, d.root, "out")
	if err != nil {
		return err
	}
	switch want := []int{d.n}; {
	case len(said) < 1:
		r.bad(lost, "%s said nothing: %s", d.name, d.root.ID())
	case len(said) > 1:
		r.bad(duplicated, "%s said %v: %s", d.name, said, d.root.ID())
	case !slices.Equal(said, want):
		r.bad(wrongState, "%s said %v, and not %v: %s", d.name, said, want, d.root.ID())
	}
	return nil
}
