package weir

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// manyValues commits as many messages as one commit may have.
func (r *rig) manyValues(ctx context.Context) error {
	id, err := r.tree(ctx, job.Node{Type: "Source", Ports: []job.Port{portOf(port.Output, "out")}})
	if err != nil {
		return err
	}
	_, err = r.run(ctx, id, store.Delta{Writes: []store.Write{{Dir: port.Output, Port: "out", Items: texts(r.lab.Size.Writes)}}})
	return err
}

// manyBytes commits as many bytes as one commit may have, and reads them.
func (r *rig) manyBytes(ctx context.Context) error {
	id, err := r.tree(ctx, job.Node{Type: "Source", Ports: []job.Port{portOf(port.Output, "out")}})
	if err != nil {
		return err
	}
	large := make([]json.RawMessage, job.MaxCommit/job.MaxMessage)
	for i := range large {
		large[i] = json.RawMessage(`"` + strings.Repeat("x", job.MaxMessage-2) + `"`)
	}
	if _, err := r.run(ctx, id, store.Delta{Writes: []store.Write{{Dir: port.Output, Port: "out", Items: large}}}); err != nil {
		return err
	}
	_, _, err = r.store.Peek(ctx, id, port.Output, "out", 1<<20)
	return err
}

// manyConsumers commits messages that go to as many jobs as they may.
func (r *rig) manyConsumers(ctx context.Context) error {
	for _, n := range []int{1, 40} {
		id, err := r.fan(ctx)
		if err != nil {
			return err
		}
		if _, err := r.run(ctx, id, store.Delta{Writes: []store.Write{{Dir: port.Output, Port: "out", Items: texts(n)}}}); err != nil {
			return err
		}
	}
	return nil
}

// fan creates a job whose port feeds as many others as it may, and returns its ID.
func (r *rig) fan(ctx context.Context) (job.ID, error) {
	nodes := []job.Node{{Type: "Source", Ports: []job.Port{portOf(port.Output, "out")}}}
	for i := range job.MaxFanOut {
		in := portOf(port.Input, "in")
		in.Sources = 1
		nodes = append(nodes, job.Node{Type: "Sink", Name: fmt.Sprint("sink", i), Ports: []job.Port{in}})
		nodes[0].Ports[0].Edges = append(nodes[0].Ports[0].Edges, job.Edge{{Node: i + 1, Dir: port.Input, Port: "in"}})
	}
	return r.tree(ctx, nodes...)
}

// wideDefault gives a port that feeds many jobs a default.
func (r *rig) wideDefault(ctx context.Context) error {
	id, err := r.fan(ctx)
	if err != nil {
		return err
	}
	return r.store.SetDefault(ctx, id, store.Default{Dir: port.Output, Port: "out", Value: json.RawMessage("1")})
}

// largeState has a job with very many keys of state.
func (r *rig) largeState(ctx context.Context) error {
	id, err := r.tree(ctx, job.Node{Type: "Source"})
	if err != nil {
		return err
	}
	const commits = 5
	n := r.lab.Size.Writes / 2
	for c := range commits {
		state := map[string]json.RawMessage{}
		for i, v := range texts(n) {
			state[fmt.Sprint("key", c*n+i)] = v
		}
		if _, err := r.run(ctx, id, store.Delta{Set: state}); err != nil {
			return err
		}
		if err := r.store.Apply(ctx, id, statemachine.Force); err != nil {
			return err
		}
	}
	state, err := r.store.State(ctx, id)
	if err == nil && len(state) != commits*n {
		err = fmt.Errorf("it has %d keys of state, not %d", len(state), commits*n)
	}
	return err
}
