package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// graphCreation is the graph that the command line describes.
type graphCreation struct {
	graphFlags
	file, existing string
}

// existings are what may become of another graph under the alias, as the HTTP API says it, too.
var existings = map[string][]job.Option{"refuse": nil, "take": {job.TakeExisting()}, "patch": {job.PatchExisting()}}

// ofGraph are the flags of weir create that go with --graph.
var ofGraph = []string{"graph", "param", "existing", "alias", "label", "queue", "priority", "retain", "sequential-key", "unique", "unique-key", "unique-for"}

func (g *graphCreation) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&g.file, "graph", "", "start the graph of this `FILE`, which engines run, in place of a job of a type")
	flags.StringArrayVar(&g.params, "param", nil, paramHelp)
	flags.StringVar(&g.existing, "existing", "refuse", "of another graph under the alias: refuse, take (as it is) or patch (into this one)")
	oneOfWords(c, "existing", []string{"refuse", "take", "patch"})
}

// check refuses what does not go with a graph, and without one.
func (g *graphCreation) check(c *cobra.Command, words []string) error {
	var others []string
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(ofGraph, f.Name) {
			others = append(others, "--"+f.Name)
		}
	})
	hows := []string{"refuse", "take", "patch"}
	switch {
	case g.file == "" && c.Flags().Changed("graph"):
		return emptyKey("graph")
	case g.file == "" && (c.Flags().Changed("param") || c.Flags().Changed("existing")):
		return usageError{errors.New("--param and --existing are for a graph: give its file with --graph")}
	case g.file == "":
		return nil
	case len(words) > 0:
		return usageError{fmt.Errorf("%s and --graph: a job of a type is created, or a graph is started", words[0])}
	case len(others) > 0:
		return usageError{fmt.Errorf("%s: it is for a job of a type, and with --graph a graph is started", strings.Join(others, ", "))}
	case !slices.Contains(hows, g.existing):
		return usageError{fmt.Errorf("--existing %.40q: %s", g.existing, port.Suggest(g.existing, hows))}
	case c.Flags().Changed("existing") && !c.Flags().Changed("alias"):
		return usageError{errors.New("--existing says what to do with another graph under the --alias: give one")}
	}
	return nil
}

// start starts the graph, leaves it to engines, and prints its ID.
func (g *graphCreation) start(c *cobra.Command, s *settings, n *creation) error {
	plan, err := g.loadKnown(c, s, g.file)
	if err != nil {
		return err
	}
	labels, err := labelsOf(n.labels)
	if err != nil {
		return err
	}
	opts := append([]job.Option{job.By(actor)}, existings[g.existing]...)
	given := func(name string, opt job.Option) {
		if c.Flags().Changed(name) {
			opts = append(opts, opt)
		}
	}
	given("alias", job.Alias(n.Alias))
	given("queue", job.InQueue(n.Queue))
	given("priority", job.WithPriority(n.priority))
	given("retain", job.Retain(n.retain.Duration))
	given("sequential-key", job.SequentialKey(n.SequentialKey))
	for key, value := range labels {
		opts = append(opts, job.Label(key, value))
	}
	if n.Unique != nil {
		opts = append(opts, job.Unique(*n.Unique))
	}
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		h, err := client.New(store).Start(ctx, plan, opts...)
		if err != nil {
			return startError{err}
		}
		if n.Unique != nil {
			fmt.Fprintln(c.ErrOrStderr(), outcomes[api.Outcome(h)])
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), h.ID())
		return err
	})
}

// startError is an error of a start with advice in the words of commands.
type startError struct{ err error }

func (e startError) Error() string {
	return client.Advised(e.err, "--existing take", "--existing patch", "; start its engine first")
}
func (e startError) Unwrap() error { return e.err }
