package worker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// held starts a job that holds in process "a", and waits until it does.
func (b *bench) held(a *process, w *Held) *client.Handle {
	b.Helper()
	h := b.Start(planned{w, func(*job.Node) {}})
	b.Check(h.Write(b.Ctx, "in", 1, 2, 3))
	a.says("holding")
	return h
}

// ranBy fails the test unless the named process alone ran the job of held.
func (b *bench) ranBy(h *client.Handle, name string) {
	b.Helper()
	b.Completed(h, 2) // its child wakes it once more
	b.same(h, 1, 2, 3)
	if got := enginetest.Outs[string](b, h, "who"); !slices.Equal(got, []string{name}) {
		b.Errorf("written by %q, want %q", got, name)
	}
	if got := b.State(h); !maps.Equal(got, map[string]string{"who": `"` + name + `"`}) {
		b.Errorf("state = %v, want %q", got, name)
	}
	if got := b.Tree(h); !slices.Equal(got, []string{"child_of_" + name}) {
		b.Errorf("children = %q", got)
	}
	logs, err := h.Logs(b.Ctx, 10)
	b.Check(err)
	var lines []string
	for _, l := range logs {
		lines = append(lines, string(l.Entry))
	}
	if lost := `{"lost":"a run whose process died, or was cut off"}`; !slices.Equal(lines, []string{lost, `"` + name + `"`}) {
		b.Errorf("log = %q", lines)
	}
	if n := b.Waiting(h, "in"); n != 0 {
		b.Errorf("%d messages wait", n)
	}
}

// A process dies in the middle of a run, as leader of the sweeping.
func TestKilledProcess(t *testing.T) {
	b := onRedis(t)
	a := b.process("a")
	h := b.held(a, &Held{At: "a"})
	b.process("b")
	killed := time.Now()
	a.kill()
	b.ranBy(h, "b")
	if took := time.Since(killed); took > 15*time.Second {
		b.Errorf("recovery took %s", took)
	}
}

// A process that was stopped beyond its lease goes on when another one has run its job:
// what it did is nowhere to be seen.
func TestZombie(t *testing.T) {
	for name, w := range map[string]*Held{
		"commits after the other":  {At: "a"},
		"commits before the other": {At: "ab"},
		"heeds its context":        {At: "a", Heed: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := onRedis(t)
			a := b.process("a")
			h := b.held(a, w)
			a.pause()
			other := b.process("b")
			if w.At == "ab" {
				other.says("holding")
			} else {
				b.ranBy(h, "b")
			}
			before := b.Info(h)
			a.tell("go")
			a.resume()
			if w.Heed {
				a.says("cause: " + job.ErrFenced.Error())
			}
			a.says("run was not committed", "run lost its job")
			a.tell("stop")
			a.says("stopped")
			if after, err := h.Info(b.Ctx); err != nil || after.Version != before.Version {
				b.Errorf("version %d became %d, %v", before.Version, after.Version, err)
			}
			other.tell("go")
			b.ranBy(h, "b")
		})
	}
}

// story is work with an answer that is known.
type story struct {
	bench          *bench
	fib, sum, line *client.Handle
}

// hops is how many messages go through the line of a story.
const hops = 300

// tell starts the story: a tree of jobs that compute fib(10), a graph of three stages
// through which 300 numbers go, and a line of three jobs that read one message a run, which
// are fused.
func (b *bench) tell(pause time.Duration) *story {
	b.Helper()
	g := graph.New("flow")
	count := graph.Add(g, "count", &Count{To: 300})
	double := graph.Add(g, "double", &Double{Most: 7, Pause: pause}, graph.Instances(2))
	sum := graph.Add(g, "sum", &Sum{})
	graph.Connect(count.Out, double.In)
	graph.Connect(double.Out, sum.In)
	graph.Export(g, "total", sum.Total)
	graph.Export(g, "items", sum.Items)
	return &story{b, b.single(&Fib{N: 10, Pause: pause}), b.Start(g), b.line(hops)}
}

// over tells whether the work is done. An error means that Redis is away.
func (s *story) over() bool {
	for _, h := range []*client.Handle{s.fib, s.sum, s.line} {
		info, err := h.Info(s.bench.Ctx)
		if err != nil || info.Status != statemachine.Completed {
			return false
		}
	}
	return true
}

// begun tells whether that many runs of the graph have been committed.
func (s *story) begun(runs int64) bool {
	infos, err := s.sum.Tree(s.bench.Ctx)
	if err != nil {
		return false
	}
	for _, i := range infos {
		runs -= i.Steps
	}
	return runs <= 0
}

// String tells about the jobs that are not completed.
func (s *story) String() string {
	var text strings.Builder
	for _, h := range []*client.Handle{s.fib, s.sum, s.line} {
		infos, err := h.Tree(s.bench.Ctx)
		if err != nil {
			return err.Error()
		}
		for _, i := range infos {
			if i.Status != statemachine.Completed {
				raw, _ := json.Marshal(i)
				fmt.Fprintf(&text, "\n%s", raw)
			}
		}
	}
	return text.String()
}

// check waits for the end of the story and compares the answers.
func (s *story) check() {
	b := s.bench
	b.Helper()
	for deadline := time.Now().Add(enginetest.Patience); !s.over(); time.Sleep(enginetest.PollInterval) {
		if time.Now().After(deadline) {
			b.Fatalf("the story is not over after %s: %s", enginetest.Patience, s)
		}
	}
	b.same(s.fib, 55)
	b.settled(s.fib, 177)
	total, items := enginetest.Outs[int](b, s.sum, "total"), enginetest.Outs[int](b, s.sum, "items")
	if !slices.Equal(total, []int{300 * 301}) || !slices.Equal(items, []int{300}) {
		b.Errorf("total %v of %v items, want %d of 300", total, items, 300*301)
	}
	b.settled(s.sum, 5)
	b.hopped(s.line, hops)
	for _, h := range []*client.Handle{s.fib, s.sum, s.line} {
		infos, err := h.Tree(b.Ctx)
		b.Check(err)
		for _, i := range infos {
			if fs, err := b.Store.Failures(b.Ctx, i.ID); err != nil || len(fs) > 0 {
				b.Errorf("job %s (%s): failures %v, %v", i.ID, i.Type, fs, err)
			}
		}
	}
}

// Y3: one of two processes is killed every 200 to 500 ms.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, redistest.SharedRedis(t), 1)
	processes := []*process{b.process("a"), b.process("b")}
	kills := 0
	for kills < 3 { // a process that is slow to start leaves the other the time to end the story
		s := b.tell(20 * time.Millisecond)
		for !s.over() && kills < 20 {
			time.Sleep(time.Duration(200+rand.IntN(300)) * time.Millisecond)
			i := rand.IntN(2)
			processes[i].kill()
			processes[i] = b.process(fmt.Sprint(kills))
			kills++
		}
		s.check()
	}
	b.Logf("%d processes were killed", kills)
}

// Redis itself is killed, with its data on disk.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	b := newBenchOf(t, r.URL(), 1)
	b.serve()
	s := b.tell(5 * time.Millisecond)
	for _, runs := range []int64{5, 15} {
		b.Until("some runs are committed", func() bool { return s.begun(runs) })
		r.Kill()
		time.Sleep(time.Second) // longer than the driver is patient
		r.Restart()
	}
	if s.over() {
		b.Error("the story was over too early to mean anything")
	}
	s.check()
}

// Replies to commits, and to whatever else, are lost.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	url := redistest.SharedRedis(t)
	proxy := redistest.StartProxy(t, strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "/0"))
	b := newBenchOf(t, url, 1)
	s := b.tell(2 * time.Millisecond)
	lossy := *b
	lossy.Store = b.Open(proxy.URL())
	lossy.serve()
	for proxy.Dropped() < 60 && !s.over() {
		proxy.DropReplies(1, []string{"complete", "suspend", "requeue", "evalsha"}[rand.IntN(4)])
		time.Sleep(time.Duration(5+rand.IntN(20)) * time.Millisecond)
	}
	proxy.DropReplies(0, "")
	b.Logf("%d replies were lost", proxy.Dropped())
	if proxy.Dropped() < 10 {
		b.Error("too few replies were lost to mean anything")
	}
	s.check()
}

// Somebody empties the Redis while jobs run: they are gone, nothing panics, nothing is guessed, and
// what is started afterwards runs.
func TestEmptiedRedis(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	b := newBench(t, r.URL())
	b.serve()
	s := b.tell(5 * time.Millisecond)
	b.Until("some runs are committed", func() bool { return s.begun(5) })
	b.Check(r.Client(t).FlushAll(b.Ctx).Err())
	for _, h := range []*client.Handle{s.fib, s.sum, s.line} {
		if _, err := h.Info(b.Ctx); !errors.Is(err, job.ErrNotFound) {
			b.Errorf("a job that is gone: %v", err)
		}
	}
	again := b.tell(5 * time.Millisecond)
	again.check()
}
