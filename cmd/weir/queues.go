package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// queueView is a queue as other programs see it.
type queueView struct {
	Queue     string   `json:"queue"`
	Paused    bool     `json:"paused"`
	Pending   int      `json:"pending"`
	Active    int      `json:"active"`
	Scheduled int      `json:"scheduled"`
	Retry     int      `json:"retry"`
	Archived  int      `json:"archived"`
	LatencyMS int64    `json:"latency_ms"` // since when the first pending one waits
	Engines   int      `json:"engines"`
	Slots     int      `json:"slots"`
	Types     []string `json:"types"`
}

func queueViews(all []redisstore.QueueInfo) []queueView {
	views := []queueView{}
	for _, q := range all {
		views = append(views, queueView{
			Queue: q.Name, Paused: q.Paused, Pending: q.Pending, Active: q.Active, Scheduled: q.Scheduled, Retry: q.Retry,
			Archived: q.Archived, LatencyMS: q.Latency.Milliseconds(), Engines: q.Engines, Slots: q.Slots, Types: q.Types,
		})
	}
	return views
}

func newQueues(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "queues",
		Short: "List the queues: what is in line, who serves them, which are paused",
		Long: `List the queues of the namespace: those that engines have registered types for, serve
now, or ever had jobs in. PENDING counts wakes in line, ACTIVE runs in progress, as engines
tell each second, LATER wakes that are delivered later or again, OLDEST how long the first
one in line has waited. ENGINES are those that live and serve the queue.`,
		Example: "  weir queues\n  weir queues -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store *redisstore.Store) error {
				all, err := store.Queues(ctx)
				if err != nil {
					return err
				}
				views := queueViews(all)
				return s.show(c, views, "", func(w io.Writer) error {
					if len(views) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no queues: start an engine, or create a job")
						return err
					}
					return queueTable(w, views)
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}

// maxTypes is how many columns the types of a queue may take.
const maxTypes = 40

func queueTable(w io.Writer, all []queueView) error {
	style := term.StyleOf(w)
	rows := [][]string{{"QUEUE", "STATE", "PENDING", "ACTIVE", "LATER", "OLDEST", "ENGINES", "TYPES"}}
	for _, q := range all {
		state, oldest := "open", "-"
		if q.Paused {
			state = style.Bold("paused")
		}
		if q.Pending > 0 {
			oldest = style.Age(time.Now().Add(-time.Duration(q.LatencyMS) * time.Millisecond))
		}
		rows = append(rows, []string{
			term.Clean(q.Queue), state, count(q.Pending), count(q.Active), count(q.Scheduled + q.Retry), oldest,
			strconv.Itoa(q.Engines), term.Fit(term.Clean(strings.Join(q.Types, " ")), maxTypes),
		})
	}
	return term.Table(w, rows, style)
}

func count(n int) string { return term.Number(int64(n)) }

func newQueue(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "queue",
		Short:   "Pause and resume queues",
		Example: "  weir queue pause mail\n  weir queue resume mail",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(s.complete(newQueuePause(s), queueWords), s.complete(newQueueResume(s), queueWords))
	return c
}

func newQueuePause(s *settings) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "pause QUEUE",
		Short: "Let no job of a queue begin a run, on any engine, until it is resumed",
		Long: `Let no job of a queue begin a run, on any engine, until the queue is resumed. Runs in
progress end; what they make ready waits in line. Nothing is lost.`,
		Example: "  weir queue pause mail",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store *redisstore.Store) error {
				err := checkQueue(ctx, store, args[0])
				if err != nil && !force {
					return fmt.Errorf("%w (--force pauses it all the same)", err)
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
			return s.connected(c, func(ctx context.Context, store *redisstore.Store) error {
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
func checkQueue(ctx context.Context, store *redisstore.Store, queue string) error {
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
