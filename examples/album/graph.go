package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// drain is how long runs may go on when the program is stopped.
const drain = 2 * time.Second

// newGraph wires the workers.
func (o *options) newGraph() *graph.Graph {
	g := graph.New("album")
	list := graph.Add(g, "list", &List{Folder: o.folder})
	work := graph.Add(g, "make", &Make{Folder: o.folder, Out: o.out, Widths: o.widths})
	index := graph.Add(g, "index", &Index{Title: filepath.Base(o.folder), Out: o.out})
	graph.Connect(list.Pictures, work.Pictures)
	graph.Connect(work.Entries, index.Entries)
	graph.Export(g, "summary", index.Summary)
	return g
}

// workers are those of the graph, and of the graphs that it spawns.
func workers() []worker.Worker {
	return []worker.Worker{&List{}, &Make{}, &Resize{}, &Join{}, &Index{}}
}

// start starts the album, or takes up the one of that name where it stopped.
func (o *options) start(ctx context.Context, client *job.Client) (*job.Handle, error) {
	var opts []job.Option
	if o.tree != "" {
		opts = append(opts, job.Alias(o.tree), job.TakeExisting()) // same looks whether it is the one that is meant
	}
	h, err := client.Start(ctx, o.newGraph(), opts...)
	if err != nil || h.Created() {
		return h, err
	}
	if err := o.same(ctx, h); err != nil {
		return nil, usageError{fmt.Errorf("tree %s %w; choose another --tree", o.tree, err)}
	}
	_, err = h.RetryFailed(ctx)
	return h, err
}

// same refuses a tree that does something else than is asked for now.
func (o *options) same(ctx context.Context, h *job.Handle) error {
	info, err := h.Info(ctx)
	if err != nil {
		return err
	}
	if info.Status.Final() || info.Status == statemachine.Terminating {
		return errors.New("was terminated")
	}
	child, err := h.Child(ctx, "make")
	if err != nil {
		return errors.New("is no album")
	}
	if info, err = child.Info(ctx); err != nil {
		return err
	}
	var m Make
	if err := json.Unmarshal(info.Args, &m); err != nil || info.Type != m.JobType() {
		return errors.New("is no album")
	}
	if m.Folder != o.folder || m.Out != o.out || !slices.Equal(m.Widths, o.widths) {
		return fmt.Errorf("is the album of %s in %s with --widths %v", m.Folder, m.Out, m.Widths)
	}
	return nil
}

// finish runs the jobs until the tree is completed, and returns what came of it.
func finish(ctx context.Context, store *redisstore.Store, h *job.Handle) (s Summary, err error) {
	engine, err := worker.New(worker.Config{
		Store: store, Workers: workers(), Drain: drain,
		Logger: slog.New(slog.DiscardHandler), // broken pictures are told of in the summary
	})
	if err != nil {
		return s, err
	}
	var info *job.Info
	if err := engine.RunWhile(ctx, func(ctx context.Context) (err error) {
		info, err = h.Wait(ctx)
		return err
	}); err != nil {
		return s, err
	}
	raws, err := h.Peek(ctx, "summary", 1) // it stays there for the next time
	if err != nil {
		return s, err
	}
	if len(raws) == 0 {
		return s, fmt.Errorf("tree %s is %s and has no summary; make the album again", info.ID, info.Status)
	}
	return s, json.Unmarshal(raws[0], &s)
}
