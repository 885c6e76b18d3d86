package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// maxBars is how many hours are drawn; more are drawn as days.
const maxBars = 48

// write writes the result for people.
func (r Result) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%d requests, %.1f MB, from %d clients for %d paths; %d lines not understood\n",
		r.Requests, float64(r.Bytes)/1e6, r.Clients.Distinct, r.Paths.Distinct, r.Rejected.Lines)
	hours, unit := r.Hours, "hour"
	if len(hours) > maxBars {
		hours, unit = byDay(hours), "day"
	}
	bars := func(title string, rows []Row, value func(Row) int64) {
		most := int64(1)
		for _, r := range rows {
			most = max(most, value(r))
		}
		fmt.Fprintf(table, "\n%s\n", title)
		for _, r := range rows {
			fmt.Fprintf(table, "%s\t%d\t%s\n", printable(r.Key), value(r), strings.Repeat("█", int(40*value(r)/most)))
		}
	}
	requests := func(r Row) int64 { return r.Requests }
	bars("Requests by status", r.Statuses, requests)
	bars("Bytes by "+unit+" (UTC)", hours, func(r Row) int64 { return r.Bytes })
	bars("Most frequent paths", r.Paths.Frequent, requests)
	bars("Most frequent clients", r.Clients.Frequent, requests)
	times := func(title string, rows []Row) {
		fmt.Fprintf(table, "\n%s\n", title)
		for _, r := range rows {
			took := time.Duration(r.mean() * float64(time.Microsecond)).Round(time.Millisecond / 10)
			fmt.Fprintf(table, "%s\t%s\tmean of %d\n", printable(r.Key), took, r.Timed)
		}
	}
	times("Slowest paths", r.Paths.Slowest)
	times("Slowest clients", r.Clients.Slowest)
	fmt.Fprintln(table, "\nNot understood")
	for _, bad := range r.Rejected.First {
		fmt.Fprintf(table, "%s:%d: %s: %.60q\n", printable(bad.Name), bad.Line, bad.Error, bad.Text)
	}
	fmt.Fprintln(table)
	return table.Flush()
}

// printable is a text from a log without what a terminal would obey.
func printable(text string) string {
	quoted := fmt.Sprintf("%q", text)
	return quoted[1 : len(quoted)-1]
}
