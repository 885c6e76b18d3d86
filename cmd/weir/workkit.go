package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
	"github.com/weirworks/weir/workkit"
)

// kitWords are the schedules of WorkKit that are known.
func kitWords(ctx context.Context, reached storecall.Store, _ []string, _ string) ([]string, error) {
	store, ok := reached.(*redisstore.Store)
	if !ok {
		return nil, nil
	}
	return store.WorkKits(ctx)
}

// listen serves schedules of WorkKit as soon as an engine takes jobs. What it returns ends that.
func listen(ctx context.Context, l *workkit.Listener, engine *worker.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for engine.Ready() != nil { // its types are registered then
			if pause(ctx, 20*time.Millisecond) != nil {
				return
			}
		}
		_ = l.Run(ctx) // it logs what goes wrong
	}()
	return func() {
		cancel()
		<-done
	}
}

// addEntry adds an entry to a schedule of WorkKit.
func (f *triggerFlags) addEntry(s *settings, c *cobra.Command, name string, args []string) error {
	var other string
	c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && !slices.Contains([]string{"workkit", "type", "args"}, flag.Name) {
			other = flag.Name
		}
	})
	var values []json.RawMessage // each as it is written
	switch {
	case other != "":
		return usageError{fmt.Errorf("--%s: an entry of a WorkKit schedule has only --type and --args", other)}
	case f.typ == "":
		return usageError{errors.New("what is it to launch? Give --type: a type, or a function such as \"#'some.ns/func-name\"")}
	case f.args != "" && json.Unmarshal([]byte(f.args), &values) != nil:
		return usageError{fmt.Errorf("--args %.60q is not a JSON array, such as [1, 2]", f.args)}
	}
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	when := workkit.Now
	if len(args) > 0 {
		when = args[0]
	}
	return s.besideRedis(c, func(ctx context.Context, store *redisstore.Store) error {
		a, err := workkit.Add(ctx, store, name, when, f.typ, list...)
		if err != nil {
			return err
		}
		for _, warning := range a.Warnings {
			fmt.Fprintln(c.ErrOrStderr(), "weir: "+warning)
		}
		if !a.New {
			_, err := fmt.Fprintln(c.ErrOrStderr(), "weir: it is there already, and is left as it is")
			if err != nil {
				return err
			}
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), a.ID)
		return err
	})
}

// listEntries shows the entries of a schedule of WorkKit.
func (s *settings) listEntries(c *cobra.Command, name string) error {
	return s.besideRedis(c, func(ctx context.Context, store *redisstore.Store) error {
		all, err := workkit.List(ctx, store, name)
		if err != nil {
			return err
		}
		return s.show(c, all, "", func(w io.Writer) error {
			if len(all) == 0 {
				_, err := fmt.Fprintf(c.ErrOrStderr(), "schedule %s is empty: add to it with weir trigger add --workkit %[1]s\n", name)
				return err
			}
			return entryTable(w, all)
		})
	})
}

func entryTable(w io.Writer, all []workkit.Status) error {
	style := term.StyleOf(w)
	rows := [][]string{{"ENTRY", "JOB", "CRON", "NEXT", "STATE"}}
	var notes [][2]string
	for _, e := range all {
		next := "-"
		if e.Next != nil {
			next = comes(style, *e.Next)
		}
		id := term.Clean(e.ID)
		rows = append(rows, []string{id, term.Fit(term.Clean(e.Job), maxWhen), cmp.Or(term.Fit(term.Clean(e.Cron), maxWhen), "-"), next, string(e.State)})
		if e.Why != "" {
			notes = append(notes, [2]string{id, term.Clean(e.Why)})
		}
	}
	if err := term.Table(w, rows, style); err != nil {
		return err
	}
	for _, n := range notes {
		for _, line := range style.Line(n[0]+": ", n[1]) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}
