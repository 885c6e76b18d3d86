package storecall

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
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

// checkPlan refuses what no client of ours sends.
func checkPlan(p *job.Plan) error {
	if p == nil {
		return fmt.Errorf("%w: the plan is missing", job.ErrName)
	}
	return p.Validate()
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
		return fmt.Errorf("%w: the context of a message is no JSON", port.ErrEncoding)
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
		return nil, fmt.Errorf("%w: the context of a message is no JSON object", port.ErrEncoding)
	}
	return c, nil
}

// checkWrite refuses a write that no client of ours sends, and has its messages say who writes them.
func checkWrite(by By, w *job.Write) error {
	if err := checkPort(job.PortRef{Dir: w.Dir, Port: w.Port}); err != nil {
		return err
	}
	if w.Entry != "" && !json.Valid([]byte(w.Entry)) {
		return fmt.Errorf("%w: the entry for the log is no JSON", port.ErrEncoding)
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
func (s *Settling) check() error {
	if err := checkPort(s.From); err != nil {
		return err
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
	if e := s.Settlement.Entry; e != "" && !json.Valid([]byte(e)) {
		return fmt.Errorf("%w: the entry for the log is no JSON", port.ErrEncoding)
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
