package weir

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

// Ticking is what a victim is called that serves triggers, and what they launch.
const Ticking = System + " ticking"

// ticked is what triggers launch: it keeps what the firing says.
type ticked struct {
	tuned
	In  port.In[trigger.Tick]
	Out port.Out[trigger.Tick]
}

// Run implements worker.Worker.
func (s *ticked) Run(context.Context, *worker.Run) error {
	for tick, err := range s.In.All() {
		if err != nil {
			return err
		}
		if err := s.Out.Write(tick); err != nil {
			return err
		}
	}
	return nil
}

// Ticker serves triggers, until ctx ends.
func Ticker(ctx context.Context, l *lab.Lab, _ io.Writer) error {
	_, err := with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		return nil, r.serve(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}, trigger.New(), &ticked{})
	})
	return err
}

// ticks has triggers fire: spread over a time, and then all at one moment. Of the three processes that serve them one is
// killed every few seconds, at random.
func ticks(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		spread, err := r.ticks(ctx, l.Size.Spread)
		if err != nil {
			return nil, err
		}
		burst, err := r.ticks(ctx, 0)
		return append(spread.Figures("ticks"), burst.Figures("ticks.burst")...), err
	})
}

// launched are the trees that were launched and have ended.
var launched = job.Filter{Type: "ticked", Status: []statemachine.Status{statemachine.Completed}}

// tickers are how many processes serve triggers, and killEvery is how long there is between two kills of one, on average.
const (
	tickers   = 3
	killEvery = 3 * time.Second
)

// ticks returns how long after each trigger was due the run of what it launched began.
func (r *rig) ticks(ctx context.Context, over time.Duration) (lab.Times, error) {
	n := r.lab.Size.Triggers
	victims := make([]*lab.Victim, tickers)
	defer func() {
		for _, v := range victims {
			if v != nil {
				v.Kill()
			}
		}
	}()
	for i := range victims {
		var err error
		if victims[i], err = r.lab.StartVictim(Ticking); err != nil {
			return nil, err
		}
	}
	if err := lab.Until(ctx, func(ctx context.Context) error {
		_, err := r.store.Type(ctx, job.DefaultQueue, "ticked")
		return err
	}); err != nil {
		return nil, err
	}
	before, err := r.client.Count(ctx, launched)
	if err != nil {
		return nil, err
	}
	first := time.Now().Add(4*time.Second + time.Duration(n)*4*time.Millisecond).Truncate(time.Second)
	due := make(map[job.ID]time.Time, n)
	if err := r.addTriggers(ctx, n, func(i int) time.Time {
		return first.Add(over * time.Duration(i) / time.Duration(n)).Truncate(time.Second)
	}, due); err != nil {
		return nil, err
	}
	if late := time.Since(first); late > 0 {
		return nil, fmt.Errorf("%d triggers were added %s after the first was due", n, late)
	}
	if err := lab.Sleep(ctx, time.Until(first)); err != nil {
		return nil, err
	}
	for end := first.Add(over + killEvery); time.Now().Before(end); {
		if err := lab.Sleep(ctx, killEvery/2+rand.N(killEvery)); err != nil { // never in step with what is due
			return nil, err
		}
		i := rand.IntN(tickers)
		victims[i].Kill()
		var err error
		if victims[i], err = r.lab.StartVictim(Ticking); err != nil {
			return nil, err
		}
	}
	return r.lateness(ctx, before, due)
}

// addTriggers adds n triggers, each of which fires once, and notes when they are due.
func (r *rig) addTriggers(ctx context.Context, n int, at func(i int) time.Time, due map[job.ID]time.Time) error {
	handles := make([]*client.Handle, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.lab.Concurrency)
	for i := range n {
		group.Go(func() (err error) {
			d := trigger.Definition{Schedule: "at:" + at(i).UTC().Format(time.RFC3339), Launch: &trigger.Launch{Type: "ticked"}}
			handles[i], err = trigger.Add(ctx, r.client, d)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, h := range handles {
		due[h.ID()] = at(i)
	}
	return nil
}

// lateness waits until each trigger has launched a tree, and looks at all of them: each has launched one, which ran.
func (r *rig) lateness(ctx context.Context, before int, due map[job.ID]time.Time) (times lab.Times, err error) {
	if err := lab.Until(ctx, func(ctx context.Context) error {
		n, err := r.client.Count(ctx, launched)
		if err == nil && n < before+len(due) {
			err = fmt.Errorf("%d of %d trees have ended that triggers are to launch", n-before, len(due))
		}
		return err
	}); err != nil {
		return nil, err
	}
	seen := make(map[job.ID]bool, len(due))
	for info, err := range r.client.Jobs(ctx, job.Filter{Type: "ticked"}) {
		if err != nil {
			return nil, err
		}
		of := job.ID(info.Labels[trigger.LabelTrigger])
		at := due[of]
		if at.IsZero() { // of another round
			continue
		}
		if seen[of] || info.Steps != 1 {
			return nil, wrong(info, "is one of several of trigger %s, or committed %d runs instead of one", of, info.Steps)
		}
		seen[of], times = true, append(times, info.Ran.Sub(at))
		said, err := r.client.At(info.ID).Peek(ctx, "out", 2)
		var tick trigger.Tick
		if err != nil || len(said) != 1 || json.Unmarshal(said[0], &tick) != nil || !tick.At.Equal(at) {
			return nil, wrong(info, "says %s of a trigger that was due %s (%v)", said, at, err)
		}
	}
	if len(times) != len(due) {
		return nil, fmt.Errorf("%d triggers of %d have launched a tree", len(times), len(due))
	}
	return times, nil
}
