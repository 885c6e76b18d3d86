package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
)

// retentionFlag is a time that has passed in days, too, or forever.
type retentionFlag struct {
	time.Duration
	text string
}

// Type implements pflag.Value.
func (f *retentionFlag) Type() string { return "retention" }

// String implements pflag.Value.
func (f *retentionFlag) String() string { return f.text }

// Set implements pflag.Value.
func (f *retentionFlag) Set(text string) (err error) {
	f.Duration, err = job.ParseRetention(text)
	f.text = text
	return err
}

func newRetention(s *settings) *cobra.Command {
	var ended, failed, log retentionFlag
	c := &cobra.Command{
		Use:   "retention",
		Short: "Show or set for how long trees are kept after they have settled, and their logs",
		Long: `Show or set for how long trees are kept after they have settled: completed, been terminated,
or failed. Then they are deleted, unless their Out ports hold messages that nobody has read
(weir doctor counts those). What is set holds for trees that settle from then on and were
not started with a retention of their own. --log is for entries of the logs of all trees:
older ones go as others come. A log keeps its last 10,000 entries at most.`,
		Example: "  weir retention\n  weir retention --ended 1h --failed 14d\n  weir retention --failed forever\n  weir retention --log 2d",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				client := client.New(store)
				if err := client.SetRetention(ctx, job.Retention{Ended: ended.Duration, Failed: failed.Duration, Log: log.Duration}); err != nil {
					return err
				}
				r, err := client.Retention(ctx)
				if err != nil {
					return err
				}
				v := api.RetentionOf(r)
				return s.show(c, v, "", func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "ended   %s\nfailed  %s\nlog     %s\n", v.Ended, v.Failed, v.Log)
					return err
				})
			})
		},
	}
	c.Flags().Var(&ended, "ended", "keep trees so long that have completed or were terminated, like 12h or 7d, or forever")
	c.Flags().Var(&failed, "failed", "keep trees so long that have failed")
	c.Flags().Var(&log, "log", "keep entries of logs so long")
	s.formats(c, "table", "json", "yaml")
	return c
}
