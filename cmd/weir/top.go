package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// minInterval is the shortest time between two looks at Redis that weir top allows.
const minInterval = 100 * time.Millisecond

func newTop(s *settings) *cobra.Command {
	var interval time.Duration
	c := &cobra.Command{
		Use:   "top [JOB]",
		Short: "Watch and steer jobs in the terminal",
		Long: `Watch and steer jobs in the terminal: the tree that JOB belongs to, or without JOB a
list of the newest trees. Beside it is what is known of the selected job: its ports, the
wires to and from it, its state, its log, and why it waits. Keys send messages, peek into
ports, retry, run and terminate; ? shows all of them.

It is read anew each second, or less often if reading takes long. While Redis cannot be
reached the last picture stays, and says so.`,
		Example: "  weir top\n  weir top album-2026 --interval 5s",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if interval < minInterval {
				return usageError{fmt.Errorf("--interval %s: use %s or more", interval, minInterval)}
			}
			in, isFile := c.InOrStdin().(*os.File)
			out := term.File(c.OutOrStdout())
			if !isFile || !term.IsTerminal(in) || !term.IsTerminal(c.OutOrStdout()) {
				return usageError{errors.New("top needs a terminal to draw on and to read keys from; use weir tree --watch, or weir tree -o json")}
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				where, style := store.Where(), term.StyleOf(c.OutOrStdout())
				ascii := style.ASCII
				style.ASCII, style.Width = false, 0 // the view puts all of it into ASCII, and knows its width
				if namespace := store.Namespace(); namespace != redisstore.DefaultNamespace {
					where += ", namespace " + namespace
				}
				cfg := top.Config{
					Source: top.Jobs(job.NewClient(store)), Interval: interval, By: actor, Where: where,
					Style: style, ASCII: ascii,
				}
				if len(args) == 1 {
					h, err := job.NewClient(store).Find(ctx, args[0])
					if err != nil {
						return err
					}
					cfg.Job = h.ID()
				}
				return top.Run(ctx, cfg, in, out)
			})
		},
	}
	spanVar(c.Flags(), &interval, "interval", time.Second, "how often to look, like 5s")
	return c
}
