package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/port"
)

// Option is a choice made when a tree is started.
type Option interface{ choose(*Choices) }

// ChildOption is an Option that children have, too: see worker.Run.Spawn.
type ChildOption interface {
	Option
	child()
}

// Choices are what options chose, for packages that start trees.
type Choices struct {
	Alias, Key, By string
	Aliased, Keyed bool // Alias, or Key, was given
	// ID is that of WithID; nil without.
	ID *ID
	// Patch and Take say what is to become of a tree that has the alias and another definition: see PatchExisting and TakeExisting.
	Patch, Take bool
	Later       bool // see EnginesLater

	tell     *PortRef
	queue    string
	priority *int
	options  RunOptions
	memo     json.RawMessage
	labels   map[string]string
	retain   time.Duration
	retained bool // retain was chosen
	release  bool
	repeat   *RepeatRule
	// sequential is the key of SequentialKey.
	sequential *string
	unique     *UniqueBy
}

// Choose returns what options chose; those that are nil choose nothing.
func Choose[O Option](opts []O) *Choices {
	var o Choices
	for _, opt := range opts {
		if any(opt) != nil {
			opt.choose(&o)
		}
	}
	return &o
}

// option is an Option for trees, childOption one for children, too.
type (
	option      func(*Choices)
	childOption func(*Choices)
)

func (f option) choose(o *Choices) { f(o) }

func (f childOption) choose(o *Choices) { f(o) }

func (childOption) child() {}

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
	return childOption(func(o *Choices) { o.Alias, o.Aliased = name, true })
}

// CheckAlias reports what is wrong with an alias: it is a name that does not look like the ID of a job.
func CheckAlias(s string) error {
	if err := CheckName("alias", s); err != nil {
		return err
	}
	if _, err := ParseID(s); err == nil {
		return fmt.Errorf("%w: alias %q looks like a job ID", ErrName, s)
	}
	return nil
}

// InQueue puts those jobs of the tree into a queue that name none.
func InQueue(queue string) ChildOption { return childOption(func(o *Choices) { o.queue = queue }) }

// WithPriority gives those jobs of the tree a priority, from 0 to MaxPriority, whose nodes and types name none. Of the ready
// jobs of a queue those of a higher priority begin first; a slot may begin others of the priority that it is at, in the shard that it
// is in, for up to a tenth of a second before. client.Handle.SetPriority changes it later.
func WithPriority(n int) ChildOption { return childOption(func(o *Choices) { o.priority = &n }) }

// WithRunOptions says for those jobs of the tree whose nodes have no options of their own how often and when their runs are tried again,
// and how long one may take, in place of what their types say.
func WithRunOptions(options RunOptions) ChildOption {
	return childOption(func(o *Choices) { o.options = options })
}

// Memo keeps a JSON value with the root of the tree for whoever looks at it, see Info.Memo: such as what it was asked for. Its worker does
// not see it.
func Memo(v json.RawMessage) ChildOption { return childOption(func(o *Choices) { o.memo = v }) }

// PatchExisting changes a graph that is there under the alias into the one that is started, if
// it has another definition, as client.Handle.Patch does: that is how a new version of a graph is
// deployed. A failed graph is changed, too; one that has completed or been terminated cannot be, which is an error.
func PatchExisting() Option { return option(func(o *Choices) { o.Patch, o.Take = true, false }) }

// TakeExisting takes the tree that is there under the alias, whatever its definition. Of it and PatchExisting the last one counts.
func TakeExisting() Option { return option(func(o *Choices) { o.Patch, o.Take = false, true }) }

// EnginesLater starts a tree though a job of it is in a queue that no engine serves for the job's
// type, while another queue has the type: the engine is still to be started. Without it the error
// wraps ErrUnknownType. A type that no engine has registered for any queue is no error.
func EnginesLater() Option { return option(func(o *Choices) { o.Later = true }) }

// By records who created the tree.
func By(who string) Option { return option(func(o *Choices) { o.By = who }) }

// NewID returns the ID that a new root is to have.
func (o *Choices) NewID() (ID, error) {
	if o.ID == nil {
		return NewID()
	}
	if o.Aliased || o.Keyed {
		return "", fmt.Errorf("%w: job.WithID goes with neither job.Alias nor job.Key: each of them says which tree it is", ErrName)
	}
	return o.RootID()
}

// Plan returns what a planner plans, with what was chosen.
func (o *Choices) Plan(p Planner) (*Plan, error) { return o.plan(p, "") }

// plan is Plan: with a name, of a child.
func (o *Choices) plan(p Planner, name string) (*Plan, error) {
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
	if err == nil && o.Aliased {
		err = CheckAlias(o.Alias)
	}
	return plan, err
}

// nodes puts what was chosen for the jobs of a plan into it: with a name, into that of a child.
func (o *Choices) nodes(plan *Plan, name string) *Plan {
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
	o := Choose(opts)
	if err := CheckName("job name", name); err != nil {
		return nil, "", err
	}
	plan, err = o.plan(p, name)
	return plan, o.Alias, err
}

// Key makes Start idempotent: if a tree was started with the same key in the last OnceFor, that tree is returned, whatever its
// definition, and Created is false. So a caller that does not know whether a Start was carried out, as its process died or no
// answer came, may repeat it. A key is a text of 1 to 128 bytes, one for each tree that is to be started.
func Key(key string) Option { return option(func(o *Choices) { o.Key, o.Keyed = key, true }) }

// WithID gives the tree an ID, such as one of IDAt. If there is a job of that ID, Start returns it, whatever its definition,
// and Created is false. It goes with neither Alias nor Key.
func WithID(id ID) Option { return option(func(o *Choices) { o.ID = &id }) }

// TellEnd has a message {"job": ID, "status": STATUS} written to an In port of a job, which may be of another tree, each
// time the root of the tree has completed, failed or been terminated. It is written once. If the job is gone or
// the port is closed, nobody is told. Of a tree that a run starts and that is not created, as another one has its unique key, the
// status is "duplicate".
func TellEnd(to ID, in string) Option {
	return option(func(o *Choices) { o.tell = &PortRef{Job: to, Dir: port.Input, Port: in} })
}

// RootID is what WithID chose.
func (o *Choices) RootID() (ID, error) {
	id, err := ParseID(string(*o.ID))
	if err == nil && !id.IsRoot() {
		err = fmt.Errorf("%w: %s is not the ID of a root", ErrID, id)
	}
	return id, err
}
