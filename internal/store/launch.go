package store

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Launch is a root tree of its own that a run starts, see worker.Run.Start.
type Launch struct {
	ID     job.ID // of its root
	Plan   *job.Plan
	Digest string // of the plan
	By     string
	Writes []Write  // to In ports of the root, whose ID is left out
	Closes []string // In ports of the root that end behind these messages
}

// PlanLaunch returns the tree that a plan is with some options. It is for engines; runs call worker.Run.Start.
func PlanLaunch(p job.Planner, opts ...job.Option) (*Launch, error) {
	o := job.Choose(opts)
	if o.Aliased || o.Keyed || o.Patch || o.Take {
		return nil, fmt.Errorf("%w: a tree that a run starts has neither an alias nor a key: give it job.WithID(job.IDAt(time, name))", job.ErrName)
	}
	plan, err := o.Plan(p)
	if err != nil {
		return nil, err
	}
	if plan.Unique != nil && plan.Unique.Merge {
		return nil, fmt.Errorf("%w: args of a tree that a run starts are not merged into those of another one", job.ErrName)
	}
	if err := CheckLaunch(plan); err != nil {
		return nil, err
	}
	if err := checkWords(plan, o.By); err != nil {
		return nil, err
	}
	l := &Launch{Plan: plan, Digest: plan.Digest(), By: o.By}
	if o.ID != nil {
		l.ID, err = o.RootID()
	} else {
		l.ID, err = job.NewID()
	}
	return l, err
}

// checkWords refuses what is neither a name nor JSON where these belong: an outbox joins them with a control character.
func checkWords(p *job.Plan, by string) error {
	if strings.ContainsFunc(by, unicode.IsControl) {
		return fmt.Errorf("%w: by %.80q holds a control character", job.ErrName, by)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if len(n.Args) == 0 {
			continue
		}
		if err := port.Check(n.Args); err != nil {
			return fmt.Errorf("args of job %d (%.40q): %w", i, n.Name, err)
		}
	}
	return nil
}

// CheckLaunch returns an error that wraps job.ErrTooLarge if a plan is too large for a run to start it.
func CheckLaunch(p *job.Plan) error {
	ports, bytes := 0, 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		bytes += len(n.Name) + len(n.Type) + len(n.Args) + len(n.Memo)
		for j := range n.Ports {
			pt := &n.Ports[j]
			ports++
			bytes += len(pt.Default)
			for _, e := range pt.Edges {
				ports += len(e)
			}
			for _, m := range pt.Initial {
				bytes += len(m)
			}
		}
	}
	const large = "%w: a tree that a run starts has %d %s, at most %d are allowed: start a job that spawns the rest"
	switch {
	case len(p.Nodes) > job.MaxLaunchJobs:
		return fmt.Errorf(large, job.ErrTooLarge, len(p.Nodes), "jobs", job.MaxLaunchJobs)
	case ports > job.MaxLaunchPorts:
		return fmt.Errorf(large, job.ErrTooLarge, ports, "ports and edge ends", job.MaxLaunchPorts)
	case bytes > job.MaxLaunch:
		return fmt.Errorf(large, job.ErrTooLarge, bytes, "bytes of names, arguments and messages", job.MaxLaunch)
	}
	return nil
}
