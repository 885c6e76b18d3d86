package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// patchFlags are those of weir patch.
type patchFlags struct {
	bulkFlags
	graph graphFlags
}

func newPatch(s *settings) *cobra.Command {
	f := patchFlags{bulkFlags: bulkFlags{dryRunNamed: true}}
	c := &cobra.Command{
		Use:   "patch [JOB...] FILE",
		Short: "Change graphs that are there into the graph of a file",
		Long: `Change graphs that are there into the graph of a file, each in one step: jobs with the same path
of names stay, with their messages and state, and get the new parameters and wires; new ones
are created; those that are gone are removed, which is refused while they hold messages or
run. A graph that is this one already stays as it is, so the command may be repeated. With
--dry-run nothing is changed: it says what would be, with -o json in full for each graph.

The graph keeps its name: FILE has the same one, or none.

Instead of JOBs, filters say which graphs are meant, of those with the name of the one in FILE
that are neither completed nor terminated. They are shown and counted, and you are asked:
without a terminal --yes is needed.`,
		Example: "  weir patch order-7 order.yaml --dry-run\n  weir patch order-7 order-8 order.yaml\n  weir patch order.yaml --label team=shop --yes",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			last := len(args) - 1
			if !isGraphFile(args[last]) {
				return usageError{fmt.Errorf("%s: the last word is the FILE of a graph, whose name ends in .yaml, .yml, .json or .fbp", args[last])}
			}
			return f.run(c, s, args[:last], args[last])
		},
	}
	f.flags(s, c)
	c.Flags().Lookup("dry-run").Usage = "only show what would be changed"
	c.Flags().StringArrayVar(&f.graph.params, "param", nil, paramHelp)
	return c
}

func (f *patchFlags) run(c *cobra.Command, s *settings, names []string, file string) error {
	if _, err := f.one(c, s, names); err != nil {
		return err
	}
	if err := f.nameGraph(c, s, names); err != nil {
		return err
	}
	g, err := f.graph.loadKnown(c, s, file)
	if err != nil {
		return err
	}
	plan, err := g.Plan()
	if err != nil {
		return fileError{err}
	}
	if f.typ == "" && !c.Flags().Changed("type") {
		f.typ = plan.Nodes[0].Type
	}
	digest := plan.Digest()
	d := deed{"Patch", patchable(), func(ctx context.Context, h *client.Handle, _ *job.Info) (string, error) {
		info, err := h.Info(ctx)
		switch {
		case err != nil:
			return "", err
		case info.Definition == digest:
			return "has this definition already", nil
		}
		return patched(info), h.Patch(byUser(ctx), g)
	}}
	switch {
	case f.dryRun:
		return f.compare(c, s, names, d, g)
	case len(names) == 1:
		return s.actSaying(c, names[0], d.do)
	}
	return f.do(c, s, names, "", nil, d)
}

// patched says what becomes of a graph that is patched.
func patched(info *job.Info) string {
	switch info.Status {
	case statemachine.Completed:
		return "is patched; it had completed, and what its jobs have done stays as it is"
	case statemachine.Failed:
		return fmt.Sprintf("is patched; its failed jobs go on by weir retry %s --tree", info.ID)
	default:
		return "is patched"
	}
}

// patchable are the statuses of graphs that have not ended.
func patchable() []statemachine.Status {
	return slices.DeleteFunc(statemachine.Statuses(), func(s statemachine.Status) bool { return s.Settled() || s == statemachine.Terminating })
}

// nameGraph gives a graph whose file has no name that of the graphs that it is for.
func (f *patchFlags) nameGraph(c *cobra.Command, s *settings, names []string) error {
	f.graph.name = f.typ
	if len(names) == 0 {
		return nil
	}
	return s.with(c, names[0], func(ctx context.Context, _ *client.Client, h *client.Handle) error {
		info, err := h.Info(ctx)
		if err == nil && info.Graph {
			f.graph.name = info.Type
		}
		return err
	})
}

// patchView is what a patch would change of one graph, as -o json prints it.
type patchView struct {
	Job job.ID `json:"job"`
	api.Difference
}

// compare says what the graphs would become, and changes nothing.
func (f *patchFlags) compare(c *cobra.Command, s *settings, names []string, d deed, g *graph.Graph) error {
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		client := client.New(store)
		all, err := named(ctx, client, names)
		if len(names) == 0 {
			var filter job.Filter
			if filter, err = f.filterFor(c, d); err == nil {
				err = f.ages(ctx, store, &filter)
			}
			if err == nil {
				all, err = matching(ctx, client, filter)
			}
		}
		if err != nil {
			return err
		}
		called := func(id job.ID) string { return string(id) }
		if len(names) == 1 {
			called = typed(all[0].ID, names[0])
		}
		views := []patchView{}
		var failed someError
		for _, i := range all {
			found, err := client.At(i.ID).Diff(ctx, g)
			if err == nil && (i.Status == statemachine.Terminating || i.Status == statemachine.Terminated) {
				err = fmt.Errorf("%w: graph %s is %s, and is not patched any more", job.ErrStatus, i.ID, i.Status)
			}
			switch {
			case err == nil:
				views = append(views, patchView{i.ID, api.DifferenceOf(found)})
			case len(names) == 1 || ctx.Err() != nil || job.Temporary(err):
				return withNames(err, called)
			default:
				failed.add(c, err, len(all))
			}
		}
		if err := showPatches(c, s, views, called); err != nil {
			return err
		}
		return failed.any()
	})
}

// showPatches shows what graphs would become; on a terminal those for which it is the same together.
func showPatches(c *cobra.Command, s *settings, views []patchView, called func(job.ID) string) error {
	if s.output == "name" {
		for i := range views {
			if _, err := fmt.Fprintln(c.OutOrStdout(), views[i].Job); err != nil {
				return err
			}
		}
		return nil
	}
	return s.show(c, views, "", func(w io.Writer) error {
		var order []string
		jobs := map[string][]string{}
		for i := range views {
			text := patchText(&views[i].Difference)
			if jobs[text] == nil {
				order = append(order, text)
			}
			jobs[text] = append(jobs[text], called(views[i].Job))
		}
		for _, text := range order {
			who := "job " + jobs[text][0]
			if n := len(jobs[text]); n > 1 {
				who = jobCount(n) + ", the first " + jobs[text][0]
			}
			if _, err := fmt.Fprintf(w, "%s: %s", who, text); err != nil {
				return err
			}
		}
		if len(views) == 0 {
			_, err := fmt.Fprintln(c.ErrOrStderr(), "no graphs")
			return err
		}
		return nil
	})
}

// patchText says what a patch would change: first what goes.
func patchText(d *api.Difference) string {
	if d.Same {
		return "has this definition already\n"
	}
	var b strings.Builder
	node := func(sign string, n *api.NodeDifference) {
		name := term.Clean(n.Path)
		if n.Path == "" {
			name = "the graph itself"
		}
		fmt.Fprintf(&b, "  %s %s (%s)", sign, name, term.Clean(n.Type))
		if n.Waiting > 0 {
			fmt.Fprintf(&b, ", holds %s: the patch is refused while it does", counted(int(n.Waiting), "message"))
		}
		b.WriteString("\n")
		for _, f := range n.Fields {
			fmt.Fprintf(&b, "      %s: %s -> %s\n", term.Clean(f.Field), term.Clean(string(f.From)), term.Clean(string(f.To)))
		}
	}
	for _, part := range []struct {
		sign  string
		nodes []api.NodeDifference
	}{{"-", d.Removed}, {"+", d.Added}, {"~", d.Changed}} {
		for i := range part.nodes {
			node(part.sign, &part.nodes[i])
		}
	}
	for _, edge := range d.EdgesRemoved {
		fmt.Fprintf(&b, "  - %s\n", term.Clean(edge))
	}
	for _, edge := range d.EdgesAdded {
		fmt.Fprintf(&b, "  + %s\n", term.Clean(edge))
	}
	if b.Len() == 0 {
		return "no job and no edge would change\n"
	}
	return "would change\n" + b.String()
}
