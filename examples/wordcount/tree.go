package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// maxInstances keeps the messages from getting many and small on large machines.
const maxInstances = 16

// instances is the number of Splits, and of Counts.
func instances() int { return min(2*runtime.GOMAXPROCS(0), maxInstances) }

// newGraph wires the workers.
func newGraph(paths []Path, top int) *graph.Graph {
	g := graph.New("wordcount")
	list := graph.Add(g, "list", &List{Paths: paths})
	split := graph.Add(g, "split", &Split{}, graph.Instances(instances()))
	count := graph.Add(g, "count", &Count{Top: top}, graph.Instances(instances()))
	merge := graph.Add(g, "merge", &Merge{Top: top})
	graph.Connect(list.Files, split.Files)
	graph.Connect(split.Words, count.Words)
	graph.Connect(split.Stats, merge.Stats)
	graph.Connect(count.Tops, merge.Tops)
	graph.Export(g, "result", merge.Result)
	return g
}

// start starts the count, or takes up the one of that name where it stopped.
func (o *options) start(ctx context.Context, client *job.Client) (*job.Handle, error) {
	var opts []job.Option
	if o.tree != "" {
		opts = append(opts, job.Alias(o.tree))
	}
	h, err := client.Start(ctx, newGraph(o.paths, o.top), opts...)
	if err != nil || h.Created() {
		return h, err
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.same(tree); err != nil {
		return nil, usageError{fmt.Errorf("tree %s %w choose another --tree", o.tree, err)}
	}
	_, err = h.RetryFailed(ctx)
	return h, err
}

// same tells whether an existing tree does what is asked for now. Its errors go on with
// the advice to choose another --tree.
func (o *options) same(tree []*job.Info) error {
	if tree[0].Status.Final() || tree[0].Status == statemachine.Terminating {
		return errors.New("was terminated;")
	}
	for _, i := range tree {
		var err error
		switch i.Type {
		case (*List)(nil).JobType():
			err = o.samePaths(i)
		case (*Merge)(nil).JobType():
			err = o.sameTop(i)
		default:
			continue
		}
		if err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(tree, func(i *job.Info) bool { return i.Type == (*List)(nil).JobType() }) {
		return errors.New("is no word count;")
	}
	return nil
}

func (o *options) samePaths(i *job.Info) error {
	var list List
	if err := json.Unmarshal(i.Args, &list); err != nil {
		return fmt.Errorf("has arguments that cannot be read (%w);", err)
	}
	if !slices.Equal(list.Paths, o.paths) {
		return fmt.Errorf("counts other paths: %s;", someOf(list.Paths))
	}
	return nil
}

// sameTop accepts a shorter ranking than the one that the tree makes.
func (o *options) sameTop(i *job.Info) error {
	var merge Merge
	if err := json.Unmarshal(i.Args, &merge); err != nil {
		return fmt.Errorf("has arguments that cannot be read (%w);", err)
	}
	if o.top > merge.Top {
		return fmt.Errorf("ranks %d words; use --top %[1]d or less, or", merge.Top)
	}
	return nil
}

// someOf lists paths, but not a screenful.
func someOf(paths []Path) string {
	const most = 3
	var texts []string
	for _, p := range paths[:min(most, len(paths))] {
		texts = append(texts, p.String())
	}
	if more := len(paths) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// watcher looks on while the jobs run, until ctx ends.
type watcher interface{ watch(ctx context.Context) }

// silent watches nothing.
type silent struct{}

func (silent) watch(context.Context) {}

// finish runs the jobs until the tree is completed. When it returns, nothing runs any more.
func finish(ctx context.Context, store *redisstore.Store, h *job.Handle, w watcher) error {
	engine, err := worker.New(worker.Config{
		Store:       store,
		Workers:     []worker.Worker{&List{}, &Split{}, &Count{}, &Merge{}},
		Concurrency: 2*instances() + 2, // as many as there are jobs: no stage waits for another
		Drain:       2 * time.Second,   // a Split that goes on commits more often
		Logger:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	running := make(chan error, 1)
	go func() {
		err := engine.Run(ctx)
		stop(err)
		running <- err
	}()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		w.watch(ctx)
	}()
	info, err := h.Wait(ctx)
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx) // the engine's error says why it ended
	}
	stop(nil)
	<-watching
	engineErr := <-running
	switch {
	case err != nil:
		return err
	case info.Status != statemachine.Completed:
		return errors.New("the count was terminated; count again")
	default:
		return engineErr
	}
}
