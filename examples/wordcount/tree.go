package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
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
		opts = append(opts, job.Alias(o.tree), job.TakeExisting()) // same looks whether it is the one that is meant
	}
	h, err := client.Start(ctx, newGraph(o.paths, o.top), opts...)
	if err != nil || h.Created() {
		return h, err
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	o.earlier = tree[0].Status == statemachine.Completed
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
