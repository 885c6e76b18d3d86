package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

func newRead(s *settings) *cobra.Command {
	var n int
	var all bool
	c := &cobra.Command{
		Use:   "read JOB PORT",
		Short: "Take messages out of a port of a job and print them",
		Long: `Take messages out of a port of a job and print them. Messages are removed after they were
printed: if the command dies, or what it prints cannot be written, those that were not printed
stay, and some that were may come again with the next read. If somebody else takes messages of
the port at the same time the command fails: what it printed last may be printed twice. With
--all, json and yaml print one document for each 8 MiB of messages.`,
		Example: "  weir read album-2026 thumbs\n  weir read album-2026 thumbs --all -o jsonl | weir send archive in -",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			switch err := checkNumber(n); {
			case err != nil:
				return err
			case term.Closed(c.OutOrStdout()):
				return usageError{errors.New("standard output is closed, or /dev/null opened for reading, too: nothing was taken; to throw messages away use > /dev/null, in Python open(os.devnull, \"w\") in place of DEVNULL")}
			}
			if all && c.Flags().Changed("number") {
				return usageError{errors.New("-n limits what is read: use it without --all")}
			}
			return s.withPort(c, args, func(ctx context.Context, _ *client.Client, h *client.Handle, p job.PortInfo) error {
				return s.read(ctx, c, h, p, n, all)
			})
		},
	}
	c.Flags().IntVarP(&n, "number", "n", 1, "at most `N` messages")
	c.Flags().BoolVar(&all, "all", false, "all that are there")
	s.formats(c, "table", "json", "jsonl", "yaml")
	return c
}

// readPage is how many messages weir read --all prints, and then removes, at a time where the format has no document.
const readPage = 100

// read prints up to n messages of a port, or all, and removes what it has printed.
func (s *settings) read(ctx context.Context, c *cobra.Command, h *client.Handle, p job.PortInfo, n int, all bool) error {
	switch {
	case all && (s.output == "json" || s.output == "yaml"):
		n = math.MaxInt32
	case all:
		n = readPage
	}
	left := p.Waiting
	for first := true; ; first = false {
		printed := 0
		err := h.Consume(ctx, p.Dir, p.Name, n, func(page []job.Message) error {
			if printed = len(page); printed == 0 && !first {
				return nil
			}
			left -= int64(printed)
			if !first && s.output == "yaml" {
				if _, err := fmt.Fprintln(c.OutOrStdout(), "---"); err != nil {
					return err
				}
			}
			if err := s.messages(c, page, left); err != nil {
				return err
			}
			if term.Gone(c.OutOrStdout()) { // a pipe keeps what nobody will read
				return term.ErrClosed
			}
			return nil
		})
		if errors.Is(err, job.ErrMoved) {
			return fmt.Errorf("somebody else took messages of port %s meanwhile: what was printed last (%s) may be printed twice; read again", p.Name, counted(printed, "message"))
		}
		if err != nil || !all || printed == 0 {
			return err
		}
	}
}

// checkNumber refuses numbers of messages of which there can be none.
func checkNumber(n int) error {
	if n < 1 {
		return usageError{fmt.Errorf("-n %d: use 1 or more", n)}
	}
	return nil
}
