package component

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Merge passes on what comes in at any of its ports. Several edges into one port merge
// too, in the order of the commits; Merge gives them names.
//
// Order is kept within each port; between ports a run takes from each in turn what is
// there. The end of out is the end of all ports that are wired.
type Merge struct {
	pure
	// From names In ports besides in.
	From []string                  `json:"from,omitempty" doc:"names of In ports besides in"`
	In   port.In[json.RawMessage]  `port:"in"`
	Out  port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Merge) JobType() string { return "merge" }

// Describe implements Component.
func (*Merge) Describe() string { return "passes on what comes in at any of its ports" }

// Ports implements job.PortDeclarer.
func (m *Merge) Ports() []port.Spec { return named(port.Input, m.From) }

// Validate implements Component.
func (m *Merge) Validate() error {
	var c check
	c.ports("from", m.From, 0, "in")
	return c.err(m)
}

// Run implements worker.Worker.
func (m *Merge) Run(ctx context.Context, run *worker.Run) error {
	if err := m.Validate(); err != nil {
		return err
	}
	names := []string{"in"}
	for _, p := range run.Info().Ports {
		if p.Dir == port.Input && p.Name != port.Any && p.Name != "in" {
			names = append(names, p.Name)
		}
	}
	ins, err := insOf(run, names)
	if err != nil {
		return err
	}
	var q quota
	for !q.spent() {
		if n, _ := waiting(ins); n == 0 {
			return nil
		}
		for _, in := range ins {
			if in.Len() == 0 {
				continue
			}
			if err := pass(ctx, &q, in, m.Out); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass takes a message and writes it.
func pass(ctx context.Context, q *quota, in port.Reader, out port.Out[json.RawMessage]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	raw, err := q.take(in)
	if err != nil {
		return err
	}
	return out.Write(raw)
}

// rest ends a run that has left nothing that it could do now: it sleeps while messages
// wait for others, and tells the engine to decide when none do.
func rest(ins []port.Reader) error {
	if n, _ := waiting(ins); n > 0 {
		return worker.ErrSuspend
	}
	return nil
}

// MergeOrdered takes one message of each port in turn. A port at its end is left out; a
// port that is empty is waited for.
//
// The result is the same however runs fall. The end of out is the end of all ports.
type MergeOrdered struct {
	pure
	// From names the In ports in their order. At least one is required.
	From []string                  `json:"from,omitempty" doc:"names of the In ports, in their order"`
	Out  port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*MergeOrdered) JobType() string { return "merge_ordered" }

// Describe implements Component.
func (*MergeOrdered) Describe() string { return "takes one message of each port in turn" }

// Ports implements job.PortDeclarer.
func (m *MergeOrdered) Ports() []port.Spec { return needed(m.From) }

// Validate implements Component.
func (m *MergeOrdered) Validate() error {
	var c check
	c.ports("from", m.From, 1)
	return c.err(m)
}

// Run implements worker.Worker.
func (m *MergeOrdered) Run(ctx context.Context, run *worker.Run) error {
	if err := m.Validate(); err != nil {
		return err
	}
	ins, err := insOf(run, m.From)
	if err != nil {
		return err
	}
	var turn int
	if _, err := run.State().Get("turn", &turn); err != nil {
		return err
	}
	before, skipped := turn, 0
	var q quota
	for skipped < len(ins) && !q.spent() {
		in := ins[turn%len(ins)]
		switch {
		case in.Len() > 0:
			skipped = 0
			if err := pass(ctx, &q, in, m.Out); err != nil {
				return err
			}
		case in.Done():
			skipped++
		default:
			return m.save(run, before, turn, rest(ins))
		}
		turn = (turn + 1) % len(ins)
	}
	return m.save(run, before, turn, nil)
}

// save notes whose turn it is, if that changed, and returns err.
func (m *MergeOrdered) save(run *worker.Run, before, turn int, err error) error {
	if turn == before {
		return err
	}
	if failed := run.State().Set("turn", turn); failed != nil {
		return failed
	}
	return err
}

// MergePriority passes on messages of earlier ports first: a message of a later port
// leaves only while no earlier port has one.
//
// Order is kept within each port. What is passed on first depends on what is there when
// a run begins; runs are short, so that a late message of an early port waits for at most
// 100 others. The end of out is the end of all ports.
type MergePriority struct {
	pure
	// From names the In ports, the most urgent first. At least one is required.
	From []string                  `json:"from,omitempty" doc:"names of the In ports, the most urgent first"`
	Out  port.Out[json.RawMessage] `port:"out"`
}

// priorityRun is how many messages one run of MergePriority passes on.
const priorityRun = 100

// JobType implements job.TypeNamer.
func (*MergePriority) JobType() string { return "merge_priority" }

// Describe implements Component.
func (*MergePriority) Describe() string { return "passes on messages of earlier ports first" }

// Ports implements job.PortDeclarer.
func (m *MergePriority) Ports() []port.Spec { return named(port.Input, m.From) }

// Validate implements Component.
func (m *MergePriority) Validate() error {
	var c check
	c.ports("from", m.From, 1)
	return c.err(m)
}

// Run implements worker.Worker.
func (m *MergePriority) Run(ctx context.Context, run *worker.Run) error {
	if err := m.Validate(); err != nil {
		return err
	}
	ins, err := insOf(run, m.From)
	if err != nil {
		return err
	}
	var q quota
	for q.messages < priorityRun && !q.spent() {
		i := slices.IndexFunc(ins, func(in port.Reader) bool { return in.Len() > 0 })
		if i < 0 {
			return nil
		}
		if err := pass(ctx, &q, ins[i], m.Out); err != nil {
			return err
		}
	}
	return nil
}

// MergeSorted merges ports that are sorted by a key into one sorted stream. Of equal keys
// that of the earlier port goes first. It waits until every port has a message or is at
// its end.
//
// Keys are numbers or texts. What is not sorted on its port is not sorted behind. The
// result is the same however runs fall. The end of out is the end of all ports.
type MergeSorted struct {
	pure
	// From names the In ports. At least one is required.
	From []string `json:"from,omitempty" doc:"names of the In ports"`
	// By is the key, an expression over it.
	By string `json:"by,omitempty" doc:"expression over it, the message, that gives its key; default it"`
	// Descending is for ports that begin with the largest key.
	Descending bool                      `json:"descending,omitempty" doc:"the largest key comes first"`
	Out        port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*MergeSorted) JobType() string { return "merge_sorted" }

// Describe implements Component.
func (*MergeSorted) Describe() string { return "merges sorted ports into one sorted stream" }

// Ports implements job.PortDeclarer.
func (m *MergeSorted) Ports() []port.Spec { return needed(m.From) }

// Validate implements Component.
func (m *MergeSorted) Validate() error {
	var c check
	c.ports("from", m.From, 1)
	c.expr("by", m.by(), scopeItem, false)
	return c.err(m)
}

func (m *MergeSorted) by() string {
	if m.By == "" {
		return "it"
	}
	return m.By
}

// Run implements worker.Worker.
func (m *MergeSorted) Run(ctx context.Context, run *worker.Run) error {
	if err := m.Validate(); err != nil {
		return err
	}
	ins, err := insOf(run, m.From)
	if err != nil {
		return err
	}
	key, err := newExpression(ctx, run, m.by(), scopeItem)
	if err != nil {
		return err
	}
	heads := make([]head, len(ins))
	var q quota
	for !q.spent() {
		first := -1
		for i, in := range ins {
			if ok, err := heads[i].look(in, key); err != nil {
				return err
			} else if !ok && !in.Done() {
				return rest(ins)
			}
			before, err := m.before(heads, i, first)
			if err != nil {
				return err
			}
			if before {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		heads[first].known = false
		if err := pass(ctx, &q, ins[first], m.Out); err != nil {
			return err
		}
	}
	return nil
}

// head is the key of the first message of a port.
type head struct {
	known bool
	key   any
}

// look finds the key of the first message, and tells whether there is one.
func (h *head) look(in port.Reader, key *expression) (bool, error) {
	if h.known || in.Len() == 0 {
		return h.known, nil
	}
	raw, _, err := in.Peek()
	if err != nil {
		return false, err
	}
	if h.key, err = key.message(raw); err != nil {
		return false, err
	}
	h.known = true
	return true, nil
}

// before tells whether the message of port i goes before that of the first so far.
func (m *MergeSorted) before(heads []head, i, first int) (bool, error) {
	if !heads[i].known || first < 0 {
		return heads[i].known, nil
	}
	order, err := compare(heads[i].key, heads[first].key)
	if m.Descending {
		order = -order
	}
	return order < 0, err
}
