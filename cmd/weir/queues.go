package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/port"
)

func newQueues(s *settings) *cobra.Command {
	var types bool
	c := &cobra.Command{
		Use:   "queues",
		Short: "List the queues: what is queued, who serves them, which are paused",
		Long: `List the queues of the namespace: those that engines have registered types for, serve now, or
ever had jobs in. PENDING counts jobs that are ready, without those that wait for a limit, which
LIMITED counts, ACTIVE runs in progress, as engines tell each second, OLDEST how long the first
ready job has waited. ENGINES are those that live and serve the queue. With --types the ready jobs
are counted by type. Jobs that are tried again later are none of these:
weir jobs --status scheduled lists them.`,
		Example: "  weir queues\n  weir queues --types\n  weir queues -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				all, err := store.Queues(ctx)
				if err != nil {
					return err
				}
				views := api.QueuesOf(all)
				return s.show(c, views, "", func(w io.Writer) error {
					if len(views) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no queues: start an engine, or create a job")
						return err
					}
					if types && !slices.ContainsFunc(views, func(q api.Queue) bool { return q.Pending > 0 }) {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "nothing is ready: no job waits for an engine")
						return errors.Join(err, limited(c.ErrOrStderr(), views))
					}
					table := queueTable
					if types {
						table = readyTable
					}
					return errors.Join(table(w, views), limited(w, views))
				})
			})
		},
	}
	c.Flags().BoolVar(&types, "types", false, "count the ready jobs by type")
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

// limited says how many jobs wait for limits: they are not pending before they have their places.
func limited(w io.Writer, all []api.Queue) error {
	n := 0
	for i := range all {
		n += all[i].Limited
	}
	text := count(n) + " more ready jobs wait"
	switch n {
	case 0:
		return nil
	case 1:
		text = "1 more ready job waits"
	}
	_, err := fmt.Fprintf(w, "%s for a limit: weir limits\n", text)
	return err
}

// readyTable lists what is ready by queue and type.
func readyTable(w io.Writer, all []api.Queue) error {
	style := term.StyleOf(w)
	rows := [][]string{{"QUEUE", "TYPE", "READY", "OLDEST"}}
	for _, q := range all {
		for _, r := range q.Ready {
			name := r.Type
			if name == "" {
				name = "(of types that no engine has)"
			}
			rows = append(rows, []string{term.Clean(q.Queue), term.Clean(name), count(r.Jobs), waited(style, r.OldestMS)})
		}
	}
	return term.Table(w, rows, style)
}

// waited is for how long something has waited.
func waited(style term.Style, ms int64) string {
	return style.Age(time.Now().Add(-time.Duration(ms) * time.Millisecond))
}

// maxTypes is how many columns the types of a queue may take.
const maxTypes = 40

func queueTable(w io.Writer, all []api.Queue) error {
	style := term.StyleOf(w)
	rows := [][]string{{"QUEUE", "STATE", "PENDING", "LIMITED", "ACTIVE", "LIMIT", "OLDEST", "ENGINES", "TYPES"}}
	for _, q := range all {
		state, oldest, limit := "open", "-", "-"
		if q.Limit > 0 {
			limit = count(q.Limit)
		}
		if q.Paused {
			state = style.Bold("paused")
		}
		if q.Pending > 0 {
			oldest = waited(style, q.LatencyMS)
		}
		rows = append(rows, []string{
			term.Clean(q.Queue), state, count(q.Pending), count(q.Limited), count(q.Active), limit, oldest,
			strconv.Itoa(q.Engines), term.Fit(term.Clean(strings.Join(q.Types, " ")), maxTypes),
		})
	}
	return term.Table(w, rows, style)
}

func count(n int) string { return term.Number(int64(n)) }

func newQueue(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "queue",
		Short:   "Pause, resume and limit queues",
		Long:    "Pause, resume and limit queues. weir queues lists them.",
		Example: "  weir queue pause mail\n  weir queue resume mail",
	}
	c.AddCommand(s.complete(newQueuePause(s), queueWords), s.complete(newQueueResume(s), queueWords), s.complete(newQueueLimit(s), queueWords))
	return c
}

func newQueuePause(s *settings) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "pause QUEUE",
		Short: "Let no job of a queue begin a run, on any engine, until it is resumed",
		Long: `Let no job of a queue begin a run, on any engine, until the queue is resumed. Runs in
progress end; what they make ready stays queued. Nothing is lost. The pause holds until weir queue
resume: what tools of asynq do to it, or a loss of asynq's keys, is put right within seconds.`,
		Example: "  weir queue pause mail",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				err := checkQueue(ctx, store, args[0])
				if err != nil && !force {
					return fmt.Errorf("%w (--force pauses it anyway)", err)
				}
				changed, err := store.PauseQueue(ctx, args[0])
				return saidOf(c, args[0], changed, err, "is paused", "was paused already")
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also a queue that nobody has heard of yet")
	return c
}

func newQueueResume(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "resume QUEUE",
		Short:   "Let jobs of a paused queue run again",
		Example: "  weir queue resume mail",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				if err := checkQueue(ctx, store, args[0]); err != nil {
					return err
				}
				changed, err := store.ResumeQueue(ctx, args[0])
				return saidOf(c, args[0], changed, err, "goes on", "was not paused")
			})
		},
	}
}

// saidOf tells what became of a queue. One that is as wanted already is no error: so the
// command can be repeated.
func saidOf(c *cobra.Command, queue string, changed bool, err error, done, before string) error {
	if err != nil {
		return err
	}
	if !changed {
		done = before
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "queue %s %s\n", queue, done)
	return err
}

// checkQueue refuses a queue that is not known.
func checkQueue(ctx context.Context, store storecall.Store, queue string) error {
	all, err := store.Queues(ctx)
	if err != nil {
		return err
	}
	var known []string
	for _, q := range all {
		if q.Name == queue {
			return nil
		}
		known = append(known, q.Name)
	}
	return usageError{fmt.Errorf("no queue %q is known: %s", queue, port.Suggest(queue, known))}
}
