package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
)

func newWorkers(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "workers",
		Short: "List the engines that live, and the runs that they have in progress",
		Long: `List the engines that live, in all processes, and the runs that they have in progress.
Each engine tells of itself once a second; one that died is listed for ten seconds more.
RUNS says how many of its slots have one; "3 over HTTP" are runs that a server has
leased to workers that are no Go programs. Handlers run in an engine of their own, so a program
may be listed twice: TYPES tells which is which. Of an engine with more than 100 runs the
oldest 100 are listed.`,
		Example: "  weir workers\n  weir workers -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				engines, err := store.Engines(ctx)
				if err != nil {
					return err
				}
				return s.show(c, engines, "", func(w io.Writer) error {
					if len(engines) == 0 {
						_, err := fmt.Fprintln(c.ErrOrStderr(), "no engine lives: start one, as with weir worker")
						return err
					}
					return engineTables(w, engines)
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

// engineTables draws the engines, and below them their runs.
func engineTables(w io.Writer, engines []store.EngineInfo) error {
	style := term.StyleOf(w)
	rows := [][]string{{"HOST", "PID", "STATE", "UP", "SEEN", "RUNS", "VERSION", "QUEUES", "TYPES"}}
	runs := [][]string{{"JOB", "TYPE", "QUEUE", "SINCE", "ENGINE"}}
	more := 0
	for _, e := range engines {
		state := "serving"
		if e.Stopping {
			state = "stopping"
		}
		slots := fmt.Sprintf("%d/%d", e.Running, e.Concurrency)
		if e.OverHTTP() {
			slots = fmt.Sprintf("%d over HTTP", e.Running)
		}
		host := term.Clean(cmp.Or(e.Host, "-"))
		rows = append(rows, []string{
			host, strconv.Itoa(e.PID), state, style.Age(e.Started), style.Ago(e.Seen), slots,
			term.Clean(cmp.Or(e.Version, "-")), term.Clean(weights(e.Queues)), term.Fit(term.Clean(strings.Join(e.Types, " ")), maxTypes),
		})
		for _, r := range e.Runs {
			runs = append(runs, []string{string(r.Job), term.Clean(r.Type), term.Clean(r.Queue), style.Age(r.Since), fmt.Sprintf("%s:%d", host, e.PID)})
		}
		more += e.Running - len(e.Runs)
	}
	if err := term.Table(w, rows, style); err != nil || len(runs) == 1 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	if err := term.Table(w, runs, style); err != nil || more == 0 {
		return err
	}
	_, err := fmt.Fprintln(w, style.Faint(fmt.Sprintf("and %d younger ones", more)))
	return err
}

// weights writes queues as weir worker takes them.
func weights(queues map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		words = append(words, name+"="+strconv.Itoa(queues[name]))
	}
	return strings.Join(words, " ")
}
