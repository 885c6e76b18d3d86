package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
)

// watchEvery is how often --watch reads anew.
const watchEvery = 2 * time.Second

// watched gives a command that reads a flag with which it does so again and again. table tells whether it prints for people.
func watched(c *cobra.Command, table func() bool) *cobra.Command {
	var watch bool
	c.Flags().BoolVarP(&watch, "watch", "w", false, "again every two seconds, until Ctrl-C")
	read := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !watch {
			return read(c, args)
		}
		return again(c, table(), func() error { return read(c, args) })
	}
	return c
}

// watched is that of commands with -o.
func (s *settings) watched(c *cobra.Command) {
	watched(c, func() bool { return s.output == "table" })
}

// again reads until the user has seen enough: on a terminal what people read is drawn in place.
func again(c *cobra.Command, table bool, read func() error) error {
	out, errs := c.OutOrStdout(), c.ErrOrStderr()
	var live *term.Live
	speaking := func() {}
	if table && term.IsTerminal(out) {
		live = term.NewLive(out)
		speaking = live.Keep
	}
	return endure(c, watchEvery, speaking, func(context.Context) error {
		sheet := term.NewSheet(out)
		c.SetOut(sheet)
		if live != nil {
			c.SetErr(sheet) // notes are a part of the picture
		}
		err := read()
		c.SetOut(out)
		c.SetErr(errs)
		switch {
		case err != nil:
			return err
		case live != nil:
			live.Draw(term.StyleOf(out), strings.Split(strings.TrimSuffix(sheet.String(), "\n"), "\n")...)
			return nil
		case table:
			sheet.WriteByte('\n')
		}
		_, err = sheet.WriteTo(out)
		return err
	})
}
