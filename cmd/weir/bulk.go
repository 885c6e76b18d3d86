package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// bulkFlags are those of commands that act on one JOB or on all that pass a filter.
type bulkFlags struct {
	filterFlags
	yes, dryRun bool
	dryRunNamed bool // --dry-run goes with a JOB, too
}

// bulkHelp is what the help of such commands says of that.
const bulkHelp = `

Instead of a JOB, filters say which jobs are meant, of root jobs or, with --all,
of all. They are shown and counted, and you are asked: without a terminal --yes is needed.`

func (f *bulkFlags) flags(s *settings, c *cobra.Command) {
	f.filterFlags.flags(s, c)
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "of many jobs: do not ask")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "of many jobs: only show them")
	s.formats(c, "table", "json", "name")
}

// one tells whether the command line names one job, or says what is wrong with it.
func (f *bulkFlags) one(c *cobra.Command, s *settings, args []string) (bool, error) {
	given := f.given(c)
	for _, name := range []string{"all", "dry-run"} {
		if c.Flags().Changed(name) && len(args) > 0 && (name != "dry-run" || !f.dryRunNamed) {
			given = append(given, "--"+name)
		}
	}
	switch {
	case len(args) > 0 && len(given) > 0:
		return true, usageError{fmt.Errorf("%s says which of many jobs are meant: leave it out, or %s", given[0], args[0])}
	case len(args) == 0 && len(given) == 0:
		return false, usageError{fmt.Errorf("give a JOB, or say which jobs are meant with --%s; see %s --help", strings.Join(filters, ", --"), c.CommandPath())}
	}
	return len(args) > 0, nil
}

// do does something to the jobs of the command line: to one, to several, or to all that pass the filters.
func (f *bulkFlags) do(c *cobra.Command, s *settings, args []string, done string, one func(ctx context.Context, h *client.Handle) error, d deed) error {
	named, err := f.one(c, s, args)
	switch {
	case err != nil:
		return err
	case len(args) == 1:
		return s.act(c, args[0], done, one)
	case named:
		return s.actEach(c, args, d)
	}
	return f.act(c, s, d)
}

// actEach does something to several jobs. A name that no job has is said before anything is done.
func (s *settings) actEach(c *cobra.Command, names []string, d deed) error {
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		client := client.New(store)
		all, err := named(ctx, client, names)
		if err != nil {
			return err
		}
		return d.each(ctx, c, s, client, all)
	})
}

// named are the jobs of those names, each once.
func named(ctx context.Context, client *client.Client, names []string) (all []*job.Info, err error) {
	for _, name := range names {
		h, err := find(ctx, client, name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(i *job.Info) bool { return i.ID == h.ID() }) {
			continue
		}
		info, err := h.Info(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

// deed is what a command does to jobs.
type deed struct {
	verb string                // in the question
	on   []statemachine.Status // which jobs are meant if no --status says so: those it can be done to
	// do does it and says what becomes of the job.
	do func(ctx context.Context, h *client.Handle, i *job.Info) (string, error)
}

// on returns the statuses in which a job accepts an event.
func on(event statemachine.Event) (statuses []statemachine.Status) {
	for _, m := range statemachine.Transitions() {
		if m.Event == event && m.From != statemachine.New {
			statuses = append(statuses, m.From)
		}
	}
	return statuses
}

// act does something to all jobs that pass the filters.
func (f *bulkFlags) act(c *cobra.Command, s *settings, d deed) error {
	filter, err := f.filterFor(c, d)
	if err != nil {
		return err
	}
	if !f.dryRun && !f.yes && !term.CanAsk(c.InOrStdin()) {
		return usageError{errors.New("standard input is no terminal, so nobody can be asked: add --yes, or --dry-run to see which jobs are meant")}
	}
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		if err := f.ages(ctx, store, &filter); err != nil {
			return err
		}
		client := client.New(store)
		if f.dryRun && s.output != "table" {
			return s.list(ctx, c, store, filter, 0)
		}
		all, err := matching(ctx, client, filter)
		if err != nil {
			return err
		}
		w := c.ErrOrStderr()
		if f.dryRun {
			w = c.OutOrStdout()
		}
		if err := preview(ctx, w, c, store, filter, len(all)); err != nil || f.dryRun {
			return err
		}
		if !f.yes && len(all) > 0 {
			these := d.verb + " these " + jobCount(len(all))
			if len(all) == 1 {
				these = d.verb + " this job"
			}
			if err := ask(ctx, c, these); err != nil {
				return err
			}
		}
		return d.each(ctx, c, s, client, all)
	})
}

// filterFor is the filter of the flags but for ages, for what is to be done.
func (f *bulkFlags) filterFor(c *cobra.Command, d deed) (job.Filter, error) {
	filter, err := f.filter(c)
	if filter.Status == nil {
		filter.Status = d.on
	}
	return filter, err
}

// matching are the jobs that pass a filter; of very many no more is kept than is needed.
func matching(ctx context.Context, client *client.Client, filter job.Filter) (all []*job.Info, err error) {
	_, err = chunks(ctx, client, filter, 0, func(part []*job.Info) error {
		for _, i := range part {
			all = append(all, &job.Info{ID: i.ID, Graph: i.Graph})
		}
		return nil
	})
	return all, err
}

// previewed is how many of the jobs are shown before something is done to them.
const previewed = 10

// preview shows how many jobs there are, and the first of them.
func preview(ctx context.Context, w io.Writer, c *cobra.Command, store storecall.Store, f job.Filter, n int) error {
	client := client.New(store)
	if n == 0 {
		return none(ctx, c, client, f)
	}
	var first []*api.Job
	if _, err := chunks(ctx, client, f, previewed, func(part []*job.Info) (err error) {
		first, err = api.JobsOf(ctx, store, part)
		return err
	}); err != nil {
		return err
	}
	if err := jobTable(w, first, f.Order); err != nil {
		return err
	}
	text := jobCount(n)
	if n > len(first) {
		text = fmt.Sprintf("… %s in all", text)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func jobCount(n int) string { return counted(n, "job") }

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return term.Number(int64(n)) + " " + thing
}

// ask returns an error unless somebody says yes to a question.
func ask(ctx context.Context, c *cobra.Command, question string) error {
	if _, err := fmt.Fprintf(c.ErrOrStderr(), "%s? [y/N] ", question); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() { // an interrupt does not wait for a line
		line, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-answer:
		if a != "y" && a != "yes" {
			return errors.New("nothing was done")
		}
		return nil
	}
}

// someError says that something was not done to some of many jobs.
type someError struct {
	worst       error
	failed, all int
}

func (e someError) Error() string {
	return fmt.Sprintf("not done to %d of %s", e.failed, jobCount(e.all))
}
func (e someError) Unwrap() error { return e.worst }

// add says what was not done to one of many jobs.
func (e *someError) add(c *cobra.Command, err error, all int) {
	fmt.Fprintln(c.ErrOrStderr(), "weir:", strings.Join(strings.Fields(err.Error()), " "))
	e.failed, e.all = e.failed+1, all
	if e.worst == nil || worse(err, e.worst) {
		e.worst = err
	}
}

// any is the error, if there is one.
func (e *someError) any() error {
	if e.worst == nil {
		return nil
	}
	return *e
}

// worse tells which of two errors decides on the exit code: one that nobody expects does, else
// the one with the higher code.
func worse(a, b error) bool {
	x, y := exitCode(a), exitCode(b)
	return y != exitError && (x == exitError || x > y)
}

// did says what became of a job.
func (s *settings) did(c *cobra.Command, id job.ID, done string) error {
	told := effects{w: c.OutOrStdout(), output: s.output}
	return cmp.Or(told.add(id, done), told.end())
}

// each does it to jobs, one after the other, and goes on where it cannot be done.
func (d deed) each(ctx context.Context, c *cobra.Command, s *settings, client *client.Client, all []*job.Info) (err error) {
	told := effects{w: c.OutOrStdout(), output: s.output, all: []effect{}}
	defer func() { err = cmp.Or(err, told.end()) }()
	var failed someError
	for _, i := range all {
		done, err := d.do(byUser(ctx), client.At(i.ID), i)
		if err == nil {
			if err := told.add(i.ID, done); err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil || job.Temporary(err) {
			return err // so it would go with all others
		}
		failed.add(c, err, len(all))
	}
	return failed.any()
}

// effect is what became of a job, as -o json prints it.
type effect struct {
	Job  job.ID `json:"job"`
	Done string `json:"done"`
}

// effects tells what became of jobs: at once, or, as JSON, when all is done.
type effects struct {
	w      io.Writer
	output string
	all    []effect
}

func (e *effects) add(id job.ID, done string) (err error) {
	switch e.output {
	case "json":
		e.all = append(e.all, effect{id, done})
	case "name":
		_, err = fmt.Fprintln(e.w, id)
	default:
		_, err = fmt.Fprintf(e.w, "job %s %s\n", id, done)
	}
	return err
}

func (e *effects) end() error {
	if e.output != "json" {
		return nil
	}
	return encode(e.w, e.all, "  ")
}
