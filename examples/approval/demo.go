package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// demoPolicy makes days seconds.
var demoPolicy = Policy{defaultSmall, defaultLarge, time.Second, 4 * time.Second}

// demo plays a story on the embedded store.
func (s *settings) demo(ctx context.Context) error {
	p := &people{w: s.stdout}
	if s.output == "json" {
		p.w = io.Discard // the list at the end is all that there is
	}
	d, err := openDesk(ctx, "", p)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.engine.RunWhile(ctx, func(ctx context.Context) error { return d.story(ctx, p) }); err != nil {
		return err
	}
	items, err := d.list(ctx)
	if err != nil {
		return err
	}
	p.tell("")
	return writeList(s.stdout, items, s.output)
}

// story is what happens in the demo. A day takes a second.
func (d *desk) story(ctx context.Context, p *people) error {
	for _, r := range []*Request{
		{Amount: 12_50, Purpose: "pencils", By: "Ada"},
		{Amount: 900_00, Purpose: "a chair", By: "Ada"},
		{Amount: 25_000_00, Purpose: "a boat", By: "Bob"},
		{Amount: 700_00, Purpose: "a second chair", By: "Bob"},
		{Amount: 99_00, Purpose: "what nobody cares for", By: "Bob"},
	} {
		r.Policy = demoPolicy
		name, err := d.file(ctx, r)
		if err != nil {
			return err
		}
		p.tell("> approval request --by %s %s %s  # becomes request %s", r.By, r.Amount, r.Purpose, name)
	}
	for _, v := range []struct {
		wait time.Duration
		name string
		Decision
	}{
		{time.Second / 2, "2", Decision{By: "Grace", Yes: true}},
		{time.Second / 2, "3", Decision{By: "Bob", Yes: true}}, // himself
		{time.Second / 2, "3", Decision{By: "Grace", Yes: true}},
		{time.Second / 2, "4", Decision{By: "Edsger", Note: "one is enough"}},
		{time.Second / 2, "3", Decision{By: "Edsger", Yes: true}},
	} {
		select {
		case <-time.After(v.wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		word := map[bool]string{true: "yes", false: "no"}[v.Yes]
		p.tell("> approval decide --as %s %s %s", v.By, v.name, word)
		if err := d.decide(ctx, v.name, v.Decision); err != nil {
			return err
		}
	}
	return d.settle(ctx)
}

// settle waits until all requests have ended.
func (d *desk) settle(ctx context.Context) error {
	for {
		items, err := d.list(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(items, func(i item) bool { return i.Outcome == nil }) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the last request: %w", context.Cause(ctx))
		}
	}
}
