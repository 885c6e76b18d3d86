package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
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
)

// followEvery is how often --follow looks for new entries.
const followEvery = 250 * time.Millisecond

// logFlags are those of weir log.
type logFlags struct {
	tree, follow bool
	since        time.Duration
	from         time.Time // since then, by the clock that entries go by
	number       int
}

func newLog(s *settings) *cobra.Command {
	var f logFlags
	c := &cobra.Command{
		Use:   "log JOB",
		Short: "Show what the last runs of a job, or of a whole tree, read, wrote and logged",
		Long: `Show what the last runs of a job read and wrote, what they logged, how they failed, and what
came from outside; oldest first, with times in UTC. A graph has no runs: of a graph, and of any
job with --tree, it is the log of all jobs below it. A tree keeps some 10,000 entries, or as
long as weir retention --log says; if the first are gone it says so. Messages above 2 KiB, or of
entries above 16 KiB, are counted, but their data is not kept. --follow goes on with what comes,
until Ctrl-C.`,
		Example: "  weir log album-2026 -n 20\n  weir log album-2026 --follow --since 5m\n  weir log 019e1f0e.3 --tree -o jsonl",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.validate(c, s.output); err != nil {
				return err
			}
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				client := client.New(store)
				h, err := find(ctx, client, args[0])
				if err != nil {
					return err
				}
				info, err := h.Info(ctx)
				if err != nil {
					return err
				}
				below := f.tree || info.Graph
				r, err := h.OpenLog(ctx, below)
				if err != nil {
					return err
				}
				p := newLogPrinter(c, s, client)
				if below {
					if err := p.learn(ctx, h); err != nil {
						return err
					}
				}
				if f.since > 0 {
					now, err := store.Now(ctx)
					if err != nil {
						return err
					}
					f.from = now.Add(-f.since)
				}
				return f.print(c, p, r)
			})
		},
	}
	c.Flags().BoolVar(&f.tree, "tree", false, "the log of the job and of all jobs below it")
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	spanVar(c.Flags(), &f.since, "since", 0, "only entries of so long ago, like 5m, and all of them unless -n says otherwise")
	c.Flags().IntVarP(&f.number, "number", "n", 100, "at most `N` entries, the last ones")
	s.formats(c, "table", "json", "jsonl", "yaml")
	return c
}

// validate refuses flags that make no sense together.
func (f *logFlags) validate(c *cobra.Command, output string) error {
	switch {
	case f.number < 0:
		return usageError{fmt.Errorf("-n %d: use a number that is not negative", f.number)}
	case f.since < 0:
		return usageError{fmt.Errorf("--since %s: use a positive time, like 5m", f.since)}
	case f.follow && (output == "json" || output == "yaml"):
		return usageError{fmt.Errorf("-o %s is one document, and --follow has no end: use -o jsonl", output)}
	}
	if f.since > 0 && !c.Flags().Changed("number") {
		f.number = math.MaxInt
	}
	return nil
}

func (f *logFlags) print(c *cobra.Command, p *logPrinter, r *client.LogReader) error {
	entries, err := r.Last(c.Context(), f.number, f.from)
	if err == nil {
		err = p.trimmed(c.Context(), r)
	}
	if err == nil {
		err = p.print(c.Context(), api.LogLines(entries))
	}
	if err != nil || !f.follow {
		return err
	}
	return endure(c, followEvery, func() {}, func(ctx context.Context) error {
		entries, err := r.Next(ctx)
		if err != nil || len(entries) == 0 {
			return err
		}
		if n := r.Missed(); n > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "%s entries were trimmed before they could be shown\n", term.Number(n))
		}
		return p.print(ctx, api.LogLines(entries))
	})
}

// logPrinter prints entries of the logs of one tree.
type logPrinter struct {
	c        *cobra.Command
	settings *settings
	client   *client.Client
	jobs     map[job.ID]*job.Info // nil for those that are gone
	width    int                  // of the longest name so far
}

func newLogPrinter(c *cobra.Command, s *settings, client *client.Client) *logPrinter {
	return &logPrinter{c: c, settings: s, client: client, jobs: map[job.ID]*job.Info{}}
}

// learn reads the names of a whole tree at once; others are asked for one by one.
func (p *logPrinter) learn(ctx context.Context, h *client.Handle) error {
	if p.settings.output != "table" {
		return nil // there are no names in it
	}
	tree, err := h.Tree(ctx)
	for _, i := range tree {
		p.jobs[i.ID] = i
	}
	return err
}

func (p *logPrinter) print(ctx context.Context, lines []api.LogLine) error {
	if p.settings.output == "jsonl" {
		for _, l := range lines {
			if err := encode(p.c.OutOrStdout(), l, ""); err != nil {
				return err
			}
		}
		return nil
	}
	return p.settings.show(p.c, lines, "", func(w io.Writer) error { return p.table(ctx, w, lines) })
}

// trimmed says which logs have lost their first entries.
func (p *logPrinter) trimmed(ctx context.Context, r *client.LogReader) error {
	all, err := r.Trimmed(ctx)
	for _, t := range all {
		p.gone(t)
	}
	return err
}

// gone says that a log has lost its first entries.
func (p *logPrinter) gone(t job.Trimmed) {
	fmt.Fprintf(p.c.ErrOrStderr(), "the log of tree %s begins at %s: its first %s entries were trimmed\n",
		t.Tree, t.Since.UTC().Format("2006-01-02 15:04:05.000"), term.Number(t.Entries))
}

func (p *logPrinter) table(ctx context.Context, w io.Writer, lines []api.LogLine) error {
	style := term.StyleOf(w)
	var out strings.Builder
	for _, l := range lines {
		p.width = min(max(p.width, term.Width(style.Text(term.Clean(p.name(ctx, l.Job))))), maxLogName)
	}
	for _, l := range lines {
		text := explain.Note(l.Note)
		if l.Run != nil {
			text = explain.Run(l.Run, func(id job.ID) string { return p.name(ctx, id) })
		}
		name := style.Fit(term.Clean(p.name(ctx, l.Job)), p.width)
		head := style.Faint(logTime(style, l.At)) + " " + term.Pad(name, p.width) + " "
		for _, line := range style.Line(head, term.Clean(text)) {
			out.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// maxLogName is the number of columns for names of jobs.
const maxLogName = 24

// logTime is the time of the day, with the date if that is another.
func logTime(s term.Style, at time.Time) string {
	switch {
	case s.ISO:
		return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	case s.Since(at) < 24*time.Hour:
		return at.UTC().Format("15:04:05.000")
	}
	return at.UTC().Format("2006-01-02 15:04:05.000")
}

// name is the path of a job below the first of its tree, or else its number.
func (p *logPrinter) name(ctx context.Context, id job.ID) string {
	i := p.info(ctx, id)
	if i == nil {
		return "#" + strconv.Itoa(id.Number())
	}
	name := cmp.Or(i.Name, i.Type)
	if i.Parent == "" {
		return name
	}
	if up := p.info(ctx, i.Parent); up != nil && up.Parent != "" {
		return p.name(ctx, up.ID) + "/" + name
	}
	return name
}

func (p *logPrinter) info(ctx context.Context, id job.ID) *job.Info {
	i, known := p.jobs[id]
	if known {
		return i
	}
	h, err := p.client.Find(ctx, string(id))
	if err == nil {
		i, err = h.Info(ctx)
	}
	if err == nil || errors.Is(err, job.ErrNotFound) {
		p.jobs[id] = i
	}
	return i
}

// read tells whether a run read any message.
func read(r *job.RunEntry) bool {
	return len(r.Read) > 0 || slices.ContainsFunc(r.Groups, func(g job.RunEntry) bool { return read(&g) })
}

// incomplete says what the log does not tell of where a message came from.
func (p *logPrinter) incomplete(ctx context.Context, o *client.Origin) {
	for i := range o.Missing {
		m := &o.Missing[i]
		which := fmt.Sprintf("message %d", m.From)
		if m.N > 1 {
			which = fmt.Sprintf("messages %d to %d", m.From, m.From+int64(m.N)-1)
		}
		fmt.Fprintf(p.c.ErrOrStderr(), "the log does not say who sent %s of %s.%s\n", which, term.Clean(p.name(ctx, m.Job)), m.Port)
	}
	for i := range o.Steps {
		if r := &o.Steps[i]; r.Step > 0 && r.By == "" && !read(r) {
			fmt.Fprintf(p.c.ErrOrStderr(), "run %d of %s read nothing: what its runs before read may have led to it; weir log %s shows them\n", r.Step, term.Clean(p.name(ctx, r.Job)), r.Job)
		}
	}
	if o.Trimmed.Entries > 0 {
		p.gone(o.Trimmed)
	}
	if o.More {
		fmt.Fprintln(p.c.ErrOrStderr(), "more runs led to it: these are the latest")
	}
}

func newTrace(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace JOB PORT [N]",
		Short: "Tell where a message came from",
		Long: `Tell where the N-th message that ever came to a port came from (the first is 0; without
N, the oldest that waits): the run that sent it, those that sent what that run had read,
and so on, nearest first. Of a run that read several messages all are followed. If the log
of the tree does not go back far enough, or a run had read nothing, it says so.`,
		Example: "  weir trace album-2026 thumbs 7",
		Args:    usage(cobra.RangeArgs(2, 3)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.withPort(c, args, func(ctx context.Context, client *client.Client, h *client.Handle, p job.PortInfo) error {
				n := p.Total - p.Waiting
				if len(args) == 3 {
					var err error
					if n, err = strconv.ParseInt(args[2], 10, 64); err != nil || n < 0 {
						return usageError{fmt.Errorf("%q is not the number of a message: the first is 0", args[2])}
					}
				}
				if n >= p.Total {
					where := map[port.Dir]string{port.Input: "In", port.Output: "Out"}[p.Dir] + " port " + p.Name
					had := counted(int(p.Total), "message")
					if len(args) == 2 && p.Total > 0 {
						return usageError{fmt.Errorf("no message waits at %s, which has had %s: name one by its number, as in weir trace %s %s %d", where, had, args[0], args[1], p.Total-1)}
					}
					return usageError{fmt.Errorf("%s of job %s has had %s: none has number %d", where, h.ID(), had, n)}
				}
				o, err := h.Origin(ctx, p.Dir, p.Name, n)
				if err != nil {
					return err
				}
				printer := newLogPrinter(c, s, client)
				if err := printer.print(ctx, api.TraceLines(o.Steps)); err != nil {
					return err
				}
				printer.incomplete(ctx, o)
				return nil
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}
