package rig

import (
	"context"
	"slices"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// requeued is a graph one of whose jobs makes dead letters of some messages, which are given back to it.
type requeued struct {
	name  string
	root  *client.Handle
	wants []int
}

// requeuing sends numbers through such a graph, and has actors requeue dead letters until all numbers have come through.
func (r *rig) requeuing(ctx context.Context) {
	const n = 120
	name := r.name("requeued")
	root := r.start(ctx, name, picky())
	if root == nil {
		return
	}
	q := &requeued{name: name, root: root}
	for k := range n {
		q.wants = append(q.wants, crew.Mended(k+1))
	}
	slices.Sort(q.wants)
	r.add(q)
	end, cancel := r.toEnd(ctx)
	defer cancel()
	for k := 0; k < n; k += 10 {
		some := make([]any, 10)
		for i := range some {
			some[i] = crew.Message{N: k + i + 1}
		}
		r.insist(end, "writing to "+name, func(ctx context.Context) error {
			return root.WriteOnce(ctx, name+"/"+string(rune('a'+k/10)), "in", some...)
		})
		r.count(sent, len(some))
	}
	for !q.through(end, n) {
		if !pause(end, 100*time.Millisecond) {
			return // what is missing is seen when it is checked
		}
		r.act(end, crew.Order{What: crew.Requeue, Job: root.ID()}, func(crew.Answer) bool { return true })
		r.fault("requeue")
	}
	r.insist(end, "closing "+name, func(ctx context.Context) error { return root.Close(ctx, "in") })
}

// through tells whether that many messages have come to the last job.
func (q *requeued) through(ctx context.Context, n int64) bool {
	d, err := q.root.Child(ctx, "d")
	if err != nil {
		return false
	}
	i, err := d.Info(ctx)
	if err != nil {
		return false
	}
	p, _ := i.Port(port.Output, "all")
	return p.Total >= n
}

// check implements round.
func (q *requeued) check(ctx context.Context, r *rig) error {
	tree, err := q.root.Tree(ctx)
	if err != nil {
		return err
	}
	for _, i := range tree {
		r.settled(q.name, i, true)
	}
	a, err := q.root.Child(ctx, "a")
	if err != nil {
		return err
	}
	left, err := drain[job.Letter](ctx, a, job.ErrorsPort)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		r.bad(stuck, "%s: %d dead letters are left", q.name, len(left))
	}
	d, err := q.root.Child(ctx, "d")
	if err != nil {
		return err
	}
	got, err := drain[crew.Message](ctx, d, "all")
	if err != nil {
		return err
	}
	slices.SortFunc(got, func(a, b crew.Message) int { return a.N - b.N }) // dead letters come late
	r.numbers(q.name, got, q.wants)
	return nil
}

// picky is a graph whose first job makes dead letters of some messages.
func picky() *graph.Graph {
	g := graph.New("picky")
	graph.Add(g, "a", &crew.Fussy{}, graph.OnFailure(job.DeadLetter))
	graph.Add(g, "d", &crew.Sink{})
	graph.WireInput(g, "in", "a.in")
	graph.Wire(g, "a.out", "d.in")
	return g
}
