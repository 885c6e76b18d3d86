package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
)

// choice is a flag that has one of a few values.
type choice struct {
	value string
	known []string
	set   func(string) // is told the value
}

// String implements pflag.Value.
func (c *choice) String() string { return c.value }

// Type implements pflag.Value.
func (c *choice) Type() string { return "string" }

// Set implements pflag.Value.
func (c *choice) Set(value string) error {
	if !slices.Contains(c.known, value) {
		return fmt.Errorf("use %s", joined(c.known))
	}
	c.value = value
	c.set(value)
	return nil
}

// addStyle adds the flags that say what output looks like.
func addStyle(root *cobra.Command, wish *term.Wish) {
	choices := map[string]*choice{
		"color": {
			value: term.ColorAuto, known: []string{term.ColorAuto, term.ColorAlways, term.ColorNever},
			set: func(v string) { wish.Color = v },
		},
		"time": {
			value: "relative", known: []string{"relative", "iso"},
			set: func(v string) { wish.ISO = v == "iso" },
		},
	}
	flags := root.PersistentFlags()
	flags.Var(choices["color"], "color", "`WHEN` to use colours: auto (on terminals, see NO_COLOR and CLICOLOR_FORCE), always or never")
	flags.Var(choices["time"], "time", "`HOW` tables show times: relative (how long ago) or iso (RFC 3339, UTC)")
	flags.BoolVar(&wish.ASCII, "ascii", false, "draw with ASCII characters only; without it where the locale is not UTF-8")
	for name, c := range choices {
		// It only fails for flags that are not there.
		_ = root.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.known, cobra.ShellCompDirectiveNoFileComp))
	}
}
