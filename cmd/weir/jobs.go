package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// jobsFlags are those of weir jobs.
type jobsFlags struct {
	filterFlags
	sort, after string
	limit       int
	count       bool
}

func newJobs(s *settings) *cobra.Command {
	var f jobsFlags
	c := &cobra.Command{
		Use:   "jobs [WORD]",
		Short: "Find jobs: by status, type, queue, label, alias, path, name, state, key or age",
		Long: `Find jobs. Without flags root jobs are listed, the newest first. A job must
pass all the flags given. --path looks only below the jobs that the path leads to; --name and
--all look at all jobs. Sorted by anything but their creation, all jobs that pass are read
before the first is shown. A WORD is searched for, as on the page: with = it is a label, with /
a path, and else a part of an alias; if no job has one like that, a part of a child's name; else
a type.

Jobs that triggers have launched carry the label trigger: --label '!trigger' leaves them out.
Where a terminal is too narrow for all columns some are left out.`,
		Example: "  weir jobs album\n  weir jobs --status failed,running --newer 1h\n  weir jobs --label customer=7 -o jsonl\n  weir jobs --label '!trigger'\n  weir jobs --path 'shop/pay/*' --status failed\n  weir jobs --name 'pay-*' --state receipt\n  weir jobs --type resize --all --sort -ran --limit 10\n  weir jobs --count",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			filter, err := f.filter(c)
			if err != nil {
				return err
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				if err := f.ages(ctx, store, &filter); err != nil {
					return err
				}
				for _, word := range args {
					if filter, err = search(ctx, client.New(store), filter, word); err != nil {
						return err
					}
				}
				if !f.count {
					return s.list(ctx, c, store, filter, f.limit)
				}
				n, err := client.New(store).Count(ctx, filter)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), n)
				return err
			})
		},
	}
	f.flags(s, c)
	orders := texts(job.Orders())
	c.Flags().StringVar(&f.sort, "sort", orders[0], "in the order of `ORDER`: "+strings.Join(orders, ", ")+"; - is for the latest first")
	c.Flags().StringVar(&f.after, "after", "", "only what comes behind the job with this `ID`: the next page")
	c.Flags().IntVar(&f.limit, "limit", 50, "at most `N` jobs; 0 for all")
	c.Flags().BoolVar(&f.count, "count", false, "print only how many there are")
	oneOfWords(c, "sort", orders)
	s.formats(c, "table", "json", "jsonl", "yaml", "name")
	s.watched(c)
	return c
}

func (f *jobsFlags) filter(c *cobra.Command) (job.Filter, error) {
	filter, err := f.filterFlags.filter(c)
	if err == nil {
		err = known("order", f.sort, texts(job.Orders()))
	}
	if err != nil {
		return filter, err
	}
	if f.limit < 0 {
		return filter, usageError{fmt.Errorf("--limit %d: use a positive number, or 0 for all", f.limit)}
	}
	filter.Order = job.Order(f.sort)
	if f.after != "" {
		if filter.After, err = job.ParseID(f.after); err != nil {
			return filter, usageError{fmt.Errorf("--after: %w", err)}
		}
	}
	return filter, nil
}

// search adds to a filter what somebody looks for, as the search field of the page does: of the ways to find it the first by which
// there is a job.
func search(ctx context.Context, client *client.Client, f job.Filter, word string) (job.Filter, error) {
	word = strings.TrimSpace(word)
	part := word
	if !strings.ContainsAny(word, "*?[") {
		part = "*" + word + "*"
	}
	key, value, label := strings.Cut(word, "=")
	ways := []struct {
		flag  string
		field *string
		value string
	}{{"alias", &f.Alias, part}, {"name", &f.Name, part}, {"type", &f.Type, word}}
	switch {
	case word == "":
		return f, usageError{errors.New("the WORD to search for is empty")}
	case label:
		f.Labels[key] = value
		return f, validFilter(f)
	case strings.HasSuffix(word, "/"):
		ways = ways[:1]
		ways[0].flag, ways[0].field, ways[0].value = "path", &f.Path, word+"**"
	case strings.Contains(word, "/"):
		ways = ways[:1]
		ways[0].flag, ways[0].field, ways[0].value = "path", &f.Path, word
	}
	for n, way := range ways {
		if *way.field != "" {
			return f, usageError{fmt.Errorf("%.80q is searched for with --%s, which is given: leave one of them out", word, way.flag)}
		}
		*way.field = way.value
		if err := validFilter(f); err != nil {
			return f, err
		}
		for _, err := range client.Jobs(ctx, f) {
			return f, err
		}
		if n < len(ways)-1 {
			*way.field = ""
		}
	}
	return f, nil
}

// validFilter says what is wrong with a filter.
func validFilter(f job.Filter) error {
	if err := f.Validate(); err != nil {
		return usageError{err}
	}
	return nil
}

// chunk is how many jobs a list takes at a time.
const chunk = 500

// chunks calls fn with the jobs that pass a filter, some at a time and up to limit of them,
// where 0 is for all. It tells whether there are more.
func chunks(ctx context.Context, client *client.Client, f job.Filter, limit int, fn func([]*job.Info) error) (more bool, err error) {
	var list []*job.Info
	n := 0
	for i, err := range client.Jobs(ctx, f) {
		if err != nil {
			return false, err
		}
		if more = n == limit && limit > 0; more {
			break
		}
		n++
		if list = append(list, i); len(list) == chunk {
			if err := fn(list); err != nil {
				return false, err
			}
			list = nil
		}
	}
	if len(list) > 0 {
		err = fn(list)
	}
	return more, err
}

// list prints the jobs that pass a filter.
func (s *settings) list(ctx context.Context, c *cobra.Command, store storecall.Store, f job.Filter, limit int) error {
	client := client.New(store)
	all, last := []*api.Job{}, job.ID("")
	more, err := chunks(ctx, client, f, limit, func(list []*job.Info) error {
		part, err := api.JobsOf(ctx, store, list)
		last = list[len(list)-1].ID
		if err != nil || s.output != "jsonl" && s.output != "name" {
			all = append(all, part...)
			return err
		}
		for _, v := range part { // at once: there may be very many
			if err := s.show(c, v, string(v.ID), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && s.output != "jsonl" && s.output != "name" {
		err = s.show(c, all, "", func(w io.Writer) error {
			if len(all) == 0 {
				return none(ctx, c, client, f)
			}
			return jobTable(w, all, f.Order)
		})
	}
	if err == nil && more {
		_, err = fmt.Fprintf(c.ErrOrStderr(), "there are more: go on with --after %s\n", last)
	}
	return err
}

// none says that no job passes the filter, and which type or queue of it nobody knows, and what it may have been meant to be.
func none(ctx context.Context, c *cobra.Command, client *client.Client, f job.Filter) error {
	known, err := client.Types(ctx)
	if err != nil {
		return err
	}
	var types, queues []string
	for _, t := range known {
		types, queues = append(types, t.Type), append(queues, t.Queue)
	}
	text, hint := "no jobs", ""
	unknown := func(name, words string, known []string) {
		if name == "" || slices.Contains(known, name) {
			return
		}
		text += fmt.Sprintf(words, name)
		if near := port.Suggest(name, known); strings.HasPrefix(near, "did") {
			hint = ": " + near
		}
	}
	unknown(f.Type, " of type %q, which nobody has registered", types)
	unknown(f.Queue, " in queue %q, which no registered type is in", queues)
	_, err = fmt.Fprintln(c.ErrOrStderr(), text+hint)
	return err
}

// jobTable prints jobs, one a line, with those columns that any of them has something for.
func jobTable(w io.Writer, all []*api.Job, order job.Order) error {
	style := term.StyleOf(w)
	// Full times leave room for no more than what tells the jobs apart.
	narrow := style.ISO && style.Width > 0 && style.Width < 110
	columns := []struct {
		head string
		cell func(v *api.Job) string
	}{
		{"ID", func(v *api.Job) string { return string(v.ID) }},
		{"TYPE", func(v *api.Job) string { return term.Clean(v.Type) }},
		{"NAME", func(v *api.Job) string {
			if deref(v.Name) == v.Type { // as the root of a graph is called, and most children
				return ""
			}
			return term.Clean(deref(v.Name))
		}},
		{"STATUS", func(v *api.Job) string { return style.Status(statemachine.Status(v.Status)) }},
		{"AGE", func(v *api.Job) string { return style.Age(at(v.CreatedAt)) }},
		{"RAN", func(v *api.Job) string {
			if order == job.LastRan || order == job.FirstRan {
				return style.Age(at(v.RanAt))
			}
			return ""
		}},
		{"ALIASES", func(v *api.Job) string { return term.Clean(strings.Join(v.Aliases, ",")) }},
		{"SEQUENTIAL KEY", func(v *api.Job) string { return term.Clean(deref(v.SequentialKey)) }},
		{"LABELS", func(v *api.Job) string { return term.Clean(labelText(v.Labels)) }},
		{"REASON", func(v *api.Job) string {
			switch {
			case v.Lock != nil && v.Lock.By != "":
				return "locked by " + term.Clean(v.Lock.By)
			case v.Lock != nil:
				return "locked"
			}
			return term.Clean(explain.FirstLine(deref(v.Reason)))
		}},
	}
	var table []column
	for _, col := range columns {
		cells := []string{col.head}
		for _, v := range all {
			cells = append(cells, col.cell(v))
		}
		if strings.Join(cells[1:], "") == "" || narrow && slices.Contains(spare[:details], col.head) {
			continue
		}
		table = append(table, cells)
	}
	return term.Table(w, rowsOf(fitting(table, style.Width)), style)
}

// column is a column of a table: its head, and a cell for each job.
type column []string

// spare are the heads of columns that are left out where there is no room, in that order. The status never is.
// Beside full times there is room only for those after the first details.
var spare = []string{"SEQUENTIAL KEY", "LABELS", "REASON", "ALIASES", "NAME", "RAN", "AGE", "TYPE"}

const details = 5

// fitting leaves out columns until the others can be shown in a width, if it is not 0: the ID only if there is not even room for it and the status.
func fitting(table []column, width int) []column {
	left, fits := fittingWith(table, width)
	if fits {
		return left
	}
	table = slices.DeleteFunc(slices.Clone(table), func(col column) bool { return col[0] == "ID" })
	left, _ = fittingWith(table, width)
	return left
}

func fittingWith(table []column, width int) (left []column, fits bool) {
	left = slices.Clone(table)
	for _, head := range spare {
		if width == 0 || term.LeastWidth(rowsOf(left)) <= width {
			return left, true
		}
		left = slices.DeleteFunc(left, func(col column) bool { return col[0] == head })
	}
	return left, term.LeastWidth(rowsOf(left)) <= width
}

func rowsOf(table []column) [][]string {
	rows := make([][]string, len(table[0]))
	for _, col := range table {
		for n, cell := range col {
			rows[n] = append(rows[n], cell)
		}
	}
	return rows
}

// at is a time, or the zero time if there is none.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// labelText is labels in one line.
func labelText(labels map[string]string) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+labels[key])
	}
	return strings.Join(words, ",")
}
