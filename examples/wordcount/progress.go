package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

const (
	drawEvery = 100 * time.Millisecond
	lineEvery = 5 * time.Second
	meterSize = 30
)

// progress shows how far a count is: redrawn in place on a terminal, elsewhere as a line
// now and then. What it shows is what is committed.
type progress struct {
	client *job.Client
	tree   *job.Handle
	w      io.Writer
	began  time.Time
}

func newProgress(client *job.Client, tree *job.Handle, w io.Writer) *progress {
	return &progress{client: client, tree: tree, w: w, began: time.Now()}
}

// watch implements watcher.
func (p *progress) watch(ctx context.Context) {
	terminal := term.IsTerminal(p.w)
	every := lineEvery
	live := term.NewLive(p.w)
	if terminal {
		every = drawEvery
		defer live.Clear()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		view, err := p.look(ctx)
		if err != nil {
			continue // whoever waits for the tree meets the same error, and reports it
		}
		if terminal {
			style := term.StyleOf(p.w)
			live.Draw(style, view.lines(style)...)
		} else {
			fmt.Fprintln(p.w, "wordcount: "+view.summary())
		}
	}
}

// edge is what passed over all wires between two stages.
type edge struct {
	from, to, port string
	waiting, total int64
}

// view is what there is to show at one moment.
type view struct {
	found  Cursor
	listed bool // all files are found
	done   Stats
	edges  []edge
	took   time.Duration
}

// look asks the store.
func (p *progress) look(ctx context.Context) (view, error) {
	v := view{took: time.Since(p.began), edges: []edge{
		{from: "list", to: "split", port: "files"},
		{from: "split", to: "count", port: "words"},
		{from: "split", to: "merge", port: "stats"},
		{from: "count", to: "merge", port: "tops"},
	}}
	tree, err := p.tree.Tree(ctx)
	if err != nil {
		return v, err
	}
	for _, i := range tree {
		kind := strings.TrimPrefix(i.Type, "wordcount/")
		v.countEdges(kind, i)
		switch kind {
		case "list":
			v.listed = i.Status == statemachine.Completed
			err = p.state(ctx, i.ID, listCursorAt, &v.found)
		case "merge":
			err = p.state(ctx, i.ID, sumAt, &v.done)
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

func (v *view) countEdges(kind string, i *job.Info) {
	for n := range v.edges {
		e := &v.edges[n]
		if in, ok := i.Port(port.Input, e.port); ok && e.to == kind {
			e.waiting += in.Waiting
			e.total += in.Total
		}
	}
}

// state reads one key of a job's state, if it is there.
func (p *progress) state(ctx context.Context, id job.ID, key string, into any) error {
	h, err := p.client.Find(ctx, string(id))
	if err != nil {
		return err
	}
	state, err := h.State(ctx, key)
	if err != nil || state[key] == nil {
		return err
	}
	return json.Unmarshal(state[key], into)
}

// summary is the view on one line.
func (v *view) summary() string {
	more := ""
	if !v.listed {
		more = "+"
	}
	return fmt.Sprintf("%s/%s%s files, %s/%s%s, %s words, %s",
		term.Number(v.done.Files+v.done.Skipped), term.Number(v.found.Files), more,
		term.Bytes(v.done.Bytes), term.Bytes(v.found.Bytes), more,
		term.Number(v.done.Words), v.took.Round(100*time.Millisecond))
}

// lines is the view for a terminal.
func (v *view) lines(s term.Style) []string {
	meter := term.Meter(v.done.Bytes, v.found.Bytes, meterSize)
	lines := []string{fmt.Sprintf("%s%s  %s", s.Accent(meter), s.Faint(strings.Repeat("░", meterSize-len([]rune(meter)))), v.summary())}
	for _, e := range v.edges {
		lines = append(lines, fmt.Sprintf("  %-5s → %-5s  %-5s  %10s messages  %8s waiting",
			e.from, e.to, e.port, term.Number(e.total), term.Number(e.waiting)))
	}
	return lines
}
