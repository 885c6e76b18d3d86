package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// What somebody who is named does to a job is in its log, once; what programs do for themselves is not.
func TestActsAreLogged(t *testing.T) {
	each(t, func(e *env) {
		many := map[string]any{}
		for i := range 25 {
			many[fmt.Sprintf("k%02d", i)] = i
		}
		act := func(ctx context.Context) job.ID {
			g := newID(e)
			nodes := []job.Node{{Type: "G", Graph: true}, {Name: "a", Type: "A", Ports: ports(in("in"), out("out"))}}
			_, err := e.store.Create(ctx, g, &job.Plan{Nodes: nodes}, "test")
			e.Check(err)
			h, err := client.New(e.store).Find(ctx, string(g.Nth(1)))
			e.Check(err)
			root, err := client.New(e.store).Find(ctx, string(g))
			e.Check(err)
			e.Check(h.SetState(ctx, map[string]any{"b": 1, "a": 2}))
			e.Check(h.UnsetState(ctx, "b", "c"))
			e.Check(h.SetState(ctx, many))
			e.Check(h.SetState(ctx, map[string]any{strings.Repeat("é", 5000): 1}))
			e.Check(h.SetPriority(ctx, 700))
			e.Check(h.SetPriority(ctx, 700))
			e.Check(h.Close(ctx, "in"))
			e.Check(h.Close(ctx, "in"))
			more := slices.Concat(nodes, []job.Node{{Name: "b", Type: "A", Ports: ports(in("in"))}})
			e.Check(root.Patch(ctx, planned(more)))
			e.Check(root.TerminateAll(ctx))
			e.Check(root.TerminateAll(ctx))
			return g
		}
		notes := func(tree job.ID) (all []string) {
			entries, err := e.store.LogBack(e.Context(), tree, "", 100)
			e.Check(err)
			for i := len(entries) - 1; i >= 0; i-- {
				all = append(all, fmt.Sprintf("%s %s", entries[i].Job[len(tree):], entries[i].Note))
			}
			return all
		}
		g := act(job.WithContext(e.Context(), port.Context{port.ContextBy: "anna"}))
		list := ""
		for i := range 20 {
			list += fmt.Sprintf("k%02d, ", i)
		}
		e.equal("by anna", notes(g), []string{
			`.1 {"state":"by hand (anna): set a, b"}`, `.1 {"state":"by hand (anna): removed b, c"}`, `.1 {"state":"by hand (anna): set ` + list + `and 5 more"}`, `.1 {"state":"by hand (anna): set ` + strings.Repeat("é", 64) + `…"}`,
			`.1 {"priority":"by hand (anna): 700"}`, `.1 {"closed":"by hand (anna): in port in"}`, ` {"patched":"by hand (anna)"}`, ` {"terminated":"by hand (anna)"}`,
		})
		e.equal("by nobody", len(notes(act(e.Context()))), 0)
	})
}
