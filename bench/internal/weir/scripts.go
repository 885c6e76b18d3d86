package weir

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// noticed is how long a script takes, in µs, of which Redis keeps a note here.
const noticed = 500

// longScripts does what makes scripts long at scale, without an engine, and tells for each of them what the
// longest call took by Redis's own note: Redis does nothing else meanwhile.
func longScripts(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		for name, value := range map[string]any{"slowlog-max-len": 1_000_000, "slowlog-log-slower-than": noticed} {
			if err := l.Redis.ConfigSet(ctx, name, fmt.Sprint(value)).Err(); err != nil {
				return nil, err
			}
		}
		longest := map[string]time.Duration{}
		for _, step := range []struct {
			name string
			do   func(*rig, context.Context) error
		}{
			{"publish", (*rig).publishWidely},
			{"connect", (*rig).connectMany},
			{"patch", (*rig).patchMany},
			{"values", (*rig).manyValues},
			{"bytes", (*rig).manyBytes},
			{"fanout", (*rig).manyConsumers},
			{"state", (*rig).largeState},
			{"wide", (*rig).wideGraph},
			{"instances", (*rig).instances},
			{"producers", (*rig).manyProducers},
			{"feedback", (*rig).feedback},
			{"inputs", (*rig).largeInputs},
			{"defaults", (*rig).wideDefault},
			{"children", (*rig).manyChildren},
		} {
			if err := step.do(r, ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", step.name, err)
			}
			if err := r.longest(ctx, step.name, longest); err != nil {
				return nil, err
			}
		}
		figures := []lab.Figure{{Name: "scripts.longest", Value: ms(slices.Max(slices.Collect(maps.Values(longest)))), Unit: "ms", Less: true}}
		for _, name := range slices.Sorted(maps.Keys(longest)) {
			figures = append(figures, lab.Figure{Name: "scripts." + name, Value: ms(longest[name]), Unit: "ms", Less: true})
		}
		return figures, nil
	})
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// longest notes the longest call of each script of a step, and forgets them.
func (r *rig) longest(ctx context.Context, step string, all map[string]time.Duration) error {
	entries, err := r.lab.Redis.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return err
	}
	all[step] = noticed * time.Microsecond // at most
	for _, e := range entries {
		name := step + "."
		switch command := strings.ToLower(e.Args[0]); {
		case command == "fcall" && len(e.Args) > 4:
			name += e.Args[4]
		case command == "hscan" || command == "hgetall": // what is read without a script
			name += command
		default:
			continue // a command within a script is noted, too
		}
		all[name] = max(all[name], e.Duration)
		all[step] = max(all[step], e.Duration)
	}
	return r.lab.Redis.Do(ctx, "SLOWLOG", "RESET").Err()
}

// tree creates a tree of some nodes and returns its root.
func (r *rig) tree(ctx context.Context, nodes ...job.Node) (job.ID, error) {
	id, err := job.NewID()
	if err != nil {
		return "", err
	}
	plan := &job.Plan{Nodes: nodes}
	if err := plan.Validate(); err != nil {
		return "", err
	}
	_, err = r.store.Create(ctx, id, plan, "")
	return id, err
}

func portOf(dir port.Dir, name string, edges ...job.Edge) job.Port {
	return job.Port{Spec: port.Spec{Name: name, Dir: dir}, Edges: edges}
}

// texts are n messages of about as many bytes as a small record has.
func texts(n int) []json.RawMessage {
	out := make([]json.RawMessage, n)
	for i := range out {
		out[i] = json.RawMessage(fmt.Sprintf(`{"number":%d,"text":"%s"}`, i, strings.Repeat("x", 60)))
	}
	return out
}

// fill writes n messages to a port.
func (r *rig) fill(ctx context.Context, id job.ID, dir port.Dir, name string, n int) error {
	for some := range slices.Chunk(texts(n), 10_000) {
		if err := r.store.Write(ctx, id, store.Write{Dir: dir, Port: name, Items: some, NoWake: true}); err != nil {
			return err
		}
	}
	return nil
}

// waiting waits until a port of a job has that many messages.
func (r *rig) waiting(ctx context.Context, id job.ID, dir port.Dir, name string, n int) error {
	return r.until(ctx, id, func(i *job.Info) (bool, error) {
		p, _ := i.Port(dir, name)
		if p.Waiting > int64(n) {
			return false, wrong(i, "%d messages wait in port %s, not %d", p.Waiting, name, n)
		}
		return p.Waiting == int64(n), nil
	})
}

// until waits until a job is as it should be.
func (r *rig) until(ctx context.Context, id job.ID, done func(*job.Info) (bool, error)) error {
	for {
		i, err := r.store.Info(ctx, id)
		if err != nil {
			return err
		}
		if fine, err := done(i); fine || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// publishWidely publishes a message to all subscribers, many to a fifth of them, and many in one commit.
func (r *rig) publishWidely(ctx context.Context) error {
	const all, few = "/bench/all", "/bench/few" // neither is above the other, whose messages it would get, too
	const together = 1000
	ids := make([]job.ID, r.lab.Size.Subscribers)
	err := r.lab.Produce(ctx, len(ids), func(ctx context.Context, i int) (err error) {
		in := portOf(port.Input, "in")
		in.Channels = []string{all}
		if i%5 == 0 {
			in.Channels = []string{few}
		}
		ids[i], err = r.tree(ctx, job.Node{Type: "Subscriber", Ports: []job.Port{in}})
		return err
	})
	if err != nil {
		return err
	}
	if err := r.store.Publish(ctx, few, texts(together)); err != nil {
		return err
	}
	if err := r.waiting(ctx, ids[0], port.Input, "in", together); err != nil {
		return err
	}
	for _, channel := range []string{all, "/bench/nobody"} {
		out := portOf(port.Output, "out")
		out.Channels = []string{channel}
		id, err := r.tree(ctx, job.Node{Type: "Publisher", Ports: []job.Port{out}})
		if err != nil {
			return err
		}
		n := 1
		if channel != all {
			n = r.lab.Size.Writes
		}
		if _, err := r.run(ctx, id, store.Delta{Writes: []store.Write{{Dir: port.Output, Port: "out", Items: texts(n)}}}); err != nil {
			return err
		}
	}
	for _, i := range []int{1, len(ids) - 1} {
		if err := r.waiting(ctx, ids[i], port.Input, "in", 1); err != nil {
			return err
		}
	}
	return nil
}

// run gives a job a run that ends suspended and did what d says.
func (r *rig) run(ctx context.Context, id job.ID, d store.Delta) (store.Result, error) {
	b := store.Begin{Token: rand.Text(), Lease: time.Hour, Batch: 1000, Bytes: 2 << 20}
	if _, err := r.store.Begin(ctx, id, b); err != nil {
		return store.Result{}, err
	}
	d.Job, d.Token, d.Outcome = id, b.Token, statemachine.Suspend
	res, err := r.store.Commit(ctx, []store.Tx{{Deltas: []store.Delta{d}}})
	if err != nil {
		return store.Result{}, err
	}
	return res[0], res[0].Refused
}

// connectMany moves all messages of one port to another.
func (r *rig) connectMany(ctx context.Context) error {
	n := r.lab.Size.Waiting
	id, err := r.tree(ctx, job.Node{Type: "Sink", Ports: []job.Port{portOf(port.Input, "in"), portOf(port.Output, "out")}})
	if err != nil {
		return err
	}
	if err := r.fill(ctx, id, port.Output, "out", n); err != nil {
		return err
	}
	moved, err := r.store.Connect(ctx, id, port.Output, "out", []job.PortRef{{Job: id, Dir: port.Input, Port: "in"}})
	if err != nil {
		return err
	}
	if len(moved) != n {
		return fmt.Errorf("it moved %d messages, not %d", len(moved), n)
	}
	if err := r.waiting(ctx, id, port.Input, "in", n); err != nil {
		return err
	}
	_, _, err = r.store.Peek(ctx, id, port.Input, "in", n)
	return err
}

// patchMany wires a port that has many messages, so that they go on.
func (r *rig) patchMany(ctx context.Context) error {
	grow := func(wired bool) *graph.Graph {
		g := graph.New("patched")
		a := graph.Add(g, "a", &relay{})
		graph.Connect(graph.Input[string](g, "in"), a.In)
		if wired {
			graph.Connect(a.Out, graph.Add(g, "b", &relay{}).In)
		}
		return g
	}
	h, err := r.client.Start(ctx, grow(false))
	if err != nil {
		return err
	}
	a, err := h.Child(ctx, "a")
	if err != nil {
		return err
	}
	if err := r.fill(ctx, a.ID(), port.Output, "out", r.lab.Size.Waiting); err != nil {
		return err
	}
	if err := h.Patch(ctx, grow(true)); err != nil {
		return err
	}
	b, err := h.Child(ctx, "b")
	if err != nil {
		return err
	}
	return r.waiting(ctx, b.ID(), port.Input, "in", r.lab.Size.Waiting)
}

// manyChildren has a job with very many children, which then end and are deleted.
func (r *rig) manyChildren(ctx context.Context) error {
	parent, err := r.tree(ctx, job.Node{Type: "Parent"})
	if err != nil {
		return err
	}
	const together = 500
	for from := 0; from < r.lab.Size.Family; from += together {
		d := store.Delta{}
		base, err := r.store.Reserve(ctx, parent, together)
		if err != nil {
			return err
		}
		for i := range min(together, r.lab.Size.Family-from) {
			plan := &job.Plan{Nodes: []job.Node{{Type: "Child", Name: fmt.Sprint("child", from+i), Graph: true}}}
			d.Spawns = append(d.Spawns, store.Spawn{Plan: plan, Base: base + i})
		}
		if _, err := r.run(ctx, parent, d); err != nil {
			return err
		}
		if err := r.store.Apply(ctx, parent, statemachine.Run); err != nil {
			return err
		}
	}
	if _, err := r.store.Tree(ctx, parent); err != nil {
		return err
	}
	if _, err := r.run(ctx, parent, store.Delta{}); err != nil {
		return err
	}
	if err := r.store.Terminate(ctx, parent); err != nil {
		return err
	}
	b := store.Begin{Token: rand.Text(), Lease: time.Hour, Batch: 1, Bytes: 1}
	if _, err := r.store.Begin(ctx, parent, b); err != nil {
		return err
	}
	d := store.Delta{Job: parent, Token: b.Token, Outcome: statemachine.Shutdown}
	if _, err := r.store.Commit(ctx, []store.Tx{{Deltas: []store.Delta{d}}}); err != nil {
		return err
	}
	return r.store.Delete(ctx, parent)
}
