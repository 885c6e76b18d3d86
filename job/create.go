package job

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/weirworks/weir/port"
)

// New describes a job by the name of its type, for programs that do not link its worker.
type New struct {
	// Type of the worker, which an engine must have registered for Queue. Required.
	Type string
	// Queue of the job; empty means DefaultQueue.
	Queue string
	// Priority is from 0 to MaxPriority; nil means that of the type, else DefaultPriority.
	Priority *int
	// Args are the worker's parameters: any value that encodes to JSON, such as a struct, or a json.RawMessage. Nil means none.
	Args any
	// Parent and Name make the job a child of another one; both or neither.
	Parent ID
	Name   string
	// By says who creates the job.
	By string
	// At is when to run first; zero or past means now. Its year is at most 9999.
	At time.Time
	// Ports are added to those that the type declares; of a port in both, these options count.
	Ports []port.Spec
	// Alias is a name for the job, unique in the namespace.
	Alias string
	// Key makes Create idempotent: if a job was created with the same key in the last OnceFor, that one is returned, and Created is
	// false. 1 to 128 bytes; empty means none.
	Key string
	// Labels are short texts by which jobs are found again, see Filter.
	Labels map[string]string
	// Retain is for how long the job is kept after it has settled, see the function Retain; zero: as the namespace says, or
	// as long as the parent's tree.
	Retain time.Duration
	// OnFailure says what follows when the job has failed and has no tries left; empty means FailGraph. With DeadLetter the job gets an
	// Out port ErrorsPort. Ignore is for a child alone: a root job has no graph that goes on without it.
	OnFailure FailurePolicy
	// Repeat has a root job run again after it has completed, see the function Repeat; nil: it does not.
	Repeat *RepeatRule
	// SequentialKey is the key of the function of this name; empty for none. A child has none.
	SequentialKey string
	// Unique has the job created unless one with the same unique key is there, see the function of this name; nil: it has none. A
	// child has none.
	Unique *UniqueBy
}

// PlanNew plans one job by the name of its type, as find knows it: what client.Client.Create creates. Of n it
// leaves Alias, By and Key to its caller.
func PlanNew(ctx context.Context, find func(ctx context.Context, queue, name string) (*TypeInfo, error), n New) (*Plan, error) {
	if n.Queue == "" {
		n.Queue = DefaultQueue
	}
	if (n.Parent == "") != (n.Name == "") {
		return nil, fmt.Errorf("%w: a child has both a parent and a name, and a root has neither: give both or none", ErrName)
	}
	typ, err := find(ctx, n.Queue, n.Type)
	if err != nil {
		return nil, err
	}
	node := Node{
		Name: n.Name, Type: n.Type, Queue: n.Queue, TypeVersion: typ.TypeVersion, Priority: cmp.Or(n.Priority, typ.Priority), Silent: typ.Silent, Labels: n.Labels, At: n.At,
		OnFailure: n.OnFailure,
	}
	if n.Args != nil {
		var raw json.RawMessage
		if raw, err = port.Encode(n.Args); err != nil {
			return nil, fmt.Errorf("args: %w", err)
		}
		if typ.Params != nil {
			if err := port.CheckParams(typ.Params, raw); err != nil {
				if _, bytes := n.Args.([]byte); bytes {
					err = fmt.Errorf("%w; args of type []byte are sent as base64: use json.RawMessage for what is JSON already", err)
				}
				return nil, err
			}
		}
		node.Args = raw
	}
	if err := CheckPorts(n.Ports); err != nil {
		return nil, err
	}
	for _, s := range MergePorts(typ.Ports, n.Ports) {
		node.Ports = append(node.Ports, Port{Spec: s})
	}
	if err := node.checkFailure(typ, n.Parent == ""); err != nil {
		return nil, err
	}
	plan := &Plan{Nodes: []Node{node}, Parent: n.Parent, Retain: n.Retain, SequentialKey: n.SequentialKey, Unique: n.Unique}
	o := Choices{Alias: n.Alias, Aliased: n.Alias != ""}
	if plan, err = o.distinguish(plan, n.Parent != ""); err != nil {
		return nil, err
	}
	if n.Repeat != nil {
		if plan.Repeat, err = n.Repeat.Repeats(time.Now()); err != nil {
			return nil, err
		}
	}
	return plan, plan.Validate()
}

// checkFailure refuses a failure policy that a job of a type cannot have, and gives it the port that dead letters need.
func (n *Node) checkFailure(typ *TypeInfo, root bool) error {
	if err := n.OnFailure.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrValue, err)
	}
	switch {
	case n.OnFailure == Ignore && root:
		return fmt.Errorf("%w: failure policy %q: a root job is in no graph that goes on without it: use %q or %q", ErrValue, Ignore, Restart, DeadLetter)
	case n.OnFailure != DeadLetter:
		return nil
	}
	for _, p := range n.Ports {
		if p.Dir == port.Output && p.Name == ErrorsPort {
			if err := port.CheckKind([]byte("{}"), typ.Kinds[port.TypeKey(p.Dir, p.Name)]); err != nil {
				return fmt.Errorf("%w: failure policy %q: type %q has a port %q of its own that takes no dead letters: %w", ErrValue, DeadLetter, n.Type, ErrorsPort, err)
			}
			return nil
		}
	}
	n.Ports = append(n.Ports, Port{Spec: port.Spec{Name: ErrorsPort, Dir: port.Output, Type: reflect.TypeFor[Letter]().String()}})
	return nil
}

// MergePorts returns the ports of base followed by those that only over has; of a port
// in both, the one in over. Neither argument is changed.
func MergePorts(base, over []port.Spec) []port.Spec {
	type id struct {
		dir  port.Dir
		name string
	}
	at := make(map[id]int, len(base)+len(over))
	var out []port.Spec
	for _, s := range append(append([]port.Spec{}, base...), over...) {
		k := id{s.Dir, s.Name}
		if i, ok := at[k]; ok {
			out[i] = s
			continue
		}
		at[k] = len(out)
		out = append(out, s)
	}
	return out
}
