package trigger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// come deals with a message or a tick that has come; false: it has to wait.
func (f *firing) come(e event) (taken bool, err error) {
	if f.d.Limits.joins() {
		return f.join(e)
	}
	return f.admit(e)
}

// join puts a message or a tick to those of which one firing is made.
func (f *firing) join(e event) (taken bool, err error) {
	if f.h.N > 0 && f.flushAt() <= e.At || f.h.N >= MaxJoined || f.h.bytes()+len(e.Payload) > maxHeld && f.h.N > 0 {
		if taken, err = f.flush(); !taken || err != nil {
			return false, err
		}
	}
	if f.h.N == 0 {
		f.h.First = e.At
	}
	f.h.N++
	f.h.Last = max(f.h.Last, e.At)
	f.h.Missed += e.Missed
	if e.Payload != nil && (f.h.N == 1 || f.d.Limits.Payload == Append) {
		f.h.Joined = append(f.h.Joined, bytes.Clone(e.Payload))
	}
	return true, nil
}

// flushAt is when what is joined fires, in milliseconds.
func (f *firing) flushAt() int64 {
	if d := time.Duration(f.d.Limits.Debounce); d > 0 {
		return f.h.Last + d.Milliseconds()
	}
	return f.h.First + time.Duration(f.d.Limits.Throttle).Milliseconds()
}

// joined fires for what is joined, if it is time.
func (f *firing) joined() error {
	if f.h.N == 0 || f.flushAt() > f.run.Now().UnixMilli() {
		return nil
	}
	_, err := f.flush()
	return err
}

// flush fires for what is joined; false: it has to wait.
func (f *firing) flush() (done bool, err error) {
	e := event{At: f.flushAt(), Missed: f.h.Missed}
	switch {
	case f.d.Limits.Payload == Append && len(f.h.Joined) > 0:
		if e.Payload, err = json.Marshal(map[string]any{"payloads": f.h.Joined}); err != nil {
			return false, err
		}
	case len(f.h.Joined) > 0:
		e.Payload = f.h.Joined[0]
	}
	if done, err = f.admit(e); !done || err != nil {
		return false, err
	}
	if n := int64(f.h.N - 1); n > 0 && f.d.Limits.Payload != Append {
		err = f.drop(reasonJoined, n)
	}
	f.h = held{Queue: f.h.Queue}
	return true, err
}

// room tells whether one more tree may be launched.
func (f *firing) room() bool {
	most := f.d.Limits.Parallel
	return most == 0 || f.d.Launch == nil || len(f.m.Open) < most
}

// admit fires, if the limits allow it; false: not now.
func (f *firing) admit(e event) (done bool, err error) {
	if len(f.h.Queue) == 0 && f.room() {
		return f.fire(e)
	}
	switch l := f.d.Limits; {
	case len(f.h.Queue) < l.Queue && f.h.bytes()+len(e.Payload) <= maxHeld:
		f.enqueue(e)
	case l.Overflow == Drop:
		return true, f.drop(reasonParallel, 1)
	default:
		return false, nil
	}
	return true, nil
}

func (f *firing) enqueue(e event) {
	e.Payload = bytes.Clone(e.Payload)
	f.h.Queue = append(f.h.Queue, e)
}

// asked fires as somebody wants it now. If there are too many trees it waits in the queue, unless firings are to be dropped then.
func (f *firing) asked(e event) error {
	if done, err := f.admit(e); done || err != nil {
		return err
	}
	if len(f.h.Queue) >= MaxQueue || f.h.bytes()+len(e.Payload) > maxHeld {
		return f.drop(reasonParallel, 1)
	}
	f.enqueue(e)
	return nil
}

// queued fires for those that wait, as far as trees have ended.
func (f *firing) queued() error {
	for len(f.h.Queue) > 0 && f.room() {
		if done, err := f.fire(f.h.Queue[0]); !done || err != nil {
			return err
		}
		f.h.Queue = f.h.Queue[1:]
	}
	return nil
}

// fire is a firing; false: this run has had enough of them.
func (f *firing) fire(e event) (done bool, err error) {
	if f.fired == maxFirings {
		f.again = true
		return false, nil
	}
	at := time.UnixMilli(e.At).UTC()
	says := e.Payload
	if says == nil {
		if says, err = port.Encode(Tick{N: f.m.Firings + 1, At: at, Missed: e.Missed}); err != nil {
			return false, err
		}
	}
	id := job.IDAt(at, fmt.Sprintf("trigger %s %d", f.run.ID(), f.m.Firings+1))
	if err := f.launch(id, says); err != nil {
		if !refused(err) || f.ctx.Err() != nil {
			return false, err
		}
		if f.fired > 0 && errors.Is(err, job.ErrTooLarge) { // too much for one run
			f.again = true
			return false, nil
		}
		return true, errors.Join(f.drop(reasonRefused, 1), f.note("refused", err.Error()))
	}
	f.fired++
	f.m.Firings++
	f.m.Last = f.run.Now().UnixMilli()
	if p, _ := f.info(port.Output, "out"); f.d.Launch != nil && !p.Wired && len(p.Channels) == 0 {
		return true, nil
	}
	return true, f.Out.Write(says)
}

// refused tells whether a tree cannot be launched as it is: another try would not help.
func refused(err error) bool {
	for _, kind := range []error{job.ErrUnknownType, job.ErrPort, job.ErrTooLarge, job.ErrName, job.ErrValue, job.ErrConfig, port.ErrEncoding, port.ErrParams} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// launch starts the tree of a firing.
func (f *firing) launch(id job.ID, says json.RawMessage) error {
	l := f.d.Launch
	if l == nil {
		return nil
	}
	if f.plan == nil {
		plan, err := l.plan(f.run.PlanNew)
		if err != nil {
			return err
		}
		f.plan = plan
		if port.HearsStatuses(f.d.Channel) { // else each tree would have the next one launched
			f.plan = silent(plan)
		}
	}
	into, err := l.into(&f.plan.Nodes[0])
	if err != nil {
		return err
	}
	if into != "" && l.Message != nil {
		says = l.Message
	}
	memo, err := l.memoWith(says)
	if err != nil {
		return err
	}
	options := append(l.options(), job.Memo(memo), job.WithID(id), job.Label(LabelTrigger, string(f.run.ID())))
	if f.d.Limits.Parallel > 0 || l.Unique != nil {
		options = append(options, job.TellEnd(f.run.ID(), portEnded))
	}
	return f.run.Group(func() error {
		tree, err := f.run.Start(f.plan, options...)
		if err != nil {
			return err
		}
		if into != "" {
			if err := errors.Join(tree.Write(into, says), tree.Close(into)); err != nil {
				return err
			}
		}
		f.m.Launches++
		f.m.LastTree = tree.ID()
		if f.d.Limits.Parallel > 0 {
			f.m.Open = append(f.m.Open, tree.ID())
		}
		return nil
	})
}

// silent is a plan of which the statuses are not published.
func silent(plan *job.Plan) *job.Plan {
	changed := *plan
	changed.Nodes = slices.Clone(plan.Nodes)
	for i := range changed.Nodes {
		changed.Nodes[i].Silent = true
	}
	return &changed
}

// LabelTrigger is the label of launched trees that names the job of their trigger.
const LabelTrigger = "trigger"
