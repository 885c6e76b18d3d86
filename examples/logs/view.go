package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

// maxBars is how many hours are drawn; more are drawn as days.
const maxBars = 48

// writeJSON writes the result as one JSON object.
func writeJSON(w io.Writer, r Result) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// writeTable writes the result, and the jobs that made it, for people.
func writeTable(w io.Writer, s term.Style, r Result, tree []*job.Info) error {
	v := view{style: s}
	v.printf("%s requests, %s, from %s clients for %s paths", s.Bold(term.Number(r.Requests)), term.Bytes(r.Bytes),
		term.Number(int64(r.Clients.Distinct)), term.Number(int64(r.Paths.Distinct)))
	if r.Rejected.Lines > 0 {
		v.printf("; %s not understood", lines(r.Rejected.Lines))
	}
	v.printf("\n")
	hours, unit := r.Hours, "hour"
	if len(hours) > maxBars {
		hours, unit = byDay(hours), "day"
	}
	v.bars("Requests by status", r.Statuses, func(r Row) int64 { return r.Requests })
	v.bars("Bytes by "+unit+" (UTC)", hours, func(r Row) int64 { return r.Bytes })
	v.bars("Most frequent paths", r.Paths.Frequent, func(r Row) int64 { return r.Requests })
	v.bars("Most frequent clients", r.Clients.Frequent, func(r Row) int64 { return r.Requests })
	v.times("Slowest paths", r.Paths.Slowest)
	v.times("Slowest clients", r.Clients.Slowest)
	v.rejects(r.Rejected)
	v.printf("\n")
	v.err = firstError(v.err, term.Tree(&v.text, tree, s))
	if v.err != nil {
		return v.err
	}
	_, err := io.WriteString(w, v.text.String())
	return err
}

// view is a text under construction.
type view struct {
	style term.Style
	text  strings.Builder
	err   error
}

func (v *view) printf(format string, args ...any) { fmt.Fprintf(&v.text, format, args...) }

func (v *view) title(text string) { v.printf("\n%s\n", v.style.Bold(text)) }

func (v *view) bars(title string, rows []Row, value func(Row) int64) {
	if len(rows) == 0 {
		return
	}
	v.title(title)
	var bars []term.Bar
	for _, r := range rows {
		bars = append(bars, term.Bar{Label: r.Key, Value: value(r)})
	}
	v.err = firstError(v.err, term.Bars(&v.text, bars, v.style))
}

func (v *view) times(title string, rows []Row) {
	if len(rows) == 0 {
		return
	}
	v.title(title)
	for _, r := range rows {
		took := time.Duration(r.mean() * float64(time.Microsecond)).Round(time.Millisecond / 10)
		v.printf("%10s  %s %s\n", took, term.Clean(r.Key), v.style.Faint(fmt.Sprintf("mean of %s", term.Number(r.Timed))))
	}
}

func (v *view) rejects(r RejectedCount) {
	if r.Lines == 0 {
		return
	}
	v.title("Not understood")
	for _, bad := range r.First {
		v.printf("%s:%d: %s: %s\n", term.Clean(bad.Name), bad.Line, bad.Error, v.style.Faint(term.Clean(term.Fit(bad.Text, 60))))
	}
	if more := r.Lines - int64(len(r.First)); more > 0 {
		v.printf("and %s more\n", lines(more))
	}
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func lines(n int64) string {
	if n == 1 {
		return "1 line"
	}
	return term.Number(n) + " lines"
}
