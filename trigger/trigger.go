package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/worker"
)

// Ports of a trigger.
const (
	portIn      = "in"
	portControl = "control"
	portEnded   = "ended"
)

// maxFirings is how many firings one run has at most.
const maxFirings = 100

// Trigger is the worker type: give New to the Workers of an engine, and a value to a graph, or to Add.
//
// A firing writes what it says to Out: the message, of a webhook or event trigger, else a [Tick]. Nothing is written if the
// trigger launches trees and Out is wired to nobody. A trigger whose schedule has no further time completes, as does one that is a
// node of a graph at the end of in.
type Trigger struct {
	Definition
	// In fires a webhook trigger, and gets what is published to Channel.
	In port.In[json.RawMessage] `port:"in"`
	// Control is where what people ask for comes.
	Control port.In[Control] `port:"control"`
	// Ended is where launched trees tell of their ends.
	Ended port.In[ended]            `port:"ended"`
	Out   port.Out[json.RawMessage] `port:"out"`
}

// New returns the worker type for an engine.
func New() worker.Worker { return &Trigger{} }

// Tick is what a firing of a schedule says.
type Tick struct {
	N      int64     `json:"n"`                // firings of the trigger, with this one
	At     time.Time `json:"at"`               // when it was due
	Missed int       `json:"missed,omitempty"` // ticks that were passed over before it
}

// ended is what a launched tree tells.
type ended struct {
	Job    job.ID `json:"job"`
	Status string `json:"status"`
}

// JobType implements job.TypeNamer.
func (*Trigger) JobType() string { return Type }

// Describe implements component.Component.
func (*Trigger) Describe() string {
	return "fires at the times of a schedule, for messages or when asked, and launches trees"
}

// Validate implements component.Component.
func (t *Trigger) Validate() error { return t.Definition.Validate(time.Now()) }

// WorkerOptions implements worker.Configured: its runs have no side effects outside Weir.
func (*Trigger) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Ports implements job.PortDeclarer: the In port of an event trigger subscribes.
func (t *Trigger) Ports() []port.Spec {
	if t.Channel == "" {
		return nil
	}
	return []port.Spec{t.inPort()}
}

func (d *Definition) inPort() port.Spec {
	p := port.Spec{Name: portIn, Dir: port.Input, Type: "json.RawMessage"}
	if d.Channel != "" {
		p.Channels = []string{d.Channel}
	}
	return p
}

var _ component.Component = (*Trigger)(nil)

// firing is one run of a trigger.
type firing struct {
	*Trigger
	ctx    context.Context //nolint:containedctx // the run's own
	run    *worker.Run
	d      Definition // as it was changed
	m      memory
	h      held
	before [2]string // how both are stored
	clock  clockwork.Clock
	ticks  clockwork.State
	sched  schedule.Schedule
	fired  int              // in this run
	drops  map[string]int64 // of this run, for the log
	again  bool             // there is more to do at once
	plan   *job.Plan        // to launch
}

// Run implements worker.Worker.
func (t *Trigger) Run(ctx context.Context, run *worker.Run) error {
	f := &firing{Trigger: t, ctx: ctx, run: run, drops: map[string]int64{}}
	steps := []func() error{f.load, f.controls, f.listen, f.ends, f.queued, f.messages, f.tick, f.joined, f.save}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return f.next()
}

// controls does what people asked for.
func (f *firing) controls() error {
	for c, err := range f.Control.All() {
		if errors.Is(err, port.ErrEncoding) {
			err = f.note("refused", err.Error())
		} else if err == nil {
			err = f.control(c)
		}
		if err != nil {
			return err
		}
	}
	return f.follow()
}

// follow reads the schedule, which may be another one by now.
func (f *firing) follow() error {
	if f.d.Kind() != Scheduled {
		return nil
	}
	f.clock = f.d.clock()
	var fresh bool
	var err error
	f.ticks, f.sched, fresh, err = f.clock.Load(f.run)
	if err == nil && fresh {
		err = f.run.State().Set(clockwork.StateKey, f.ticks)
	}
	return err
}

// listen subscribes to another channel, if that changed.
func (f *firing) listen() error {
	p, _ := f.info(port.Input, portIn)
	channel := ""
	if len(p.Channels) > 0 {
		channel = p.Channels[0]
	}
	if channel == f.d.Channel || p.Wired || p.Fed {
		return nil
	}
	specs := []port.Spec{
		f.d.inPort(),
		{Name: portControl, Dir: port.Input},
		{Name: portEnded, Dir: port.Input},
		{Name: "out", Dir: port.Output},
	}
	return f.run.SetPorts(specs)
}

func (f *firing) info(dir port.Dir, name string) (job.PortInfo, bool) {
	info := f.run.Info()
	return info.Port(dir, name)
}

// ends notes which launched trees have ended.
func (f *firing) ends() error {
	for e, err := range f.Ended.All() {
		if err != nil && !errors.Is(err, port.ErrEncoding) { // somebody else wrote what is not one
			return err
		}
		f.m.ended(e)
		if err == nil && e.Status == reasonDuplicate && f.d.Launch != nil && f.d.Launch.Unique != nil {
			f.m.Launches--
			if err := f.drop(reasonDuplicate, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// messages fires for those that have come.
func (f *firing) messages() error {
	var match func(json.RawMessage) (bool, error)
	if f.d.Filter != "" {
		var err error
		if match, err = component.Condition(f.ctx, f.run, f.d.Filter); err != nil {
			return err
		}
	}
	for {
		raw, ok, err := f.In.Peek()
		if !ok || err != nil {
			return err
		}
		if taken, err := f.message(raw, match); !taken || err != nil {
			return err
		}
		if _, _, err := f.In.Read(); err != nil {
			return err
		}
	}
}

// message deals with one message; false: it has to wait.
func (f *firing) message(raw json.RawMessage, match func(json.RawMessage) (bool, error)) (taken bool, err error) {
	if f.m.Paused {
		return true, f.drop(reasonPaused, 1)
	}
	if match != nil {
		ok, err := match(raw)
		switch {
		case err != nil && f.ctx.Err() != nil:
			return false, err
		case err != nil:
			return true, errors.Join(f.drop(reasonFilter, 1), f.note("filter", err.Error()))
		case !ok:
			return true, f.drop(reasonFilter, 1)
		}
	}
	return f.come(event{At: f.run.Now().UnixMilli(), Payload: raw})
}

// tick fires for the ticks that are due.
func (f *firing) tick() error {
	for f.d.Kind() == Scheduled && !f.m.Paused {
		before := f.ticks
		t, ok := f.clock.Take(f.run.Now(), &f.ticks, f.sched)
		if t.Missed > 0 {
			if err := f.drop(reasonMissed, int64(t.Missed)); err != nil {
				return err
			}
		}
		if !ok {
			return f.ticked(before)
		}
		taken, err := f.come(event{At: t.At.UnixMilli(), Missed: t.Missed})
		if err != nil {
			return err
		}
		if !taken {
			f.undrop(reasonMissed, int64(t.Missed))
			f.ticks = before
			return nil
		}
		if err := f.ticked(before); err != nil {
			return err
		}
	}
	return nil
}

// ticked stores how far the clock is.
func (f *firing) ticked(before clockwork.State) error {
	if f.ticks == before {
		return nil
	}
	return f.run.State().Set(clockwork.StateKey, f.ticks)
}

// next says when the next run is, and whether there is one.
func (f *firing) next() error {
	if f.again {
		return worker.ErrAgain
	}
	now := f.run.Now().UnixMilli()
	var at int64
	wake := func(ms int64) {
		if ms > now && (at == 0 || ms < at) {
			at = ms
		}
	}
	over := f.clock.Over(&f.ticks)
	if f.d.Kind() == Scheduled && !over && !f.m.Paused {
		wake(f.ticks.Next)
	}
	if f.h.N > 0 {
		wake(f.flushAt())
	}
	if at > 0 {
		if err := clockwork.WakeAt(f.run, time.UnixMilli(at)); err != nil {
			return err
		}
	}
	idle := f.h.N == 0 && len(f.h.Queue) == 0
	if idle && (f.d.Kind() == Scheduled && over || f.d.Kind() != Scheduled && f.In.Done()) {
		return nil
	}
	return worker.ErrSuspend
}
