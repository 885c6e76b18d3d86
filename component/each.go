package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Values of Each's parameter order.
const (
	OrderInput   = "input"   // outputs come in the order of the items; the default
	OrderArrival = "arrival" // outputs come as the jobs of their items complete
)

// DefaultParallel is how many items Each has under way unless told otherwise.
const DefaultParallel = 4

// Each starts a job of its own for each message: it gives the message to an In port of the
// job, closes that, and when the job has completed passes on what it wrote to an Out port.
//
// The job of an item is a child of this one named item_<n>: a small graph of the job itself,
// named work, and one that brings it the item. If it fails, or is terminated, that is an
// error of the message; with on_error = fail both jobs can be retried, that of the item
// first. What a failed job had written is left out. Jobs of items are deleted when what they
// wrote was passed on, or their failure was dealt with: so each takes as much memory after millions of items as after the first.
//
// With order = input the result is as deterministic as the jobs are. The end of in, when all
// jobs have completed, is the end of out.
type Each struct {
	pure
	// Type is the type of the jobs. Required, except for a value of EachOf.
	Type string `json:"type,omitempty" doc:"type of the job for each message"`
	// Args are their parameters.
	Args json.RawMessage `json:"args,omitempty" doc:"parameters of the jobs"`
	// Queue is theirs. Empty means that of this job.
	Queue string `json:"queue,omitempty" doc:"queue of the jobs, default that of this job"`
	// Input is the In port that gets the item. Empty means in.
	Input string `json:"input,omitempty" doc:"In port of the job that gets the message, default in"`
	// Output is the Out port that has the results. Empty means out.
	Output string `json:"output,omitempty" doc:"Out port of the job that has the results, default out"`
	// Parallel is how many items are under way. Zero means DefaultParallel.
	Parallel int `json:"parallel,omitempty" doc:"jobs at a time, default 4"`
	// Order is the order of the results.
	Order string `json:"order,omitempty" doc:"input (default) or arrival: the order of the results"`
	// OnError is what becomes of items whose job fails.
	OnError string                    `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages whose job fails"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
	Err     port.Out[Rejected]        `port:"err"`

	known []worker.Worker // types whose ports are known
	name  string          // of EachOf
	plan  job.Planner     // of EachOf
}

// MaxParallel is the most items that Each has under way.
const MaxParallel = 100

// EachOf returns an Each of its own type name whose jobs are those of a plan, such as a
// graph that has the ports in and out. It must be registered with the engine, like the
// workers in the plan.
func EachOf(name string, plan job.Planner) *Each { return &Each{name: name, plan: plan} }

// JobType implements job.TypeNamer.
func (e *Each) JobType() string { return cmp.Or(e.name, "each") }

// Describe implements Component.
func (*Each) Describe() string { return "starts a job for each message and passes on its results" }

// Validate implements Component.
func (e *Each) Validate() error {
	var c check
	c.is(e.Type != "" || e.plan != nil || e.name != "", "type is missing")
	c.is(e.Type == "" || e.plan == nil, "type %q: the jobs of %s are given by its plan", e.Type, e.name)
	if e.Queue != "" {
		if err := job.CheckName("queue", e.Queue); err != nil {
			c.add("%v", err)
		}
	}
	c.ports("input", []string{e.input()}, 1)
	c.ports("output", []string{e.output()}, 1)
	c.is(e.Parallel >= 0 && e.Parallel <= MaxParallel, "parallel %d: use 1 to %d", e.Parallel, MaxParallel)
	c.oneOf("order", e.Order, OrderInput, OrderArrival)
	c.onError(e.OnError)
	if len(c.bad) == 0 && e.Type != "" {
		if _, err := e.work(); err != nil {
			c.add("%v", err)
		}
	}
	return c.err(e)
}

func (e *Each) input() string  { return cmp.Or(e.Input, "in") }
func (e *Each) output() string { return cmp.Or(e.Output, "out") }

// work is the plan of the job of one item.
func (e *Each) work() (*job.Plan, error) {
	if e.plan != nil {
		return e.plan.Plan()
	}
	node := job.Node{Type: e.Type, Args: e.Args, Queue: e.Queue, Ports: []job.Port{
		{Spec: port.Spec{Name: e.input(), Dir: port.Input}},
		{Spec: port.Spec{Name: e.output(), Dir: port.Output}},
	}}
	for _, w := range e.known {
		if name, err := job.TypeOf(w); err != nil || name != e.Type {
			continue
		}
		specs, err := portsWith(w, e.Args)
		if err != nil {
			return nil, err
		}
		node.Ports, node.Silent = nil, job.SilentOf(w)
		for _, s := range specs {
			node.Ports = append(node.Ports, job.Port{Spec: s})
		}
	}
	return &job.Plan{Nodes: []job.Node{node}}, nil
}

// portsWith returns the ports of a worker with parameters, which it checks if it can.
func portsWith(w worker.Worker, args json.RawMessage) ([]port.Spec, error) {
	layout, err := port.Describe(reflect.TypeOf(w))
	if err != nil {
		return nil, err
	}
	v := layout.Copy(w)
	if s, ok := v.(worker.ArgsSetter); ok && len(args) > 0 {
		err = s.SetArgs(args)
	} else if !ok {
		err = layout.SetParams(v, args)
	}
	if err != nil {
		return nil, err
	}
	if c, ok := v.(Component); ok {
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	return job.PortsOf(v, layout), nil
}

// itemPlan is the plan of the job of one item: a graph of the job that emits the item, and
// the work that it feeds. The end of the first is the end of the other's In port.
func (e *Each) itemPlan(queue string, item json.RawMessage) (*job.Plan, error) {
	work, err := e.work()
	if err != nil {
		return nil, err
	}
	source, err := job.NodeOf(&Emit{Items: []json.RawMessage{item}}, "item", queue)
	if err != nil {
		return nil, err
	}
	if len(source.Args) > job.MaxMessage {
		return nil, fault(fmt.Errorf("an item of %d bytes is too large to be given to a job", len(item)))
	}
	const root, first = 0, 2 // numbers of the graph and of the work
	source.Ports[0].Edges = []job.Edge{{{Node: first, Dir: port.Input, Port: e.input()}}}
	plan := &job.Plan{Nodes: []job.Node{
		{Type: e.JobType() + "_item", Graph: true, Ports: []job.Port{{
			Spec: port.Spec{Name: e.output(), Dir: port.Output}, Sources: 1,
		}}},
		source,
	}}
	for i, n := range work.Nodes {
		n.Queue = cmp.Or(n.Queue, queue)
		n.Ports = shifted(n.Ports, first)
		if n.Parent += first; i == 0 {
			n.Name, n.Parent = "work", root
			if err := e.wire(&n); err != nil {
				return nil, err
			}
		}
		plan.Nodes = append(plan.Nodes, n)
	}
	return plan, nil
}

// shifted returns ports whose edges lead to jobs with larger numbers.
func shifted(ports []job.Port, by int) []job.Port {
	ports = slices.Clone(ports)
	for i := range ports {
		edges := make([]job.Edge, len(ports[i].Edges))
		for k, edge := range ports[i].Edges {
			edges[k] = slices.Clone(edge)
			for t := range edges[k] {
				edges[k][t].Node += by
			}
		}
		ports[i].Edges = edges
	}
	return ports
}

// wire connects the work to the graph around it.
func (e *Each) wire(n *job.Node) error {
	in := slices.IndexFunc(n.Ports, func(p job.Port) bool { return p.Dir == port.Input && p.Name == e.input() })
	out := slices.IndexFunc(n.Ports, func(p job.Port) bool { return p.Dir == port.Output && p.Name == e.output() })
	if in < 0 || out < 0 {
		return fmt.Errorf("%w: a job of type %q has not both the In port %q and the Out port %q", job.ErrPort, n.Type, e.input(), e.output())
	}
	n.Ports[in].Sources++
	n.Ports[out].Edges = append(n.Ports[out].Edges, job.Edge{{Node: 0, Dir: port.Output, Port: e.output()}})
	return nil
}

// eachHead is the state of Each.
type eachHead struct {
	Next   int   `json:"next"`             // number of the next item
	Active []int `json:"active,omitempty"` // items that are under way, in their order
}

// items is one run of Each.
type items struct {
	*Each
	ctx  context.Context //nolint:containedctx // of the run that this is
	run  *worker.Run
	head eachHead
	pace pace
}

const itemPrefix = "item_"

func itemName(n int) string { return itemPrefix + strconv.Itoa(n) }

// itemOf is the inverse of itemName.
func itemOf(name string) (n int, ok bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, itemPrefix))
	return n, err == nil && name == itemName(n)
}

// Run implements worker.Worker.
func (e *Each) Run(ctx context.Context, run *worker.Run) error {
	if err := e.Validate(); err != nil {
		return err
	}
	w := items{Each: e, ctx: ctx, run: run}
	w.pace = pace{run: run, save: w.save}
	if _, err := run.State().Get("each", &w.head); err != nil {
		return err
	}
	before, active := w.head.Next, len(w.head.Active)
	if err := w.collect(); err != nil {
		return err
	}
	if err := w.start(); err != nil {
		return err
	}
	if w.head.Next != before || len(w.head.Active) != active {
		if err := w.save(); err != nil {
			return err
		}
	}
	if len(w.head.Active) > 0 {
		return worker.ErrSuspend
	}
	return nil
}

func (w *items) save() error { return w.run.State().Set("each", w.head) }

// collect passes on what the jobs of items wrote that have completed: in the order of the items, as far as they have
// without a gap; before that, unless this order is asked for, of those that woke this job.
func (w *items) collect() error {
	if w.Order == OrderArrival {
		for _, child := range w.run.WokenBy() {
			n, ok := itemOf(child.Name())
			if !ok || !slices.Contains(w.head.Active, n) {
				continue
			}
			if _, err := w.collectItem(n, child); err != nil {
				return err
			}
		}
	}
	for len(w.head.Active) > 0 {
		n := w.head.Active[0]
		child, err := w.run.Child(itemName(n))
		if err != nil {
			return err
		}
		if done, err := w.collectItem(n, child); err != nil || !done {
			return err
		}
	}
	return nil
}

// collectItem deals with the job of an item if it has ended, and tells whether it has.
func (w *items) collectItem(n int, child *worker.Child) (bool, error) {
	if err := w.ctx.Err(); err != nil {
		return false, err
	}
	info, err := child.Info()
	if err != nil {
		return false, err
	}
	switch info.Status {
	case statemachine.Completed:
		err = w.pass(child)
	case statemachine.Failed, statemachine.Terminated:
		err = w.failed(n, info)
	default:
		return false, nil
	}
	if err == nil {
		err = child.Release()
	}
	if err != nil {
		return false, err
	}
	w.head.Active = slices.DeleteFunc(w.head.Active, func(x int) bool { return x == n })
	w.run.State().Unset(itemName(n))
	return true, nil
}

// pass writes what a completed job wrote.
func (w *items) pass(child *worker.Child) error {
	from, err := child.Out(w.output())
	if err != nil {
		return err
	}
	for {
		// A look at the next page, if there is one; the port's default is no message.
		if _, _, err := from.Peek(); err != nil || from.Len() == 0 {
			return err
		}
		raw, _, err := from.Read()
		if err != nil {
			return err
		}
		if err := w.Out.Write(raw); err != nil {
			return err
		}
		if err := w.pace.wrote(len(raw)); err != nil {
			return err
		}
	}
}

// failed deals with an item whose job has not completed.
func (w *items) failed(n int, info *job.Info) error {
	item := json.RawMessage("null")
	if w.OnError == OnErrorPort {
		if _, err := w.run.State().Get(itemName(n), &item); err != nil {
			return err
		}
	}
	why := ""
	if info.Reason != "" {
		why = ": " + info.Reason
	}
	return reject(w.ctx, w.OnError, w.Err, item, fault(fmt.Errorf("the job of item %d, %s, is %s%s", n, info.ID, info.Status, why)))
}

// start starts jobs for the next items, as many as may be under way.
func (w *items) start() error {
	queue, jobs := cmp.Or(w.Queue, w.run.Info().Queue), 0
	for w.In.Len() > 0 && len(w.head.Active) < cmp.Or(w.Parallel, DefaultParallel) {
		item, _, err := w.In.Peek()
		if err != nil {
			return err
		}
		plan, err := w.itemPlan(queue, item)
		if err == nil {
			if jobs += len(plan.Nodes); jobs > worker.MaxSpawn {
				jobs = len(plan.Nodes)
				if err := w.save(); err != nil {
					return err
				}
				if err := w.run.Checkpoint(); err != nil {
					return err
				}
			}
			err = w.startItem(plan, item)
		} else {
			err = reject(w.ctx, w.OnError, w.Err, item, err)
		}
		if err != nil {
			return err
		}
		if _, _, err := w.In.Read(); err != nil {
			return err
		}
	}
	return nil
}

func (w *items) startItem(plan *job.Plan, item json.RawMessage) error {
	n := w.head.Next
	if _, err := w.run.Spawn(itemName(n), plan); err != nil {
		return err
	}
	w.head.Next++
	w.head.Active = append(w.head.Active, n)
	if w.OnError != OnErrorPort {
		return nil
	}
	return w.run.State().Set(itemName(n), item)
}
