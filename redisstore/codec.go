package redisstore

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// What a codec made is stored as a byte 2 and base64. No JSON begins so, scripts find no
// newline and no separator in it, and in a reason it is all that follows the byte.
const encoded = 2

// codecDelay is how long a job is left alone that cannot be decoded.
const codecDelay = 5 * time.Second

// errNoCodec: something is encoded, and Config.Codec is nil.
var errNoCodec = errors.New("it is encrypted, and this program has no keys")

// secrets is how a store encodes what jobs hold. Without a codec it leaves it as it is.
type secrets struct {
	codec     job.Codec
	namespace string
}

func (c *secrets) place(kind job.Kind, id job.ID, key string) job.Place {
	return job.Place{Namespace: c.namespace, Kind: kind, Job: id, Key: key}
}

// hide encodes; nothing stays nothing.
func (c *secrets) hide(p job.Place, plain []byte) ([]byte, error) {
	if c.codec == nil || len(plain) == 0 {
		return plain, nil
	}
	raw, err := c.codec.Encode(p, plain)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", p.Kind, err)
	}
	out := make([]byte, 1, 1+base64.RawStdEncoding.EncodedLen(len(raw)))
	out[0] = encoded
	return base64.RawStdEncoding.AppendEncode(out, raw), nil
}

func (c *secrets) hideText(kind job.Kind, id job.ID, plain string) (string, error) {
	out, err := c.hide(c.place(kind, id, ""), []byte(plain))
	return string(out), err
}

// Encodes tells whether what jobs hold is encoded before it is sent, and so not for logs.
func (s *Store) Encodes() bool { return s.secrets.codec != nil }

func isEncoded(stored []byte) bool { return len(stored) > 0 && stored[0] == encoded }

// show decodes what hide made, and returns anything else as it is. The error wraps
// job.ErrCodec.
func (c *secrets) show(p job.Place, stored []byte) ([]byte, error) {
	if !isEncoded(stored) {
		return stored, nil
	}
	if c.codec == nil {
		return nil, fmt.Errorf("%s %w: %w", p.Kind, job.ErrCodec, errNoCodec)
	}
	raw, err := base64.RawStdEncoding.AppendDecode(nil, stored[1:])
	if err == nil {
		raw, err = c.codec.Decode(p, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", p.Kind, job.ErrCodec, err)
	}
	return raw, nil
}

// showMessage decodes a stored message. A script may have put a context with a channel in
// front of it: its keys come behind those that the writer gave.
func (c *secrets) showMessage(stored json.RawMessage) (json.RawMessage, error) {
	rest, outer := port.Split(stored)
	if !isEncoded(rest) {
		return stored, nil
	}
	plain, err := c.show(c.place(job.KindMessage, "", ""), rest)
	if err != nil || outer == nil {
		return plain, err
	}
	data, inner := port.Split(plain)
	if inner == nil {
		inner = []byte("{}")
	}
	return slices.Concat(stored[:1], joinObjects(inner, outer), []byte("\n"), data), nil
}

// joinObjects returns a JSON object with the members of two, of which one may be empty.
func joinObjects(a, b []byte) []byte {
	a, b = bytes.TrimSuffix(a, []byte("}")), bytes.TrimPrefix(b, []byte("{"))
	if len(a) > 1 && len(b) > 1 {
		a = append(slices.Clone(a), ',')
	}
	return slices.Concat(a, b)
}

// each calls fn for the elements of a list and returns the results in a new one.
func each[T any](list []T, fn func(T) (T, error)) ([]T, error) {
	out := slices.Clone(list)
	for i := range out {
		var err error
		if out[i], err = fn(out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *secrets) hideMessages(items []json.RawMessage) ([]json.RawMessage, error) {
	if c.codec == nil {
		return items, nil
	}
	return each(items, func(m json.RawMessage) (json.RawMessage, error) {
		return c.hide(c.place(job.KindMessage, "", ""), m)
	})
}

func (c *secrets) showMessages(items []json.RawMessage) error {
	for i := range items {
		var err error
		if items[i], err = c.showMessage(items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *secrets) hideDefault(v json.RawMessage) (json.RawMessage, error) {
	return c.hide(c.place(job.KindDefault, "", ""), v)
}

func (c *secrets) hideState(id job.ID, state map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if c.codec == nil {
		return state, nil
	}
	out := make(map[string]json.RawMessage, len(state))
	for k, v := range state {
		var err error
		if out[k], err = c.hide(c.place(job.KindState, id, k), v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *secrets) showState(id job.ID, state map[string]json.RawMessage) error {
	for k, v := range state {
		if !isEncoded(v) {
			continue
		}
		plain, err := c.show(c.place(job.KindState, id, k), v)
		if err != nil {
			return fmt.Errorf("key %q of job %s: %w", k, id, err)
		}
		state[k] = plain
	}
	return nil
}

func (c *secrets) hideSpecs(ports []port.Spec) ([]port.Spec, error) {
	if c.codec == nil {
		return ports, nil
	}
	return each(ports, func(s port.Spec) (port.Spec, error) {
		var err error
		s.Default, err = c.hideDefault(s.Default)
		return s, err
	})
}

// hideNodes encodes what planned jobs hold, given their IDs.
func (c *secrets) hideNodes(nodes []job.Node, id func(i int) job.ID) ([]job.Node, error) {
	if c.codec == nil {
		return nodes, nil
	}
	i := -1
	return each(nodes, func(n job.Node) (_ job.Node, err error) {
		i++
		if n.Args, err = c.hide(c.place(job.KindArgs, id(i), ""), n.Args); err != nil {
			return n, err
		}
		if n.Memo, err = c.hide(c.place(job.KindMemo, id(i), ""), n.Memo); err != nil {
			return n, err
		}
		n.Ports, err = each(n.Ports, func(p job.Port) (_ job.Port, err error) {
			if p.Default, err = c.hideDefault(p.Default); err == nil {
				p.Initial, err = c.hideMessages(p.Initial)
			}
			return p, err
		})
		return n, err
	})
}

// hidePlan does so for a plan whose root gets number base of a tree.
func (c *secrets) hidePlan(plan *job.Plan, tree job.ID, base int) (*job.Plan, error) {
	if c.codec == nil {
		return plan, nil
	}
	out := *plan
	var err error
	out.Nodes, err = c.hideNodes(plan.Nodes, func(i int) job.ID { return tree.Nth(base + i) })
	return &out, err
}

// hideTx encodes what a transaction brings.
func (c *secrets) hideTx(tx store.Tx) (store.Tx, error) {
	if c.codec == nil {
		return tx, nil
	}
	deltas, err := each(tx.Deltas, c.hideDelta)
	return store.Tx{Deltas: deltas}, err
}

func (c *secrets) hideDelta(d store.Delta) (_ store.Delta, err error) {
	keep := func(e error) { err = errors.Join(err, e) }
	text := func(kind job.Kind, id job.ID, plain string) string {
		out, e := c.hideText(kind, id, plain)
		keep(e)
		return out
	}
	var e error
	d.Set, e = c.hideState(d.Job, d.Set)
	keep(e)
	d.Before, e = each(d.Before, func(p store.Part) (store.Part, error) { return c.hidePart(d.Job, p) })
	keep(e)
	last, e := c.hidePart(d.Job, store.Part{Writes: d.Writes, Entry: d.Entry, Log: d.Log})
	keep(e)
	d.Writes, d.Entry, d.Log = last.Writes, last.Entry, last.Log
	d.Defaults, e = each(d.Defaults, func(v store.Default) (_ store.Default, err error) {
		v.Value, err = c.hideDefault(v.Value)
		return v, err
	})
	keep(e)
	d.Spawns, e = each(d.Spawns, func(s store.Spawn) (_ store.Spawn, err error) {
		s.Plan, err = c.hidePlan(s.Plan, d.Job.Tree(), s.Base)
		return s, err
	})
	keep(e)
	d.Launches, e = each(d.Launches, c.hideLaunch)
	keep(e)
	if d.SetPorts != nil {
		d.SetPorts, e = c.hideSpecs(d.SetPorts)
		keep(e)
	}
	d.Progress, e = c.hideProgress(d.Job, d.Progress)
	keep(e)
	if d.Failure != nil || d.Needs != nil { // else the reason is the engine's, and tells nothing of the data
		d.Reason = text(job.KindReason, "", d.Reason)
	}
	if d.Failure != nil {
		f := *d.Failure
		f.Error, f.Stack = text(job.KindError, d.Job, f.Error), text(job.KindError, d.Job, f.Stack)
		d.Failure = &f
	}
	return d, err
}

// hideProgress encodes the words of how far a job is.
func (c *secrets) hideProgress(id job.ID, p *job.Progress) (*job.Progress, error) {
	if c.codec == nil || p == nil {
		return p, nil
	}
	out := *p
	var err error
	out.Text, err = c.hideText(job.KindProgress, id, p.Text)
	return &out, err
}

// hidePart encodes what one run of a job wrote and logged.
func (c *secrets) hidePart(id job.ID, p store.Part) (store.Part, error) {
	var errs [3]error
	p.Writes, errs[0] = each(p.Writes, func(w store.Write) (_ store.Write, err error) {
		w.Items, err = c.hideMessages(w.Items)
		return w, err
	})
	p.Entry, errs[1] = c.hideText(job.KindLog, id, p.Entry)
	p.Log, errs[2] = each(p.Log, func(note string) (string, error) { return c.hideText(job.KindLog, id, note) })
	return p, errors.Join(errs[:]...)
}

// showSnapshot decodes what a run sees.
func (c *secrets) showSnapshot(s *store.Snapshot) error {
	args, err := c.show(c.place(job.KindArgs, s.Info.ID, ""), s.Info.Args)
	if err != nil {
		return err
	}
	s.Info.Args = args
	for name, v := range s.Defaults {
		if !isEncoded(v) {
			continue
		}
		plain, err := c.show(c.place(job.KindDefault, "", ""), v)
		if err != nil {
			return fmt.Errorf("of port %s: %w", name, err)
		}
		s.Defaults[name] = plain
	}
	for _, box := range s.In {
		if err := c.showMessages(box.Items); err != nil {
			return fmt.Errorf("in port %s: %w", box.Port, err)
		}
	}
	if err := c.showState(s.Info.ID, s.State); err != nil {
		return err
	}
	c.showInfo(&s.Info)
	for i, next := range s.Row {
		if err := c.showSnapshot(next); err != nil {
			s.Row = s.Row[:i] // whoever takes it next says why
			break
		}
	}
	return nil
}

// showInfo decodes what a look at a job tells. What cannot be decoded is told in its place:
// people without keys see how jobs are, if not what they hold.
func (c *secrets) showInfo(i *job.Info) {
	i.Args = c.visible(c.place(job.KindArgs, i.ID, ""), i.Args)
	i.Memo = c.visible(c.place(job.KindMemo, i.ID, ""), i.Memo)
	if i.Progress != nil {
		i.Progress.Text = c.visibleText(c.place(job.KindProgress, i.ID, ""), i.Progress.Text)
	}
	for n := range i.Ports {
		i.Ports[n].Default = c.visible(c.place(job.KindDefault, "", ""), i.Ports[n].Default)
	}
	// A graph's reason is the name of a child and then the child's reason.
	if at := strings.IndexByte(i.Reason, encoded); at >= 0 {
		i.Reason = i.Reason[:at] + c.visibleText(c.place(job.KindReason, "", ""), i.Reason[at:])
	}
}

// showFailure decodes a recorded error as showInfo does.
func (c *secrets) showFailure(id job.ID, f *job.Failure) {
	p := c.place(job.KindError, id, "")
	f.Error, f.Stack = c.visibleText(p, f.Error), c.visibleText(p, f.Stack)
}

// visible is show for JSON that people look at.
func (c *secrets) visible(p job.Place, stored json.RawMessage) json.RawMessage {
	plain, err := c.show(p, stored)
	if err != nil {
		plain, _ = json.Marshal("(" + err.Error() + ")") // a text always encodes
	}
	return plain
}

func (c *secrets) visibleText(p job.Place, stored string) string {
	plain, err := c.show(p, []byte(stored))
	if err != nil {
		return "(" + err.Error() + ")"
	}
	return string(plain)
}

// park hands a job back that has begun a run, but cannot be decoded here: nothing of it is
// lost, it says why it waits, and it is tried again.
func (s *Store) park(ctx context.Context, snap *store.Snapshot, why error) error {
	err := s.handBack(ctx, snap, codecDelay, why.Error())
	return errors.Join(fmt.Errorf("job %s: %w", snap.Info.ID, why), err)
}

// handBack ends a run that nobody has begun to run; its job is queued again.
func (s *Store) handBack(ctx context.Context, snap *store.Snapshot, delay time.Duration, reason string) error {
	_, err := s.Commit(context.WithoutCancel(ctx), []store.Tx{{Deltas: []store.Delta{{
		Job: snap.Info.ID, Token: snap.Token, Outcome: statemachine.Requeue, Handed: true, Delay: delay, Reason: reason,
	}}}})
	return err
}
