package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// labour begins all the work, which goes on until ctx ends. What is under way then is brought
// to its end, see toEnd. ready is closed when it is well under way.
func (r *rig) labour(ctx context.Context, wg *sync.WaitGroup) (ready <-chan struct{}, err error) {
	open := make(chan struct{})
	if err := r.news(ctx, wg); err != nil {
		return nil, err
	}
	many := func(n int, work func(ctx context.Context)) {
		for range n {
			wg.Go(func() {
				for ctx.Err() == nil {
					work(ctx)
				}
			})
		}
	}
	many(2, func(ctx context.Context) { r.flow(ctx, "pipe", pipeline(), pipeSinks) })
	many(2, func(ctx context.Context) { r.flow(ctx, "row", row(), rowSinks) })
	many(5, r.source)
	many(2, r.ticker)
	many(1, func(ctx context.Context) { r.skew(ctx, 1) })
	many(1, func(ctx context.Context) { r.skew(ctx, 2) })
	many(2, r.family)
	many(1, r.pausing)
	if !r.Mode.loses() { // what these do cannot be judged when some of it is undone
		many(1, r.adoption)
		many(2, func(ctx context.Context) { r.doomed(ctx, row()) })
		many(1, func(ctx context.Context) { r.doomed(ctx, job.Single(&crew.Parent{Children: 3, Depth: 3}, "")) })
		many(1, r.large)
		many(1, r.fading)
		many(3, r.maze)
		many(1, r.registers)
		many(2, r.impostor)
		few := &narrows{}
		r.add(few)
		many(2, func(ctx context.Context) { few.start(ctx, r) })
		many(1, r.limiting)
		many(2, r.requeuing)
		many(3, r.serial)
		many(2, r.unique)
		many(2, r.handed)
	}
	if r.Mode == Standard { // on a cluster there is none
		wg.Go(func() { r.timetable(ctx) })
	}
	time.AfterFunc(time.Second, func() { close(open) })
	return open, nil
}

// toEnd returns a context in which work is brought to its end. It has Patience for that from
// when ctx ends.
func (r *rig) toEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(r.Patience, func() { cancel(context.DeadlineExceeded) })
	})
	return out, func() { stop(); cancel(nil) }
}

// start starts a tree under a name, again and again until that is done.
func (r *rig) start(ctx context.Context, alias string, p job.Planner, opts ...job.Option) *client.Handle {
	opts = append(opts, job.Alias(alias), job.EnginesLater())
	var h *client.Handle
	r.insist(ctx, "starting "+alias, func(ctx context.Context) (err error) {
		h, err = r.client.Start(ctx, p, opts...)
		return err
	})
	return h
}

// callTime is how long a call of the harness may take.
const callTime = 5 * time.Second

// insist calls until there is no error, or the time to bring work to its end is over.
func (r *rig) insist(ctx context.Context, what string, fn func(ctx context.Context) error) bool {
	ctx, cancel := r.toEnd(ctx)
	defer cancel()
	for {
		call, done := context.WithTimeout(ctx, callTime)
		err := fn(call)
		done()
		if err == nil {
			return true
		}
		if !pause(ctx, 50*time.Millisecond) {
			r.bad(trouble, "%s: %v", what, err)
			return false
		}
	}
}

// row is a line of jobs, whose runs are fused.
func row() *graph.Graph {
	g := graph.New("row")
	for _, name := range []string{"a", "b", "c"} {
		graph.Add(g, name, &crew.Relay{})
	}
	graph.Add(g, "d", &crew.Sink{})
	graph.WireInput(g, "in", "a.in")
	graph.Wire(g, "a.out", "b.in")
	graph.Wire(g, "b.out", "c.in")
	graph.Wire(g, "c.out", "d.in")
	return g
}

// pipeline is a graph that fans out, to a graph in it and to jobs that share their work, and in.
func pipeline() *graph.Graph {
	sub := graph.New("sub")
	graph.Add(sub, "x", &crew.Relay{})
	graph.Add(sub, "y", &crew.Relay{})
	graph.WireInput(sub, "in", "x.in")
	graph.Wire(sub, "x.out", "y.in")
	graph.WireExport(sub, "out", "y.out")
	g := graph.New("pipe")
	graph.Add(g, "a", &crew.Relay{})
	graph.Nest(g, "b", sub)
	graph.Add(g, "c", &crew.Relay{}, graph.Instances(2))
	graph.Add(g, "d", &crew.Sink{})
	graph.WireInput(g, "in", "a.in")
	graph.Wire(g, "a.out", "b.in")
	graph.Wire(g, "a.out", "c.in")
	graph.Wire(g, "b.out", "d.in")
	graph.Wire(g, "c.out", "d.in")
	return g
}

// sinkPlan says what comes to a sink: a copy of each message on each of the ways; and which of
// them each job has seen, in their order: those whose path contains a text.
type sinkPlan struct {
	ways []string
	seen map[string]string
}

var (
	rowSinks  = sinkPlan{ways: []string{">c>"}, seen: map[string]string{"a": ">", "b": ">", "c": ">", "d": ""}}
	pipeSinks = sinkPlan{
		ways: []string{">y>", ">c_"},
		seen: map[string]string{"a": ">y>", "x": ">y>", "y": ">y>", "c_1": ">c_1>", "c_2": ">c_2>", "d": ""},
	}
	wardSinks = sinkPlan{ways: []string{">"}, seen: map[string]string{crew.WardName: ""}}
	earSinks  = sinkPlan{ways: []string{">"}}
)

// flow is a tree through which messages flow.
type flow struct {
	lane
	plan    sinkPlan
	root    *client.Handle
	created span     // when it was created
	sinks   []job.ID // nil: the job named d
	ends    bool     // it is completed when its input has ended
}

// flow starts a tree, sends messages through it for a while, and closes it.
func (r *rig) flow(ctx context.Context, kind string, p job.Planner, plan sinkPlan) {
	asked := time.Now()
	h := r.start(ctx, r.name(kind), p)
	if h == nil {
		return
	}
	f := &flow{lane: lane{name: kind + " " + string(h.ID())}, plan: plan, root: h, created: span{asked, time.Now()}, ends: true}
	r.add(f)
	f.send(ctx, r, h, r.between(4*time.Second, 12*time.Second))
	f.close(ctx, r)
}

// close ends the input of the tree.
func (f *flow) close(ctx context.Context, r *rig) {
	r.insist(ctx, "closing "+f.name, func(ctx context.Context) error {
		err := f.root.Close(ctx, "in")
		if errors.Is(err, job.ErrNotFound) && r.Mode.loses() {
			return nil // what is right is seen when it is checked
		}
		return err
	})
}

// news starts jobs that talk through a channel.
func (r *rig) news(ctx context.Context, wg *sync.WaitGroup) error {
	f := &flow{plan: earSinks, root: r.start(ctx, r.name("post"), job.Single(&crew.Post{}, ""))}
	for range 2 {
		h := r.start(ctx, r.name("ear"), job.Single(&crew.Ear{}, ""))
		if h == nil || f.root == nil {
			return errors.New("the jobs that talk through a channel could not be started")
		}
		f.sinks = append(f.sinks, h.ID())
	}
	f.name = "news " + string(f.root.ID())
	subscribers := "weir:{" + namespace + "}:ch:" + crew.NewsChannel
	for deadline := time.Now().Add(callTime); ; {
		n, err := r.rdb.SCard(ctx, subscribers).Result()
		if err == nil && n == 2 {
			break
		}
		if !pause(ctx, 10*time.Millisecond) || time.Now().After(deadline) {
			return fmt.Errorf("%d of 2 jobs have subscribed to a channel: %w", n, err)
		}
	}
	r.add(f)
	wg.Go(func() { f.send(ctx, r, f.root, time.Hour) })
	return nil
}

// adoption makes a job of another tree the child of a job that passes messages on to it.
func (r *rig) adoption(ctx context.Context) {
	leaseKeeper := r.start(ctx, r.name("keeper"), job.Single(&crew.RetentionStore{}, ""))
	ward := r.start(ctx, r.name("ward"), job.Single(&crew.Sink{}, ""))
	if leaseKeeper == nil || ward == nil {
		return
	}
	f := &flow{
		lane: lane{name: "adopted " + string(ward.ID())}, plan: wardSinks, root: leaseKeeper, sinks: []job.ID{ward.ID()},
	}
	r.add(f)
	end, cancel := r.toEnd(ctx)
	defer cancel()
	ok := r.act(end, crew.Order{What: crew.Adopt, Job: leaseKeeper.ID(), Child: ward.ID()}, func(crew.Answer) bool {
		i, err := ward.Info(end) // an adoption whose answer was lost may be done
		return err == nil && i.Parent == leaseKeeper.ID() && !i.Joining
	})
	if !ok {
		r.bad(trouble, "job %s could not be adopted", ward.ID())
		return
	}
	f.send(ctx, r, leaseKeeper, r.between(3*time.Second, 6*time.Second))
}

// deed is a tree that works by itself and must say certain numbers on a port in the end.
type deed struct {
	name    string
	root    *client.Handle
	created span   // when it was created
	from    string // the job that says them: its name, or "" for the root
	port    string
	wants   []int
	single  int // the root's run must have said just this number, if it is not 0
}

func (r *rig) deed(ctx context.Context, kind string, p job.Planner, d deed) {
	asked := time.Now()
	h := r.start(ctx, r.name(kind), p)
	if h == nil {
		return
	}
	d.name, d.root, d.created = kind+" "+string(h.ID()), h, span{asked, time.Now()}
	r.add(&d)
	// The next one comes when this is done, or will not be done soon. Sooner, and what is undone
	// would be more and more.
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for pause(limit, 200*time.Millisecond) {
		if i, err := h.Info(limit); err == nil && i.Status == statemachine.Completed {
			return
		}
	}
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

// source lets a job write numbers by itself.
func (r *rig) source(ctx context.Context) {
	const n = 600
	g := graph.New("source")
	graph.Add(g, "a", &crew.Source{N: n, Step: 2})
	graph.Add(g, "b", &crew.Relay{})
	graph.Add(g, "d", &crew.Sink{})
	graph.Wire(g, "a.out", "b.in")
	graph.Wire(g, "b.out", "d.in")
	r.deed(ctx, "source", g, deed{from: "d", port: "all", wants: upTo(n)})
}

// skew lets processes that have different versions of a type work on one job, which a client of a version has created.
func (r *rig) skew(ctx context.Context, version int) {
	const n, add = 400, 1000
	g := graph.New("skew")
	graph.Add(g, "a", &crew.Source{N: n, Step: 2})
	graph.AddWorker(g, "b", crew.Tally(version, add))
	graph.Add(g, "d", &crew.Sink{})
	graph.Wire(g, "a.out", "b.in")
	graph.Wire(g, "b.out", "d.in")
	wants := upTo(n)
	for i := range wants {
		wants[i] += add
	}
	r.deed(ctx, "skew", g, deed{from: "d", port: "all", wants: wants})
}

// ticker lets timers fire.
func (r *rig) ticker(ctx context.Context) {
	const n = 100
	r.deed(ctx, "ticker", job.Single(&crew.Ticker{N: n}, ""), deed{port: "all", wants: upTo(n)})
}

// family lets jobs spawn children, which spawn children, and adds up what they say.
func (r *rig) family(ctx context.Context) {
	p := &crew.Parent{Children: 3, Depth: 2}
	r.deed(ctx, "family", job.Single(p, ""), deed{port: "out", single: p.Total()})
}

// messages decodes what a port of a job held, which it removes.
func drain[T any](ctx context.Context, h *client.Handle, name string) ([]T, error) {
	raws, err := h.Drain(ctx, port.Output, name)
	if err != nil {
		return nil, fmt.Errorf("draining %s of %s: %w", name, h.ID(), err)
	}
	all := make([]T, len(raws))
	for i, raw := range raws {
		if err := port.Decode(raw, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
