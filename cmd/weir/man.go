package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/manpage"
)

// environment is what all commands look at.
var environment = []manpage.Variable{
	{Name: "WEIR_REDIS_URL", Text: "URL of the Redis that holds the jobs, unless --redis is given."},
	{Name: "WEIR_NAMESPACE", Text: "Namespace of the jobs, unless --namespace is given."},
	{Name: "WEIR_CONTEXT", Text: "Name of the context that holds, unless --context is given; none is no context."},
	{Name: "WEIR_CONFIG", Text: "File of the contexts, instead of weir/config.yaml in the directory for the user's configuration."},
	{Name: "NO_COLOR", Text: "Not empty: no colours, unless --color is given."},
	{Name: "CLICOLOR_FORCE", Text: "Neither empty nor 0: colours even if the output is no terminal, unless NO_COLOR is set or --color is given."},
	{Name: "COLUMNS", Text: "Width at which tables are cut, instead of the terminal's."},
	{Name: "LC_ALL, LC_CTYPE, LANG", Text: "The first that is set says whether more than ASCII can be shown: if it names a character set, that must be UTF-8."},
	{Name: "TERM", Text: "If it is dumb: no colours, and ASCII only."},
}

func newMan() *cobra.Command {
	markdown := ""
	c := &cobra.Command{
		Use:     "man [DIR]",
		Short:   "Write a manual page for each command",
		Long:    "Write a manual page for each command into a directory, by default the current one. It is made if it is not there.",
		Example: "  weir man dist/man && man -l dist/man/weir-tree.1",
		Hidden:  true,
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if markdown != "" {
				return writeMarkdown(markdown, c.Root())
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for all to read
				return usageError{err}
			}
			n, err := writeManual(dir, c.Root())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d pages in %s\n", n, dir)
			return err
		},
	}
	c.Flags().StringVar(&markdown, "markdown", "", "write one page in Markdown into this `FILE` instead")
	return c
}

// writeMarkdown writes a page of a command and those below it.
func writeMarkdown(file string, root *cobra.Command) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // for all to read
		return usageError{err}
	}
	f, err := os.Create(file) //nolint:gosec // the user names the file
	if err != nil {
		return usageError{err}
	}
	return errors.Join(manpage.Markdown(f, root, environment), f.Close())
}

// writeManual writes the pages of a command and those below it.
func writeManual(dir string, c *cobra.Command) (n int, err error) {
	if !manpage.Shown(c) {
		return 0, nil
	}
	c.InitDefaultHelpFlag()
	f, err := os.Create(filepath.Join(dir, manpage.Name(c)+"."+manpage.Section)) //nolint:gosec // the user names the directory
	if err != nil {
		return 0, usageError{err}
	}
	if err := errors.Join(manpage.Write(f, c, environment), f.Close()); err != nil {
		return 0, err
	}
	n = 1
	for _, sub := range c.Commands() {
		more, err := writeManual(dir, sub)
		if n += more; err != nil {
			return n, err
		}
	}
	return n, nil
}
