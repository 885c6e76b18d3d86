package weir

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// wideGraph creates a graph of as many jobs as one may have, fed by as many ports as that takes, one of which is written to and
// closed, and ends it.
func (r *rig) wideGraph(ctx context.Context) error {
	n := min(r.lab.Size.Wide, job.MaxNodes)
	nodes := []job.Node{{Type: "Graph", Graph: true}}
	source := 0
	for i := 1; i < n; i++ {
		name := fmt.Sprint("job", i)
		if (i-1)%(job.MaxFanOut+1) == 0 {
			source = i
			nodes = append(nodes, job.Node{Name: name, Type: "Source", Ports: []job.Port{portOf(port.Output, "out")}})
			continue
		}
		in := portOf(port.Input, "in")
		in.Sources = 1
		nodes = append(nodes, job.Node{Name: name, Type: "Sink", Ports: []job.Port{in}})
		out := &nodes[source].Ports[0]
		out.Edges = append(out.Edges, job.Edge{{Node: i, Dir: port.Input, Port: "in"}})
	}
	id, err := r.tree(ctx, nodes...)
	if err != nil {
		return err
	}
	if _, err := r.run(ctx, id.Nth(1), store.Delta{Writes: []store.Write{{Dir: port.Output, Port: "out", Items: texts(1)}}}); err != nil {
		return err
	}
	if err := r.store.ClosePort(ctx, id.Nth(1), port.Output, "out"); err != nil {
		return err
	}
	if err := r.store.Terminate(ctx, id); err != nil {
		return err
	}
	_, err = r.store.Tree(ctx, id)
	return err
}

// instances has one port feed as many jobs as it may, each message one of them, gives it a default, and closes it.
func (r *rig) instances(ctx context.Context) error {
	nodes := []job.Node{{Type: "Source", Ports: []job.Port{portOf(port.Output, "out", job.Edge{})}}}
	for i := range 2 * job.MaxFanOut {
		in := portOf(port.Input, "in")
		in.Sources = 1
		nodes = append(nodes, job.Node{Type: "Sink", Name: fmt.Sprint("sink", i), Ports: []job.Port{in}})
		edge := &nodes[0].Ports[0].Edges[0]
		*edge = append(*edge, job.Target{Node: i + 1, Dir: port.Input, Port: "in"})
	}
	id, err := r.tree(ctx, nodes...)
	if err != nil {
		return err
	}
	if err := r.store.SetDefault(ctx, id, store.Default{Dir: port.Output, Port: "out", Value: json.RawMessage("1")}); err != nil {
		return err
	}
	_, err = r.run(ctx, id, store.Delta{
		Writes: []store.Write{{Dir: port.Output, Port: "out", Items: texts(1000)}}, Closes: []string{"out"},
	})
	return err
}

// manyProducers has many jobs fill one port, which then is read.
func (r *rig) manyProducers(ctx context.Context) error {
	n := r.lab.Size.Members
	in := portOf(port.Input, "in")
	in.Sources, in.Limit = n, 1
	nodes := []job.Node{{Type: "Sink", Ports: []job.Port{in}}}
	for i := range n {
		out := portOf(port.Output, "out", job.Edge{{Node: 0, Dir: port.Input, Port: "in"}})
		nodes = append(nodes, job.Node{Type: "Source", Name: fmt.Sprint("source", i), Ports: []job.Port{out}})
	}
	id, err := r.tree(ctx, nodes...)
	if err != nil {
		return err
	}
	err = r.lab.Produce(ctx, n, func(ctx context.Context, i int) error {
		_, err := r.run(ctx, id.Nth(i+1), store.Delta{Writes: []store.Write{{Dir: port.Output, Port: "out", Items: texts(1)}}})
		if err == nil {
			err = r.store.Apply(ctx, id.Nth(i+1), statemachine.Run)
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.store.Take(ctx, id, store.Take{Dir: port.Input, Port: "in", N: n}, rand.Text())
}

// feedback has a graph with feedback and many members come to rest.
func (r *rig) feedback(ctx context.Context) error {
	n := r.lab.Size.Members
	round := portOf(port.Output, "out", job.Edge{{Node: 1, Dir: port.Input, Port: "back", Feedback: true}})
	in, back := portOf(port.Input, "in"), portOf(port.Input, "back")
	in.Sources, back.Loops = 1, 1
	nodes := []job.Node{
		{Type: "Graph", Graph: true, Loop: true, Ports: []job.Port{portOf(port.Input, "in", job.Edge{{Node: 1, Dir: port.Input, Port: "in"}})}},
		{Name: "round", Type: "Source", Loop: true, Ports: []job.Port{in, back, round}},
	}
	for i := range n {
		nodes = append(nodes, job.Node{Type: "Sink", Name: fmt.Sprint("sink", i), Loop: true, Ports: []job.Port{portOf(port.Input, "in")}})
	}
	id, err := r.tree(ctx, nodes...)
	if err != nil {
		return err
	}
	err = r.lab.Produce(ctx, n, func(ctx context.Context, i int) error {
		_, err := r.run(ctx, id.Nth(i+2), store.Delta{})
		return err
	})
	if err != nil {
		return err
	}
	if err := r.store.ClosePort(ctx, id, port.Input, "in"); err != nil {
		return err
	}
	if _, err := r.run(ctx, id.Nth(1), store.Delta{}); err != nil {
		return err
	}
	return r.until(ctx, id.Nth(1), func(i *job.Info) (bool, error) {
		p, _ := i.Port(port.Input, "back")
		return p.Closed, nil
	})
}

// largeInputs begins a run of a job whose In ports have as much as a run gets.
func (r *rig) largeInputs(ctx context.Context) error {
	const inputs = 4
	large := make([]json.RawMessage, 4)
	for i := range large {
		large[i] = json.RawMessage(`"` + strings.Repeat("x", job.MaxMessage-2) + `"`)
	}
	node := job.Node{Type: "Sink"}
	for i := range inputs {
		node.Ports = append(node.Ports, portOf(port.Input, fmt.Sprint("in", i)))
	}
	id, err := r.tree(ctx, node)
	if err != nil {
		return err
	}
	for _, p := range node.Ports {
		if err := r.store.Write(ctx, id, store.Write{Dir: port.Input, Port: p.Name, Items: large}); err != nil {
			return err
		}
	}
	_, err = r.store.Begin(ctx, id, store.Begin{Token: rand.Text(), Lease: time.Hour, Batch: 1000, Bytes: 2 << 20})
	return err
}
