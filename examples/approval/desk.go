package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// deskName is the alias of the desk in its namespace.
const deskName = "approvals"

// desk is where requests are filed, from outside of runs.
type desk struct {
	store  *redisstore.Store
	engine *worker.Engine
	client *job.Client
	top    *job.Handle
}

// openDesk opens the desk of a Redis, a new one if there is none yet. The caller must close it.
func openDesk(ctx context.Context, url string, p *people) (*desk, error) {
	store, err := redisstore.Open(ctx, redisstore.Config{URL: url})
	if err != nil {
		return nil, err
	}
	d := &desk{store: store, client: job.NewClient(store)}
	d.engine, err = worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&Desk{}, &Request{people: p}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = d.engine.Register(ctx) // so that requests can be filed before anybody serves
	}
	if err == nil {
		d.top, err = d.client.Start(ctx, job.Single(&Desk{}, ""), job.Alias(deskName))
	}
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return d, nil
}

func (d *desk) close() { _ = d.store.Close() }

// file files a request and returns its number.
func (d *desk) file(ctx context.Context, r *Request) (string, error) {
	children, err := d.top.Children(ctx)
	if err != nil {
		return "", err
	}
	args := map[string]any{"Amount": r.Amount, "Purpose": r.Purpose, "By": r.By, "Policy": r.Policy}
	for n := len(children) + 1; ; n++ {
		name := strconv.Itoa(n)
		_, err := d.client.Create(ctx, job.New{Type: r.JobType(), Args: args, Parent: d.top.ID(), Name: name, By: r.By})
		if !errors.Is(err, job.ErrExists) { // somebody else was faster
			return name, err
		}
	}
}

// decide sends a decision to a request.
func (d *desk) decide(ctx context.Context, name string, v Decision) error {
	h, err := d.top.Child(ctx, name)
	if errors.Is(err, job.ErrNotFound) {
		return fmt.Errorf("there is no request %q; see approval list", name)
	}
	if err != nil {
		return err
	}
	state, err := h.State(ctx, outcomeAt)
	if err != nil {
		return err
	}
	if raw := state[outcomeAt]; raw != nil {
		var o Outcome
		if err := json.Unmarshal(raw, &o); err != nil {
			return err
		}
		return fmt.Errorf("request %s was %s%s already", name, o.Result, o.people())
	}
	return h.Write(ctx, "decisions", v)
}

// item is a request in a list.
type item struct {
	ID      string    `json:"id"`
	Job     job.ID    `json:"job"`
	By      string    `json:"by"`
	Amount  Cents     `json:"cents"`
	Purpose string    `json:"purpose"`
	Filed   time.Time `json:"filed"`
	Needed  int       `json:"needed"` // people who must agree
	Yes     []string  `json:"yes"`    // those who did
	Outcome *Outcome  `json:"outcome,omitempty"`
}

// list returns all requests, in the order in which they were filed.
func (d *desk) list(ctx context.Context) ([]item, error) {
	tree, err := d.top.Tree(ctx)
	if err != nil {
		return nil, err
	}
	items := []item{}
	for _, i := range tree[1:] {
		if i.Status.Final() || i.Status == statemachine.Terminating {
			continue
		}
		var r Request
		if err := port.Decode(i.Args, &r); err != nil {
			return nil, fmt.Errorf("request %s: %w", i.Name, err)
		}
		it := item{ID: i.Name, Job: i.ID, By: r.By, Amount: r.Amount, Purpose: r.Purpose, Filed: i.Created, Needed: r.needed(), Yes: []string{}}
		h, err := d.client.Find(ctx, string(i.ID))
		if err != nil {
			return nil, err
		}
		state, err := h.State(ctx, yesAt, outcomeAt)
		if err != nil {
			return nil, err
		}
		for key, into := range map[string]any{yesAt: &it.Yes, outcomeAt: &it.Outcome} {
			if raw := state[key]; raw != nil {
				if err := json.Unmarshal(raw, into); err != nil {
					return nil, fmt.Errorf("request %s: %w", i.Name, err)
				}
			}
		}
		items = append(items, it)
	}
	return items, nil
}

// state says in words how a request stands.
func (i *item) state() string {
	if i.Outcome != nil {
		return i.Outcome.Result + i.Outcome.people()
	}
	return fmt.Sprintf("%d of %d agreed", len(i.Yes), i.Needed)
}

// writeList writes requests in the format asked for.
func writeList(w io.Writer, items []item, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(items)
	}
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "no requests")
		return err
	}
	s := term.StyleOf(w)
	_, err := fmt.Fprintln(w, s.Faint(fmt.Sprintf("%-4s %14s  %-12s %-30s %s", "ID", "AMOUNT", "BY", "PURPOSE", "STATE")))
	for _, i := range items {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-4s %14s  %-12s %-30s %s\n", i.ID, i.Amount,
				term.Fit(term.Clean(i.By), 12), term.Fit(term.Clean(i.Purpose), 30), term.Clean(i.state()))
		}
	}
	return err
}
