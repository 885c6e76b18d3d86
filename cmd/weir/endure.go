package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// endure looks again and again until the user ends the command, which is no error, or
// something happens that will not pass. While Redis does not answer it goes on trying, and
// says so once. Before it says something it calls speaking.
func endure(c *cobra.Command, every time.Duration, speaking func(), look func(ctx context.Context) error) error {
	ctx := c.Context()
	for lost := false; ; {
		err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && final(err):
			return err
		case lost != (err != nil):
			text := "Redis answers again"
			if lost = err != nil; lost {
				text = oneLine(err) + "; trying again until Ctrl-C"
			}
			speaking()
			fmt.Fprintln(c.ErrOrStderr(), "weir:", text)
		}
		if err := rest(ctx, c.OutOrStdout(), every); errors.Is(err, term.ErrClosed) {
			return err
		} else if err != nil {
			return nil // the user ended it
		}
	}
}

// goneEvery is how often it is looked whether somebody still reads the output.
const goneEvery = 500 * time.Millisecond

// rest pauses, until there is nobody who reads the output.
func rest(ctx context.Context, w io.Writer, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		if term.Gone(w) {
			return term.ErrClosed
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := pause(ctx, min(left, goneEvery)); err != nil {
			return err
		}
	}
}

// final tells whether an error stays however often it is tried again.
func final(err error) bool {
	for _, kind := range []error{term.ErrClosed, job.ErrNotFound, job.ErrAmbiguous, job.ErrRefused, job.ErrConfig} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// oneLine is an error as one line, without anything that a terminal obeys.
func oneLine(err error) string { return term.Clean(strings.Join(strings.Fields(err.Error()), " ")) }
