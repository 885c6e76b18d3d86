package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/port"
)

func newPublish(s *settings) *cobra.Command {
	var asText bool
	c := &cobra.Command{
		Use:   "publish CHANNEL [MESSAGE|@FILE|-]...",
		Short: "Publish messages to a channel",
		Long: `Publish messages to a channel: to the In ports, and triggers, that subscribe to it or to a
channel above it, as /orders is above /orders/new. A MESSAGE is JSON; @FILE and - publish each
line of a file or of standard input, which is JSON, too. With --text each of them is a text.
Nobody who subscribes later gets them.`,
		Example: "  weir publish /files/new '{\"name\": \"a.png\"}'\n  weir publish /files/new a.png b.png --text\n  weir publish /orders @orders.jsonl",
		Args:    usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				return usageError{errors.New("there is nothing to publish: give a MESSAGE, @FILE or -")}
			}
			if err := port.CheckChannel(args[0]); err != nil {
				return usageError{err}
			}
			sources, err := openSources(args[1:], c.InOrStdin(), asText)
			defer closeSources(sources)
			if err != nil {
				return err
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				sender := sender{client: client.New(store), port: args[0], asText: asText, context: port.Context{port.ContextBy: actor}}
				if err := sender.send(ctx, sources...); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "channel %s got %s\n", args[0], counted(sender.sent, "message"))
				return err
			})
		},
	}
	c.Flags().BoolVar(&asText, "text", false, textHelp)
	return c
}
