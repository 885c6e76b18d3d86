package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
)

// lookThrough is how often a graph on a server is looked at.
const lookThrough = 100 * time.Millisecond

// through starts a graph on a server, whose engines and workers run it, and prints what it writes.
func (f *runFlags) through(c *cobra.Command, s *settings, server setting, name string, labels []job.Option) error {
	for _, flag := range []string{"root", "allow-exec", "allow-private-http"} {
		if c.Flags().Changed(flag) {
			return usageError{fmt.Errorf("--%s is for jobs that this process runs, and through a server (%s) others run them: leave it out, or give it to weir serve or weir worker there", flag, server.From)}
		}
	}
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		r, g, err := f.prepare(c, s, name, store)
		if err != nil {
			return err
		}
		defer r.close()
		if r.handle, err = client.New(store).Start(ctx, g, labels...); err != nil {
			return err
		}
		r.kept, r.every = true, lookThrough
		fmt.Fprintf(r.errs, "job %s\n", r.handle.ID())
		ctx, cancel := f.limited(ctx)
		defer cancel()
		err = interrupted(c.Context(), r.watch(ctx))
		late := context.WithoutCancel(ctx)
		if err != nil {
			r.stays(late, false)
		}
		return f.ended(late, c, r, err)
	})
}
