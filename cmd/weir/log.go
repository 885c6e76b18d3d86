package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/cmd/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

func newLog(s *settings) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:   "log JOB",
		Short: "Show what the last runs of a job, or of a whole tree, read, wrote and logged",
		Long: `Show what the last runs of a job read and wrote, what they logged, and how they failed,
oldest first. Of the root of a tree, the runs of all its jobs are shown.`,
		Example: "  weir log album-2026 -n 20",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, _ *job.Client, h *job.Handle) error {
				runs, err := h.Runs(ctx, limit)
				if err != nil {
					return err
				}
				notes, err := h.Logs(ctx, limit)
				if err != nil {
					return err
				}
				lines := slices.Concat(logRuns(runs), logNotes(notes))
				slices.SortStableFunc(lines, func(a, b logLine) int { return a.At.Compare(b.At) })
				lines = lines[max(0, len(lines)-limit):]
				if s.output == "jsonl" {
					for _, l := range lines {
						if err := encode(c.OutOrStdout(), l, ""); err != nil {
							return err
						}
					}
					return nil
				}
				return s.show(c, lines, "", func(w io.Writer) error { return printLog(w, lines) })
			})
		},
	}
	c.Flags().IntVarP(&limit, "number", "n", 100, "at most so many entries, the last ones")
	s.formats(c, "table", "json", "jsonl", "yaml")
	return c
}

// logLine is one entry of a log, as JSON and for people.
type logLine struct {
	At   time.Time     `json:"at"`
	Job  job.ID        `json:"job"`
	Run  *job.RunEntry `json:"run,omitempty"`
	Note any           `json:"note,omitempty"`
}

func logRuns(runs []job.RunEntry) []logLine {
	lines := []logLine{}
	for i := range runs {
		lines = append(lines, logLine{At: runs[i].At, Job: runs[i].Job, Run: &runs[i]})
	}
	return lines
}

func logNotes(notes []job.LogEntry) []logLine {
	var lines []logLine
	for _, n := range notes {
		lines = append(lines, logLine{At: n.At, Job: n.Job, Note: n.Entry})
	}
	return lines
}

func printLog(w io.Writer, lines []logLine) error {
	style := term.StyleOf(w)
	for _, l := range lines {
		text := raw(l.Note)
		if l.Run != nil {
			text = explain.Run(l.Run)
		}
		if _, err := fmt.Fprintf(w, "%s %s %s\n", style.Faint(l.At.Format("15:04:05.000")), explain.Number(l.Job), term.Clean(text)); err != nil {
			return err
		}
	}
	return nil
}

func newTrace(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace JOB PORT [N]",
		Short: "Tell where a message came from",
		Long: `Tell where the N-th message that ever came to a port came from (the first is 0; without
N, the oldest that waits): the run that sent it, those that sent what that run had read,
and so on, nearest first.`,
		Example: "  weir trace album-2026 thumbs 7",
		Args:    usage(cobra.RangeArgs(2, 3)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, _ *job.Client, h *job.Handle) error {
				info, err := h.Info(ctx)
				if err != nil {
					return err
				}
				p, err := portOf(info, args[1])
				if err != nil {
					return err
				}
				n := p.Total - p.Waiting
				if len(args) == 3 {
					if n, err = strconv.ParseInt(args[2], 10, 64); err != nil || n < 0 {
						return usageError{fmt.Errorf("%q is no number of a message: the first is 0", args[2])}
					}
				}
				if n >= p.Total {
					dir := map[port.Dir]string{port.Input: "In", port.Output: "Out"}[p.Dir]
					return usageError{fmt.Errorf("%s port %s of job %s has had %d messages: there is no number %d", dir, p.Name, info.ID, p.Total, n)}
				}
				trace, err := h.Trace(ctx, p.Dir, args[1], n)
				if err != nil {
					return err
				}
				lines := logRuns(trace)
				return s.show(c, lines, "", func(w io.Writer) error { return printLog(w, lines) })
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}
