package main

import (
	"github.com/spf13/cobra"

	"github.com/weirworks/weir/docs"
)

func newCLISchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of what commands print with -o json",
		Long: `Print the JSON Schema of what commands print with -o json, for programs that rely on it.
Each command that reads has an entry under $defs, such as #/$defs/tree. The schema of graph
files is another: weir graph schema.`,
		Example: "  weir schema > weir.schema.json",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(docs.CLISchema())
			return err
		},
	}
}
