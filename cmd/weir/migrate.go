package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newMigrate(s *settings) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Give a namespace of an older version of Weir the layout of this one",
		Long: `Give a namespace that an older version of Weir has made the layout of this one, in which
small trees take less memory, and less time of Redis. Nothing is lost, and no job waits for
it. A namespace need not be migrated: with the older layout all works as it did.

Stop all programs of older versions that use it first, servers and clients, too: they
refuse the namespace then, but those that have it open would lose jobs, or create them
twice. It is refused while engines live. With --force it is not: for when all of them are
of this version. Programs use the new layout once they are started anew.`,
		Example: "  weir migrate --namespace shop",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			store, err := s.open(c.Context())
			if err != nil {
				return err
			}
			defer store.Close()
			changed, err := store.Migrate(c.Context(), force)
			if err != nil {
				return err
			}
			text := "namespace %s has the layout of this version\n"
			if !changed {
				text = "namespace %s has the layout of this version already\n"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), text, store.Namespace())
			return err
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also while engines live, all of which are of this version")
	return c
}
