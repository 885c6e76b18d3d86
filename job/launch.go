package job

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/weirworks/weir/port"
)

// Limits of a tree that a run launches: it waits in an outbox as one entry, and one script creates it.
const (
	MaxLaunchJobs  = 200       // jobs of its plan
	MaxLaunchPorts = 2_000     // ports and edge ends of all of them
	MaxLaunch      = 256 << 10 // bytes of their names, arguments, defaults and messages
)

// Launch is a root tree of its own that a run starts, see worker.Run.Start.
type Launch struct {
	ID     ID // of its root
	Plan   *Plan
	Digest string // of the plan
	By     string
	Writes []Write  // to In ports of the root, whose ID is left out
	Closes []string // In ports of the root that end behind these messages
}

// WithID gives the tree an ID, such as one of IDAt. If there is a job of that ID, Start returns it, whatever its definition,
// and Created is false. It goes with neither Alias nor Key.
func WithID(id ID) Option { return option(func(o *startOptions) { o.id = &id }) }

// TellEnd has a message {"job": ID, "status": STATUS} written to an In port of a job, which may be of another tree, each
// time the root of the tree has completed, failed or been terminated. It is written once. If the job is gone or
// the port is closed, nobody is told. Of a tree that a run starts and that is not created, as another one has its unique key, the
// status is "duplicate".
func TellEnd(to ID, in string) Option {
	return option(func(o *startOptions) { o.tell = &PortRef{Job: to, Dir: port.Input, Port: in} })
}

// IDAt returns an ID for the root of a tree that is made once for what has that name and happens at that time: the same
// for the same time, to the millisecond, and name. The name must say what no other tree has, such as the ID of a job and
// what it does.
func IDAt(at time.Time, name string) ID {
	sum := sha256.Sum256([]byte(name))
	var u uuid.UUID
	copy(u[6:], sum[:])
	ms := at.UnixMilli()
	for i := range 6 {
		u[5-i] = byte(ms >> (8 * i))
	}
	u[6] = u[6]&0x0f | 0x70 // version 7
	u[8] = u[8]&0x3f | 0x80 // of RFC 9562
	return ID(u.String())
}

// PlanLaunch returns the tree that a plan is with some options. It is for engines; runs call worker.Run.Start.
func PlanLaunch(p Planner, opts ...Option) (*Launch, error) {
	var o startOptions
	for _, opt := range opts {
		opt.choose(&o)
	}
	if o.aliased || o.keyed || o.existing != refuse {
		return nil, fmt.Errorf("%w: a tree that a run starts has neither an alias nor a key: give it job.WithID(job.IDAt(time, name))", ErrName)
	}
	plan, err := o.plan(p, "")
	if err != nil {
		return nil, err
	}
	if plan.Unique != nil && plan.Unique.Merge {
		return nil, fmt.Errorf("%w: args of a tree that a run starts are not merged into those of another one", ErrName)
	}
	if err := CheckLaunch(plan); err != nil {
		return nil, err
	}
	if err := checkWords(plan, o.by); err != nil {
		return nil, err
	}
	l := &Launch{Plan: plan, Digest: plan.Digest(), By: o.by}
	if o.id != nil {
		l.ID, err = o.rootID()
	} else {
		l.ID, err = NewID()
	}
	return l, err
}

// checkWords refuses what is neither a name nor JSON where these belong: an outbox joins them with a control character.
func checkWords(p *Plan, by string) error {
	if strings.ContainsFunc(by, unicode.IsControl) {
		return fmt.Errorf("%w: by %.80q holds a control character", ErrName, by)
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

// rootID is what WithID chose.
func (o *startOptions) rootID() (ID, error) {
	id, err := ParseID(string(*o.id))
	if err == nil && !id.IsRoot() {
		err = fmt.Errorf("%w: %s is not the ID of a root", ErrID, id)
	}
	return id, err
}

// CheckLaunch returns an error that wraps ErrTooLarge if a plan is too large for a run to start it.
func CheckLaunch(p *Plan) error {
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
	case len(p.Nodes) > MaxLaunchJobs:
		return fmt.Errorf(large, ErrTooLarge, len(p.Nodes), "jobs", MaxLaunchJobs)
	case ports > MaxLaunchPorts:
		return fmt.Errorf(large, ErrTooLarge, ports, "ports and edge ends", MaxLaunchPorts)
	case bytes > MaxLaunch:
		return fmt.Errorf(large, ErrTooLarge, bytes, "bytes of names, arguments and messages", MaxLaunch)
	}
	return nil
}
