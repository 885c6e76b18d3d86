package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// ended is what a tree tells when it has settled.
type ended struct {
	Job    job.ID              `json:"job"`
	Status statemachine.Status `json:"status"`
}

// Launcher starts a tree for each number: a graph that adds up the numbers to it.
type Launcher struct {
	Fail   bool   // fails behind the first
	Unique string // key of all trees, for an hour
	In     port.In[int]
	Ended  port.In[ended]
	Trees  port.Out[job.ID]
	Totals port.Out[ended]
}

// Run implements worker.Worker.
func (w *Launcher) Run(_ context.Context, run *worker.Run) error {
	for n, err := range w.In.All() {
		if err != nil {
			return err
		}
		options := []job.Option{job.TellEnd(run.ID(), "ended"), job.Label("n", fmt.Sprint(n))}
		if w.Unique != "" {
			options = append(options, job.Unique(job.UniqueBy{Key: w.Unique, For: time.Hour}))
		}
		tree, err := run.Start(pipeline(), options...)
		if err != nil {
			return err
		}
		for i := range n {
			if err := tree.Write("numbers", i+1); err != nil {
				return err
			}
		}
		if err := errors.Join(tree.Close("numbers"), w.Trees.Write(tree.ID())); err != nil {
			return err
		}
		if w.Fail {
			return worker.Permanent(errors.New("behind the first"))
		}
	}
	for e, err := range w.Ended.All() {
		if err = errors.Join(err, w.Totals.Write(e)); err != nil {
			return err
		}
	}
	return worker.ErrSuspend
}

func launching(c *worker.Config) { c.Workers = append(c.Workers, &Launcher{}) }

// TestStartTrees: trees that a run starts are created once, see what was written to them, and tell of their ends.
func TestStartTrees(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(launching)
		h := b.single(&Launcher{})
		const n = 30
		for i := range n {
			b.Check(h.Write(b.Ctx, "in", i+1))
		}
		b.Until("all have ended", func() bool { return len(enginetest.Outs[ended](b, h, "totals")) == n })
		for i, id := range enginetest.Outs[job.ID](b, h, "trees") {
			tree, err := b.Client.Find(b.Ctx, string(id))
			b.Check(err)
			b.Completed(tree, 0)
			if got, want := enginetest.Outs[int](b, tree, "total"), (i+1)*(i+2); !slices.Equal(got, []int{want}) {
				b.Errorf("tree %d gives %v, want %d", i, got, want)
			}
			info := b.Info(tree)
			if info.By != "job:"+string(h.ID()) || info.Parent != "" || info.Labels["n"] != fmt.Sprint(i+1) {
				b.Errorf("tree %d is by %q, below %q, with labels %v", i, info.By, info.Parent, info.Labels)
			}
		}
		roots := 0
		for _, err := range b.Client.Jobs(b.Ctx, job.Filter{}) {
			b.Check(err)
			roots++
		}
		if roots != n+1 {
			b.Errorf("there are %d trees, want %d", roots, n+1)
		}
		for _, e := range enginetest.Outs[ended](b, h, "totals") {
			if e.Status != statemachine.Completed {
				b.Errorf("tree %s is told to be %s", e.Job, e.Status)
			}
		}
	})
}

// TestStartUniqueTrees: of the trees with one unique key that runs and clients start one is created; of the others runs are told.
func TestStartUniqueTrees(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(launching)
		launchers := []*client.Handle{b.single(&Launcher{Unique: "k"}), b.single(&Launcher{Unique: "k"})}
		const n = 5
		for _, h := range launchers {
			for i := range n {
				b.Check(h.Write(b.Ctx, "in", i+1))
			}
		}
		created, duplicates, notes := 0, 0, 0
		for _, h := range launchers {
			b.Until("all are told of", func() bool { return len(enginetest.Outs[ended](b, h, "totals")) == n })
			for _, e := range enginetest.Outs[ended](b, h, "totals") {
				_, err := b.Client.Find(b.Ctx, string(e.Job))
				switch {
				case e.Status == statemachine.Completed && err == nil:
					created++
				case e.Status == "duplicate" && errors.Is(err, job.ErrNotFound):
					duplicates++
				default:
					b.Errorf("tree %s is told to be %s: %v", e.Job, e.Status, err)
				}
			}
			logs, err := h.Logs(b.Ctx, 100)
			b.Check(err)
			for _, l := range logs {
				if strings.Contains(string(l.Entry), "was not started") {
					notes++ // before the duplicate was told of
				}
			}
		}
		if created != 1 || duplicates != 2*n-1 || notes != 2*n-1 {
			b.Errorf("%d trees, %d duplicates, %d notes", created, duplicates, notes)
		}
		there, err := b.Client.Start(b.Ctx, pipeline(), job.Unique(job.UniqueBy{Key: "k", For: time.Hour}))
		b.Check(err)
		if there.Created() {
			b.Error("a client has created another one")
		}
	})
}

// TestStartFails: a run that fails, or a group that is undone, starts nothing.
func TestStartFails(t *testing.T) {
	b := onRedis(t)
	b.serve(launching)
	h := b.single(&Launcher{Fail: true})
	b.Check(h.Write(b.Ctx, "in", 3))
	if f := b.Failure(h); !strings.Contains(f.Error, "behind the first") {
		b.Errorf("failed with %s", f.Error)
	}
	b.Completed(b.single(call(t, func(_ context.Context, run *worker.Run, _ *Call) error {
		tree, err := run.Start(pipeline())
		if err != nil {
			return err
		}
		undone := run.Group(func() error {
			if _, err := run.Start(counted(2)); err != nil {
				return err
			}
			return errors.Join(tree.Write("numbers", 1), tree.Close("none"))
		})
		if !errors.Is(undone, job.ErrPort) {
			return fmt.Errorf("the group ended with %w", undone)
		}
		return tree.Close("numbers")
	})), 1)
	tree := b.only("pipeline")
	b.Completed(tree, 0)
	if got := enginetest.Outs[int](b, tree, "total"); !slices.Equal(got, []int{0}) {
		b.Errorf("the tree that was started read what was written in a group that was undone: %v", got)
	}
	if n, err := b.Client.Count(b.Ctx, job.Filter{Type: "counted"}); err != nil || n > 0 {
		b.Errorf("%d trees of a group that was undone, %v", n, err)
	}
}

// only waits for the only tree of a type.
func (b *bench) only(typ string) *client.Handle {
	b.Helper()
	var ids []job.ID
	b.Until("there is a "+typ, func() bool {
		ids = nil
		for info, err := range b.Client.Jobs(b.Ctx, job.Filter{Type: typ}) {
			b.Check(err)
			ids = append(ids, info.ID)
		}
		return len(ids) > 0
	})
	if len(ids) > 1 {
		b.Fatalf("there are %d of %s", len(ids), typ)
	}
	return b.Client.At(ids[0])
}

// TestStartRefuses: what a run cannot start is refused where it asks.
func TestStartRefuses(t *testing.T) {
	b := onRedis(t)
	b.serve()
	wide := graph.New("wide")
	for i := range job.MaxLaunchJobs {
		graph.Add(wide, fmt.Sprintf("n%d", i), &Count{To: 1})
	}
	id := job.IDAt(time.UnixMilli(0), "twice")
	for name, c := range map[string]struct {
		plan    job.Planner
		options []job.Option
		kind    error
	}{
		"an alias":      {counted(1), []job.Option{job.Alias("a")}, job.ErrName},
		"a key":         {counted(1), []job.Option{job.Key("k")}, job.ErrName},
		"many jobs":     {wide, nil, job.ErrTooLarge},
		"many bytes":    {job.Single(&Call{Key: strings.Repeat("x", job.MaxLaunch)}, ""), nil, job.ErrTooLarge},
		"the same ID":   {counted(1), []job.Option{job.WithID(id)}, job.ErrExists},
		"a child's ID":  {counted(1), []job.Option{job.WithID(id + ".1")}, job.ErrID},
		"no ID to tell": {counted(1), []job.Option{job.TellEnd("me", "in")}, job.ErrID},
		"control":       {counted(1), []job.Option{job.By("a\x1fb")}, job.ErrName},
	} {
		t.Run(name, func(t *testing.T) {
			var refused error
			b.Completed(b.single(call(t, func(_ context.Context, run *worker.Run, _ *Call) error {
				if _, err := run.Start(counted(0), job.WithID(id)); err != nil {
					return err
				}
				_, refused = run.Start(c.plan, c.options...)
				return nil
			})), 1)
			if !errors.Is(refused, c.kind) {
				t.Errorf("refused with %v", refused)
			}
		})
	}
	if tree := b.only("counted"); tree.ID() != id {
		b.Errorf("the tree has ID %s, not %s: started again and again, there is one", tree.ID(), id)
	}
}

// TestStartByName: a run starts a job whose type its program does not link, as a type of its queue.
func TestStartByName(t *testing.T) {
	b := onRedis(t)
	b.serve()
	b.Completed(b.single(call(t, func(_ context.Context, run *worker.Run, _ *Call) error {
		if _, err := run.PlanNew(job.New{Type: "Nobody"}); !errors.Is(err, job.ErrUnknownType) {
			return fmt.Errorf("a type that nobody has: %w", err)
		}
		if _, err := run.PlanNew(job.New{Type: "Count", Alias: "a"}); !errors.Is(err, job.ErrName) {
			return fmt.Errorf("with an alias: %w", err)
		}
		plan, err := run.PlanNew(job.New{Type: "Count", Args: map[string]any{"To": 3}})
		if err == nil {
			_, err = run.Start(plan)
		}
		return err
	})), 1)
	tree := b.only("Count")
	b.Completed(tree, 1)
	b.same(tree, 1, 2, 3)
}

// TestStartWithID: a client starts a tree under an ID once.
func TestStartWithID(t *testing.T) {
	b := onRedis(t)
	id := job.IDAt(time.UnixMilli(1_700_000_000_123), "tick 1")
	if again := job.IDAt(time.UnixMilli(1_700_000_000_123), "tick 1"); again != id {
		t.Errorf("the same is %s and %s", id, again)
	}
	if parsed, err := job.ParseID(string(id)); err != nil || !parsed.Time().Equal(time.UnixMilli(1_700_000_000_123)) {
		t.Errorf("ID %s of %s: %v", id, parsed.Time(), err)
	}
	for i := range 2 {
		h := b.Start(counted(1), job.WithID(id))
		if h.ID() != id || h.Created() != (i == 0) {
			t.Errorf("start %d: %s, created %v", i, h.ID(), h.Created())
		}
	}
	if _, err := b.Client.Start(b.Ctx, counted(1), job.WithID(id), job.Alias("a")); !errors.Is(err, job.ErrName) {
		t.Errorf("with an alias: %v", err)
	}
}
