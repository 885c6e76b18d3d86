package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

const (
	drawEvery = 100 * time.Millisecond
	lineEvery = 5 * time.Second
)

// progress shows how far a count is: redrawn in place on a terminal, elsewhere as a line
// now and then. What it shows is what is committed.
type progress struct {
	client *job.Client
	tree   *job.Handle
	w      io.Writer
	warn   *warnings
	began  time.Time
	known  map[job.ID]*known
}

// known is a job whose state was read, and what it was then.
type known struct {
	handle *job.Handle
	steps  int64
	state  json.RawMessage
}

func newProgress(client *job.Client, tree *job.Handle, w io.Writer, warn *warnings) *progress {
	return &progress{client: client, tree: tree, w: w, warn: warn, began: time.Now(), known: make(map[job.ID]*known)}
}

// watch implements watcher.
func (p *progress) watch(ctx context.Context) {
	if !term.IsTerminal(p.w) {
		every(ctx, lineEvery, func() {
			if v, err := p.look(ctx); err == nil { // else whoever waits for the tree reports it
				p.warn.line("wordcount: " + v.summary(0))
			}
		})
		return
	}
	live := term.NewLive(p.w)
	p.warn.hold()
	defer live.Clear()
	var last view
	every(ctx, drawEvery, func() {
		v, err := p.look(ctx)
		if err != nil {
			v = last // a warning is to be seen all the same
		}
		last = v
		v.took = time.Since(p.began)
		style := term.StyleOf(p.w)
		lines := v.lines(style)
		if text := p.warn.recent(); text != "" {
			lines = append(lines, "  "+style.Bold("! "+shorten(text, max(minMeter, style.Columns()-4))))
		}
		live.Draw(style, lines...)
	})
}

// every calls do again and again until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
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
			err = p.state(ctx, i, listCursorAt, &v.found)
		case "split":
			var taken Stats
			err = p.state(ctx, i, takenAt, &taken)
			v.taken.add(taken)
		}
		if err != nil {
			return v, err
		}
	}
	v.clamp()
	return v, nil
}

// state reads one key of a job's state, if it is there. It asks only when the job has
// committed since the last time.
func (p *progress) state(ctx context.Context, i *job.Info, key string, into any) error {
	k := p.known[i.ID]
	if k == nil {
		h, err := p.client.Find(ctx, string(i.ID))
		if err != nil {
			return err
		}
		k = &known{handle: h}
		p.known[i.ID] = k
	}
	if k.steps != i.Steps {
		state, err := k.handle.State(ctx, key)
		if err != nil {
			return err
		}
		k.steps, k.state = i.Steps, state[key]
	}
	if k.state == nil {
		return nil
	}
	return json.Unmarshal(k.state, into)
}
