package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

func newDead(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "Look at dead letters, change, requeue or discard them",
		Long: `Look at dead letters, change, requeue or discard them. A dead letter holds what a job with the
failure policy dead_letter could not handle, and the error. It waits in the port errors of that
job, unless that is wired: then --port names the port that it came to.`,
	}
	c.AddCommand(s.complete(newDeadList(s), jobWords), s.complete(newDeadShow(s), jobWords), s.complete(newDeadEdit(s), jobWords),
		s.complete(newDeadRequeue(s), jobWords), s.complete(newDeadDiscard(s), jobWords))
	return c
}

// letterFlags say which dead letters are meant.
type letterFlags struct {
	typ, queue, error, port string
	labels                  []string
	older, newer            ageFlag
	yes, dryRun             bool
}

// letterFilters are the names of those flags of which a command needs one to act on many letters without a JOB.
var letterFilters = []string{"type", "queue", "label", "error", "older", "newer"}

func (f *letterFlags) flags(s *settings, c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.typ, "type", "", "in ports of jobs of this `TYPE`")
	flags.StringVar(&f.queue, "queue", "", "in ports of jobs of this `QUEUE`")
	flags.StringArrayVar(&f.labels, "label", nil, "in ports of jobs with this label, `KEY[=VALUE]`; repeated: with all of them")
	flags.StringVar(&f.error, "error", "", "with this `TEXT` in the error")
	flags.Var(&f.older, "older", "whose last try failed more than this time `AGO`: 90s, 5m, 2h, 3d")
	flags.Var(&f.newer, "newer", "whose last try failed less than this time `AGO`")
	f.portFlag(c)
	s.completeFlag(c, "type", typeWords)
	s.completeFlag(c, "queue", queueWords)
}

func (f *letterFlags) portFlag(c *cobra.Command) {
	c.Flags().StringVar(&f.port, "port", "", "another Out `PORT` of JOB, which dead letters come to along edges")
}

func (f *letterFlags) bulk(s *settings, c *cobra.Command) {
	f.flags(s, c)
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "of many: do not ask")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "only list them")
}

// filter makes a filter of the flags and the name of a job.
func (f *letterFlags) filter(ctx context.Context, c *cobra.Command, store storecall.Store, args []string) (client.LetterFilter, error) {
	for name, value := range map[string]string{"type": f.typ, "queue": f.queue, "error": f.error, "port": f.port} {
		if value == "" && c.Flags().Changed(name) { // an unset variable of a script must not mean all
			return client.LetterFilter{}, usageError{fmt.Errorf("--%s is empty", name)}
		}
	}
	jobs := filterFlags{typ: f.typ, queue: f.queue, labels: f.labels, older: f.older, newer: f.newer}
	filter, err := jobs.filter(c)
	if err == nil {
		err = jobs.ages(ctx, store, &filter)
	}
	out := client.LetterFilter{Jobs: filter, Error: f.error, Port: f.port, Since: filter.Since, Until: filter.Until}
	out.Jobs.Since, out.Jobs.Until = job.Filter{}.Since, job.Filter{}.Until // they are of the letters
	if err != nil {
		return out, err
	}
	if len(args) > 0 {
		h, err := find(ctx, client.New(store), args[0])
		if err != nil {
			return out, err
		}
		out.Job = h.ID()
	}
	if err := out.Validate(); err != nil {
		return out, usageError{err}
	}
	return out, nil
}

func newDeadList(s *settings) *cobra.Command {
	var f letterFlags
	var n int
	c := &cobra.Command{
		Use:   "list [JOB]",
		Short: "List dead letters: of a job and those below it, or of all jobs",
		Long: `List dead letters: those of a job and the jobs below it, or of all jobs; of one port the oldest
first. ID is its name for the other commands, with that of the job.`,
		Example: "  weir dead list\n  weir dead list shop --error timeout --newer 1h\n  weir dead list -o jsonl | jq .messages",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkNumber(n); err != nil {
				return err
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				filter, err := f.filter(ctx, c, store, args)
				if err != nil {
					return err
				}
				all, more, err := lettersOf(ctx, client.New(store), filter, n)
				if err != nil {
					return err
				}
				if more {
					fmt.Fprintf(c.ErrOrStderr(), "there are more: -n shows more than %d\n", n)
				}
				if len(all) == 0 && filter.Job != "" && filter.Port == "" {
					fmt.Fprintln(c.ErrOrStderr(), "where a port errors is wired, dead letters go along its edges: --port names the Out port of JOB that they come to")
				}
				return s.lettersShown(c, explain.Names(ctx, client.New(store)), all)
			})
		},
	}
	f.flags(s, c)
	c.Flags().IntVarP(&n, "number", "n", 100, "at most `N`")
	s.formats(c, "table", "json", "jsonl", "yaml")
	s.watched(c)
	return c
}

// lettersOf returns the first n dead letters that pass a filter, and whether there are more.
func lettersOf(ctx context.Context, c *client.Client, f client.LetterFilter, n int) (all []*client.StoredLetter, more bool, err error) {
	all = []*client.StoredLetter{}
	for l, err := range c.DeadLetters(ctx, f) {
		if err != nil {
			return nil, false, err
		}
		if len(all) == n {
			return all, true, nil
		}
		all = append(all, l)
	}
	return all, false, nil
}

func (s *settings) lettersShown(c *cobra.Command, name func(job.ID) string, all []*client.StoredLetter) error {
	if s.output == "jsonl" {
		for _, l := range all {
			if err := encode(c.OutOrStdout(), l, ""); err != nil {
				return err
			}
		}
		return nil
	}
	return s.show(c, all, "", func(w io.Writer) error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(c.ErrOrStderr(), "no dead letters")
			return err
		}
		style := term.StyleOf(w)
		rows := [][]string{{"ID", "JOB", "AGE", "ERROR"}}
		for _, l := range all {
			rows = append(rows, []string{l.ID, term.Clean(name(l.Job)), style.Age(l.At), l.Error})
		}
		return term.Table(w, rows, style)
	})
}

// withLetters calls fn with dead letters of a job that the command line names by their IDs.
func (s *settings) withLetters(c *cobra.Command, f *letterFlags, args []string, fn func(ctx context.Context, client *client.Client, all []*client.StoredLetter) error) error {
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		filter, err := f.filter(ctx, c, store, args[:1])
		if err != nil {
			return err
		}
		cl, found := client.New(store), map[string]*client.StoredLetter{}
		for l, err := range cl.DeadLetters(ctx, filter) {
			if err != nil {
				return err
			}
			if slices.Contains(args[1:], l.ID) {
				if found[l.ID] = l; len(found) == len(args)-1 {
					break
				}
			}
		}
		var all []*client.StoredLetter
		for _, id := range args[1:] {
			if found[id] == nil {
				return fmt.Errorf("%w: job %s and those below it have no dead letter %q: weir dead list %s lists them", job.ErrNotFound, filter.Job, id, args[0])
			}
			all = append(all, found[id])
		}
		return fn(ctx, cl, all)
	})
}

func newDeadShow(s *settings) *cobra.Command {
	var f letterFlags
	c := &cobra.Command{
		Use:     "show JOB ID",
		Short:   "Show a dead letter: the messages in it, and the error",
		Example: "  weir dead show shop 5f3a91c20b",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withLetters(c, &f, args, func(_ context.Context, _ *client.Client, all []*client.StoredLetter) error {
				l := all[0]
				return s.show(c, l, "", func(w io.Writer) error {
					style := term.StyleOf(w)
					rows := [][]string{
						{"dead letter", l.ID}, {"job", string(l.Job)}, {"in", string(l.In.Job) + " " + l.In.Port}, {"failed", style.Age(l.At)}, {"error", l.Error},
					}
					for _, in := range slices.Sorted(maps.Keys(l.Messages)) {
						rows = append(rows, []string{"port " + in, string(l.Messages[in])})
					}
					for _, row := range rows {
						if _, err := fmt.Fprintf(w, "%-9s %s\n", row[0], term.Clean(row[1])); err != nil {
							return err
						}
					}
					return nil
				})
			})
		},
	}
	f.portFlag(c)
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

func newDeadEdit(s *settings) *cobra.Command {
	var f letterFlags
	c := &cobra.Command{
		Use:   "edit JOB ID PORT=MESSAGE...",
		Short: "Change the messages in a dead letter",
		Long: `Change the messages in a dead letter: the one that came from an In PORT becomes MESSAGE, which is
JSON. One that the port does not take is refused, as weir send refuses it. The dead letter keeps
its name, and goes behind the others of its port.`,
		Example: `  weir dead edit shop 5f3a91c20b 'in={"id":7,"cents":1200}'`,
		Args:    usage(cobra.MinimumNArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			changes := map[string]outgoing{}
			for _, arg := range args[2:] {
				in, text, ok := strings.Cut(arg, "=")
				if !ok {
					return usageError{fmt.Errorf("%.40q: write it as PORT=MESSAGE", arg)}
				}
				m, err := parseMessage(text, false)
				if err != nil {
					return usageError{fmt.Errorf("message for port %s: %w", in, err)}
				}
				changes[in] = m
			}
			return s.withLetters(c, &f, args[:2], func(ctx context.Context, cl *client.Client, all []*client.StoredLetter) error {
				l := all[0]
				for in, m := range changes {
					if l.Messages[in] == nil {
						return usageError{fmt.Errorf("the dead letter has no message of port %q: %s", in, port.Suggest(in, slices.Sorted(maps.Keys(l.Messages))))}
					}
					l.Messages[in] = m.data
				}
				if err := cl.CheckDeadLetter(client.WithKnownFields(ctx), l, slices.Sorted(maps.Keys(changes))...); err != nil {
					return err
				}
				if err := cl.Edit(acting(ctx), l); err != nil {
					return err
				}
				_, err := fmt.Fprintf(c.OutOrStdout(), "dead letter %s is changed\n", l.ID)
				return err
			})
		},
	}
	f.portFlag(c)
	return c
}

// acting says in the log that what is done was done by this program.
func acting(ctx context.Context) context.Context {
	return job.WithContext(ctx, port.Context{port.ContextBy: actor})
}

// manyLetters is what the help of commands on many dead letters says.
const manyLetters = `

Without IDs all of the JOB and those below it are meant, or of all jobs, that pass the
filters. They are counted, and you are asked: without a terminal --yes is needed. With -o json,
jsonl or yaml the dead letters to which it was done are printed, as by weir dead list.`

func newDeadRequeue(s *settings) *cobra.Command {
	var f letterFlags
	var to string
	c := &cobra.Command{
		Use:   "requeue [JOB [ID...]]",
		Short: "Send what dead letters hold back to the In ports it came from",
		Long: `Send what dead letters hold back to the In ports it came from, without the envelope, and remove
the letters: both at once, so that no message is lost or comes twice. What cannot be requeued, as
its job is gone or its port is closed or full, stays.` + manyLetters,
		Example: "  weir dead requeue shop 5f3a91c20b\n  weir dead requeue shop --error timeout --yes\n  weir dead requeue old-shop --to shop/pay --yes",
		RunE: func(c *cobra.Command, args []string) error {
			var other job.ID
			edit := func(l *client.StoredLetter) {
				if other != "" {
					l.Job = other
				}
			}
			find := func(ctx context.Context, client *client.Client) error {
				if to == "" {
					return nil
				}
				h, err := find(ctx, client, to)
				if err == nil {
					other = h.ID()
				}
				return err
			}
			return f.act(c, s, args, letterDeed{
				verb: "requeue", done: "requeued", before: find,
				some: func(ctx context.Context, client *client.Client, all []*client.StoredLetter) (int, error) {
					for _, l := range all {
						edit(l)
					}
					return client.Requeue(ctx, all...)
				},
				all: func(ctx context.Context, cl *client.Client, filter client.LetterFilter, seen func(*client.StoredLetter) bool) (int, error) {
					return cl.RequeueAll(ctx, filter, func(l *client.StoredLetter) bool { edit(l); return seen(l) })
				},
			})
		},
	}
	f.bulk(s, c)
	c.Flags().StringVar(&to, "to", "", "write the messages to the In ports of the same names of this `JOB`")
	s.formats(c, "table", "json", "jsonl", "yaml")
	return c
}

func newDeadDiscard(s *settings) *cobra.Command {
	var f letterFlags
	c := &cobra.Command{
		Use:     "discard [JOB [ID...]]",
		Short:   "Remove dead letters for good",
		Long:    `Remove dead letters for good.` + manyLetters,
		Example: "  weir dead discard shop 5f3a91c20b\n  weir dead discard --older 30d --yes",
		RunE: func(c *cobra.Command, args []string) error {
			return f.act(c, s, args, letterDeed{
				verb: "discard", done: "discarded",
				some: func(ctx context.Context, client *client.Client, all []*client.StoredLetter) (int, error) {
					return client.Discard(ctx, all...)
				},
				all: func(ctx context.Context, client *client.Client, filter client.LetterFilter, seen func(*client.StoredLetter) bool) (int, error) {
					return client.DiscardAll(ctx, filter, seen)
				},
			})
		},
	}
	f.bulk(s, c)
	s.formats(c, "table", "json", "jsonl", "yaml")
	return c
}

// letterDeed is what a command does to dead letters.
type letterDeed struct {
	verb, done string
	before     func(ctx context.Context, client *client.Client) error // nil: nothing
	some       func(ctx context.Context, client *client.Client, all []*client.StoredLetter) (int, error)
	all        func(ctx context.Context, client *client.Client, f client.LetterFilter, seen func(*client.StoredLetter) bool) (int, error)
}

// act does something to the dead letters that the command line names, or to all that pass the filters.
func (f *letterFlags) act(c *cobra.Command, s *settings, args []string, d letterDeed) error {
	given := slices.DeleteFunc(slices.Clone(letterFilters), func(name string) bool { return !c.Flags().Changed(name) })
	switch {
	case len(args) > 1 && len(given) > 0:
		return usageError{fmt.Errorf("--%s says which of many dead letters are meant: leave it out, or %s", given[0], args[1])}
	case len(args) == 0 && len(given) == 0:
		return usageError{fmt.Errorf("give a JOB, or say which dead letters are meant with --%s; see %s --help", strings.Join(letterFilters, ", --"), c.CommandPath())}
	case len(args) < 2 && !f.dryRun && !f.yes && !term.CanAsk(c.InOrStdin()):
		return usageError{errors.New("standard input is no terminal, so nobody can be asked: add --yes, or --dry-run to see which dead letters are meant")}
	}
	prepare := func(ctx context.Context, client *client.Client) error {
		if d.before == nil {
			return nil
		}
		return d.before(ctx, client)
	}
	if len(args) > 1 {
		return s.withLetters(c, f, args, func(ctx context.Context, client *client.Client, all []*client.StoredLetter) error {
			if f.dryRun {
				return s.lettersShown(c, explain.Names(ctx, client), all)
			}
			if err := prepare(ctx, client); err != nil {
				return err
			}
			n, err := d.some(acting(ctx), client, all)
			return d.tell(c, s, client, n, all, err)
		})
	}
	return s.connected(c, func(ctx context.Context, store storecall.Store) error {
		cl := client.New(store)
		filter, err := f.filter(ctx, c, store, args)
		if err == nil {
			err = prepare(ctx, cl)
		}
		if err != nil {
			return err
		}
		if f.dryRun {
			all, _, err := lettersOf(ctx, cl, filter, -1)
			if err != nil {
				return err
			}
			return s.lettersShown(c, explain.Names(ctx, cl), all)
		}
		if !f.yes {
			if err := f.asked(ctx, c, cl, filter, d.verb); err != nil {
				return err
			}
		}
		seen := []*client.StoredLetter{}
		n, err := d.all(acting(ctx), cl, filter, func(l *client.StoredLetter) bool {
			if s.output != "table" { // there may be very many
				seen = append(seen, l)
			}
			return true
		})
		return d.tell(c, s, cl, n, seen, err)
	})
}

// tell says to how many dead letters it was done, or prints them, and why not to others.
func (d *letterDeed) tell(c *cobra.Command, s *settings, cl *client.Client, n int, seen []*client.StoredLetter, err error) error {
	err = withNames(err, explain.Names(c.Context(), cl))
	if d.verb == "requeue" && errors.Is(err, job.ErrClosed) {
		err = fmt.Errorf("%w\nTo have these handled anyway, start the job or graph anew, and requeue them there: --to JOB", err)
	}
	if n == 0 && err != nil {
		return err
	}
	var printed error
	if s.output == "table" {
		_, printed = fmt.Fprintf(c.OutOrStdout(), "%s %s\n", counted(n, "dead letter"), d.done)
	} else {
		seen = slices.DeleteFunc(seen, func(l *client.StoredLetter) bool { return !l.Settled() })
		printed = s.lettersShown(c, explain.Names(c.Context(), cl), seen)
	}
	return cmp.Or(printed, err)
}

// asked returns an error unless somebody says yes to what is to be done to that many letters.
func (f *letterFlags) asked(ctx context.Context, c *cobra.Command, client *client.Client, filter client.LetterFilter, verb string) error {
	n := 0
	for _, err := range client.DeadLetters(ctx, filter) {
		if err != nil {
			return err
		}
		n++
	}
	return ask(ctx, c, fmt.Sprintf("%s these %s", verb, counted(n, "dead letter")))
}
