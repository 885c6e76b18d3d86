package trigger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/statemachine"
)

// Add makes a trigger: a durable job that fires while an engine with New runs. A definition that is wrong, or one whose tree nobody
// could create, is refused. Options give it an alias, labels, a queue. With an alias that another trigger has the error wraps
// job.ErrExists: Declare changes that one.
func Add(ctx context.Context, c *client.Client, d Definition, opts ...job.Option) (*client.Handle, error) {
	if err := d.check(ctx, c); err != nil {
		return nil, fmt.Errorf("adding a trigger: %w", err)
	}
	h, err := c.Start(ctx, job.Single(&Trigger{Definition: d}, ""), append([]job.Option{job.EnginesLater()}, opts...)...)
	if errors.Is(err, job.ErrExists) {
		err = fmt.Errorf("%w: another trigger, or a job that is none, has this alias: change or delete that one, or choose another alias", job.ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("adding a trigger: %w", err)
	}
	return h, nil
}

// check returns an error if a trigger cannot be made of the definition now.
func (d *Definition) check(ctx context.Context, c *client.Client) error {
	err := d.Validate(time.Now())
	if err == nil {
		err = d.fits(ctx, c)
	}
	if err == nil && d.Launch == nil && d.Kind() != Webhook {
		err = fmt.Errorf("%w of %s: launch is missing: what it is to start when it fires", job.ErrConfig, Type)
	}
	return err
}

// fits returns an error if the tree to launch could not be created now.
func (d *Definition) fits(ctx context.Context, c *client.Client) error {
	l := d.Launch
	if l == nil {
		return nil
	}
	plan, err := l.plan(func(n job.New) (*job.Plan, error) { return c.PlanNew(ctx, n) })
	if err == nil {
		err = store.CheckLaunch(plan)
	}
	if err == nil {
		_, err = l.into(&plan.Nodes[0])
	}
	if err == nil {
		err = accepted(ctx, c, plan, l.Queue)
	}
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	return nil
}

// plan is the tree to launch. planNew plans one of its type.
func (l *Launch) plan(planNew func(job.New) (*job.Plan, error)) (*job.Plan, error) {
	if l.Plan != nil {
		return (*job.Plan)(l.Plan), nil
	}
	n := job.New{Type: l.Type, Queue: l.Queue}
	if len(l.Args) > 0 {
		n.Args = l.Args
	}
	return planNew(n)
}

// accepted returns an error if one of the jobs of the tree to launch is a component that refuses its parameters. A type that
// nobody has registered yet may be anything.
func accepted(ctx context.Context, c *client.Client, plan *job.Plan, queue string) error {
	types, err := c.Types(ctx)
	if err != nil {
		return err
	}
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		at := slices.IndexFunc(types, func(t job.TypeInfo) bool {
			return t.Type == n.Type && t.Queue == cmp.Or(n.Queue, queue, job.DefaultQueue)
		})
		if n.Graph || at < 0 {
			continue
		}
		if err := component.Accepts(&types[at], n.Args); err != nil {
			who := n.Type
			if n.Name != "" && n.Name != n.Type {
				who += " " + n.Name
			}
			return fmt.Errorf("%w of %s: %s", job.ErrConfig, who, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	return nil
}

// maxMessage is how many bytes a message has at most that a launched tree gets: some of job.MaxLaunch are for its context.
const maxMessage = job.MaxLaunch - 1<<10

// holds returns an error if no launched tree can get a message, as it is too large.
func (d *Definition) holds(message json.RawMessage) error {
	if d.Launch != nil && d.Launch.Message == nil && len(message) > maxMessage {
		return fmt.Errorf("%w: the message has %d bytes, a tree that is launched can get at most %d: send a reference to what is large", job.ErrTooLarge, len(message), maxMessage)
	}
	return nil
}

// ParseDefinition reads a definition from JSON. A field that there is not is an error.
func ParseDefinition(raw []byte) (d Definition, err error) {
	if err = strict.Decode(raw, &d); err != nil {
		err = fmt.Errorf("%w of %s: %w", job.ErrConfig, Type, err)
	}
	return d, err
}

// defined is the definition of a trigger, as it was changed.
func defined(ctx context.Context, h *client.Handle) (d Definition, err error) {
	info, err := h.Info(ctx)
	if err != nil {
		return d, err
	}
	if info.Type != Type {
		return d, errNotOne(info)
	}
	state, err := h.State(ctx, keyDefinition)
	if err != nil {
		return d, err
	}
	raw := info.Args
	if changed := state[keyDefinition]; changed != nil {
		raw = changed
	}
	if raw != nil {
		err = json.Unmarshal(raw, &d)
	}
	return d, err
}

// Verifies says how messages to a trigger are to be signed; nil: they need not be.
func Verifies(ctx context.Context, h *client.Handle) (*Verify, error) {
	d, err := defined(ctx, h)
	return d.Verify, err
}

// Status is what is known of a trigger.
type Status struct {
	ID      job.ID              `json:"id"`
	Aliases []string            `json:"aliases,omitempty"`
	Status  statemachine.Status `json:"status"` // of its job: completed if it fires no more
	Kind    Kind                `json:"kind"`
	Paused  bool                `json:"paused"`
	// Understood says what the schedule means; empty without one.
	Understood string `json:"understood,omitempty"`
	// Next are the times at which it fires next, if nothing holds it back.
	Next       []time.Time `json:"next,omitempty"`
	Definition Definition  `json:"definition"`
	// Firings and Launches count those since it was made, Dropped what did not fire, by reason.
	Firings  int64            `json:"firings"`
	Launches int64            `json:"launches"`
	Dropped  map[string]int64 `json:"dropped,omitempty"`
	// Failed counts launched trees that have failed, as far as the trigger is told: with limits.parallel.
	Failed   int64      `json:"failed,omitempty"`
	Last     *time.Time `json:"last,omitempty"`      // when it fired last
	LastTree job.ID     `json:"last_tree,omitempty"` // which tree it launched last
	// Running are launched trees that have not ended, if limits.parallel says how many there may be.
	Running []job.ID `json:"running,omitempty"`
	// Waiting are messages, ticks and firings that wait: to be joined, or for a tree to end.
	Waiting int64 `json:"waiting"`
	// Pending are things that were asked of it and wait for its next run.
	Pending int64  `json:"pending"`
	Reason  string `json:"reason,omitempty"` // why its job does not go on
}

// Full tells whether as many launched trees have not ended as there may be: what fires the trigger waits, or is dropped.
func (s *Status) Full() bool {
	most := s.Definition.Limits.Parallel
	return most > 0 && len(s.Running) >= most
}

// errNotOne: the job is no trigger.
func errNotOne(i *job.Info) error {
	return fmt.Errorf("%w: job %s is a %s, not a trigger", job.ErrPort, i.ID, i.Type)
}

// Get tells of a trigger, with up to next times at which it fires.
func Get(ctx context.Context, c *client.Client, h *client.Handle, next int) (*Status, error) {
	info, err := h.Info(ctx)
	if err != nil {
		return nil, err
	}
	s, err := Of(ctx, c, info, next)
	if err != nil {
		return nil, fmt.Errorf("reading trigger %s: %w", h.ID(), err)
	}
	return s, nil
}

// Of is Get for a job that was looked at.
func Of(ctx context.Context, c *client.Client, info *job.Info, next int) (*Status, error) {
	if info.Type != Type {
		return nil, errNotOne(info)
	}
	state, err := c.At(info.ID).State(ctx)
	if err != nil {
		return nil, err
	}
	details, err := c.Details(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	s := &Status{ID: info.ID, Aliases: details[0].Aliases, Status: info.Status, Reason: info.Reason}
	raw := state[keyDefinition]
	if raw == nil {
		raw = info.Args
	}
	var m memory
	var h held
	var ticks clockwork.State
	var sched schedule.Schedule
	for v, raw := range map[any]json.RawMessage{
		&s.Definition: raw, &m: state[keyMemory], &h: state[keyHeld], &ticks: state[clockwork.StateKey], &sched: state[clockwork.ScheduleKey],
	} {
		if raw != nil {
			if err := json.Unmarshal(raw, v); err != nil {
				return nil, err
			}
		}
	}
	s.Kind = s.Definition.Kind()
	s.Paused, s.Firings, s.Launches, s.Dropped = m.Paused, m.Firings, m.Launches, m.Dropped
	s.Failed = m.Failed
	s.Last, s.LastTree, s.Running = when(m.Last), m.LastTree, m.Open
	s.Waiting = int64(len(h.Queue) + h.N)
	if p, ok := info.Port(port.Input, portIn); ok {
		s.Waiting += p.Waiting
	}
	if p, ok := info.Port(port.Input, portControl); ok {
		s.Pending = p.Waiting
	}
	if s.Kind == Scheduled {
		s.schedule(sched, ticks, next)
	}
	return s, nil
}

// schedule tells what the schedule means and when it comes next.
func (s *Status) schedule(sched schedule.Schedule, ticks clockwork.State, next int) {
	clock := s.Definition.clock()
	if sched.IsZero() || ticks.Name != clock.Name { // it has not run yet
		made, err := clock.Parse(time.Now())
		if err != nil {
			return
		}
		sched = made
		ticks = clockwork.State{}
		if at, ok := sched.Next(schedule.Moments{Now: time.Now()}); ok {
			ticks.Next = at.UnixMilli()
		}
	}
	s.Understood = sched.Understood()
	if s.Paused || s.Status.Settled() || s.Status == statemachine.Failed || ticks.Next == 0 {
		return
	}
	at := time.UnixMilli(ticks.Next).UTC()
	for n := ticks.N; len(s.Next) < next && (s.Definition.Count == 0 || n < s.Definition.Count); n++ {
		s.Next = append(s.Next, at)
		var ok bool
		if at, ok = sched.Next(schedule.Moments{Now: at, Scheduled: at}); !ok {
			break
		}
		at = at.UTC()
	}
}

// List tells of the triggers that are root jobs, the newest first: those that fire no more only with all.
func List(ctx context.Context, c *client.Client, all bool, next int) iter.Seq2[*Status, error] {
	return func(yield func(*Status, error) bool) {
		for info, err := range c.Jobs(ctx, job.Filter{Type: Type}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !all && (info.Status.Settled() || info.Status == statemachine.Terminating) {
				continue
			}
			s, err := Of(ctx, c, info, next)
			if errors.Is(err, job.ErrNotFound) {
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Pause has the trigger drop what would fire, and count it, until Resume.
func Pause(ctx context.Context, h *client.Handle, by string) error {
	return ask(ctx, h, Control{Do: doPause, By: by})
}

// Resume ends a pause.
func Resume(ctx context.Context, h *client.Handle, by string) error {
	return ask(ctx, h, Control{Do: doResume, By: by})
}

// Fire has the trigger fire once, also while it is paused. payload is what that firing says; nil: what a tick does.
func Fire(ctx context.Context, h *client.Handle, by string, payload json.RawMessage) error {
	return FireOnce(ctx, h, "", by, payload)
}

// FireOnce is Fire, and does nothing if the trigger was asked to with the same key within the last hour, see client.Handle.WriteOnce.
func FireOnce(ctx context.Context, h *client.Handle, key, by string, payload json.RawMessage) error {
	d, err := defined(ctx, h)
	if err == nil {
		err = d.holds(payload)
	}
	if err != nil {
		return err
	}
	return askOnce(ctx, h, key, Control{Do: doFire, By: by, Payload: payload})
}

// Change changes fields of the trigger's definition: those that the JSON object has; null clears one. What comes of it is
// checked first. Another schedule begins anew. A webhook stays one.
func Change(ctx context.Context, c *client.Client, h *client.Handle, by string, fields json.RawMessage) error {
	s, err := Get(ctx, c, h, 0)
	if err != nil {
		return err
	}
	to, err := s.Definition.with(fields)
	if err == nil {
		err = to.Validate(time.Now())
	}
	if err == nil && s.Kind == Webhook && to.Kind() != Webhook {
		err = fmt.Errorf("%w of %s: it is a webhook, and as a %s it would refuse what is sent to it: add another trigger for that, and delete this one if nobody sends to it any more",
			job.ErrConfig, Type, to.Kind())
	}
	if err == nil {
		err = to.fits(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("changing trigger %s: %w", h.ID(), err)
	}
	return ask(ctx, h, Control{Do: doChange, By: by, To: fields})
}

// Send writes a message to a webhook trigger, which fires for it.
func Send(ctx context.Context, c *client.Client, h *client.Handle, message json.RawMessage) error {
	return SendOnce(ctx, c, h, "", message)
}

// SendOnce is Send, and does nothing if a message was sent with the same key within the last hour, see client.Handle.WriteOnce.
func SendOnce(ctx context.Context, c *client.Client, h *client.Handle, key string, message json.RawMessage) error {
	s, err := Get(ctx, c, h, 0)
	if err != nil {
		return err
	}
	if s.Kind != Webhook {
		return errNotSent(h.ID(), &s.Definition)
	}
	if err := s.Definition.holds(message); err != nil {
		return err
	}
	return writeOnce(ctx, h, key, portIn, message)
}

// CheckSend returns an error if a job is a trigger of a schedule or of events, and in is the port at which a webhook takes messages: one
// that is written there would fire it.
func CheckSend(ctx context.Context, h *client.Handle, info *job.Info, in string) error {
	if info.Type != Type || in != portIn {
		return nil
	}
	d, err := defined(ctx, h)
	if err == nil && d.Kind() != Webhook {
		err = errNotSent(info.ID, &d)
	}
	return err
}

// errNotSent refuses a message to a trigger that is no webhook.
func errNotSent(id job.ID, d *Definition) error {
	what, instead := "at the times of its schedule", "to have it fire now"
	if d.Kind() == Event {
		what, instead = "for what is published to "+d.Channel, "publish it there (weir publish), or to have it fire now"
	}
	return fmt.Errorf("%w %q: trigger %s fires %s, not for messages that are sent to it; %s use fire: weir trigger fire %[3]s", job.ErrPort, portIn, id, what, instead)
}

// writeOnce writes a message, unless it was written with the same key, if there is one.
func writeOnce(ctx context.Context, h *client.Handle, key, in string, message any) error {
	if key == "" {
		return h.Write(ctx, in, message)
	}
	return h.WriteOnce(ctx, key, in, message)
}

// Living tells which engines live, as a store does.
type Living interface {
	Engines(ctx context.Context) ([]store.EngineInfo, error)
}

// Delete ends a trigger, and removes it as soon as an engine has done that. Trees that it launched go on. If no engine lives that could, the
// trigger fires no more, and the error wraps job.ErrStatus: it is to be deleted again when one runs.
func Delete(ctx context.Context, living Living, h *client.Handle) error {
	info, err := h.Info(ctx)
	if err != nil {
		return err
	}
	if info.Type != Type {
		return errNotOne(info)
	}
	if err := h.TerminateAll(ctx); err != nil {
		return fmt.Errorf("ending trigger %s: %w", h.ID(), err)
	}
	engines, err := living.Engines(ctx)
	if err != nil {
		return err
	}
	if info, err = h.Info(ctx); err != nil {
		return err
	}
	able := func(e store.EngineInfo) bool { return e.Takes(info.Queue, Type) && !e.Stopping }
	if info.Status != statemachine.Terminated && !slices.ContainsFunc(engines, able) {
		return &notDeleted{h.ID()}
	}
	if _, err := h.WaitFor(ctx, func(i *job.Info) bool { return i.Status == statemachine.Terminated }); err != nil {
		return fmt.Errorf("ending trigger %s: %w", h.ID(), err)
	}
	return h.Delete(ctx)
}

// notDeleted is the error about a trigger that is about to end, which takes a run. It wraps job.ErrStatus.
type notDeleted struct{ trigger job.ID }

// Error implements error.
func (e *notDeleted) Error() string {
	return fmt.Sprintf("trigger %s fires no more, but is not deleted yet: no engine runs that could end it: start one, as with weir worker, and delete it again", e.trigger)
}

// Unwrap implements errors' interface.
func (*notDeleted) Unwrap() error { return job.ErrStatus }

// ask writes a control message.
func ask(ctx context.Context, h *client.Handle, what Control) error { return askOnce(ctx, h, "", what) }

// askOnce is ask, once for a key that is not empty.
func askOnce(ctx context.Context, h *client.Handle, key string, what Control) error {
	info, err := h.Info(ctx)
	if err != nil {
		return err
	}
	if info.Type != Type {
		return errNotOne(info)
	}
	if info.Status.Settled() {
		return fmt.Errorf("%w: trigger %s is %s and fires no more: add another one", job.ErrStatus, h.ID(), info.Status)
	}
	if info.Status == statemachine.Failed {
		return fmt.Errorf("%w: trigger %s has failed and fires no more until it is retried: weir retry %[2]s", job.ErrStatus, h.ID())
	}
	return writeOnce(ctx, h, key, portControl, what)
}
