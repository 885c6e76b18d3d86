package trigger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Why firings are dropped.
const (
	reasonPaused   = "paused"   // the trigger was paused
	reasonMissed   = "missed"   // the tick was passed over, as Definition.Missed says
	reasonFilter   = "filter"   // the filter is not true for the message, or fails
	reasonParallel = "parallel" // too many launched trees are unfinished
	reasonJoined   = "joined"   // throttle or debounce made one firing of it and another one, whose payload counts
	reasonRefused  = "refused"  // no tree can be launched: its type is gone, has other arguments, or it is too large
	// reasonDuplicate: a tree with the unique key of the one to launch was there. It is what the status of that one is told to be.
	reasonDuplicate = "duplicate"
)

// The keys of a trigger's state, besides those of its clock.
const (
	keyDefinition = "definition" // if it was changed
	keyMemory     = "trigger"
	keyHeld       = "held"
)

// memory is what a trigger remembers.
type memory struct {
	Paused   bool             `json:"paused,omitempty"`
	Firings  int64            `json:"firings"`
	Launches int64            `json:"launches"`
	Dropped  map[string]int64 `json:"dropped,omitempty"`
	Failed   int64            `json:"failed,omitempty"` // launched trees that told of their failure
	Last     int64            `json:"last,omitempty"`   // when it fired last, in milliseconds
	LastTree job.ID           `json:"last_tree,omitempty"`
	Open     []job.ID         `json:"open,omitempty"` // launched trees that have not ended, if their number is limited
	Controls int64            `json:"controls,omitempty"`
}

// ended forgets an unfinished tree.
func (m *memory) ended(e ended) {
	if i := slices.Index(m.Open, e.Job); i >= 0 {
		m.Open = slices.Delete(m.Open, i, i+1)
		if e.Status == string(statemachine.Failed) {
			m.Failed++
		}
	}
}

// held are messages and ticks that have come and have not fired yet.
type held struct {
	Queue  []event           `json:"queue,omitempty"`  // those that wait for a tree to end
	N      int               `json:"n,omitempty"`      // those that are being joined into one
	First  int64             `json:"first,omitempty"`  // when the first of these came, in milliseconds
	Last   int64             `json:"last,omitempty"`   // and the last
	Joined []json.RawMessage `json:"joined,omitempty"` // what they say
	Missed int               `json:"missed,omitempty"`
}

// event is a message or a tick.
type event struct {
	At      int64           `json:"at"` // in milliseconds
	Missed  int             `json:"missed,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// bytes of messages that are held.
func (h *held) bytes() (n int) {
	for _, e := range h.Queue {
		n += len(e.Payload)
	}
	for _, raw := range h.Joined {
		n += len(raw)
	}
	return n
}

// load reads what earlier runs left.
func (f *firing) load() error {
	var changed Definition
	state := f.run.State()
	other, errChanged := state.Get(keyDefinition, &changed)
	known, errMemory := state.Get(keyMemory, &f.m)
	_, errHeld := state.Get(keyHeld, &f.h)
	if err := errors.Join(errChanged, errMemory, errHeld); err != nil {
		return err
	}
	if f.d = f.Definition; other {
		f.d = changed
	}
	if f.before[1] = encode(f.h); !known {
		return f.d.Validate(f.run.Now())
	}
	f.before[0] = encode(f.m)
	return nil
}

// encode is how a value is stored.
func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // it is stored then, which tells
	}
	return string(raw)
}

// save stores what has changed, and logs what was dropped.
func (f *firing) save() error {
	if len(f.drops) > 0 {
		if err := f.run.Log(map[string]any{"dropped": f.drops}); err != nil {
			return err
		}
	}
	var err error
	if encode(f.m) != f.before[0] {
		err = f.run.State().Set(keyMemory, f.m)
	}
	if encode(f.h) != f.before[1] {
		err = errors.Join(err, f.run.State().Set(keyHeld, f.h))
	}
	return err
}

// drop counts what does not fire.
func (f *firing) drop(reason string, n int64) error {
	if f.m.Dropped == nil {
		f.m.Dropped = map[string]int64{}
	}
	f.m.Dropped[reason] += n
	f.drops[reason] += n
	return nil
}

// undrop takes back what drop counted.
func (f *firing) undrop(reason string, n int64) {
	if n == 0 {
		return
	}
	f.m.Dropped[reason] -= n
	if f.drops[reason] -= n; f.drops[reason] == 0 {
		delete(f.drops, reason)
	}
}

// note logs what people should know.
func (f *firing) note(what, why string) error {
	return f.run.Log(map[string]string{what: why})
}

// Control is what is asked of a trigger.
type Control struct {
	Do      string          `json:"do"`                // pause, resume, fire or change
	Payload json.RawMessage `json:"payload,omitempty"` // what a firing that is asked for says
	To      json.RawMessage `json:"to,omitempty"`      // fields of a Definition; null clears one
	By      string          `json:"by,omitempty"`
}

// What can be asked.
const (
	doPause  = "pause"
	doResume = "resume"
	doFire   = "fire"
	doChange = "change"
)

// control does what was asked.
func (f *firing) control(c Control) error {
	f.m.Controls++
	switch c.Do {
	case doPause:
		f.m.Paused = true
	case doResume:
		if !f.m.Paused {
			return nil
		}
		if err := f.passed(); err != nil {
			return err
		}
		f.m.Paused = false
	case doFire:
		return f.asked(event{At: f.run.Now().UnixMilli(), Payload: c.Payload})
	case doChange:
		return f.change(c)
	default:
		return f.note("refused", fmt.Sprintf("control %q: use pause, resume, fire or change", c.Do))
	}
	return nil
}

// passed counts the ticks that were due while the trigger was paused.
func (f *firing) passed() error {
	if err := f.follow(); err != nil || f.d.Kind() != Scheduled {
		return err
	}
	c, before := f.clock, f.ticks
	c.Missed = clockwork.MissedOne
	for {
		t, ok := c.Take(f.run.Now(), &f.ticks, f.sched)
		if !ok {
			break
		}
		if err := f.drop(reasonPaused, int64(1+t.Missed+f.ticks.Passed)); err != nil {
			return err
		}
		f.ticks.N, f.ticks.Passed, f.ticks.Burst = before.N, 0, 0
	}
	return f.ticked(before)
}

// change makes the trigger what a control message says, if that is a trigger.
func (f *firing) change(c Control) error {
	to, err := f.d.with(c.To)
	if err == nil {
		err = to.Validate(f.run.Now())
	}
	if err != nil {
		return f.note("refused", err.Error())
	}
	before, after := f.d.clock(), to.clock()
	if before.Name != after.Name || before.Count != after.Count {
		f.run.State().Unset(clockwork.StateKey)
	}
	f.d, f.plan = to, nil
	return f.run.State().Set(keyDefinition, to)
}

// with returns the definition with some of its fields changed.
func (d Definition) with(fields json.RawMessage) (Definition, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return d, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &all); err != nil {
		return d, err
	}
	if err := json.Unmarshal(fields, &all); err != nil {
		return d, fmt.Errorf("%w of %s: %.40s is not a JSON object: send one with the fields that change, such as {\"missed\":\"all\"}", job.ErrConfig, Type, fields)
	}
	for k, v := range all {
		if string(v) == "null" {
			delete(all, k)
		}
	}
	if raw, err = json.Marshal(all); err != nil {
		return d, err
	}
	return ParseDefinition(raw)
}

// when is a time in milliseconds; nil if there is none.
func when(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}
