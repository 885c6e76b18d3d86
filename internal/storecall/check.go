package storecall

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// most is of how many things one call tells at most, if its request says how many.
const most = 1000

// firstOf is the first of some errors.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// asked are the events that anybody may ask for; the others are those of runs and of time.
var asked = []statemachine.Event{statemachine.Run, statemachine.Retry, statemachine.Force, statemachine.Terminate}

// maxTTL is the longest time that a lock is asked for: some hundred years.
const maxTTL = 100 * 366 * 24 * time.Hour

// asValue has an error be one of a wrong value, unless callers can tell it from others already.
func asValue(err error) error {
	if err == nil || len(RefusalOf(err).Wraps) > 0 {
		return err
	}
	return fmt.Errorf("%w: %w", job.ErrValue, err)
}

func checkSpan(what string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%w: %s %s: use 0s or more", job.ErrValue, what, d)
	}
	return nil
}

func checkTTL(d time.Duration) error {
	if d < time.Millisecond || d > maxTTL {
		return fmt.Errorf("%w: ttl %s: use 1ms to %s", job.ErrValue, d, maxTTL)
	}
	return nil
}

// maxText is for the longest key with what clients put before it.
const maxText = 4 * job.MaxKey

// checkText refuses a text that is longer than a key may be.
func checkText(what, text string) error {
	if len(text) > maxText {
		return fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", job.ErrTooLarge, what, len(text), maxText)
	}
	return nil
}

// checkJobs refuses more jobs than a plan can have.
func checkJobs(ids []job.ID) error {
	if len(ids) > job.MaxNodes {
		return fmt.Errorf("%w: %d jobs in one call, at most %d are allowed", job.ErrTooLarge, len(ids), job.MaxNodes)
	}
	return nil
}

// check refuses numbers below zero, and those that no port reaches.
func (e Excerpt) check() error {
	for _, n := range []int{e.Offset, e.N, e.Bytes} {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("%w: %d: use 0 to %d", job.ErrValue, n, math.MaxInt32)
		}
	}
	return nil
}

// checkPlan refuses what no client of ours sends.
func checkPlan(p *job.Plan) error {
	if p == nil {
		return fmt.Errorf("%w: the plan is missing", job.ErrValue)
	}
	if err := p.Validate(); err != nil {
		return asValue(err)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.TypeVersion < 0 || len(n.Args) > 0 && !json.Valid(n.Args) {
			return fmt.Errorf("%w: job %d of the plan: args that are no JSON, or a version below 0", job.ErrValue, i)
		}
		if len(n.Ports) > most {
			return fmt.Errorf("%w: job %d of the plan has %d ports, at most %d are allowed", job.ErrTooLarge, i, len(n.Ports), most)
		}
		for _, p := range n.Ports {
			if p.Sources < 0 || p.Loops < 0 || p.Sources+p.Loops > job.MaxNodes*job.MaxFanOut {
				return fmt.Errorf("%w: job %d of the plan: port %q has %d sources and %d loops", job.ErrValue, i, p.Name, p.Sources, p.Loops)
			}
		}
	}
	return nil
}

// checkPatch refuses what no client of ours sends.
func checkPatch(p *store.Patch) error {
	if len(p.Numbers) != len(p.Nodes) || len(p.Fresh) != len(p.Nodes) {
		return fmt.Errorf("%w: a patch with %d jobs, %d numbers and %d marks", job.ErrValue, len(p.Nodes), len(p.Numbers), len(p.Fresh))
	}
	for _, n := range p.Numbers {
		if n < 0 {
			return fmt.Errorf("%w: a patch with a job of number %d", job.ErrValue, n)
		}
	}
	return checkPlan(&job.Plan{Nodes: p.Nodes})
}

// checkRetry refuses what no client of ours sends.
func checkRetry(r *store.Retry) error {
	if r.TypeVersion < 0 || len(r.Args) > 0 && !json.Valid(r.Args) {
		return fmt.Errorf("%w: args that are not valid JSON, or a version below 0", job.ErrValue)
	}
	return asValue(r.Validate())
}

// checkPort refuses what is no name of a port: names become parts of the names of keys.
func checkPort(p job.PortRef) error {
	if p.Dir != port.Input && p.Dir != port.Output {
		return fmt.Errorf("%w %q: direction %d is neither in nor out", job.ErrPort, p.Port, p.Dir)
	}
	return port.CheckName(p.Port)
}

// checkMessage refuses what is no stored message.
func checkMessage(m json.RawMessage) error {
	data, head := port.Split(m)
	if head != nil && !json.Valid(head) {
		return fmt.Errorf("%w: the context of a message is not valid JSON", port.ErrEncoding)
	}
	return firstOf(port.Check(data), job.CheckSize("a message", len(m)))
}

// checkMessages does so with several, and has them say who writes them.
func checkMessages(by By, items []json.RawMessage) error {
	for i, m := range items {
		if err := checkMessage(m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if by == "" {
			continue
		}
		data, head := port.Split(m)
		context, err := contextOf(head)
		if err == nil {
			context[port.ContextBy] = string(by)
			items[i], err = port.Seal(data, context)
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

// contextOf reads the context of a message.
func contextOf(head json.RawMessage) (port.Context, error) {
	c := port.Context{}
	if head == nil {
		return c, nil
	}
	d := json.NewDecoder(bytes.NewReader(head))
	d.UseNumber()
	if err := d.Decode(&c); err != nil || c == nil {
		return nil, fmt.Errorf("%w: the context of a message is not a JSON object", port.ErrEncoding)
	}
	return c, nil
}

// checkEntry refuses what is no entry for the log of a job, and has it say who acts.
func checkEntry(by By, id job.ID, entry string) (string, error) {
	if entry == "" {
		return "", nil
	}
	var e job.RunEntry
	if err := e.Decode([]byte(entry), id, time.Time{}); err != nil {
		return "", fmt.Errorf("%w: %w", port.ErrEncoding, err)
	}
	e.By = by.or(e.By)
	return e.Encode(), nil
}

// checkWrite refuses a write that no client of ours sends, and has its messages say who writes them.
func checkWrite(by By, id job.ID, w *store.Write) (err error) {
	if err := firstOf(checkPort(job.PortRef{Dir: w.Dir, Port: w.Port}), checkText("the key of a write", w.Once)); err != nil {
		return err
	}
	if w.Entry, err = checkEntry(by, id, w.Entry); err != nil {
		return err
	}
	return checkMessages(by, w.Items)
}

// check refuses texts without jobs.
func (b Bindings) check() error {
	if len(b.Texts) != len(b.Jobs) {
		return fmt.Errorf("%w: %d texts for %d jobs", job.ErrName, len(b.Texts), len(b.Jobs))
	}
	return nil
}

// check refuses ports that are none.
func (s *Settling) check(by By) (err error) {
	if err := checkPort(s.From); err != nil {
		return err
	}
	if s.Settlement.Entry, err = checkEntry(by, s.From.Job, s.Settlement.Entry); err != nil {
		return err
	}
	if len(s.Settlement.Letters) == 0 {
		return fmt.Errorf("%w: there are no dead letters to settle", job.ErrValue)
	}
	for _, l := range s.Settlement.Letters {
		if len(l.Ports) != len(l.Items) {
			return fmt.Errorf("%w: %d messages for %d ports", job.ErrName, len(l.Items), len(l.Ports))
		}
		for i, p := range l.Ports {
			if err := firstOf(checkPort(p), checkMessage(l.Items[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

// filtered lists what passes a filter that is valid.
func filtered(f *job.Filter, list func() iter.Seq2[*job.Info, error]) iter.Seq2[*job.Info, error] {
	if err := f.Validate(); err != nil {
		return func(yield func(*job.Info, error) bool) { yield(nil, err) }
	}
	return list()
}

// aliveEvery is how often a listener is told that it is still heard.
const aliveEvery = 15 * time.Second

// listen gives the messages of a channel. Those of none say that the caller is still heard.
func listen(ctx context.Context, s Store, channel string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		if err := port.CheckChannel(channel); err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		items, over := make(chan json.RawMessage), make(chan error, 1)
		go func() {
			over <- s.Listen(ctx, channel, func(item json.RawMessage) {
				select {
				case items <- item:
				case <-ctx.Done():
				}
			})
		}()
		alive := time.NewTicker(aliveEvery)
		defer alive.Stop()
		for heard := yield(nil, nil); heard; {
			select {
			case item := <-items:
				heard = yield(item, nil)
			case <-alive.C:
				heard = yield(nil, nil)
			case err := <-over:
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
	}
}
