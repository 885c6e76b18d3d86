package crew

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Workers returns one of each type that the crew runs.
func Workers() []worker.Worker {
	return []worker.Worker{&Relay{}, &Sink{}, &Source{}, &Ticker{}, &Parent{}, &Kid{}, &RetentionStore{}, &Post{}, &Ear{}, &Register{}, &Once{}, &Pass{}, &Drop{}, &Loop{}, &Moody{}, &Broken{}, &Fussy{}, &Unwrap{}, &TallyV2{}, &Scheduled{}, &Narrow{}, &Serial{}, &SerialEar{}, &Handed{}}
}

// mixed returns those that a worker runs which lacks one in three of the types, the first or another one; below zero, all.
// Tally it has in a version.
func mixed(lacks, version int) []worker.Worker {
	var some []worker.Worker
	for i, w := range Workers() {
		if lacks < 0 || i%3 != lacks {
			some = append(some, w)
		}
	}
	return of(version, some)
}

// tuned jobs bear any number of faults. They do nothing outside Weir but tell that they run.
type tuned struct{}

// WorkerOptions implements worker.Configured.
func (tuned) WorkerOptions() worker.Options {
	return worker.Options{Tries: 1000, Backoff: worker.ExponentialBackoff(20*time.Millisecond, time.Hour), Pure: true}
}

// acting jobs are tuned jobs that run on committed messages only, as workers with side effects do. Several may begin at once, and
// not all slots are for one type.
type acting struct{}

// WorkerOptions implements worker.Configured.
func (acting) WorkerOptions() worker.Options {
	o := tuned{}.WorkerOptions()
	o.Pure, o.Together, o.MaxRunningHere = false, 8, concurrency-1
	return o
}

// single jobs are acting jobs each of whose runs has a commit of its own.
type single struct{}

// WorkerOptions implements worker.Configured.
func (single) WorkerOptions() worker.Options {
	o := acting{}.WorkerOptions()
	o.CommitEachRun = true
	return o
}

// Message is what flows: its number, the jobs that it came through, and how often it was sent round a loop.
type Message struct {
	N    int    `json:"n"`
	Path string `json:"path,omitempty"`
	Laps int    `json:"laps,omitempty"`
}

// Keys of the state of jobs that pass messages on: how many, and a sum of their numbers that
// depends on their order.
const (
	CountKey = "count"
	SumKey   = "sum"
)

// Sum adds a number to the sum of those before it.
func Sum(sum uint32, n int) uint32 { return sum*16777619 ^ uint32(n) } //nolint:gosec // numbers are small

// pass gives each message to write and counts it in the state. Of four runs three read one message:
// they can go into one commit.
func pass(run *worker.Run, in port.In[Message], write func(Message) error) error {
	defer running(run)()
	var count int
	var sum uint32
	_, err := run.State().Get(CountKey, &count)
	_, err2 := run.State().Get(SumKey, &sum)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	first, all := true, rand.IntN(4) == 0
	for m, err := range in.All() {
		if err != nil {
			return err
		}
		count, sum = count+1, Sum(sum, m.N)
		m.Path += ">" + run.Info().Name
		if err := write(m); err != nil {
			return err
		}
		if first {
			think()
		}
		if first = false; !all {
			break
		}
	}
	return errors.Join(run.State().Set(CountKey, count), run.State().Set(SumKey, sum))
}

// Relay passes messages on.
type Relay struct {
	tuned
	In  port.In[Message]
	Out port.Out[Message]
}

// Run implements worker.Worker.
func (w *Relay) Run(_ context.Context, run *worker.Run) error { return pass(run, w.In, w.Out.Write) }

// Sink keeps messages for the harness.
type Sink struct {
	tuned
	In  port.In[Message]
	All port.Out[Message]
}

// Run implements worker.Worker.
func (w *Sink) Run(_ context.Context, run *worker.Run) error {
	return pass(run, w.In, w.All.Write)
}

// Post passes messages on to a channel.
type Post struct {
	single
	In  port.In[Message]
	Out port.Out[Message] `port:"out,channel=/chaos/news"`
}

// NewsChannel is where Post publishes and Ear listens.
const NewsChannel = "/chaos/news"

// Run implements worker.Worker.
func (w *Post) Run(_ context.Context, run *worker.Run) error { return pass(run, w.In, w.Out.Write) }

// Ear keeps what comes from a channel.
type Ear struct {
	acting
	In  port.In[Message] `port:"in,channel=/chaos/news"`
	All port.Out[Message]
}

// Run implements worker.Worker.
func (w *Ear) Run(_ context.Context, run *worker.Run) error { return pass(run, w.In, w.All.Write) }

// RetentionStore passes messages on to the child that it has adopted, which lies in another shard.
type RetentionStore struct {
	acting
	In port.In[Message]
}

// Run implements worker.Worker.
func (w *RetentionStore) Run(_ context.Context, run *worker.Run) error {
	ward, err := run.Child(WardName)
	if err != nil && !errors.Is(err, job.ErrNotFound) {
		return err
	}
	return pass(run, w.In, func(m Message) error {
		if ward == nil {
			return fmt.Errorf("there is no child to pass messages on to: %w", job.ErrNotFound)
		}
		return ward.Write("in", m)
	})
}

// sourceTime is how long a run of a Source takes at least.
const sourceTime = 10 * time.Millisecond

// Source writes the numbers up to N, some a run. It takes its time, so that it is still running
// when a run of it comes back that was given up.
type Source struct {
	tuned
	N, Step int
	Out     port.Out[Message]
}

// Run implements worker.Worker.
func (w *Source) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	var next int
	if _, err := run.State().Get(CountKey, &next); err != nil {
		return err
	}
	for range w.Step {
		if next == w.N {
			break
		}
		next++
		if err := w.Out.Write(Message{N: next, Path: run.Info().Name}); err != nil {
			return err
		}
	}
	think()
	time.Sleep(sourceTime)
	freeze(run)
	if err := run.State().Set(CountKey, next); err != nil {
		return err
	}
	if next < w.N {
		return worker.ErrAgain
	}
	return nil
}

// Ticker writes the numbers up to N, one whenever its timer fires.
type Ticker struct {
	tuned
	N   int
	All port.Out[Message]
}

// tick is the time between two timers.
const tick = 40 * time.Millisecond

// Run implements worker.Worker.
func (w *Ticker) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	var n int
	if _, err := run.State().Get(CountKey, &n); err != nil {
		return err
	}
	if n == w.N {
		return nil
	}
	n++
	think()
	if err := errors.Join(w.All.Write(Message{N: n}), run.State().Set(CountKey, n)); err != nil {
		return err
	}
	if n == w.N {
		return nil
	}
	return errors.Join(run.WakeAfter(tick), worker.ErrSuspend)
}

// Parent spawns children, of which each below the first Depth is a parent itself, and adds up
// what they say.
type Parent struct {
	tuned
	Children, Depth int
	Out             port.Out[int]
}

// Run implements worker.Worker.
func (w *Parent) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	var heard, sum int
	created, err := run.State().Get(CountKey, &heard)
	if err != nil {
		return err
	}
	if !created {
		return w.bear(run)
	}
	if _, err := run.State().Get(SumKey, &sum); err != nil || heard == w.Children {
		return err
	}
	for i := range w.Children {
		c, err := run.Child(childName(i))
		if err != nil {
			return err
		}
		var v int
		for {
			ok, err := c.Read("out", &v)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			heard, sum = heard+1, sum+v
		}
	}
	think()
	if err := errors.Join(run.State().Set(CountKey, heard), run.State().Set(SumKey, sum)); err != nil {
		return err
	}
	if heard < w.Children {
		return worker.ErrSuspend
	}
	return w.Out.Write(sum)
}

func childName(i int) string { return fmt.Sprintf("child_%d", i) }

// bear spawns the children.
func (w *Parent) bear(run *worker.Run) error {
	for i := range w.Children {
		p := job.Single(&Kid{Value: i + 1}, "")
		if w.Depth > 1 {
			p = job.Single(&Parent{Children: w.Children, Depth: w.Depth - 1}, "")
		}
		if _, err := run.Spawn(childName(i), p); err != nil {
			return err
		}
	}
	think()
	return errors.Join(run.State().Set(CountKey, 0), worker.ErrSuspend)
}

// Total is what a parent's sum will be.
func (w *Parent) Total() int {
	if w.Depth > 1 {
		below := Parent{Children: w.Children, Depth: w.Depth - 1}
		return w.Children * below.Total()
	}
	return w.Children * (w.Children + 1) / 2
}

// Kid says its value.
type Kid struct {
	tuned
	Value int
	Out   port.Out[int]
}

// Run implements worker.Worker.
func (w *Kid) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	think()
	return w.Out.Write(w.Value)
}

// Put is an order to a Register: the value of a key of its state, and the key under which it
// says that this was done.
type Put struct {
	Key   string `json:"key"`
	Value int    `json:"value"`
	Done  string `json:"done"`
}

// Register puts values into its state.
type Register struct {
	tuned
	In port.In[Put]
}

// Run implements worker.Worker.
func (w *Register) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	think()
	for p, err := range w.In.All() {
		if err != nil {
			return err
		}
		if err := errors.Join(run.State().Set(p.Key, p.Value), run.State().Set(p.Done, true)); err != nil {
			return err
		}
	}
	return nil
}

// Once runs once.
type Once struct{ tuned }

// Run implements worker.Worker.
func (w *Once) Run(_ context.Context, run *worker.Run) error {
	defer running(run)()
	return run.State().Set(CountKey, 1)
}

// Large is a graph of many jobs.
func Large(jobs int) *graph.Graph {
	g := graph.New("large")
	for i := range jobs {
		graph.Add(g, fmt.Sprintf("job_%d", i), &Once{})
	}
	return g
}
