package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// How many messages may wait at a port before those who feed it rest: together some
// megabytes, however large the files are.
const (
	chunksWaiting  = 16
	batchesWaiting = 16
)

// drain is how long runs may go on when the program is stopped.
const drain = 2 * time.Second

// newGraph wires the workers.
func newGraph(files []File, top int) *graph.Graph {
	g := graph.New("logs")
	read := graph.Add(g, "read", &Read{Files: files})
	parse := graph.Add(g, "parse", &Parse{}, graph.Instances(max(2, runtime.GOMAXPROCS(0))))
	rejected := graph.Add(g, "rejected", &Rejected{})
	graph.Connect(read.Chunks, parse.Chunks, graph.Limit(chunksWaiting))
	graph.Connect(parse.Rejected, rejected.In)
	count := func(name, by string) port.Out[Table] {
		tally := graph.Add(g, name, &Tally{By: by, Top: top})
		graph.Connect(parse.Records, tally.Records, graph.Limit(batchesWaiting))
		return tally.Table
	}
	statuses, paths := count("statuses", byStatus), count("paths", byPath)
	hours, clients := count("hours", byHour), count("clients", byClient)
	report := graph.Add(g, "report", &Report{})
	graph.Connect(statuses, report.Statuses)
	graph.Connect(paths, report.Paths)
	graph.Connect(hours, report.Hours)
	graph.Connect(clients, report.Clients)
	graph.Connect(rejected.Out, report.Rejected)
	graph.Export(g, "result", report.Result)
	return g
}

// workers are those of the graph.
func workers() []worker.Worker {
	return []worker.Worker{&Read{}, &Parse{}, &Rejected{}, &Tally{}, &Report{}}
}

// start starts the analysis, or takes up the one of that name where it stopped.
func (o *options) start(ctx context.Context, client *job.Client) (*job.Handle, error) {
	var opts []job.Option
	if o.tree != "" {
		opts = append(opts, job.Alias(o.tree), job.TakeExisting()) // same looks whether it is the one that is meant
	}
	h, err := client.Start(ctx, newGraph(o.files, o.top), opts...)
	if err != nil || h.Created() {
		return h, err
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.same(tree); err != nil {
		return nil, usageError{fmt.Errorf("tree %s %w; choose another --tree", o.tree, err)}
	}
	_, err = h.RetryFailed(ctx)
	return h, err
}

// same refuses a tree that does something else than is asked for now.
func (o *options) same(tree []*job.Info) error {
	if tree[0].Status.Final() || tree[0].Status == statemachine.Terminating {
		return errors.New("was terminated")
	}
	for _, i := range tree {
		switch i.Type {
		case (*Read)(nil).JobType():
			var read Read
			if err := json.Unmarshal(i.Args, &read); err != nil {
				return fmt.Errorf("has arguments that cannot be read: %w", err)
			}
			if !slices.EqualFunc(read.Files, o.files, func(a, b File) bool { return a.Path == b.Path }) {
				return fmt.Errorf("analyses other files, such as %s", read.Files[0].Path)
			}
		case (*Tally)(nil).JobType():
			var tally Tally
			if err := json.Unmarshal(i.Args, &tally); err != nil {
				return fmt.Errorf("has arguments that cannot be read: %w", err)
			}
			if tally.Top != o.top {
				return fmt.Errorf("was begun with --top %d", tally.Top)
			}
			return nil // Read comes first
		}
	}
	return errors.New("is no analysis of logs")
}

// finish runs the jobs until the tree is completed, and returns the result.
func finish(ctx context.Context, store *redisstore.Store, h *job.Handle) (r Result, err error) {
	engine, err := worker.New(worker.Config{
		Store: store, Workers: workers(), Drain: drain,
		Logger: slog.New(slog.DiscardHandler), // what fails a job is told by Wait
	})
	if err != nil {
		return r, err
	}
	var info *job.Info
	if err := engine.RunWhile(ctx, func(ctx context.Context) (err error) {
		info, err = h.Wait(ctx)
		return err
	}); err != nil {
		return r, err
	}
	raws, err := h.Peek(ctx, "result", 1) // it stays there for the next time
	if err != nil {
		return r, err
	}
	if len(raws) == 0 {
		return r, fmt.Errorf("tree %s is %s and has no result; begin another one", info.ID, info.Status)
	}
	return r, json.Unmarshal(raws[0], &r)
}
