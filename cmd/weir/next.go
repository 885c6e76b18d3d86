package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
)

// maxNext is how many times weir next prints at most.
const maxNext = 100_000

// viewNext is what weir next prints with -o json.
type viewNext struct {
	Kind       schedule.Kind `json:"kind"`
	Understood string        `json:"understood"`
	Next       []time.Time   `json:"next"`
}

// nextFlags are the flags of weir next.
type nextFlags struct {
	from, scheduled, started, finished string
	zone                               string
	n                                  int
}

func newNext() *cobra.Command {
	var s settings
	var f nextFlags
	c := &cobra.Command{
		Use:   "next EXPR",
		Short: "Say what a schedule means, and when it comes next",
		Long: `Say what a schedule means, and when it comes next. It needs no Redis.

EXPR is a schedule with the tag of its dialect (cron:, cron7:, every:, repeat:, at:, rrule: or
natural:), or without one: then the output says as which it was read. docs/schedules.md
describes the dialects; @daily is cron's, midnight, and not the moment that a launcher of Cozy
has. --scheduled, --started and --finished are the moments of a last run;
the dialect repeat counts from them, every and cron7 from --scheduled. The times after the
first are those of runs that start on time and finish at once.

A schedule that is not understood, or never comes, is refused with exit code 2.`,
		Example: `  weir next '30 9 * * MON-FRI' --zone Europe/Berlin
  weir next 'every month on the last friday at 17:00' -n 3
  weir next 'repeat:FINISHED, +1 DAY, START OF DAY, +4 HOURS' --finished 2026-03-10T13:45:00Z
  weir next 'cron7:* * * 0/2,3 9 0 0' --from 2026-03-10T13:45:30Z -o json`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := f.moments(time.Now())
			if err != nil {
				return err
			}
			kind, text := schedule.Detect(args[0])
			sched, err := schedule.Parse(kind, text, f.zone, m.Now)
			if err != nil {
				return refusedSchedule(err)
			}
			v := viewNext{Kind: kind, Understood: sched.Understood(), Next: []time.Time{}}
			for t := range sched.Upcoming(m) {
				v.Next = append(v.Next, t)
				if len(v.Next) == f.n {
					break
				}
			}
			if s.output == "table" {
				return s.show(c, nil, "", func(w io.Writer) error { return printNext(w, sched, v.Next) })
			}
			for i := range v.Next {
				v.Next[i] = v.Next[i].UTC()
			}
			return s.show(c, v, "", nil)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.from, "from", "", "the `MOMENT` to start at, RFC 3339 (default the latest of the other moments, or now)")
	flags.StringVar(&f.zone, "zone", "", "the time `ZONE`, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.scheduled, "scheduled", "", "the `MOMENT` the last run was due")
	flags.StringVar(&f.started, "started", "", "the `MOMENT` the last run started")
	flags.StringVar(&f.finished, "finished", "", "the `MOMENT` the last run finished")
	flags.IntVarP(&f.n, "count", "n", 10, "print this many times")
	s.formats(c, "table", "json", "yaml")
	return c
}

// moments reads the flags that are moments.
func (f *nextFlags) moments(now time.Time) (schedule.Moments, error) {
	var m schedule.Moments
	if f.n < 1 || f.n > maxNext {
		return m, usageError{fmt.Errorf("--count %d: use 1 to %d", f.n, maxNext)}
	}
	var latest time.Time
	for _, flag := range []struct {
		name, text string
		to         *time.Time
	}{
		{"scheduled", f.scheduled, &m.Scheduled}, {"started", f.started, &m.Started}, {"finished", f.finished, &m.Finished}, {"from", f.from, &m.Now},
	} {
		if flag.text == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, flag.text)
		if err != nil {
			return m, usageError{fmt.Errorf("--%s %q is not a moment: use RFC 3339, such as 2026-03-10T13:45:30Z", flag.name, flag.text)}
		}
		*flag.to = t
		if t.After(latest) {
			latest = t
		}
	}
	if f.from == "" {
		m.Now = latest
	}
	if m.Now.IsZero() {
		m.Now = now
	}
	return m, nil
}

// refusedSchedule is the error of a schedule, with what was perhaps meant.
func refusedSchedule(err error) error {
	var e *schedule.Error
	if errors.As(err, &e) && e.Word != "" && len(e.Known) > 0 {
		if near := port.Suggest(e.Word, e.Known); strings.HasPrefix(near, "did") {
			err = fmt.Errorf("%w; %s", err, near)
		}
	}
	return usageError{err}
}

// printNext says what a schedule means, and lists times.
func printNext(w io.Writer, sched schedule.Schedule, times []time.Time) error {
	style := term.StyleOf(w)
	lines := style.Line(style.Bold(string(sched.Kind()))+": ", sched.Understood())
	if sched.Resolved() != sched.String() {
		lines = append(lines, style.Line("kept as ", strings.ReplaceAll(sched.Resolved(), "\n", " "))...)
	}
	if _, err := fmt.Fprint(w, strings.Join(lines, "\n"), "\n\n"); err != nil {
		return err
	}
	if len(times) == 0 {
		_, err := fmt.Fprintln(w, "it never comes again")
		return err
	}
	rows := [][]string{{"NEXT", "DAY"}}
	for _, t := range times {
		rows = append(rows, []string{t.Format(time.RFC3339), t.Format("Mon")})
	}
	return term.Table(w, rows, style)
}
