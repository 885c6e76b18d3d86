package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Result is the analysis.
type Result struct {
	Requests int64         `json:"requests"`
	Bytes    int64         `json:"bytes"`
	Statuses []Row         `json:"statuses"`
	Paths    Ranking       `json:"paths"`
	Clients  Ranking       `json:"clients"`
	Hours    []Row         `json:"hours"` // in UTC
	Rejected RejectedCount `json:"rejected"`
}

// Ranking has the most frequent and the slowest of some keys.
type Ranking struct {
	Distinct int   `json:"distinct"`
	Frequent []Row `json:"frequent"`
	Slowest  []Row `json:"slowest"` // by the mean, of requests that tell it
}

// RejectedCount tells of the lines that could not be parsed.
type RejectedCount struct {
	Lines int64    `json:"lines"`
	First []Reject `json:"first"`
}

// Report joins what the others have found out.
type Report struct {
	Statuses port.In[Table]
	Paths    port.In[Table]
	Hours    port.In[Table]
	Clients  port.In[Table]
	Rejected port.In[RejectedLines]
	Result   port.Out[Result]
}

// JobType implements job.Typer.
func (*Report) JobType() string { return "logs/report" }

// WorkerOptions implements worker.Configured.
func (*Report) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run reads nothing before there is a message in each port, so what came first stays where
// it is.
func (r *Report) Run(context.Context, *worker.Run) error {
	tables := make([]Table, 0, 4)
	in := []port.In[Table]{r.Statuses, r.Paths, r.Hours, r.Clients}
	if r.Rejected.Len() == 0 || slices.ContainsFunc(in, func(t port.In[Table]) bool { return t.Len() == 0 }) {
		return worker.ErrSuspend
	}
	for _, port := range in {
		t, _, err := port.Read()
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	bad, _, err := r.Rejected.Read()
	if err != nil {
		return err
	}
	statuses, paths, hours, clients := tables[0], tables[1], tables[2], tables[3]
	result := Result{
		Requests: statuses.All.Requests, Bytes: statuses.All.Bytes,
		Statuses: statuses.Rows, Paths: paths.ranking(), Clients: clients.ranking(), Hours: hours.Rows,
		Rejected: RejectedCount{Lines: bad.N},
	}
	for _, chunk := range bad.Samples {
		result.Rejected.First = append(result.Rejected.First, chunk.Samples...)
	}
	return r.Result.Write(result)
}

func (t Table) ranking() Ranking {
	return Ranking{Distinct: t.Keys, Frequent: t.Rows, Slowest: t.Slow}
}

// firstOf keeps the first lines that could not be parsed, by file and line.
func firstOf(chunks []Rejects) []Rejects {
	slices.SortFunc(chunks, func(a, b Rejects) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Samples[0].Line, b.Samples[0].Line))
	})
	n := 0
	for i := range chunks {
		left := min(len(chunks[i].Samples), maxSamples-n)
		if left == 0 {
			return chunks[:i]
		}
		chunks[i].Samples = chunks[i].Samples[:left]
		n += left
	}
	return chunks
}
