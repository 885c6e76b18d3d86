package job

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/statemachine"
)

// Option is a choice made when a tree is started.
type Option interface{ choose(*startOptions) }

// ChildOption is an Option that children have, too: see worker.Run.Spawn.
type ChildOption interface {
	Option
	child()
}

type startOptions struct {
	alias, by string
	aliased   bool
	key       string
	keyed     bool
	id        *ID
	tell      *PortRef
	queue     string
	priority  *int
	options   RunOptions
	memo      json.RawMessage
	labels    map[string]string
	existing  existing
	later     bool
	retain    time.Duration
	retained  bool // retain was chosen
	release   bool
	repeat    *RepeatRule
	// sequential is the key of SequentialKey.
	sequential *string
	unique     *UniqueBy
}

// option is an Option for trees, childOption one for children, too.
type (
	option      func(*startOptions)
	childOption func(*startOptions)
)

func (f option) choose(o *startOptions)      { f(o) }
func (f childOption) choose(o *startOptions) { f(o) }
func (childOption) child()                   {}

// existing is what to do with a tree that has the alias and another definition.
type existing int

const (
	refuse existing = iota
	patch
	take
)

// Alias gives the tree a name that is unique in the namespace. Starting a tree under an alias
// that exists already starts nothing and returns the existing tree, so a program may be started
// again and again for one piece of work.
//
// The existing tree must be what is to be started: a graph with the same definition, which is
// its jobs, their parameters, ports and wires, or a lone job of the same type and queue with the same
// parameters. Otherwise the error wraps ErrExists; PatchExisting and TakeExisting say what
// to do instead. That holds for a tree that has completed, failed or been terminated, too, until it is removed: then the
// next Start under the alias begins the work anew. With Retain(Forever) it never does.
//
// A child that a run spawns gets its alias with the commit. An alias that another job has refuses the
// Spawn; if that one takes it in the same moment, the child goes without, and its log says so.
func Alias(name string) ChildOption {
	return childOption(func(o *startOptions) { o.alias, o.aliased = name, true })
}

// InQueue puts those jobs of the tree into a queue that name none.
func InQueue(queue string) ChildOption { return childOption(func(o *startOptions) { o.queue = queue }) }

// WithPriority gives those jobs of the tree a priority, from 0 to MaxPriority, whose nodes and types name none. Of the ready
// jobs of a queue those of a higher priority begin first; a slot may begin others of the priority that it is at, in the shard that it
// is in, for up to a tenth of a second before. Handle.SetPriority changes it later.
func WithPriority(n int) ChildOption { return childOption(func(o *startOptions) { o.priority = &n }) }

// WithRunOptions says for those jobs of the tree whose nodes have no options of their own how often and when their runs are tried again,
// and how long one may take, in place of what their types say.
func WithRunOptions(options RunOptions) ChildOption {
	return childOption(func(o *startOptions) { o.options = options })
}

// Memo keeps a JSON value with the root of the tree for whoever looks at it, see Info.Memo: such as what it was asked for. Its worker does
// not see it.
func Memo(v json.RawMessage) ChildOption { return childOption(func(o *startOptions) { o.memo = v }) }

// PatchExisting changes a graph that is there under the alias into the one that is started, if
// it has another definition, as Handle.Patch does: that is how a new version of a graph is
// deployed. A failed graph is changed, too; one that has completed or been terminated cannot be, which is an error.
func PatchExisting() Option { return option(func(o *startOptions) { o.existing = patch }) }

// TakeExisting takes the tree that is there under the alias, whatever its definition.
func TakeExisting() Option { return option(func(o *startOptions) { o.existing = take }) }

// EnginesLater starts a tree though a job of it is in a queue that no engine serves for the job's
// type, while another queue has the type: the engine is still to be started. Without it the error
// wraps ErrUnknownType. A type that no engine has registered for any queue is no error.
func EnginesLater() Option { return option(func(o *startOptions) { o.later = true }) }

// By records who created the tree.
func By(who string) Option { return option(func(o *startOptions) { o.by = who }) }

// Start creates all jobs of a plan in one step and queues those that have something
// to do. It returns a handle of the root.
func (c *Client) Start(ctx context.Context, p Planner, opts ...Option) (*Handle, error) {
	var o startOptions
	for _, opt := range opts {
		opt.choose(&o)
	}
	plan, err := c.plan(ctx, p, &o)
	if err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	plan = plan.Traced(c.trace.in(ctx))
	id, err := o.newID()
	if err != nil {
		return nil, fmt.Errorf("starting a tree: %w", err)
	}
	id = c.placed(id, plan)
	if o.keyed {
		var there *Handle
		if id, there, err = c.keyed(ctx, "start", o.key, id, plan); err != nil {
			return nil, fmt.Errorf("starting a tree: %w", err)
		}
		if there != nil {
			return there, nil
		}
	}
	if o.aliased {
		// The alias is bound before the tree exists. If this process dies in between,
		// the next Start under the alias creates the tree under the same ID.
		if id, err = c.store.Claim(ctx, o.alias, id); err != nil {
			return nil, fmt.Errorf("starting tree %q: %w", o.alias, err)
		}
	}
	h := c.handle(id)
	h.created, err = c.store.Create(ctx, id, plan, o.by)
	if err != nil {
		var there *Handle
		if there, err = c.standing(ctx, plan, err); err == nil {
			return there, c.stands(ctx, "start", o.key, there)
		}
		return nil, fmt.Errorf("starting tree %s: %w", id, err)
	}
	if !h.created && !o.keyed && o.id == nil {
		if err := h.meet(ctx, plan, o.existing); err != nil {
			return nil, fmt.Errorf("starting tree %q: %w", o.alias, err)
		}
	}
	if root := &plan.Nodes[0]; !root.Graph { // which is all that is to be known of it
		h.seen = &Info{ID: id, Type: root.Type, Queue: cmp.Or(root.Queue, DefaultQueue)}
	}
	return h, nil
}

// newID returns the ID that a new root is to have.
func (o *startOptions) newID() (ID, error) {
	if o.id == nil {
		return NewID()
	}
	if o.aliased || o.keyed {
		return "", fmt.Errorf("%w: job.WithID goes with neither job.Alias nor job.Key: each of them says which tree it is", ErrName)
	}
	return o.rootID()
}

// plan returns what is to be created.
func (c *Client) plan(ctx context.Context, p Planner, o *startOptions) (*Plan, error) {
	plan, err := o.plan(p, "")
	if err != nil || o.later {
		return plan, err
	}
	if err := c.types.checkQueues(ctx, plan); errors.Is(err, ErrUnknownType) {
		return nil, &AdvisedError{Err: err, Advice: "; if its engine is started later, pass job.EnginesLater()"}
	} else if err != nil {
		return nil, err
	}
	return plan, nil
}

// plan returns what is to be created: with a name, a child.
func (o *startOptions) plan(p Planner, name string) (*Plan, error) {
	if p == nil {
		return nil, fmt.Errorf("%w: there is no plan; give a graph or job.Single(worker)", ErrName)
	}
	plan, err := p.Plan()
	if err != nil {
		return nil, err
	}
	plan = plan.labelled(o.labels)
	if o.tell != nil {
		changed := *plan
		plan, changed.TellEnd = &changed, o.tell
	}
	plan = o.nodes(plan, name)
	if plan, err = o.keep(plan, name != ""); err != nil {
		return nil, err
	}
	if o.repeat != nil {
		changed := *plan
		if changed.Repeat, err = o.repeat.Repeats(time.Now()); err != nil {
			return nil, err
		}
		plan = &changed
	}
	if plan, err = o.sequence(plan, name != ""); err != nil {
		return nil, err
	}
	if plan, err = o.distinguish(plan, name != ""); err != nil {
		return nil, err
	}
	err = plan.Validate()
	if err == nil && o.aliased {
		err = CheckAlias(o.alias)
	}
	return plan, err
}

// nodes puts what was chosen for the jobs of a plan into it: with a name, into that of a child.
func (o *startOptions) nodes(plan *Plan, name string) *Plan {
	if len(plan.Nodes) == 0 || name == "" && o.queue == "" && o.priority == nil && o.options == (RunOptions{}) && o.memo == nil {
		return plan
	}
	changed := *plan // its planner may give it to others
	changed.Nodes = slices.Clone(plan.Nodes)
	root := &changed.Nodes[0]
	root.Name = cmp.Or(name, root.Name)
	if o.memo != nil {
		root.Memo = o.memo
	}
	for i := range changed.Nodes {
		n := &changed.Nodes[i]
		n.Queue = cmp.Or(n.Queue, o.queue)
		n.Priority = cmp.Or(n.Priority, o.priority)
		if !n.Graph && n.Options == (RunOptions{}) {
			n.Options = o.options
		}
	}
	return &changed
}

// PlanChild returns the plan of a child of that name as the options have it, and its alias, empty if it is to have none.
// It is for engines; runs call worker.Run.Spawn.
func PlanChild(name string, p Planner, opts ...ChildOption) (plan *Plan, alias string, err error) {
	var o startOptions
	for _, opt := range opts {
		opt.choose(&o)
	}
	if err := CheckName("job name", name); err != nil {
		return nil, "", err
	}
	plan, err = o.plan(p, name)
	return plan, o.alias, err
}

// meet makes sure that a tree that was there already is what a plan describes, or does what is
// asked for if it is not.
func (h *Handle) meet(ctx context.Context, plan *Plan, how existing) error {
	if how == take {
		return nil
	}
	digest := plan.Digest()
	before := ""
	var refused error
	for {
		info, err := h.Info(ctx)
		if err != nil {
			return err
		}
		other := differs(info, plan, digest)
		switch {
		case other == "":
			return nil
		case how == refuse || !info.Graph || over(info.Status):
			return h.unlike(info, &plan.Nodes[0], other)
		case refused != nil && info.Definition == before:
			return refused // not because somebody else changed the graph, too
		}
		before = info.Definition
		if refused = h.patch(ctx, plan); !errors.Is(refused, ErrStatus) {
			return refused
		}
	}
}

// over tells whether a tree with that status of its root has come to its end, or is about to.
func over(s statemachine.Status) bool {
	return s.Settled() || s == statemachine.Terminating
}

// unlike is the error about a tree that is not what a plan describes.
func (h *Handle) unlike(there *Info, n *Node, other string) error {
	var advice string
	remedy := ": choose another alias"
	switch {
	case there.Status == statemachine.Completed: // which is not to be deleted
		other += fmt.Sprintf(" and is %s", there.Status)
		remedy += ", terminate it with all jobs in it and delete it"
	case over(there.Status):
		other += fmt.Sprintf(" and is %s", there.Status)
		remedy += ", delete it"
	case there.Graph && n.Graph && there.Type == n.Type:
		remedy, advice = "", ": change it into this one with job.PatchExisting() or Handle.Patch"
	}
	return &AdvisedError{
		Err:      fmt.Errorf("%w: job %s has this alias and %s%s", ErrExists, h.id, other, remedy),
		Advice:   advice + ", or take it as it is with job.TakeExisting()",
		Existing: true, Patch: advice != "",
	}
}

// differs says in what a tree is not what a plan describes, by their first jobs; empty: in nothing.
func differs(there *Info, plan *Plan, digest string) string {
	n := &plan.Nodes[0]
	switch {
	case there.Graph != n.Graph || there.Type != n.Type:
		return fmt.Sprintf("is a %s", there.Type)
	case n.Graph && there.Definition != digest:
		return "has another definition"
	case n.Graph:
		return ""
	case there.Queue != cmp.Or(n.Queue, DefaultQueue):
		return fmt.Sprintf("is in queue %q", there.Queue)
	case !sameArgs(there.Args, n.Args):
		return "has other parameters"
	case !there.Repeat.like(plan.Repeat):
		return "repeats in another way"
	}
	return ""
}

// sameArgs tells whether the parameters of two workers are the same. One that is missing has its
// zero value.
func sameArgs(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, y := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	for _, one := range []map[string]json.RawMessage{x, y} {
		for name := range one {
			if same := bytes.Equal(x[name], y[name]) || isZero(x[name]) && isZero(y[name]); !same {
				return false
			}
		}
	}
	return true
}

func isZero(value json.RawMessage) bool {
	switch string(value) {
	case "", "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}
