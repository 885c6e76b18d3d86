package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
)

func newLimits(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "limits",
		Short: "List limits of runs at once, and rates: what is used, and who waits",
		Long: `List the limits of how many runs go on at once: of types with MaxRunning, for each value of an
argument if they have MaxRunningBy, and of queues (weir queue limit); and the rates of types
with MaxRuns, of which no more begin within a time. RUNNING counts places that are taken,
of a rate by runs that began within that time; WAITING jobs that are ready and wait for one,
OLDEST for how long the next of them has been ready; FREE IN in how long a rate that has no
place has the next one. Of a limit for each value of an argument
the values are listed that have runs.`,
		Example: "  weir limits\n  weir limits -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				all, err := store.Limits(ctx)
				if err != nil {
					return err
				}
				views := api.LimitsOf(all)
				return s.show(c, views, "", func(w io.Writer) error {
					if len(views) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no limits: weir queue limit sets one of a queue, and a type has those of its worker's options")
						return err
					}
					rows := [][]string{{"LIMIT", "PLACES", "RUNNING", "WAITING", "OLDEST", "FREE IN", "NEXT"}}
					for _, l := range views {
						next, oldest, free := "-", "-", "-"
						if l.Free > 0 {
							free = waited(term.StyleOf(w), l.Free)
						}
						if len(l.Next) > 0 {
							next, oldest = string(l.Next[0]), waited(term.StyleOf(w), l.Waited)
						}
						rows = append(rows, []string{term.Clean(limitName(l)), limitPlaces(l), term.Number(l.Running), term.Number(l.Waiting), oldest, free, next})
					}
					return term.Table(w, rows, term.StyleOf(w))
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

// limitPlaces is how many places a limit has, of a rate with its time.
func limitPlaces(l api.Limit) string {
	if l.Per == "" {
		return count(l.Places)
	}
	return count(l.Places) + " in " + l.Per
}

// limitName is what a limit is called; of one for each value of an argument with that.
func limitName(l api.Limit) string {
	if l.By != "" {
		return l.Limit + "=<" + l.By + ">"
	}
	return l.Limit
}

func newQueueLimit(s *settings) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "limit QUEUE NUMBER",
		Short: "Let at most N runs of a queue go on at once, over all engines",
		Long: `Let at most N runs of jobs in a queue go on at once, over all engines; 0 ends the limit.
Jobs that wait go on at once when there is more room. Engines know of a new limit within five
seconds; a changed one counts at once. Runs in progress go on.`,
		Example:     "  weir queue limit mail 5\n  weir queue limit mail 0",
		Args:        usage(cobra.ExactArgs(2)),
		Annotations: map[string]string{noNegative: "a limit is at least 1; 0 ends it, as in weir queue limit mail 0"},
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 0 {
				return usageError{fmt.Errorf("%.40q is not a number of runs: use at least 1, or 0 for no limit", args[1])}
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				limits, err := store.QueueLimits(ctx)
				if err != nil {
					return err
				}
				if !force && (n > 0 || limits[args[0]] == 0) { // a limit that there is can always end
					if err := checkQueue(ctx, store, args[0]); err != nil {
						return fmt.Errorf("%w (--force limits it anyway)", err)
					}
				}
				if err := store.SetQueueLimit(ctx, args[0], n); err != nil {
					return err
				}
				text := "at most " + counted(n, "run") + " at once; engines keep to a new limit within five seconds"
				if n == 0 {
					text = "no limit of runs at once"
				}
				_, err = fmt.Fprintf(c.OutOrStdout(), "queue %s has %s\n", args[0], text)
				return err
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also a queue that nobody has heard of yet")
	return c
}
