package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Jobs that a patch makes ready begin in the order of the graph.
func TestPatchedJobsBeginInOrder(t *testing.T) {
	each(t, func(e *env) {
		const n = 12
		nodes := func(wired bool) []job.Node {
			all := []job.Node{{Type: "G", Graph: true}, {Name: "a", Type: "A", Ports: ports(out("out"))}}
			for i := range n {
				b := job.Node{Name: fmt.Sprintf("b%d", i), Type: "B", Ports: ports(in("in"))}
				if wired {
					all[1].Ports[0].Edges = append(all[1].Ports[0].Edges, to(2+i))
					b.Ports[0].Sources = 1
				}
				all = append(all, b)
			}
			return all
		}
		g := newID(e)
		_, err := e.store.Create(e.Context(), g, &job.Plan{Nodes: nodes(false)}, "test")
		e.Check(err)
		for i := range n {
			e.end(g.Nth(2+i), statemachine.Suspend)
		}
		d := delta(e.begin(g.Nth(1)), statemachine.Complete)
		d.Closes = []string{"out"}
		e.commit(d)
		h, err := client.New(e.store).Find(e.Context(), string(g))
		e.Check(err)
		e.Check(h.Patch(e.Context(), planned(nodes(true))))
		queue := strings.TrimSuffix(e.due(g), "due") + "ready:" + job.DefaultQueue + "#B"
		var want []string
		for i := range n {
			want = append(want, string(g.Nth(2+i)))
		}
		e.equal("ready", fmt.Sprint(e.Redis.ZRange(e.Context(), queue, 0, -1).Val()), fmt.Sprint(want))
	})
}
