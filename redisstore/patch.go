package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Patch implements store.Control.
func (s *Store) Patch(ctx context.Context, root job.ID, p *store.Patch) error {
	number := func(i int) int { return p.Numbers[i] }
	id := func(i int) string { return string(root.Nth(p.Numbers[i])) }
	hidden, err := s.secrets.hideNodes(p.Nodes, func(i int) job.ID { return root.Nth(p.Numbers[i]) })
	if err != nil {
		return err
	}
	entry, err := s.byHand(ctx, root, "patched", "")
	if err != nil {
		return err
	}
	args := []any{string(root), p.From, p.To, rand.Text(), entry, len(p.Remove)}
	for _, gone := range p.Remove {
		args = append(args, string(gone))
	}
	children := make([]int, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		children[p.Nodes[i].Parent]++
	}
	var stay, fresh []any
	stays, created := 0, 0
	for i := range p.Nodes {
		n := &hidden[i]
		if p.Fresh[i] {
			created++
			b := birth{node: n, id: job.ID(id(i)), parent: job.ID(id(n.Parent)), inGraph: true, children: children[i], by: "patch"}
			fresh = append(fresh, b.args(number)...)
			continue
		}
		stays++
		stay = append(stay, id(i), typeVersion(n))
		stay = append(stay, keptArgs(n, number)...)
	}
	args = append(append(args, stays), stay...)
	if args, err = s.retypedArgs(append(args, store.EncodeTypes(p.Types), len(p.Retyped)), p.Retyped); err != nil {
		return err
	}
	args = append(append(args, created), fresh...)
	feeds := p.Feeds()
	args = append(args, len(feeds))
	for _, to := range slices.SortedFunc(maps.Keys(feeds), inPlan) { // jobs become ready in this order
		from := feeds[to]
		args = append(args, id(to.Node), dirArg(to.Dir), to.Port, len(from))
		for _, t := range from {
			args = append(args, id(t.Node), dirArg(t.Dir), t.Port)
		}
	}
	due := s.keys.dueOf(root)
	reply, err := s.run(ctx, scriptPatch, due, args...)
	if err != nil {
		return err
	}
	var d decoder
	l := d.list(reply)
	switch why := d.str(d.at(l, 0)); why {
	case "ok":
		return s.deliver(ctx, due, &d, d.at(l, 1))
	case "stale":
		return fmt.Errorf("%w: graph %s was changed meanwhile: try again", job.ErrStatus, root)
	case "typed":
		if n := int(d.int(d.at(l, 2))); n >= 1 && n <= len(p.Retyped) {
			return p.Retyped[n-1].Refused(d.int(d.at(l, 3)))
		}
		return d.err
	case "busy":
		return fmt.Errorf("%w: job %s of graph %s is running or has messages that the new graph has no place for: let it finish first",
			job.ErrStatus, d.str(d.at(l, 2)), root)
	default:
		return refusal(why, root)
	}
}

// inPlan orders ports as their jobs stand in a plan.
func inPlan(a, b job.Target) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Port, b.Port))
}

// retypedArgs encodes ports whose messages get another type.
func (s *Store) retypedArgs(args []any, all []store.Retyped) ([]any, error) {
	for i := range all {
		r := &all[i]
		items, err := s.secrets.hideMessages(r.Converted)
		if err != nil {
			return nil, err
		}
		args = append(args, string(r.Job), dirArg(r.Dir), r.Port, flag(r.Convert), strconv.FormatInt(r.Head, 10))
		args = itemArgs(args, items)
	}
	return args, nil
}

// keptArgs encodes what a patch sets of a job that stays: the subscriptions of its In ports, their defaults and
// its fields.
func keptArgs(n *job.Node, number func(int) int) []any {
	fields, defaults, _ := nodeFields(n, number)
	subscribed := any("")
	kept := []any{"of", n.InstanceOf} // which it may not be any more
	for i := 0; i < len(fields); i += 2 {
		name, _ := fields[i].(string)
		dir, _, isPort := strings.Cut(name, ".")
		switch {
		case name == "subscribed":
			subscribed = fields[i+1]
		case name == "args", name == "queue", name == "priority", name == "options", name == "policy", name == "loop", name == "silent", name == "defaults":
			kept = append(kept, name, fields[i+1])
		case isPort && (dir == string(byte(port.Input)) || dir == string(byte(port.Output)) || dir == "f"):
			kept = append(kept, name, fields[i+1])
		}
	}
	args := append([]any{subscribed, len(defaults)}, defaults...)
	return append(append(args, len(kept)), kept...)
}
