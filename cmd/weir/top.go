package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/cmd/weir/internal/top"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
)

// minInterval is the shortest time between two looks at Redis that weir top allows.
const minInterval = 100 * time.Millisecond

func newTop(s *settings) *cobra.Command {
	var interval time.Duration
	c := &cobra.Command{
		Use:   "top [JOB]",
		Short: "Watch and steer jobs, queues, workers and triggers in the terminal",
		Long: `Watch and steer jobs in the terminal: the tree that JOB belongs to, or without JOB a list of
trees. Above are totals and rates, as the store counts them. Five views, by the keys 1 to 5:

  tree      trees, or the jobs of one; F lists by status, o in another order, both on the server
  graph     the picture of the tree: how each job is, and what waits on each wire
  queues    what is ready by queue and type, and for how long; pause, resume, limit
  workers   the engines that live, and their runs
  triggers  when they fire next and fired last; fire, pause, resume

Beside it is what is known of what is selected: first why it waits, then its ports, the wires to
and from it, its state and its log. Keys send messages, peek into ports, retry, run, terminate
and delete, one job or all that space has selected, and ask before they do; L shows the log on
the full screen, y copies an ID, : takes commands such as :filter failed or :pause mail, and the
mouse works too. ? shows all keys. docs/top.md tells more.

What is shown is read anew each second, or less often if reading takes long. While Redis or the
server cannot be reached the last picture stays, and says so.`,
		Example: "  weir top\n  weir top album-2026 --interval 5s\n  weir top --server https://weir.example.com",
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
					Source: top.Store(store), Interval: interval, By: actor, Where: where,
					Style: style, ASCII: ascii,
				}
				if len(args) == 1 {
					h, err := find(ctx, client.New(store), args[0])
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
